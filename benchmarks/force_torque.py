"""Coverage and accuracy of the identification of a tool behind a force/torque sensor.

20 s of wrist motion of the built-in `panda` at 200 Hz, noise 0.5 N and 0.02 N m, encoder noise 2e-6 rad,
with bias: with arm kinematics, with an IMU (gyroscope 0.003 rad/s, accelerometer 0.03 m/s^2), with an
unknown mounting angle and direction of gravity. Printed: the fraction of the 95 % intervals that contain the
true value, the worst errors of mass and centre of mass over all seeds, the rms error of the inertias in
sigma. The wrench comes from Pinocchio.

Run:  python benchmarks/force_torque.py [--seeds 100]      (from the root of the repository)
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.wrist import BIAS, NOISE, SENSOR, TOOL, Setup, tool_values, wrist_samples

from dynid import Experiment, load_robot
from dynid.cases.force_sensor.case import with_force_sensor
from dynid.mechanism.force_sensor import COMPONENTS, ForceSensor, turn
from dynid.mechanism.frame import identity_frame, rpy_matrix
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs

KINDS = ("arm", "imu", "angles")
TILTED = rpy_matrix((0.2, -0.15, 0.0)) @ np.array([0.0, 0.0, -9.81])


def study(kind: str, seeds: int) -> None:
    """Print the results of one kind of log."""
    setup = Setup(turned=turn(2, 2.1), gravity=TILTED) if kind == "angles" else Setup()
    sensor = {
        "arm": SENSOR,
        "imu": ForceSensor(imu=identity_frame()),
        "angles": replace(SENSOR, mounting="angle", gravity="estimate"),
    }[kind]
    t, truth, q = wrist_samples(setup)
    robot = with_force_sensor(load_robot("panda"), sensor)
    true = tool_values() | {f"Off_{name}": b for name, b in zip(COMPONENTS, BIAS.tolist(), strict=True)}
    true["angle_sensor"] = 2.1
    inside, mass, com, inertia = [], [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        measured = truth.wrench + BIAS + NOISE * rng.standard_normal((len(t), 6))
        if kind == "imu":
            gyro = truth.omega + 0.003 * rng.standard_normal(truth.omega.shape)
            signals = np.hstack([gyro, truth.specific + 0.03 * rng.standard_normal(truth.omega.shape)])
        else:
            signals = q + 2e-6 * rng.standard_normal(q.shape)
        log = log_from_arrays(robot, t, signals, measured)
        found = identify_logs(robot, [log], experiment=Experiment(robot=robot, estimator="consistent"))
        known = [one for one in found.parameters if one.name in true]
        inside += [one.ci95[0] <= true[one.name] <= one.ci95[1] for one in known if one.ci95]
        kg = found["M_tool"].value
        mass.append(100 * abs(kg / TOOL[9] - 1))
        centre = np.array([found[f"{s}_tool"].value for s in ("MX", "MY", "MZ")]) / kg
        com.append(1e3 * float(np.linalg.norm(centre - TOOL[6:9] / TOOL[9])))
        tensor = [one for one in found.parameters if one.name[:2] in ("XX", "YY", "ZZ", "XY", "XZ", "YZ")]
        inertia += [(one.value - true[one.name]) / one.sigma for one in tensor if one.sigma]
    print(
        f"{kind:7} {seeds} seeds: {100 * np.mean(inside):.1f} % of {len(inside)} intervals hold the truth;"
        f" mass within {max(mass):.2f} %, centre of mass within {max(com):.2f} mm; inertias err by"
        f" {np.sqrt(np.mean(np.square(inertia))):.2f} sigma (rms)"
    )


def main() -> None:
    """Read the arguments and print one line per kind of log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("kinds", nargs="*", default=KINDS)
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        study(kind, arguments.seeds)


if __name__ == "__main__":
    main()
