"""Identify a 6R arm of steel cylinders from a table of five instants with seven digits.

Run:  python examples/wrench_serial6.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from dynid import (
    UniformAcceleration,
    demo_file,
    identify,
    load_robot,
    read_demo,
    wrench_table,
    write_wrench_table,
)

INSTANTS = np.array([0.3, 0.6, 0.9, 1.2, 1.5])
DIGITS = 7


def main() -> None:
    """Print estimated and true masses and principal inertias."""
    robot = load_robot("serial6")
    truth = read_demo(demo_file("serial6"), robot).truth
    # From rest, 30 deg/s^2 on the first two joints.
    motion = UniformAcceleration(np.zeros(6), np.deg2rad([30.0, 30.0, 0.0, 0.0, 0.0, 0.0]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "five.csv"
        write_wrench_table(wrench_table(robot, truth, motion, INSTANTS, DIGITS), file, DIGITS)
        estimate = identify(robot, file, model="wrench", wrench={"parameters": "principal"})
    print(f"{'parameter':<10}{'found':>12}{'true':>12}{'error %':>10}{'sigma %':>10}  unit")
    for one in estimate.parameters:
        error = 100.0 * (one.value / truth[one.name] - 1.0)
        sigma = one.sigma_rel_percent or 0.0
        print(f"{one.name:<10}{one.value:12.4f}{truth[one.name]:12.4f}{error:10.5f}{sigma:10.5f}  {one.unit}")
    for hidden, reason in estimate.not_identifiable.items():
        print(f"{hidden}: not identifiable. {reason}")
    print(estimate.choices["mass by direction"])


if __name__ == "__main__":
    main()
