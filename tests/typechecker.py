"""Checks shapes and types of calls while tests run; an int may stand for a float.

A call that was checked often is right: after the first calls of a function in a process only every call
whose number is a power of two is checked. Checking all of them takes three times as long as the tests.
A function inside another one is made anew by each call of it; all of these count as one function.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))

_FIRST = 8
_CALLS: dict[int, tuple[Any, Iterator[int]]] = {}  # numbers of calls by code, which is kept: ids stay unique
_every_call = jaxtyping.jaxtyped


def sample_checks() -> None:
    """Let the import hook of jaxtyping check some calls of every function instead of all."""
    jaxtyping.jaxtyped = _sampled  # type: ignore[assignment]


def _sampled(function: Any = None, **options: Any) -> Any:
    """As `jaxtyping.jaxtyped`, for the form that its import hook uses; other forms stay as they are."""
    if function is not None:
        return _every_call(function, **options)
    every = _every_call(**options)

    def decorate(target: Any) -> Any:
        if not isinstance(target, type):
            return _alternating(target, lambda: every(target)) if callable(target) else every(target)
        plain = target.__init__
        made = every(target)
        checked = made.__init__
        if checked is not plain:
            made.__init__ = _alternating(plain, lambda: checked)
        return made

    return decorate


def _alternating(plain: Callable[..., Any], make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """`plain`, or its checked form, which is made by the first call: most functions are never called."""
    code = getattr(plain, "__code__", plain)
    _, numbers = _CALLS.setdefault(id(code), (code, itertools.count(1)))
    checked: Callable[..., Any] | None = None

    @functools.wraps(plain)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal checked
        number = next(numbers)
        if number <= _FIRST or number & (number - 1) == 0:
            checked = checked or make()
            return checked(*arguments, **named)
        return plain(*arguments, **named)

    return call
