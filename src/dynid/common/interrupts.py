"""Ctrl-C that is not lost, and output whose reader has left.

Python raises KeyboardInterrupt wherever it happens to be. Numba's dispatcher, destructors and weak references
discard exceptions, and then the run continues as if nothing had happened. So the signal is also recorded, and
`check`, called between the stages of a run, raises it again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO, cast

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


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Go on with the work without printing once nobody reads it any more: `dynid identify .. | head`."""
    before, unread = sys.stdout, _Unread(sys.stdout)
    sys.stdout = cast("TextIO", unread)
    try:
        yield
    finally:
        unread.flush()
        sys.stdout = before


class _Unread:
    """A text stream that discards everything after its reader has closed it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Print, or discard."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._discard(error)
        return len(text)

    def flush(self) -> None:
        """Print what is waiting, or discard it."""
        try:
            self._stream.flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError) and not (os.name == "nt" and error.errno == errno.EINVAL):
            raise error  # Windows calls a pipe without a reader an invalid argument
        # What the stream still holds would fail again when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
