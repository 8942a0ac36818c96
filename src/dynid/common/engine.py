"""Where many tasks are computed: a pool of processes, or the workers of a Dask scheduler.

Both are executors of the standard library (`concurrent.futures`), so the rest does not know which it is.
Only a few tasks are handed over at a time: memory of this process does not grow with their number. Runs of a
campaign, starts of an excitation and draws of a rehearsal are such tasks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from dynid.common.errors import InputError
from dynid.common.versions import version_of

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[str, float], None]  # called with a text and the fraction done

_AHEAD = 2  # tasks per worker that are handed over
_SILENCE = 10.0  # seconds without a result after which one looks whether there are workers
TRIES = 3  # of a task whose process died; the last one alone


class Died(Exception):
    """The process of a task died `TRIES` times, probably of too little memory."""


def completed(
    work: Callable[[Task], Result],
    left: Callable[[], Sequence[Task]],
    jobs: int | None = None,
    cluster: str | None = None,
) -> Iterator[tuple[Task, Result | BaseException]]:
    """Tasks with their results, in the order of completion; an exception instead where a worker failed.

    A pool whose process dies is replaced: the tasks that were in it are tried again, at last one by one, so
    that the task that kills its process is the only one without a result.

    Args:
        work: Function of one task; importable by the workers.
        left: The tasks still to be done: none that this function has given back. It is asked again when all
            are done, until there are none, so that tasks may follow from results.
        jobs: Processes on this machine; default one per core.
        cluster: Address of a Dask scheduler (`tcp://host:8786`) instead.
    """
    tries = 1
    while left():
        alone, broken = tries >= TRIES, False
        with _executor(jobs, cluster) as (pool, workers):
            while not broken and (tasks := left()):
                for task, result in _round(pool, workers, work, tasks[:1] if alone else tasks, cluster):
                    if isinstance(result, BrokenProcessPool):
                        broken = True
                        if not alone:
                            continue
                        result = Died()
                    yield task, result
        tries += broken and not alone


def _round(
    pool: Executor,
    workers: Callable[[], int],
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    cluster: str | None,
) -> Iterator[tuple[Task, Result | BaseException]]:
    """Each task once, a few at a time; those that a broken pool has not begun are left out."""
    waiting: dict[Future[Any], Task] = {}
    queue, broken, count, silent = iter(tasks), False, workers(), False
    while True:
        while not broken and len(waiting) < _AHEAD * count:
            task = next(queue, None)
            if task is None:
                break
            try:
                waiting[pool.submit(work, task)] = task
            except BrokenProcessPool as lost:
                broken = True
                yield task, lost
        if not waiting:
            return
        done, _ = wait(waiting, _SILENCE, FIRST_COMPLETED)
        if not done and not silent and not workers():
            silent = True
            logging.getLogger("dynid").warning(
                f"dynid: the scheduler at '{cluster}' has no workers left: waiting for new ones"
            )
        for future in done:
            if future.cancelled():
                raise InputError(
                    f"the connection to the Dask scheduler at '{cluster}' was lost",
                    remedy="start it, and run the same command again: what is finished is not repeated",
                )
            error = future.exception()
            broken = broken or isinstance(error, BrokenProcessPool)
            if type(error).__name__ == "KilledWorker":  # of Dask, which has tried again itself
                error = Died()
            yield waiting.pop(future), future.result() if error is None else error


@contextlib.contextmanager
def _executor(jobs: int | None, cluster: str | None) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """An executor and the number of its workers at this moment."""
    if cluster is not None:
        with _dask(cluster) as client:
            yield client
        return
    count = jobs or os.cpu_count() or 1
    with _process_pool(count) as pool:
        yield pool, lambda: count


@contextlib.contextmanager
def _process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes; if the block fails or is interrupted, they are ended at once.

    They are spawned: threads of BLAS and compiled code do not survive a fork.
    """
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_quiet_worker)
    try:
        yield pool
    except BaseException:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _quiet_worker() -> None:
    """A worker has one thread of BLAS and ends with its parent, which also handles Ctrl-C."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1, user_api="blas")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for a parent that is killed: its workers would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a Dask scheduler needs the package distributed", remedy="pip install 'dynid[cluster]'"
        ) from None
    # A lost scheduler is reported once, by the error of `_round`; each logger of Dask has a level of its own.
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout="20s")
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at '{address}': {error}",
            remedy="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from error
    with client:

        def workers() -> int:
            return sum(client.nthreads().values())

        if workers() == 0:
            raise InputError(
                f"the scheduler at '{address}' has no workers", remedy="start some: `dask worker ADDRESS`"
            )
        _check_versions(client, address)
        yield client.get_executor(pure=False, retries=TRIES - 1), workers


def _check_versions(client: Any, address: str) -> None:
    """Refuse a scheduler or workers that lack dynid, or have another version of it."""
    remedy = f"install dynid {version_of()} on the scheduler and on all workers"
    try:
        found = {client.run_on_scheduler(version_of), *client.run(version_of).values()}
    except Exception as error:  # what arrives here is that of the other process
        raise InputError(
            f"scheduler or workers at '{address}' cannot run dynid: {error}", remedy=remedy
        ) from error
    if found != {version_of()}:
        others = ", ".join(sorted(found - {version_of()}))
        raise InputError(f"scheduler or workers at '{address}' have dynid {others}", remedy=remedy)
