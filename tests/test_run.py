"""The whole run of an exciting motion: approach, return, marks, and the formats of controllers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid import load_robot
from dynid.common.errors import InputError
from dynid.excitation.excite import Excitation, excite
from dynid.excitation.export import (
    CONTROLLERS,
    check_controllers,
    commented,
    controller_file,
    read_trajectory,
    run_csv,
)
from dynid.excitation.random_motion import moves
from dynid.excitation.run import run_of
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.assembly import assembly_of
from dynid.simulation.motion import file_motion

QUICK = {"starts": 1, "hops": 0, "period": 4.0}


def quick(robot: str, **more: object) -> Excitation:
    found = excite(robot, ExciteSettings(**{**QUICK, **more}))  # type: ignore[arg-type]
    assert isinstance(found, Excitation)
    return found


@pytest.fixture(scope="module")
def arm() -> Excitation:
    return quick("ur5", repeats=2)


def test_moves_are_quintic_and_their_rates_are_derivatives() -> None:
    move = moves(np.array([[0.2, -1.0], [1.0, -1.0]]), np.array([2.5]))
    t = np.linspace(0.0, 2.5, 4001)
    rates = move.rates(t)
    for order in range(3):
        slope = np.gradient(rates[order], t, axis=0)[1:-1]
        # Second-order differences of a polynomial on 4000 steps.
        np.testing.assert_allclose(slope, rates[order + 1][1:-1], atol=1e-5 * np.abs(rates[order + 1]).max())
    np.testing.assert_array_equal(rates[0][[0, -1]], move.points)
    np.testing.assert_array_equal(rates[1:3][:, [0, -1]], 0.0)


@pytest.mark.parametrize("robot", ["ur5", "dualv"])
def test_a_run_keeps_all_limits_and_begins_and_ends_at_rest(robot: str, arm: Excitation) -> None:
    """On a grid much finer than that on which moves are checked; dualv has loops, which stay closed."""
    found = arm if robot == "ur5" else quick(robot)
    run, plan = found.run, found.plan
    assert {one.mark for one in run.parts} == {"approach", "motion", "return"}
    t = run.times(997.0)  # not a multiple of any step
    states = run.states(t)
    for k, rate in enumerate(states.moved):
        assert np.all(rate <= plan.box.high[k] + 1e-9)  # rounding
        assert np.all(rate >= plan.box.low[k] - 1e-9)
    if plan.exact is not None:
        assert plan.exact.excess(states).max() <= 1e-6  # peaks between the samples of the check
    if plan.path.mechanism.is_closed:
        assert assembly_of(plan.path.mechanism).gaps(states.q).max() < 1e-9  # closure of Newton's method
    for end in (0, -1):
        np.testing.assert_allclose(states.moved[0][end], run.home, atol=1e-9)  # rounding
        np.testing.assert_allclose(states.moved[1][end], 0.0, atol=1e-9)
        np.testing.assert_allclose(states.moved[2][end], 0.0, atol=1e-9)
    # No jump anywhere: positions agree with the integral of the velocities (trapezoids, O(h^2) of the jerk).
    moved = np.cumsum(0.5 * np.diff(t)[:, None] * (states.moved[1][1:] + states.moved[1][:-1]), axis=0)
    np.testing.assert_allclose(states.moved[0][1:] - states.moved[0][0], moved, atol=1e-4)


def test_the_motion_inside_a_run_is_the_designed_one(arm: Excitation) -> None:
    sampled = arm.run.sampled(arm.rate)
    at = np.array([mark == "motion" for mark in sampled.marks])
    n = len(arm.t) - 1
    assert at.sum() == 2 * n  # two periods; the last sample belongs to the return
    np.testing.assert_allclose(sampled.q[at][:n], arm.q[:n], atol=1e-9)  # rounding of the times
    np.testing.assert_allclose(sampled.q[at][n:], arm.q[:n], atol=1e-9)


def test_a_run_names_its_parts_and_can_be_simulated(arm: Excitation, tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    sampled = arm.run.sampled(50.0)
    file.write_text(run_csv(sampled))
    lines = file.read_text().splitlines()
    assert lines[0].startswith("t,q_shoulder_pan_joint,")
    assert lines[0].endswith(",part")
    rows = [line.split(",") for line in lines[1:]]
    assert [row[-1] for row in rows] == list(sampled.marks)
    np.testing.assert_array_equal(np.array([row[1:7] for row in rows], float), sampled.q)
    again = file_motion(arm.plan.mechanism, str(file)).q(sampled.t)
    np.testing.assert_allclose(again, sampled.q, atol=1e-9)  # rounding of the interpolation


def test_a_pose_of_rest_can_be_given(arm: Excitation) -> None:
    home = (0.3, -1.0, 0.5, 0.0, 0.1, 0.0)
    run = run_of(arm.plan, arm.coefficients, home, 1, arm.rate)[0]
    np.testing.assert_allclose(run.sampled(100.0).q[[0, -1]], [home, home], atol=1e-9)  # rounding
    with pytest.raises(InputError, match="2 values of `home` do not match 6"):
        run_of(arm.plan, arm.coefficients, (0.0, 0.0), 1, arm.rate)
    with pytest.raises(InputError, match="position of 'shoulder_pan_joint'"):
        run_of(arm.plan, arm.coefficients, (99.0, *home[1:]), 1, arm.rate)


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def test_loops_are_followed_between_the_points_of_slow_controllers() -> None:
    run = quick("dualv").run
    slow, fast = run.sampled(10.0), run.sampled(500.0)
    rows = np.searchsorted(fast.t, slow.t[:-1] - 1e-9)  # the last sample may be after the end of the other
    for one, other in ((slow.q, fast.q), (slow.dq, fast.dq), (slow.ddq, fast.ddq)):
        np.testing.assert_allclose(one[:-1], other[rows], atol=1e-6 * np.abs(other).max())  # Newton's method


@pytest.mark.parametrize("format", CONTROLLERS)
def test_every_controller_format_reads_back(arm: Excitation, format: str, tmp_path: Path) -> None:
    """Positions, number of points and time step of each file, at the rate asked for."""
    name, text = controller_file(arm.run, format, 40.0, arm.rate)
    sampled = arm.run.sampled(40.0)
    lines = text.splitlines()
    if format == "ros2":
        file = tmp_path / name
        file.write_text(text)
        again = read_trajectory(file)
        np.testing.assert_array_equal(again.q, sampled.q)
        assert again.t[0] == 10.0  # the controller has time to reach the first point
        np.testing.assert_allclose(again.t - again.t[0], sampled.t, atol=1e-8)  # whole nanoseconds
        return
    if format == "csv":
        q = np.array([line.split(",")[1:7] for line in lines[1:]], float)
    elif format == "urscript":
        calls = [line for line in lines if "servoj(" in line]
        assert all("t=0.025," in line for line in calls)
        q = np.array([numbers(line[: line.index("]")]) for line in calls])
        # What the controller takes as one program: `def` and `end` in the first column, nothing after it.
        assert lines[0] == "def dynid_run():"
        assert lines[-1] == "end"
        assert all(line.startswith(" ") for line in lines[1:-1])
    elif format == "krl":
        points = [line for line in lines if "PTP {" in line]
        assert f"TIME_BLOCK END = {sampled.t[-1]:.9g}" in text
        shares = [float(line.split("=")[1]) for line in lines if "TIME_BLOCK PART" in line]
        assert len(shares) == len(points) - 1  # one for every move of the spline, also for the last
        np.testing.assert_allclose(sum(shares), 100.0, rtol=1e-6)  # nine digits each
        assert lines.index("BAS(#VEL_PTP, 10)") < lines.index(points[0]) < lines.index("BAS(#VEL_PTP, 100)")
        q = np.deg2rad([numbers(line) for line in points])
    else:
        points = [line for line in lines if "MoveAbsJ" in line]
        assert all("\\T:=0.025" in line for line in points[1:])
        q = np.deg2rad([numbers(line[: line.index("]")]) for line in points])
    np.testing.assert_allclose(q, sampled.q, atol=1e-8)  # six digits of a degree, nine of a radian
    if format != "csv":
        marks = re.findall(r"^ *[#;!] (approach|motion|return)$", text, flags=re.MULTILINE)
        assert marks == ["approach", "motion", "return"]


def test_names_cannot_leave_a_comment(arm: Excitation) -> None:
    evil = "a\nset_digital_out(0, True)"
    assert commented([evil]) == "a\\nset_digital_out(0, True)"
    sampled = replace(arm.run.sampled(20.0), names=(evil, *"bcdef"))
    slides = np.zeros(6, dtype=bool)
    for format in ("urscript", "krl", "rapid"):
        text = CONTROLLERS[format].text(sampled, slides)
        assert not any(line.lstrip().startswith("set_digital_out") for line in text.splitlines())


def test_robots_that_a_controller_does_not_have_are_refused(arm: Excitation) -> None:
    found = quick("scara")
    with pytest.raises(InputError, match="six revolute joints"):
        controller_file(found.run, "urscript", None, found.rate)
    with pytest.raises(InputError, match="did you mean 'krl'"):
        controller_file(arm.run, "krk", None, arm.rate)
    for format, rate in (("csv", -5.0), ("krl", 500.0)):
        with pytest.raises(InputError, match=f"not a rate for {format}"):
            controller_file(arm.run, format, rate, arm.rate)
    with pytest.raises(InputError, match="no controller format"):
        check_controllers((), 100.0, load_robot("ur5"))
    points = controller_file(found.run, "krl", None, found.rate)[1]
    quill = np.array([numbers(line)[2] for line in points.splitlines() if "PTP {" in line])
    np.testing.assert_allclose(quill, 1e3 * found.run.sampled(10.0).q[:, 2], atol=1e-5)  # mm, six digits
