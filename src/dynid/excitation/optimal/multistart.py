"""Many starts in parallel processes; each finished start is written to the journal immediately."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from dynid.common.errors import NoResultError
from dynid.excitation.optimal.journal import Journal

Make = Callable[..., Any]  # something with `run(number)`
Progress = Callable[[str, float], None]
_OWN: list[Any] = []
_TRIES = 3  # attempts: a process that dies is restarted twice


def run_starts(
    make: Make,
    arguments: Sequence[Any],
    count: int,
    journal: Journal,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    starter: Any | None = None,
    label: str = "start",
) -> tuple[Any, ...]:
    """Run all starts that are not yet in the journal.

    Args:
        make: Builds the starter from the arguments, in every process; importable by its name.
        arguments: Small and serialisable: they are sent to the processes.
        count: Total number of starts.
        jobs: Number of processes; 1: runs in this process.
        starter: Already built, for this process.
        label: Name of one start in the progress display.
    """
    missing = [number for number in range(count) if number not in journal.done]
    for done, start in enumerate(_run(make, arguments, missing, jobs, starter), count - len(missing) + 1):
        journal.add(start)
        if progress is not None:
            progress(f"{label} {done} of {count}", done / count)
    return tuple(journal.done[number] for number in range(count))


def _run(
    make: Make, arguments: Sequence[Any], numbers: Sequence[int], jobs: int, starter: Any | None
) -> Iterator[Any]:
    if not numbers:
        return
    if jobs <= 1 or len(numbers) == 1:
        own = starter or make(*arguments)
        for number in numbers:
            yield own.run(number)
        return
    left = list(numbers)
    for _ in range(_TRIES):
        try:
            for number, found in _parallel(make, arguments, left, jobs):
                left.remove(number)
                yield found
            return
        except BrokenProcessPool:
            jobs = max(1, jobs // 2)  # usually the cause is too little memory
    numbers_left = ", ".join(str(number) for number in left[:8])
    raise NoResultError(
        f"worker processes were killed {_TRIES} times, the last time in one of number {numbers_left}:"
        " probably too little memory. Try --jobs 1; finished starts are kept"
    )


def _parallel(
    make: Make, arguments: Sequence[Any], numbers: Sequence[int], jobs: int
) -> Iterator[tuple[int, Any]]:
    """Numbers and results, in the order of completion."""
    context = multiprocessing.get_context("spawn")  # threads of BLAS and compiled code do not survive a fork
    pool = ProcessPoolExecutor(
        min(jobs, len(numbers)), context, initializer=_prepare, initargs=(make, tuple(arguments))
    )
    try:
        waiting = {pool.submit(_one, number): number for number in numbers}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BaseException:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    pool.shutdown()


def _prepare(make: Make, arguments: tuple[Any, ...]) -> None:
    """Build the starter of a worker; Ctrl-C is handled by the parent."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1, user_api="blas")
    _OWN[:] = [make(*arguments)]


def _one(number: int) -> Any:
    return _OWN[0].run(number)
