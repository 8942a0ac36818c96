"""Refusals that a user may override: doubts about data that can still be computed with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace

from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice

_FORCED: ContextVar[bool] = ContextVar("refusals overridden", default=False)


def doubt(error: InputError) -> Notice:
    """Refuse the input; where refusals are overridden, return the refusal as a notice instead.

    Only for input that can be used although it is most likely wrong: a swapped column, a wrong unit.
    """
    if not _FORCED.get():
        raise error
    where = ", ".join(part for part in (error.file and _short(error.file), error.place) if part)
    text = f"{where}: {error.text}" if where else error.text
    return replace(notice("forced", text=text), remedy=error.remedy or "")


def refusal_text(finding: Notice) -> str:
    """The refusal in a notice of `doubt`, without the words that it was overridden."""
    return finding.text.removeprefix(notice("forced", text="").text)


def overridden() -> bool:
    """Whether refusals are overridden here."""
    return _FORCED.get()


@contextlib.contextmanager
def forced(force: bool = True) -> Iterator[None]:
    """Override refusals of doubtful input in this block; they become notices."""
    token = _FORCED.set(force or _FORCED.get())
    try:
        yield
    finally:
        _FORCED.reset(token)


def _short(file: str) -> str:
    """The name of a file without its folders: notices are stored in results, which are sent to others."""
    return file.replace("\\", "/").rpartition("/")[2] or file
