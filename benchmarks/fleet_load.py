"""What a Dask scheduler and its client cost per run of a campaign, measured with simulated runs.

`python benchmarks/fleet_load.py [--runs 2000] [--workers 40] [--seconds 0.5]`. Runs sleep, so one machine
can hold many workers; they return as many bytes as a run of a campaign does. Printed: time beyond that of the
runs, CPU time of scheduler, workers and client together per run, and memory. The rest is arithmetic: see
`docs/explanation/scale.md`.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from functools import partial

from dynid.common.engine import completed

_RESULT = 600_000  # bytes: files of a result, with its report
_DAY = 86_400.0


def simulated_run(seconds: float, size: int, number: int) -> bytes:
    """Sleep, and return what a run returns."""
    time.sleep(seconds)
    return number.to_bytes(8, "little") * (size // 8)


def measured(runs: int, workers: int, seconds: float, size: int) -> dict[str, float]:
    """Cost of runs on one scheduler, its workers in threads of this process."""
    import distributed

    shape = {"n_workers": workers, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(protocol="tcp://", dashboard_address="127.0.0.1:0", **shape) as cluster:
        work = partial(simulated_run, seconds, size)
        _count(work, workers, cluster.scheduler_address)
        begin, cpu, memory = time.perf_counter(), time.process_time(), _peak()
        count = _count(work, runs, cluster.scheduler_address)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    ideal = runs * seconds / workers
    return {
        "runs": count,
        "workers": workers,
        "seconds_per_run": seconds,
        "bytes_per_run": size,
        "wall": round(wall, 2),
        "ideal": round(ideal, 2),
        "overhead_percent": round(100.0 * (wall / ideal - 1.0), 1),
        "cpu_ms_per_run": round(1e3 * cpu / runs, 3),
        "memory_growth_mb": round(_peak() - memory, 1),
    }


def _count(work: Callable[[int], bytes], runs: int, address: str) -> int:
    """Runs that came back."""
    done: set[int] = set()
    for number, _ in completed(work, lambda: sorted(set(range(runs)) - done), cluster=address):
        done.add(number)
    return len(done)


def needed(
    robots: float, cost: float, log_bytes: float, result_bytes: float, per_run: float
) -> dict[str, float]:
    """What one log per robot and day needs, on average over the day.

    Args:
        cost: CPU time of a run, in [s].
        per_run: CPU time of a scheduler per run, in [s].
    """
    rate = robots / _DAY
    return {
        "robots": robots,
        "runs_per_second": round(rate, 3),
        "cores": round(rate * cost, 1),
        "network_mbit_per_s": round(8e-6 * rate * (log_bytes + result_bytes), 1),
        "store_gb_per_day": round(1e-9 * robots * (log_bytes + result_bytes), 1),
        "scheduler_load_percent": round(100.0 * rate * per_run, 2),
        "cores_of_one_scheduler": round(cost / per_run),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--cost", type=float, default=2.0, help="CPU time of one identification [s]")
    parser.add_argument("--log", type=float, default=5e6, help="size of a log [bytes]")
    options = parser.parse_args()
    for size in (0, _RESULT):
        found = measured(options.runs, options.workers, options.seconds, size)
        print(json.dumps(found), flush=True)
    for robots in (1_000, 100_000, 10_000_000):
        need = needed(robots, options.cost, options.log, _RESULT, 1e-3 * found["cpu_ms_per_run"])
        print(json.dumps(need))


if __name__ == "__main__":
    main()
