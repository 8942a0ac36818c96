"""Errors that carry the file, the place, the value and the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate


class DynidError(Exception):
    """Base of every error dynid raises on purpose; `exit_code` is what the command returns."""

    exit_code = 2


class InputError(DynidError):
    """Input that is refused: nothing is written, and the message says how to mend it.

    Args:
        text: What is wrong, with the offending value in it.
        file: The file in which it stands.
        place: Line, column, joint, row ...: where in the file.
        remedy: What the user can do.
    """

    def __init__(
        self, text: str, *, file: object = None, place: str | None = None, remedy: str | None = None
    ) -> None:
        self.text = text
        self.file = None if file is None else str(file)
        self.place = place
        self.remedy = remedy
        where = ", ".join(part for part in (self.file, place) if part)
        message = f"{where}: {text}" if where else text
        super().__init__(f"{message}\n  remedy: {remedy}" if remedy else message)


class NoResultError(DynidError):
    """The input is fine, but no trustworthy result came out of it.

    Args:
        text: What went wrong.
        estimate: What was found all the same; it is saved, marked by its warnings.
    """

    exit_code = 3

    def __init__(self, text: str, estimate: Estimate | None = None) -> None:
        super().__init__(text)
        self.estimate = estimate


class InterruptedRun(DynidError):
    """Ctrl-C during work whose finished parts are kept: the message says how to go on."""

    exit_code = 130


def nearest(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` or the list of valid names: the tail of an unknown-name message."""
    names = [str(candidate) for candidate in valid]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"; valid names are {shown}" if names else ""
