"""Sets of free motions of the paper's cable robot: C and CPU of every start, all limits simulated.

    python benchmarks/free_motions.py [STARTS]

The free-motion paper reports C = 5.94 after 36 s per start with its linear model.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dynid.cases.free_motion.excitation import FreeStarter
from dynid.experiment.tasks import ExciteSettings


def main(starts: int) -> None:
    """Print one line per start."""
    starter = FreeStarter("cable4", ExciteSettings(starts=starts))
    # What is compiled once for all runs does not count: it is kept on disk.
    releasing = starter.releasing
    few = releasing.rests(np.random.default_rng(1), 2)[:2]
    releasing.over(releasing.displaced(few, np.full((2, 2), 1e-3)), 0.2)
    values, seconds = [], []
    print("start  C random    C found   of a limit   CPU [s]")
    for number in range(starts):
        begin = time.process_time()
        found = starter.run(number)
        seconds.append(time.process_time() - begin)
        values.append(found.value)
        print(
            f"{number + 1:5d}  {found.first:8.2f} {found.value:10.3f} {found.worst:12.4f} {seconds[-1]:9.1f}"
        )
    worst = max(values)
    print(f"best {min(values):.3f}, worst {worst:.3f}; paper 5.94: {5.94 / worst:.2f} times as much")
    print(f"CPU a start {min(seconds):.1f} to {max(seconds):.1f} s; paper 36 s (another machine)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
