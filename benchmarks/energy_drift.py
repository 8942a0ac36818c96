"""Energy drift of robots without friction that oscillate on springs for ten seconds, with dynid's integrator.

    python benchmarks/energy_drift.py [--step 0.001] [ROBOT ...]

Printed: energy error over the largest kinetic energy, closure error of the loops, and the computing time
per second of motion.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.physics.test_forward_random import swinging

ROBOTS = ("serial6", "ur5", "fivebar", "dualv", "orthoglide", "delta", "stewart", "evra")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=list(ROBOTS))
    parser.add_argument("--step", type=float, default=1e-3)
    asked = parser.parse_args()
    for name in asked.robots:
        plant = swinging(name, 0.3)
        plant.step = asked.step
        began = time.perf_counter()
        run = plant.recorded(np.arange(101) / 10.0, round(0.1 / asked.step))
        seconds = (time.perf_counter() - began) / 10.0
        swing = np.ptp(run.q, axis=0).max()
        print(
            f"{name:12} drift {run.energy_drift:.2e}  loops {run.gap.max():.1e}  swing {swing:.2f}"
            f"  {seconds:.2f} s a second",
            flush=True,
        )


if __name__ == "__main__":
    main()
