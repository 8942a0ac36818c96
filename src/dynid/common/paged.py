"""Large arrays in a temporary file instead of memory: pages that are not in use leave the process.

Logs of hours do not fit into memory. Their arrays are maps of a file that has no name and vanishes with
the array; code that works through them in ranges calls `release` now and then. A page that is needed again
comes from the cache of the operating system.

Work on all cores with bounded memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from dynid.common.arrays import Array, Float, Int


LARGE = 1 << 25  # bytes; smaller arrays stay in memory
RANGE = 1 << 18  # samples that are processed at once
CACHED = 1 << 14  # samples of a few signals that fit the cache of a core
LONG = 1 << 18  # samples: of longer signals windows are enough for medians and quantiles
_WINDOW = 1 << 14
_maps: list[weakref.ref[mmap.mmap]] = []


def empty(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """An array without values, in a temporary file if it is large and the disk has room for it."""
    size = math.prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    place = _place(size) if size >= LARGE else None
    return np.empty(shape, dtype) if place is None else np.frombuffer(place, dtype).reshape(shape)


def spare(n: int) -> Array | None:
    """Room for n numbers that save work if they are kept, as `empty`; None rather than much memory."""
    size = n * np.dtype(float).itemsize
    if size < LARGE:
        return np.empty(n)
    place = _place(size)
    return None if place is None else np.frombuffer(place, float)


def _place(size: int) -> mmap.mmap | None:
    """A map of a new temporary file of so many bytes; None if the disk has no room for it."""
    if not hasattr(os, "posix_fallocate"):
        return None
    try:
        with tempfile.TemporaryFile(prefix="dynid-") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk must fail here, not at the first write
            place = mmap.mmap(file.fileno(), size)
    except OSError:
        return None
    _maps.append(weakref.ref(place, _maps.remove))
    return place


def flags(n: int, value: bool) -> Array:
    """One flag per sample, all equal, in a temporary file if there are many."""
    marks = empty(n, bool)
    for start, stop in ranges(n):
        marks[start:stop] = value
    return marks


def release() -> None:
    """Take the pages of all such arrays out of the process; their contents stay."""
    for reference in tuple(_maps):
        place = reference()
        if place is not None:
            with contextlib.suppress(OSError, ValueError):
                place.madvise(mmap.MADV_DONTNEED)


def trim() -> None:
    """Give memory that is free inside the process back to the system, if there are large arrays."""
    if _maps:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # GNU C library only


def ranges(n: int, cached: bool = False) -> Iterator[tuple[int, int]]:
    """Ranges [start, stop) that cover n samples, short ones if `cached`; pages are released now and then."""
    step = min(RANGE, CACHED) if cached else RANGE
    for start in range(0, n, step):
        yield start, min(start + step, n)
        if n > RANGE and (start + step) % RANGE == 0:
            release()


def windows(x: Array) -> list[Array]:
    """The samples, or windows spread over them if they are many: enough for medians and quantiles."""
    if len(x) <= LONG:
        return [x]
    starts = np.linspace(0, len(x) - _WINDOW, LONG // _WINDOW).astype(int)
    bounds = []
    for start in starts:
        bounds.append(np.array(x[start : start + _WINDOW]))
        release()
    return bounds


class Part(NamedTuple):
    """Samples [start, stop) of several signals, with some before and after them.

    Attributes:
        first: Number of the first sample in `rows`.
        rows: One row per signal, shape (m, k).
    """

    start: int
    stop: int
    first: int
    rows: Float[Array, "m k"]


def parts(x: Float[Array, "n m"], reach: int = 0) -> Iterator[Part]:
    """All samples, in parts that stay in the cache, with `reach` more samples on either side."""
    for start, stop in ranges(len(x), cached=True):
        first = max(0, start - reach)
        yield Part(start, stop, first, np.ascontiguousarray(x[first : stop + reach].T, dtype=float))


def extremes(x: Float[Array, "n m"]) -> tuple[Float[Array, "m"], Float[Array, "m"], Int[Array, "m"]]:
    """Smallest and largest finite value of each signal, and how many finite ones there are."""
    m = x.shape[1]
    low, high, count = np.full(m, np.inf), np.full(m, -np.inf), np.zeros(m, int)
    for part in parts(x):
        least, most = part.rows.min(axis=1), part.rows.max(axis=1)
        count += part.rows.shape[1]
        if not np.isfinite(least + most).all():
            finite = np.isfinite(part.rows)
            least = np.min(part.rows, axis=1, initial=np.inf, where=finite)
            most = np.max(part.rows, axis=1, initial=-np.inf, where=finite)
            count -= np.sum(~finite, axis=1)
        low, high = np.minimum(low, least), np.maximum(high, most)
    return low, high, count


S = TypeVar("S")
T = TypeVar("T")

_AHEAD = 4  # results per thread that wait at most
_FEW = 2
_RELEASE = 16  # tasks after which pages of large arrays are released


def in_order(function: Callable[[S], T], tasks: Iterable[S], threads: int | None = None) -> Iterator[T]:
    """Results of a function for all tasks, in their order, computed by threads.

    Only a few tasks are begun before their result is used, so results do not pile up.

    Args:
        function: Called in a thread.
        tasks: One argument each.
        threads: None: as many as there are cores.
    """
    threads, stop = threads or os.cpu_count() or 1, _STOP.get()
    waiting: deque[Future[T]] = deque()
    trim()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for k, task in enumerate(tasks):
                if k % _RELEASE == 0:
                    release()
                if stop is not None and stop.is_set():
                    raise CancelledError
                waiting.append(pool.submit(function, task))
                if len(waiting) >= _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def together(function: Callable[[S], T], tasks: Iterable[S]) -> list[T]:
    """The same for few results that fit in memory; one or two tasks are not worth the start of threads."""
    given = list(tasks)
    if len(given) <= _FEW:
        return [function(task) for task in given]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(function, given))


def in_parts(function: Callable[[slice], T], n: int, size: int) -> list[T]:
    """The same for consecutive parts of n samples."""
    return together(function, (slice(start, min(start + size, n)) for start in range(0, n, size)))


_STOP: ContextVar[Event | None] = ContextVar("_STOP", default=None)
_RUNNING: set[Future[Any]] = set()
_PATIENCE = 5.0  # s before a fork: longer than what is begun should take


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """What is `begun` inside stops at its next task if an error or Ctrl-C ends this part of a program."""
    stop = Event()
    outer = _STOP.set(stop)
    try:
        yield
    except BaseException:
        stop.set()
        raise
    finally:
        _STOP.reset(outer)


def begun(function: Callable[[], T]) -> Future[T]:
    """The result of a function that a thread computes while this one goes on, or its error.

    The process ends after it: it is for work of a second or less, or for tasks `in_order`, which stop at the
    end of the process and of what is `stoppable`. A process is forked after it: threads do not survive.
    """
    pool = ThreadPoolExecutor(1)
    future = pool.submit(copy_context().run, function)
    pool.shutdown(wait=False)
    _RUNNING.add(future)
    future.add_done_callback(_RUNNING.discard)
    return future


def _before_fork() -> None:
    """Let threads finish: a child would wait for ever for their results, or for a lock that one holds."""
    wait(tuple(_RUNNING), _PATIENCE)


def _after_fork() -> None:
    """In the child, what has not finished never will."""
    for future in tuple(_RUNNING):
        future.set_exception(RuntimeError("a process was forked while a thread was at work"))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
