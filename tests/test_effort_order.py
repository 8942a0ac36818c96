"""Fault 33: the likely fix is named for arms with many joints and for force sensors; clean logs pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.checks.effort_order import _with_position
from dynid.common.errors import InputError
from dynid.doctor.examine import check
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.simulation.simulation import simulate
from dynid.simulation.simulation_file import default_simulation
from tests.wrist import Setup, wrist_log


@pytest.fixture(scope="module")
def recorded():
    """Robot and log of the built-in six-joint experiment, with its noise."""
    robot = load_robot("serial6")
    found = simulate(robot, replace(default_simulation(robot), rate=100.0, seed=3))
    return robot, found.log(3, "serial6", robot)


def _with_efforts(log, order, sign=None):
    return replace(log, tau=log.tau[:, order] * (np.ones(len(order)) if sign is None else np.array(sign)))


def test_a_clean_log_is_left_alone(recorded):
    robot, log = recorded
    assert identify_logs(robot, [log]).fit.residual_percent < 5.0  # noise of the demo is about 1 %


@pytest.mark.parametrize(
    ("order", "sign", "fix"),
    [
        ([0, 1, 2, 3, 4, 5], [1, 1, -1, 1, 1, 1], "columns: {tau_3: {name: tau_3, scale: -1}}"),
        (
            [0, 1, 2, 4, 3, 5],
            [1, -1, 1, 1, 1, 1],
            "columns: {tau_2: {name: tau_2, scale: -1}, tau_4: {name: tau_5}, tau_5: {name: tau_4}}",
        ),
    ],
)
def test_six_joints(recorded, order, sign, fix):
    robot, log = recorded
    with pytest.raises(InputError) as refused:
        identify_logs(robot, [_with_efforts(log, order, sign)])
    assert fix in str(refused.value)


def test_a_sign_that_may_be_that_of_the_position_too():
    """About a vertical axis at the base, little but weak coupling separates the two."""
    robot = load_robot("ur5")
    simulated = simulate(robot, replace(default_simulation(robot), rate=100.0, seed=3))
    log = simulated.log(3, "ur5", robot)
    with pytest.raises(InputError, match="effort of 'shoulder_pan_joint' has the opposite sign") as refused:
        identify_logs(robot, [_with_efforts(log, range(6), [-1, 1, 1, 1, 1, 1])])
    assert "with the other sign of its position instead" in str(refused.value)
    assert "for the position, give columns={'q_1': 'q_1*-1'};" in str(refused.value)


@pytest.fixture(scope="module")
def ur5():
    """Robot and log of an arm whose last axis is felt by no other effort."""
    robot = load_robot("ur5")
    found = simulate(robot, replace(default_simulation(robot), rate=100.0, seed=3))
    return robot, found.log(3, "ur5", robot)


def test_a_sign_with_friction_that_drives_loses_against_the_plain_exchange(ur5):
    """The sign of the last effort changes no other row: friction and rotor decide."""
    robot, log = ur5
    with pytest.raises(InputError) as refused:
        identify_logs(robot, [_with_efforts(log, [0, 1, 2, 3, 5, 4])])
    assert "columns: {tau_5: {name: tau_6}, tau_6: {name: tau_5}}" in str(refused.value)


def test_two_signs_are_found_at_once(ur5):
    robot, log = ur5
    with pytest.raises(InputError) as refused:
        identify_logs(robot, [_with_efforts(log, range(6), [-1, 1, 1, 1, -1, 1])])
    fix = "columns: {tau_1: {name: tau_1, scale: -1}, tau_5: {name: tau_5, scale: -1}}"
    assert fix in str(refused.value)


def test_exchanged_positions_are_named_where_they_leave_less_than_any_order_of_efforts(ur5):
    """Identification and check say the same."""
    robot, log = ur5
    turned = log.with_positions(np.ones(6), [0, 1, 2, 4, 3, 5])
    with pytest.raises(InputError) as refused:
        identify_logs(robot, [turned])
    assert "the positions of 'wrist_1_joint' and 'wrist_2_joint' are exchanged" in str(refused.value)
    assert "columns: {q_4: {name: q_5}, q_5: {name: q_4}" in str(refused.value)
    found = check(robot, [turned]).findings
    assert "the positions of 'wrist_1_joint' and 'wrist_2_joint' are exchanged" in found[0].text
    assert not any(finding.code == "position-order" for finding in found)


def test_a_stuck_encoder_is_named_before_an_exchange_of_positions(recorded):
    """Any other position fits better than one that never moves: the efforts of the joint show that it did."""
    robot, log = recorded
    q = log.q.copy()
    q[:, 2] = 0.5
    estimate = identify_logs(robot, [replace(log, q=q, dq=None, ddq=None, origins={})])
    first = estimate.verdict.reasons[0]
    assert (estimate.verdict.level, first.code) == ("bad", "constant-position")
    assert "(q_3) is always 0.5" in first.text
    assert not any(reason.code == "position-order" for reason in estimate.verdict.reasons)


@pytest.mark.parametrize(
    ("left", "named", "beside"),
    [
        ((0.3, 0.01, 0.05), "effort", False),
        ((0.3, 0.01, 0.015), "effort", True),
        ((0.3, 0.015, 0.01), "position", True),
        ((0.3, 0.05, 0.01), "position", False),
    ],
)
def test_the_sign_that_leaves_less_is_named_first(recorded, left, named, beside):
    robot, log = recorded
    problem = prepare(robot, [log], Experiment(robot=robot))
    refusal = _with_position(InputError("the effort has the opposite sign", remedy="fix"), problem, 0, left)
    assert f"the {named}" in refusal.text
    assert ("instead" in refusal.text) is beside
    assert ("; or, for the" in refusal.remedy) is beside


def test_two_forces_of_a_sensor_exchanged():
    setup = Setup()
    robot, log = wrist_log(setup, rate=100.0, seconds=6.0)
    asked = Experiment(robot=setup.robot, force_sensor=setup.sensor)
    with pytest.raises(InputError, match="is in the column of 'fy'") as refused:
        identify_logs(robot, [_with_efforts(log, [1, 0, 2, 3, 4, 5])], experiment=asked)
    assert "columns: {fx: {name: fy}, fy: {name: fx}}" in str(refused.value)
