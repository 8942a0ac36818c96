"""Where the runs of a campaign are computed: a pool of processes, or the workers of a Dask scheduler.

Both are executors of the standard library (`concurrent.futures`), so the rest does not know which it is.
Only a few runs are handed over at a time: memory of this process does not grow with the campaign.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from dynid.common.errors import InputError
from dynid.common.processes import process_pool, quiet_worker

Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 2  # runs per worker that are handed over
_TRIES = 3  # of a run whose process died; the last one alone


@contextlib.contextmanager
def executor(jobs: int | None = None, cluster: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor and the number of its workers.

    Args:
        jobs: Processes on this machine; default one per core.
        cluster: Address of a Dask scheduler (`tcp://host:8786`) instead.
    """
    if cluster is not None:
        with _dask(cluster) as found:
            yield found
        return
    count = jobs or os.cpu_count() or 1
    with process_pool(count, quiet_worker) as pool:
        yield pool, count


@contextlib.contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a Dask scheduler needs the package distributed", remedy="pip install 'dynid[cluster]'"
        ) from None
    # A lost scheduler is reported once, by the error below.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at '{address}': {error}",
            remedy="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from error
    with client:
        count = sum(client.nthreads().values())
        if count == 0:
            raise InputError(
                f"the scheduler at '{address}' has no workers", remedy="start some: `dask worker ADDRESS`"
            )
        yield client.get_executor(pure=False, retries=_TRIES - 1), count


def completed(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    jobs: int | None = None,
    cluster: str | None = None,
) -> Iterator[tuple[Task, Result | BaseException]]:
    """Tasks with their results, in the order of completion; an exception instead where a worker failed.

    A pool whose process dies is replaced: the runs that were in it are tried again, at last one by one, so
    that the run that kills its process is the only one without a result.

    Args:
        work: Function of one task; importable by the workers.
        tasks: What is to be computed.
        jobs, cluster: As for `executor`.
    """
    left, tries = list(tasks), 1
    while left:
        alone = tries >= _TRIES
        lost: list[Task] = []
        for task, result in _pass(work, left[:1] if alone else left, jobs, cluster):
            if isinstance(result, BrokenProcessPool) and not alone:
                lost.append(task)
                continue
            left.remove(task)
            yield task, result
        if lost:
            tries += 1


def _pass(
    work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int | None, cluster: str | None
) -> Iterator[tuple[Task, Result | BaseException]]:
    """Each task once, a few at a time; those that a broken pool has not begun are left out."""
    waiting: dict[Future[Any], Task] = {}
    queue = iter(tasks)
    with executor(jobs, cluster) as (pool, count):
        broken = False
        while True:
            while not broken and len(waiting) < _AHEAD * count:
                task = next(queue, None)
                if task is None:
                    break
                try:
                    waiting[pool.submit(work, task)] = task
                except BrokenProcessPool:
                    broken = True
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                if future.cancelled():
                    raise InputError(
                        f"the connection to the Dask scheduler at '{cluster}' was lost",
                        remedy="start it, and run the same command again: finished runs are not repeated",
                    )
                error = future.exception()
                broken = broken or isinstance(error, BrokenProcessPool)
                yield waiting.pop(future), future.result() if error is None else error
