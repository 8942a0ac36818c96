"""Limits on the memory that a file may require, and the only way to lift them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

REMEDY = "if you trust the file, run `dynid --no-limits ...` (in Python: with dynid.common.limits.lifted())"
_LIFTED: ContextVar[bool] = ContextVar("limits lifted", default=False)


def exceeded(size: float, limit: float) -> bool:
    """Whether a size is above a limit that is in force."""
    return size > limit and not _LIFTED.get()


@contextlib.contextmanager
def lifted(lift: bool = True) -> Iterator[None]:
    """Read files of any size in this block."""
    token = _LIFTED.set(lift)
    try:
        yield
    finally:
        _LIFTED.reset(token)
