"""Long logs end to end: `dynid identify` from a Parquet file, CPU seconds and peak memory of the command.

`python benchmarks/long_file.py [N ...]` writes a log of a UR5 at 1 kHz with N samples (65 814, 2 000 000),
runs the command on it with all default choices, report included, and removes both. 50 000 000 samples need
4 GB of disk space, and 7 GB for temporary files.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dynid import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.layout import tree_regressor
from dynid.robots.truth import Truth, true_values

LENGTHS = (65_814, 2_000_000)
_CHUNK = 1 << 16
_STEP = 1e-3  # s
_NOISE = (0.8, 0.8, 0.8, 0.1, 0.1, 0.1)  # N m


def chunks(n: int) -> Iterator[dict[str, np.ndarray]]:
    """Columns of consecutive parts: sums of sines without a common period, efforts of the true parameters."""
    robot = load_robot("ur5")
    parameters = parameter_table(robot)
    truth, _ = true_values(robot, Truth())
    chi = np.array([truth[one.name] for one in parameters])
    regressor = tree_regressor(robot, parameters, np.eye(6))
    coefficients = regressor.layout.coefficients(chi)
    rng = np.random.default_rng(7)
    frequency = 2 * np.pi * 0.1 * np.arange(1, 6) * (1 + 0.013 * np.arange(6)[:, None] * np.sqrt(2))
    size, phase = 0.6 / np.arange(1, 6), rng.uniform(0, 6, (6, 5))
    for first in range(0, n, _CHUNK):
        t = _STEP * np.arange(first, min(first + _CHUNK, n))
        angle = frequency[..., None] * t + phase[..., None]
        q = np.einsum("k,jkn->nj", size, np.sin(angle))
        dq = np.einsum("k,jk,jkn->nj", size, frequency, np.cos(angle))
        ddq = -np.einsum("k,jk,jkn->nj", size, frequency**2, np.sin(angle))
        tau = np.empty_like(q)
        for a in range(0, len(t), 1024):
            part = slice(a, a + 1024)
            packed = regressor.packed(q[part], dq[part], ddq[part], np.zeros_like(q[part]))
            tau[part] = regressor.layout.sums(packed, coefficients).T
        tau += _NOISE * rng.normal(size=tau.shape)
        q += 2e-5 * rng.normal(size=q.shape)
        columns = {"t": t}
        columns |= {f"q_{j + 1}": q[:, j] for j in range(6)}
        yield columns | {f"tau_{j + 1}": tau[:, j] for j in range(6)}


def write(n: int, path: Path) -> None:
    """The log as a Parquet file with row groups of a million samples."""
    writer = None
    waiting: list[pa.Table] = []
    for columns in chunks(n):
        waiting.append(pa.table(columns))
        if len(waiting) == 16:
            writer = writer or pq.ParquetWriter(path, waiting[0].schema)
            writer.write_table(pa.concat_tables(waiting))
            waiting = []
    writer = writer or pq.ParquetWriter(path, waiting[0].schema)
    if waiting:
        writer.write_table(pa.concat_tables(waiting))
    writer.close()


def measured(n: int, folder: Path) -> dict[str, object]:
    """Seconds and memory of the command, from the file to the written result."""
    path = folder / f"{n}.parquet"
    write(n, path)
    command = [sys.executable, "-m", "dynid", "identify", "--robot", "ur5", "--log", str(path)]
    start = time.perf_counter()
    child = subprocess.Popen([*command, "--out", str(folder / "out")], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    size = path.stat().st_size
    path.unlink()
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "bench": "long_file",
        "n": n,
        "exit": os.waitstatus_to_exitcode(status),
        "cpu_s": round(cpu, 2),
        "wall_s": round(seconds, 2),
        "cpu_us_per_sample": round(1e6 * cpu / n, 3),
        "peak_mb": round(usage.ru_maxrss / 1024, 1),
        "file_mb": round(size / 1e6, 1),
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for length in [int(one) for one in sys.argv[1:]] or LENGTHS:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as place:
            print(json.dumps(measured(length, Path(place))), flush=True)
