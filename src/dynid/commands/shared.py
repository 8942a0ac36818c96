"""Functions and option types shared by several commands."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dynid.common.errors import InputError
from dynid.common.strict_number import is_count, is_number
from dynid.report.terminal import printable

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment


class Number(click.types.FloatParamType):
    """A finite number in ASCII digits, as in files."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a refusal of the option."""
        if isinstance(value, str) and not is_number(value.strip()):
            self.fail(f"'{value}' is not a number.", param, ctx)
        return float(value)


class Whole(click.IntRange):
    """A whole number in ASCII digits within limits."""

    name = "integer range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a refusal of the option."""
        if isinstance(value, str) and not is_count(value.strip().lstrip("+-")):
            self.fail(f"'{value}' is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


NUMBER = Number()


class SeveralLogs(click.Command):
    """A command whose --log and --validate take several files, as a shell expands `--log runs/*.csv`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further file."""
        spread: list[str] = []
        option, values = "", 0
        for argument in args:
            if argument.startswith("-"):
                option = next(
                    (name for name in ("--log", "--validate") if argument.split("=")[0] == name), ""
                )
                values = int("=" in argument)
            elif option:
                spread += [option] if values else []
                values += 1
            spread.append(argument)
        return super().parse_args(ctx, spread)


def shown(path: Path) -> str:
    """A path relative to the current folder if possible."""
    with contextlib.suppress(ValueError):
        return printable(str(path.resolve().relative_to(Path.cwd())))
    return printable(str(path))


@contextlib.contextmanager
def logging_to_terminal() -> Iterator[None]:
    """Show what the library logs (that it compiles, which takes a while) if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    import logging

    class Terminal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(record.getMessage(), err=True)  # above a progress bar, which replaces sys.stderr

    logger, handler = logging.getLogger("dynid"), Terminal()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def refuse_given(names: tuple[str, ...], what: str) -> None:
    """Reject options given on the command line that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} does not apply to {what}")


def keep_unloaded(problem: Experiment, folder: Path) -> None:
    """Reject an output folder that contains the result without load, which is an input."""
    if problem.unloaded is None:
        return
    given = Path(problem.unloaded.result).resolve()
    if folder.resolve() in (given, given.parent):
        text = "would overwrite the result without load, which is needed to compute the payload"
        raise InputError(text, file=folder, remedy="choose another folder with --out")


def names_in(text: str | None) -> tuple[str, ...] | None:
    """`a,b` as names; `none` as no names; nothing given as None."""
    if text is None:
        return None
    if text.strip() == "none":
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise click.UsageError(f"'{text}' contains no name; give names separated by commas")
    return names


def default_out(name: str) -> Path:
    """`results/<name>`; if `name` is a path, only its file name is used."""
    return Path("results") / (Path(name).name or "result")


def version_text(verbose: bool) -> str:
    """The version; `verbose` adds what a bug report needs: system, processor, Python, packages."""
    import os
    import platform
    from importlib.metadata import PackageNotFoundError, requires, version

    text = f"dynid, version {version('dynid')}"
    if not verbose:
        return text
    lines = [
        text,
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        f"{platform.python_implementation()} {platform.python_version()}",
    ]
    for name in sorted(
        {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requires("dynid") or ()} - {"dynid"}
    ):
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return "\n".join(lines)
