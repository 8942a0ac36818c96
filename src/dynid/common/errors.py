"""Errors that state the file, the place, the value and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynid.statistics.estimate import Estimate


class DynidError(Exception):
    """Base class of all errors of dynid; `exit_code` is the exit code of the command."""

    exit_code = 2

    @property
    def message(self) -> str:
        """The text with options as on the command line; `str` names the arguments of Python instead."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        """For a Python user."""
        from dynid.common.audience import for_python

        return for_python(self.message)


def command_words(error: BaseException) -> str:
    """Any error in the words of the command line, with its class if it says nothing."""
    text = error.message if isinstance(error, DynidError) else str(error)
    return text or type(error).__name__


class InputError(DynidError):
    """Invalid input: nothing is written, and the message says how to correct it.

    Args:
        text: What is wrong, with the offending value in it.
        file: The file that contains it.
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


class NoParameterError(DynidError, KeyError):
    """No parameter has this name: also a `KeyError`, as of a mapping."""


class NoResultError(DynidError):
    """The input is valid, but it gives no reliable result.

    Args:
        text: What went wrong.
        estimate: The result so far; it is saved and marked by its warnings.
    """

    exit_code = 3

    def __init__(self, text: str, estimate: Estimate | None = None) -> None:
        super().__init__(text)
        self.estimate = estimate


class InterruptedRun(DynidError):
    """Ctrl-C during work whose finished parts are kept: the message says how to continue."""

    exit_code = 130


def similar(name: str, valid: Iterable[str]) -> str:
    """The valid name that a misspelt one probably means; empty if none is close."""
    close = difflib.get_close_matches(str(name), [str(known) for known in valid], n=1, cutoff=0.6)
    return close[0] if close else ""


def nearest(name: str, valid: Iterable[str]) -> str:
    """`; did you mean 'x'?` or the list of valid names: the tail of an unknown-name message."""
    names = [str(candidate) for candidate in valid]
    if close := similar(name, names):
        return f"; did you mean '{close}'?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"; valid names are {shown}" if names else ""


def check_choice(what: str, value: object, valid: Collection[str]) -> None:
    """Refuse a word that is not one of the valid ones."""
    if value not in valid:
        raise InputError(
            f"{what} '{value}' is not known" + nearest(str(value), valid),
            remedy="use one of " + ", ".join(valid),
        )
