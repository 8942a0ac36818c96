"""Closed robots that cannot be: contradictions, no mobility, motors and sensors in the wrong place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.info import describe
from dynid.kinematics.first_pose import contradicting
from dynid.mechanism.load import load_robot
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify
from dynid.simulation.files import write_log

FIVE_BAR = """
joints:
  - {name: left, kind: revolute, parent: base, child: left_inner}
  - {name: left_elbow, kind: revolute, parent: left_inner, child: left_outer, mdh: {d: 0.3}}
  - {name: right, kind: revolute, parent: base, child: right_inner, xyz: [0.2, 0, 0]}
  - {name: right_elbow, kind: revolute, parent: right_inner, child: right_outer, mdh: {d: 0.3}}
  - {name: plate, kind: fixed, parent: left_outer, child: tool}
loops:
  - name: tip
    kind: revolute
    a: {body: left_outer, xyz: [0.4, 0, 0]}
    b: {body: right_outer, xyz: [0.4, 0, 0]}
  # more loops
measured: [left, right]
actuators: [left, right]
drive: {left: [Fv, Fs], right: [Fv, Fs]}
start: {left: 2.4, left_elbow: -1.4, right: 0.7, right_elbow: 1.4}
"""
NAILS = """  - {name: nail1, kind: weld, a: {body: left_inner}, b: {body: base, rpy: [0, 0, 2.4]}}
  - {name: nail2, kind: weld, a: {body: right_inner}, b: {body: base, xyz: [0.2, 0, 0], rpy: [0, 0, 0.7]}}"""
TWICE = (
    "  - {name: again, kind: revolute, a: {body: left_outer, xyz: [0.4, 0, 0]},"
    " b: {body: right_outer, xyz: [0.4, 0, 0]}}"
)


@pytest.fixture
def robot(tmp_path: Path):
    """The five-bar with more loops and with lines replaced."""

    def written(loops: str = "", **lines: str) -> Path:
        text = FIVE_BAR.replace("  # more loops", loops)
        for key, value in lines.items():
            old = next(line for line in text.splitlines() if line.startswith(f"{key}:"))
            text = text.replace(old, f"{key}: {value}")
        file = tmp_path / "robot.yaml"
        file.write_text(text)
        return file

    return written


def refused(file: Path, said: str) -> InputError:
    with pytest.raises(InputError, match=said) as caught:
        describe(load_robot(file))
    assert caught.value.remedy
    return caught.value


def test_the_robot_itself_is_sound(robot) -> None:
    info = describe(load_robot(robot()))
    assert (info.dof, info.n_base) == (2, 11)


def test_a_loop_given_twice_is_redundant_and_no_error(robot) -> None:
    plain, twice = describe(load_robot(robot())), describe(load_robot(robot(TWICE)))
    assert (twice.dof, twice.n_base) == (plain.dof, plain.n_base)
    assert [one.name for one in twice.base] == [one.name for one in plain.base]
    assert any(notice.code == "over-constrained" and "8 of 10" in notice.text for notice in twice.notices)


@pytest.mark.parametrize(
    "second",
    [
        TWICE.replace("xyz: [0.4, 0, 0]},", "xyz: [0.5, 0, 0]},"),
        # A distance between points that the tip holds together.
        "  - {name: again, kind: rod, length: 0.1, a: {body: left_outer, xyz: [0.4, 0, 0]},"
        " b: {body: right_outer, xyz: [0.4, 0, 0]}}",
    ],
    ids=["other point", "rod"],
)
def test_loops_that_contradict_each_other_are_both_named(robot, second: str) -> None:
    error = refused(robot(second), "contradict each other")
    assert "'tip' and 'again'" in error.text
    assert "stays open by" in error.text


def test_only_the_loops_that_take_part_are_named(robot) -> None:
    other = TWICE.replace("xyz: [0.4, 0, 0]},", "xyz: [0.5, 0, 0]},")
    harmless = "  - {name: rail, kind: planar, a: {body: right_outer}, b: {body: base}}\n"
    assert set(contradicting(load_robot(robot(harmless + other)))) == {"tip", "again"}


def test_a_loop_that_cannot_be_assembled_alone_is_not_called_a_contradiction(robot) -> None:
    far = "  - {name: far, kind: point, a: {body: left_inner}, b: {body: base, xyz: [0.4, 0.1, 0]}}"
    error = refused(robot(far), "cannot be assembled: 'far' stays open by 0.3")
    assert "contradict" not in error.text


def test_loops_that_leave_no_mobility(robot) -> None:
    refused(robot(NAILS), "leave no degree of freedom: 4 independent closure equations for 4 coordinates")


@pytest.mark.parametrize(
    ("motors", "said"),
    [
        ("[left, rihgt]", "unknown joint 'rihgt'; did you mean 'right'"),
        ("[left, plate]", "joint 'plate' is fixed"),
        ("[left, left]", "'left' occurs twice"),
    ],
)
def test_motors_must_be_on_movable_joints(robot, motors: str, said: str) -> None:
    assert "actuators" in str(refused(robot(actuators=motors), said).place)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ("[left, rigt]", "unknown joint 'rigt'; did you mean 'right'"),
        ("[left, plate]", "joint 'plate' is fixed"),
    ],
)
def test_measured_joints_must_be_movable(robot, measured: str, said: str) -> None:
    assert "measured" in str(refused(robot(measured=measured), said).place)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A smooth motion of two joints; what it says is not looked at."""
    robot = load_robot("fivebar")
    t = np.linspace(0, 4, 801)
    swing = 0.1 * np.sin(2 * np.pi * t)[:, None] * [1.0, 0.7]
    start = np.array([robot.start.get(name, 0.0) for name in robot.measured])
    log = log_from_arrays(robot, t, start + swing, np.zeros((len(t), 2)))
    return write_log(log, tmp_path / "log.csv")


def without(log: Path, column: str) -> Path:
    """The same log without one column."""
    rows = [line.split(",") for line in log.read_text().splitlines()]
    at = rows[0].index(column)
    log.write_text("".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows))
    return log


def test_a_log_without_a_measured_joint(log) -> None:
    with pytest.raises(InputError, match="no column for the position of 'motor2'") as caught:
        identify("fivebar", without(log, "q_2"))
    assert "measured:" in (caught.value.remedy or "")


def test_too_few_measured_joints(robot, log) -> None:
    with pytest.raises(
        InputError, match=r"1 measured coordinates do not determine the pose .* 2 degrees"
    ) as caught:
        identify(robot(measured="[left]"), without(log, "q_2"))
    assert "measure " in (caught.value.remedy or "")


def test_an_effort_of_a_passive_joint(log) -> None:
    with pytest.raises(InputError, match="joint 'elbow1' is passive") as caught:
        identify("fivebar", log, efforts=("elbow1",))
    assert "motor1, motor2" in (caught.value.remedy or "")


def test_a_motor_on_a_joint_that_the_loops_hold(robot, log) -> None:
    with pytest.raises(InputError, match="motor 'left' cannot move: the loops lock it"):
        identify(robot(NAILS.splitlines()[0]), log)


def test_motors_that_depend_on_each_other(robot, log) -> None:
    motors = "[left, {name: second, on: {left: 3}}]"
    with pytest.raises(InputError, match="drive only 1 of the robot's 2 degrees of freedom"):
        identify(robot(actuators=motors), log)
