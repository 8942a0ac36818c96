"""Joints that are not logged and stand still, such as the fingers of a gripper."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.problem import as_asked
from dynid.simulation.prescribed import simulate_log
from tests.workspace import dynid

LINK = (
    '<link name="{0}"><inertial><origin xyz="0.1 0.02 0.03"/><mass value="{1}"/><inertia ixx="0.01"'
    ' iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="{3}"><parent link="{1}"/><child link="{2}"/><origin xyz="0.3 0 0"/>'
    '<axis xyz="0 {4} 1"/><limit lower="-2" upper="2" effort="20" velocity="3"/></joint>'
)


@pytest.fixture
def gripper(tmp_path):
    """A URDF of two links, and a finger that slides and another that follows it."""
    parts = [
        '<link name="base"/>',
        *(
            LINK.format(name, mass)
            for name, mass in (("arm", 2.0), ("hand", 1.0), ("left", 0.2), ("right", 0.2))
        ),
        JOINT.format("shoulder", "base", "arm", "revolute", 1),
        JOINT.format("elbow", "arm", "hand", "revolute", 1),
        JOINT.format("finger", "hand", "left", "prismatic", 0),
        JOINT.format("other", "hand", "right", "prismatic", 0).replace(
            "</joint>", '<mimic joint="finger"/></joint>'
        ),
    ]
    file = tmp_path / "gripper.urdf"
    file.write_text(f'<robot name="gripper">{"".join(parts)}</robot>')
    return file


@pytest.mark.parametrize("effort", [False, True])
def test_a_joint_without_a_column_is_named_alone_and_can_stand_still(gripper, tmp_path, effort) -> None:
    """Also if there is a column of its name: an effort is no position."""
    t = np.arange(3000) / 200.0
    q = np.stack([np.sin(1.3 * t) + 0.4 * np.sin(3.1 * t), np.cos(1.9 * t) - 0.5 * np.sin(2.7 * t)], axis=1)
    columns = ["time", "shoulder_pos", "elbow_pos", "shoulder_torque", "elbow_torque"]
    values = np.c_[t, q, 3.0 * q]
    if effort:
        columns, values = [*columns, "finger_torque"], np.c_[values, 0.1 * q[:, 0]]
    np.savetxt(tmp_path / "log.csv", values, delimiter=",", header=",".join(columns), comments="")
    refused = dynid("identify", "--robot", str(gripper), "--log", str(tmp_path / "log.csv"))
    assert refused.exit_code == 2
    text = " ".join(refused.output.split())
    assert "no column for the position of 'finger' (q_3); columns are" in text
    assert "--known finger=0" in text


@pytest.mark.parametrize("place", [0.0, 0.05])
def test_efforts_are_those_of_the_robot_with_the_joint_fixed_there(gripper, tmp_path, place: float) -> None:
    """As in a URDF whose fingers are fixed joints at the same place."""
    text = gripper.read_text()
    for name in ("finger", "other"):
        begin, end = text.split(f'<joint name="{name}" type="prismatic">')
        text = f'{begin}<joint name="{name}" type="fixed">' + end.replace("0.3 0 0", f"0.3 0 {place}", 1)
    fixed = tmp_path / "fixed.urdf"
    fixed.write_text(text)
    still = as_asked(load_robot(gripper), Experiment(robot=str(gripper), known={"finger": place}))
    assert still.measured == ("shoulder", "elbow")
    assert [motor.name for motor in still.actuators] == ["shoulder", "elbow"]
    logs = []
    for robot in (still, load_robot(fixed)):
        motion = random_motion(still, seed=3)
        truth = {p.name: 0.3 for p in parameter_table(robot) if p.kind == "drive"}
        for body in robot.bodies.values():
            truth |= {f"{symbol}_{body.name}": x for symbol, x in body.prior.items()}
        logs.append(simulate_log(robot, truth, motion, rate=100.0, duration=5.0, torque_sigma=0.0, seed=1))
    np.testing.assert_allclose(logs[0].tau, logs[1].tau, atol=1e-10)
