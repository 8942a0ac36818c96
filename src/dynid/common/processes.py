"""Pools of worker processes that end with their block, whatever happens in it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


@contextlib.contextmanager
def process_pool(
    count: int, initializer: Callable[..., None], *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes; if the block fails or is interrupted, they are ended at once.

    They are spawned: threads of BLAS and compiled code do not survive a fork.
    """
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=initializer, initargs=arguments)
    try:
        yield pool
    except BaseException:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    pool.shutdown()


def quiet_worker() -> None:
    """A worker has one thread of BLAS; Ctrl-C is handled by the parent."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1, user_api="blas")
