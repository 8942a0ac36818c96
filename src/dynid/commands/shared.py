"""What several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource


def shown(path: Path) -> str:
    """A path as short as it can be said from here."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C arrives as KeyboardInterrupt, also out of compiled code.

    Numba hands arrays and tuples back through Python; an interrupt that lands there comes out as a
    SystemError ("returned a result with an exception set") whose cause is the KeyboardInterrupt.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise cause from None


def refuse_given(names: tuple[str, ...], what: str) -> None:
    """Refuse options that the command line gives and that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} does not apply to {what}")
