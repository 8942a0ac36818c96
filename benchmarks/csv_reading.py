"""A CSV file of 2 000 000 rows and 25 columns: the reader beside the C engine of pandas, in one run.

    python benchmarks/csv_reading.py [ROWS] [TURNS]

The readers take turns; CPU and wall seconds are medians.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dynid.motion.csv_file import read_csv


def write(path: Path, rows: int) -> None:
    """Time, positions, velocities, efforts and currents with as many digits as controllers write."""
    rng = np.random.default_rng(1)
    part = 50_000
    names = ["t", *(f"{kind}_{j}" for kind in ("q", "dq", "tau", "current") for j in range(1, 7))]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, rows, part):
            table = rng.normal(size=(min(part, rows - start), len(names)))
            table[:, 0] = 0.001 * (start + np.arange(len(table)))
            np.savetxt(file, table, fmt="%.9g", delimiter=",")


def main() -> None:
    """Write, read in turns, compare."""
    given = [int(text) for text in sys.argv[1:]]
    rows, turns = given[0] if given else 2_000_000, given[1] if len(given) > 1 else 3
    readers = {"dynid": read_csv, "pandas": lambda path: pd.read_csv(path, engine="c")}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in readers}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        write(path, rows)
        for _ in range(turns):
            for name, read in readers.items():
                cpu, wall = time.process_time(), time.perf_counter()
                read(path)
                took[name].append((time.process_time() - cpu, time.perf_counter() - wall))
        size = path.stat().st_size / 1e6
    medians = {name: np.median(values, axis=0).round(2).tolist() for name, values in took.items()}
    print(json.dumps({"rows": rows, "file_mb": round(size), "cpu_and_wall_s": medians}))


if __name__ == "__main__":
    main()
