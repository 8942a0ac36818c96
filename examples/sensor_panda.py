"""Identify the gripper behind a wrist force/torque sensor, and measure a contact with its compensation.

A simulated arm rotates its wrist for 20 s. The sensor has a bias and noise of 0.5 N and 0.02 N m, and was
mounted with an unknown angle. With your own log the part from `identify` on stays the same.

Run:  python examples/sensor_panda.py
"""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dynid import (
    ForceSensor,
    Frame,
    Log,
    identify,
    load_robot,
    random_motion,
    simulate_sensor_log,
    with_force_sensor,
)

SENSOR = ForceSensor(
    body="link_7", frame=Frame(np.eye(3), np.array([0.0, 0.0, 0.107])), tool="gripper", mounting="angle"
)
# 1.3 kg, centre of mass 12, -8, 63 mm from the sensor.
TRUTH = {
    "M_gripper": 1.3,
    "MX_gripper": 0.0156,
    "MY_gripper": -0.0104,
    "MZ_gripper": 0.0819,
    "XX_gripper": 0.00814,
    "YY_gripper": 0.00745,
    "ZZ_gripper": 0.00197,
    "XY_gripper": 0.00022,
    "XZ_gripper": -0.00118,
    "YZ_gripper": 0.0008,
    "Off_fx": 3.2,
    "Off_fy": -5.1,
    "Off_fz": 8.4,
    "Off_mx": 0.21,
    "Off_my": -0.13,
    "Off_mz": 0.08,
    "angle_sensor": 0.7,
}
PUSH = [0.0, 0.0, -15.0, 0.0, 0.3, 0.0]


def main() -> None:
    """Print estimated and true values, and a contact wrench obtained by compensation."""
    log = simulate()
    found = identify("panda", log, force_sensor=SENSOR)
    print(f"{'parameter':<14}{'found':>10}{'sigma':>10}{'true':>10}  unit")
    for one in found.parameters:
        print(f"{one.name:<14}{one.value:10.5f}{one.sigma:10.5f}{TRUTH[one.name]:10.5f}  {one.unit}")
    with tempfile.TemporaryDirectory() as folder:
        found.save(folder)
        tool = runpy.run_path(str(Path(folder) / "compensation.py"))  # needs neither dynid nor NumPy
        felt = contact(tool["compensate_joints"], tool["read"](Path(folder) / "compensation.json"), log)
    print("pushed with ", PUSH)
    print("felt        ", [round(x, 2) for x in felt])


def simulate() -> Log:
    """What a recorder would have logged."""
    arm = load_robot("panda")
    robot = with_force_sensor(arm, SENSOR)
    motion = random_motion(arm, 1, frequency=0.05, harmonics=8)
    return simulate_sensor_log(
        robot, TRUTH, motion, rate=250.0, duration=20.0, sigma=(0.5, 0.02), encoder_sigma=2e-6, seed=1
    )


def contact(compensate: Callable[..., list[float]], parameters: dict[str, object], log: Log) -> list[float]:
    """Push against the tool in the middle of the motion, and average the compensated reading."""
    dt, found = log.dt, []
    middle = len(log.t) // 2
    measured = log.tau + np.array(PUSH)  # `sign: load`: a push on the tool adds to the reading
    for i in range(middle, middle + 200):
        q, before, after = (log.q[k] for k in (i, i - 25, i + 25))
        dq = (after - before) / (50 * dt)
        ddq = (after - 2 * q + before) / (25 * dt) ** 2
        reading = measured[i].tolist()
        found.append(compensate(parameters, reading, q.tolist(), dq.tolist(), ddq.tolist()))
    return np.mean(found, axis=0).tolist()


if __name__ == "__main__":
    main()
