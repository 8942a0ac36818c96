"""Point-to-point motions: continuous to the acceleration, within limits, closed where loops are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.common.errors import InputError
from dynid.excitation.closed import ClosedMotion
from dynid.excitation.random_motion import (
    PointToPoint,
    _lengths,
    moves,
    random_point_to_point,
    regressor_condition,
    robot_limits,
)
from dynid.excitation.series import Limits
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.simulation.prescribed import simulate_log


def moves_between(points, limits: Limits, dwell: float = 0.0) -> PointToPoint:
    return moves(points, _lengths(np.diff(points, axis=0), limits), dwell)


def random_moves(seed: int, dwell: float = 0.0) -> tuple[PointToPoint, Limits]:
    rng = np.random.default_rng(seed)
    wide = np.full(3, np.inf)
    limits = Limits(-wide, wide, rng.uniform(0.2, 5, 3), rng.uniform(0.5, 50, 3))
    return moves_between(rng.uniform(-2, 2, (6, 3)), limits, dwell), limits


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), dwell=st.sampled_from([0.0, 0.2]))
def test_positions_velocities_and_accelerations_are_continuous(seed: int, dwell: float) -> None:
    motion, _ = random_moves(seed, dwell)
    corners = np.concatenate([motion.begin, motion.begin + motion.length])
    step = 1e-9
    for signal, scale in ((motion.q, 1.0), (motion.dq, 1e2), (motion.ddq, 1e4)):
        # The next rate times the step: at most 1e5 m/s^3 for the shortest of these moves.
        jump = signal(corners + step) - signal(corners - step)
        assert np.abs(jump).max() < 1e-6 * scale
    np.testing.assert_allclose(motion.q(motion.begin), motion.points[:-1], atol=1e-12)
    np.testing.assert_allclose(motion.q(motion.begin + motion.length), motion.points[1:], atol=1e-12)
    # At rest at every point: rounding of (1 - u)^2 at u = 1.
    assert np.abs(motion.dq(corners)).max() < 1e-9
    assert np.abs(motion.ddq(corners)).max() < 1e-9


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_rates_are_those_of_the_positions(seed: int) -> None:
    motion, _ = random_moves(seed)
    u = np.random.default_rng(seed).uniform(0.05, 0.95, len(motion.begin))
    t, step = motion.begin + u * motion.length, 1e-5 * motion.length.min()
    # A central difference over 1e-5 of a move: curvature 1e-10 relative, rounding 1e-11 / step.
    slope = (motion.q(t + step) - motion.q(t - step)) / (2 * step)
    np.testing.assert_allclose(slope, motion.dq(t), atol=1e-6 * np.abs(motion.dq(t)).max())
    bend = (motion.dq(t + step) - motion.dq(t - step)) / (2 * step)
    np.testing.assert_allclose(bend, motion.ddq(t), atol=1e-6 * np.abs(motion.ddq(t)).max())


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_each_move_reaches_one_limit_and_keeps_all(seed: int) -> None:
    motion, limits = random_moves(seed)
    for begin, length in zip(motion.begin, motion.length, strict=True):
        t = begin + length * np.linspace(0, 1, 4001)
        used = [np.abs(motion.dq(t)).max(0) / limits.dq, np.abs(motion.ddq(t)).max(0) / limits.ddq]
        # Peaks lie between points of the grid: a quarter of a thousandth, squared.
        assert 1.0 - 1e-6 < np.max(used) < 1.0 + 1e-9


def test_the_last_point_is_held_after_the_end() -> None:
    motion, _ = random_moves(3, 0.5)
    after = np.array([motion.period - 0.4, motion.period, motion.period + 7.0])
    np.testing.assert_allclose(motion.q(after), np.repeat(motion.points[-1:], 3, axis=0), atol=1e-12)
    assert not motion.dq(after).any()
    assert motion.period == pytest.approx(motion.length.sum() + 0.5 * len(motion.length))


def test_a_tree_moves_within_its_limits() -> None:
    robot = load_robot("scara")
    motion = random_point_to_point(robot, 1, points=12, margin=0.1)
    assert isinstance(motion, PointToPoint)
    limits = robot_limits(robot)
    spare = 0.05 * (limits.high - limits.low)
    assert np.all(motion.points >= limits.low + spare)
    assert np.all(motion.points <= limits.high - spare)
    t = np.linspace(0, motion.period, 5000)
    assert np.all(np.abs(motion.dq(t)) <= 0.9 * limits.dq * (1 + 1e-9))
    assert np.all(np.abs(motion.ddq(t)) <= 0.9 * limits.ddq * (1 + 1e-9))
    assert np.array_equal(motion.points, random_point_to_point(robot, 1, points=12, margin=0.1).points)
    assert not np.array_equal(motion.points, random_point_to_point(robot, 2, points=12, margin=0.1).points)


@pytest.mark.parametrize("name", ["orthoglide", "dualv", "palletiser"])
def test_a_closed_robot_keeps_its_loops_and_all_its_limits(name: str) -> None:
    robot = load_robot(name)
    motion = random_point_to_point(robot, 5, points=8)
    assert isinstance(motion, ClosedMotion)
    t = np.linspace(0, motion.period, 400)
    states = motion.states(t)
    # Newton's last step onto the loops.
    assert assembly_of(robot).gaps(states.q).max() < 1e-10
    for joint, own in robot.limits.items():
        speed = np.abs(states.dq[:, robot.coordinates.index(joint)]).max()
        # Probed at 24 poses of a move: a peak between two of them is higher by 1 % at most.
        assert speed <= 1.01 * own.get("dq", np.inf)
        low, high = own["q"]
        position = states.q[:, robot.positions.index(joint)]
        assert low <= position.min() <= position.max() <= high


def test_the_best_conditioned_draw_is_taken() -> None:
    robot = load_robot("scara")
    condition = regressor_condition(robot)
    best = random_point_to_point(robot, 4, points=6, draws=5)
    first = random_point_to_point(robot, 4, points=6)
    assert condition(best) <= condition(first)


def test_a_log_can_be_simulated_along_it() -> None:
    robot = load_robot("orthoglide")
    motion = random_point_to_point(robot, 2, points=3, dwell=0.1)
    chi = np.ones(len(parameter_table(replace(robot, payloads={}))))
    log = simulate_log(replace(robot, payloads={}), chi, motion, rate=400.0, duration=motion.period)
    np.testing.assert_allclose(log.q, motion.q(log.t))


@pytest.mark.parametrize("options", [{"points": 0}, {"draws": 0}, {"dwell": -1.0}])
def test_no_motion_is_refused(options) -> None:
    with pytest.raises(InputError, match="no motion"):
        random_point_to_point(load_robot("scara"), **options)


def test_unlimited_speed_is_refused() -> None:
    wide = np.full(2, np.inf)
    with pytest.raises(InputError, match="zero duration"):
        moves_between(np.array([[0.0, 0.0], [1.0, 2.0]]), Limits(-wide, wide, wide, wide))
    with pytest.raises(InputError, match="zero duration"):
        moves_between(np.zeros((2, 2)), Limits(-wide, wide, np.ones(2), wide))


def test_a_robot_that_cannot_move_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.excitation.random_motion.can_be_done", lambda *_: False)
    with pytest.raises(InputError, match="no reachable point was found"):
        random_point_to_point(load_robot("orthoglide"), points=2)
