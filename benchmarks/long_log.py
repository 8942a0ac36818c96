"""Long logs: time must grow in proportion to the length, memory beyond the inputs must not grow.

Positions and efforts of a UR5 at 1 kHz; filter, derivatives, regressor, decimation, base
parameters, WLS. Each length runs in its own process; peak memory is that of the identification
alone (the high-water mark is reset once the inputs exist).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

LENGTHS = (250_000, 500_000, 1_000_000, 2_000_000)


def one(n: int) -> None:
    import numpy as np
    import peers

    common = peers.load()
    from dynid import load_robot
    from dynid.experiment.experiment import Experiment
    from dynid.motion.logs import log_from_arrays
    from dynid.pipeline import identify_logs

    robot = load_robot(common.urdf("ur5")[0])
    identify_small(robot, identify_logs, log_from_arrays, Experiment)
    t = 1e-3 * np.arange(n)
    q, tau = np.zeros((n, 6)), np.zeros((n, 6))
    rng = np.random.default_rng(7)
    for j in range(6):
        for k in range(1, 6):
            q[:, j] += 0.6 / k * np.sin(0.63 * k * (1 + 0.01 * j) * t + rng.uniform(0, 6))
        tau[:, j] = rng.normal(size=n)
        tau[:, j] += 20.0 * q[:, j]
    log = log_from_arrays(robot, t, q, tau)
    inputs = sum(x.nbytes for x in (log.t, log.q, log.tau)) / 1e6
    before = reset_peak()
    start = time.perf_counter()
    estimate = identify_logs(robot, [log], (), Experiment(robot=robot))
    seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "bench": "long_log",
                "n": n,
                "seconds": round(seconds, 2),
                "us_per_sample": round(1e6 * seconds / n, 3),
                "inputs_mb": round(inputs, 1),
                "over_inputs_mb": round(peak() - before, 1),
                "parameters": estimate.fit.n_parameters,
            }
        ),
        flush=True,
    )


def identify_small(robot, identify_logs, log_from_arrays, experiment) -> None:
    """Compile and load everything once, so that only the log's length is measured."""
    import numpy as np

    t = 1e-3 * np.arange(20_000)
    q = np.sin(np.outer(t, np.arange(1, 7)))
    identify_logs(robot, [log_from_arrays(robot, t, q, q)], (), experiment(robot=robot))


def reset_peak() -> float:
    """Reset the peak memory (if the kernel allows it); returns the memory in use, in MB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return _status("VmRSS")


def peak() -> float:
    try:
        return _status("VmHWM")
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(int(sys.argv[1]))
    else:
        for length in LENGTHS:
            subprocess.run([sys.executable, __file__, str(length)], check=True)
