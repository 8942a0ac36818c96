"""Work on all cores with bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dynid.common.paged import release, trim

S = TypeVar("S")
T = TypeVar("T")

_AHEAD = 4  # results per thread that wait at most
_RELEASE = 16  # tasks after which pages of large arrays are released


def in_order(function: Callable[[S], T], tasks: Iterable[S], threads: int | None = None) -> Iterator[T]:
    """Results of a function for all tasks, in their order, computed by threads.

    Only a few tasks are begun before their result is used, so results do not pile up.

    Args:
        function: Called in a thread.
        tasks: One argument each.
        threads: None: as many as there are cores.
    """
    threads = threads or os.cpu_count() or 1
    waiting: deque[Future[T]] = deque()
    trim()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for k, task in enumerate(tasks):
                if k % _RELEASE == 0:
                    release()
                waiting.append(pool.submit(function, task))
                if len(waiting) >= _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
