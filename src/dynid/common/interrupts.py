"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. Numba's dispatcher, destructors and weak references
discard exceptions, and then the run continues as if nothing had happened. So the signal is also recorded, and
`check`, called between the stages of a run, raises it again.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_PENDING = threading.Event()


def check() -> None:
    """Raise KeyboardInterrupt if one was received that has not ended the run."""
    if _PENDING.is_set():
        raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, also from compiled code.

    Numba returns arrays and tuples through Python. An interrupt at that moment appears as a SystemError
    ("returned a result with an exception set"), or as a wrong type of an argument.
    """
    try:
        with _recorded():
            yield
    except KeyboardInterrupt:
        _PENDING.clear()
        raise
    except Exception as error:
        if not (_PENDING.is_set() or _caused_by_interrupt(error)):
            raise
        _PENDING.clear()
        raise KeyboardInterrupt from None


def _caused_by_interrupt(error: BaseException) -> bool:
    cause: BaseException | None = error if isinstance(error, SystemError) else None
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


@contextlib.contextmanager
def _recorded() -> Iterator[None]:
    """Record SIGINT; handlers of a program that uses dynid as a library stay."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    _PENDING.clear()
    signal.signal(signal.SIGINT, _handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _handle(number: int, frame: FrameType | None) -> None:
    _PENDING.set()
    raise KeyboardInterrupt
