"""Whole turns of encoders, steps and zeros of redundant sensors, and dead points of closed robots."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.motion.motion import Motion
from dynid.motion.plan import plan_motions
from dynid.motion.position_faults import position_steps, refuse_steps
from dynid.motion.settings import FilterSettings, MaskSettings
from dynid.problem import build_system, prepare
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.turns import nearest_turns
from dynid.simulation.prescribed import simulate_log
from tests.built_in import robot_of, truth_of
from tests.test_survey import SLIDER_CRANK

TURN = 2.0 * np.pi
CRANK_ROCKER = """
name: crank-rocker
gravity: [0, -9.81, 0]
joints:
  - {name: crank, kind: revolute, parent: base, child: crank_arm}
  - {name: knee, kind: revolute, parent: crank_arm, child: coupler, xyz: [0.1, 0, 0]}
  - {name: rocker, kind: revolute, parent: base, child: rocker_arm, xyz: [0.3, 0, 0]}
loops:
  - {name: pin, kind: revolute, a: {body: coupler, xyz: [0.3, 0, 0]}, b: {body: rocker_arm, xyz: [0.2, 0, 0]}}
start: {crank: 1.2, knee: -0.6, rocker: 1.5}
actuators: [crank]
"""


@cache
def log_of(name: str) -> Log:
    """One second of random motion, positions rounded by an encoder of 20 bits."""
    robot = robot_of(name)
    motion = random_motion(robot, 1, harmonics=5, frequency=1.0, draws=1)
    truth = truth_of(name)
    log = simulate_log(robot, truth, motion, rate=500.0, duration=1.0)
    step = TURN / 2**20
    return replace(log, q=np.round(log.q / step) * step)


def kinematics_of(robot, log: Log) -> ClosedKinematics:
    plan = plan_motions([log], robot, FilterSettings(), MaskSettings())[0]
    found = kinematics_along(robot, Motion(log, plan))
    assert isinstance(found, ClosedKinematics)
    return found


@pytest.mark.parametrize("turns", [(0, 0, 1, 0), (-1, 0, 0, 2), (1, 1, 1, 1), (0, -3, 2, -1)])
def test_whole_turns_of_redundant_encoders_change_nothing(turns: tuple[int, ...]) -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    experiment = Experiment(robot=robot)
    off = replace(log, q=log.q + TURN * np.array(turns))
    plain, problem = (prepare(robot, [one], experiment) for one in (log, off))
    assert not plain.logs[0].notices
    text = next(notice.text for notice in problem.logs[0].notices if notice.code == "whole-turns")
    for i, k in enumerate(turns):
        assert (f"motor{i + 1} by {k:+d}" in text) == (k != 0)
    (a,), (b,) = build_system(plain).groups, build_system(problem).groups
    # Adding turns rounds positions by 1e-15; derivatives at 500 Hz multiply that by some 1e5.
    np.testing.assert_allclose(problem.logs[0].q, log.q, atol=4e-15)
    for one, other in zip(a.blocks, b.blocks, strict=True):
        expected, found = (block.W.T @ block.Y for block in (one, other))
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_every_combination_of_turns_is_removed() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    for turns in product((-1, 0, 1, 2), repeat=4):
        found = nearest_turns(robot, replace(log, q=log.q + TURN * np.array(turns)))
        np.testing.assert_allclose(found.q, log.q, atol=4e-15)  # rounding of a few turns


def test_turns_of_sensors_that_are_not_redundant_and_of_wanted_positions_are_removed() -> None:
    robot, log = robot_of("fivebar"), log_of("fivebar")
    off = replace(log, q=log.q + TURN * np.array([1, -2]), q_ref=log.q + TURN * np.array([0, 5]))
    found = nearest_turns(robot, off)
    np.testing.assert_allclose(found.q, log.q, atol=4e-15)  # rounding of a few turns
    assert found.q_ref is not None
    np.testing.assert_allclose(found.q_ref, log.q, atol=1e-14)
    assert nearest_turns(robot, log) is log
    assert nearest_turns(robot, found) is found


def test_each_segment_has_turns_of_its_own() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    q = log.q.copy()
    q[250:, 1] -= TURN
    found = nearest_turns(robot, replace(log, q=q, segments=((0, 240), (250, len(q)))))
    np.testing.assert_allclose(found.q[250:], log.q[250:], atol=4e-15)
    assert found.notices[-1].text.endswith(f"motor2 by -1 from t = {log.t[250]:.4g} s")


def test_limits_say_which_turn_is_meant() -> None:
    robot = robot_of("fivebar")
    wide = {**robot.limits, "motor1": {"q": (5.0, 11.0)}}
    log = log_of("fivebar")
    off = replace(log, q=log.q + TURN * np.array([1, 0]))
    assert nearest_turns(replace(robot, limits=wide), off) is off
    assert nearest_turns(robot, off) is not off


def crank_log(tmp_path, measured: str, noise: float = 0.0, offset: float = 0.0, seconds: float = 4.0):
    """The crank of a four-bar turns and turns; the log has one of its joints."""
    file = tmp_path / "robot.yaml"
    file.write_text(CRANK_ROCKER + f"measured: [{measured}]\n")
    robot = load_robot(file)
    t = np.arange(0.0, seconds, 2e-3)
    crank = 1.2 + TURN * 0.9 * t + 0.4 * np.sin(2.0 * t) + offset
    q = assembly_of(robot).track(crank[:, None], sensors_of(robot, ("crank",)))
    seen = q[:, [robot.positions.index(measured)]]
    seen = seen + noise * np.random.default_rng(3).normal(size=seen.shape)
    return robot, log_from_arrays(robot, t, seen, np.zeros((len(t), 1))), q


@pytest.mark.parametrize("turns", [0, 40, -7])
def test_a_crank_may_turn_many_times_during_a_log(tmp_path, turns: int) -> None:
    robot, log, q = crank_log(tmp_path, "crank", offset=TURN * turns)
    assembly = assembly_of(robot)
    assert assembly.gaps(q).max() < 1e-12
    assert np.abs(np.diff(q, axis=0)).max() < 0.05  # 7 rad/s at 500 Hz, no jump of a turn
    found = nearest_turns(robot, log)
    # The turns made during the log stay, those before it are removed.
    assert np.ptp(found.q) == pytest.approx(np.ptp(log.q), abs=1e-12)
    assert found.q[0, 0] == pytest.approx(log.q[0, 0] - TURN * turns, abs=1e-12)
    assert kinematics_of(robot, found).notices == ()


def test_a_small_zero_error_of_a_redundant_encoder_is_a_warning_with_its_size() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    assert kinematics_of(robot, log).notices == ()
    off = replace(log, q=log.q + np.array([0.0, 0.01, 0.0, 0.0]))
    (notice,) = kinematics_of(robot, off).notices
    assert (notice.code, notice.severity) == ("loop-misfit", "stop")
    # The closed pose moves by a part of the error: 1 % of it is not linear.
    assert "zero of 'motor2' (off by +0.01 rad)" in notice.text or "+0.0099" in notice.text


def test_a_misfit_of_rounded_dimensions_does_not_stop_the_use_of_a_result() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    off = replace(log, q=log.q + np.array([0.0, 0.001, 0.0, 0.0]))  # of which the closed pose takes a part
    (notice,) = kinematics_of(robot, off).notices
    assert (notice.code, notice.severity) == ("loop-misfit", "care")


def test_a_large_zero_error_and_a_step_are_refused_with_joint_time_and_cause() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    off = replace(log, q=log.q + np.array([0.0, 0.0, 0.0, 0.1]))
    with pytest.raises(InputError, match=r"at sample \d+ \(t = .* Likely cause: the zero of 'motor4'"):
        kinematics_of(robot, off)
    q = log.q.copy()
    q[200:, 0] += 0.3
    with pytest.raises(InputError, match=r"Likely cause: .* 'motor1' by \+0.3 at t = 0.4 s"):
        kinematics_of(robot, replace(log, q=q))


def test_a_wrong_gear_ratio_of_a_redundant_encoder_is_not_called_a_zero() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    off = replace(log, q=log.q * np.array([1.0, 1.01, 1.0, 1.0]))
    (notice,) = kinematics_of(robot, off).notices
    assert notice.code == "loop-misfit"
    # The closed pose moves by a part of the error: some percent of it are not linear.
    assert "Likely cause: the gear ratio of 'motor2' (positions 1.0" in notice.text
    assert "zero of" not in notice.text


def test_a_step_far_beyond_noise_is_refused_also_without_redundant_encoders() -> None:
    robot, log = robot_of("fivebar"), log_of("fivebar")
    refuse_steps(log)
    q = log.q.copy()
    q[250:, 0] += 0.3
    with pytest.raises(InputError, match=r"'motor1' by \+0.3 at t = 0.5 s"):
        prepare(robot, [replace(log, q=q)], Experiment(robot=robot))


def test_a_declared_deviation_allows_as_much_misfit() -> None:
    robot, log = robot_of("dualv"), log_of("dualv")
    coarse = replace(robot, measured_sigma=dict.fromkeys(robot.measured, 0.01))
    off = replace(log, q=log.q + np.array([0.0, 0.01, 0.0, 0.0]))
    assert kinematics_of(coarse, off).notices == ()


@pytest.mark.parametrize("name", ["fivebar", "dualv"])
def test_a_step_of_an_encoder_is_found_and_nothing_else(name: str) -> None:
    log = log_of(name)
    assert position_steps(log) == ()
    q = log.q.copy()
    q[300:, 1] -= 0.05
    (notice,) = position_steps(replace(log, q=q))
    assert notice.code == "position-step"
    assert "'motor2' by -0.05 at t = 0.6 s" in notice.text


def test_dead_points_of_the_measured_joint_are_reported_and_masked(tmp_path) -> None:
    robot, log, _ = crank_log(tmp_path, "rocker", noise=1e-4)
    kinematics = kinematics_of(robot, log)
    told = {notice.code: notice for notice in kinematics.notices}
    # 3.7 turns of the crank, two dead points each.
    assert "passes 7 dead points" in told["dead-points"].text
    assert told["dead-points"].remedy.startswith("measure 'crank' too")
    assert "singular-poses" in told


def test_after_dead_points_the_branch_of_steady_velocities_is_taken(tmp_path) -> None:
    robot, log, q = crank_log(tmp_path, "rocker", noise=1e-4)
    kinematics = kinematics_of(robot, log)
    measured = Motion(log, plan_motions([log], robot, FilterSettings(), MaskSettings())[0])
    (low, high), *_ = measured.usable()
    states = kinematics.states(low, measured.states(low, high))
    crank = robot.positions.index("crank")
    error = states.q[:, crank] - q[low:high, crank]
    error -= TURN * np.round(error / TURN)
    # The other branch is several times this away, except where it is excluded.
    right = np.abs(error[states.fine]) < 0.05
    assert np.mean(right) > 0.99
    assert np.mean(states.fine) > 0.9
    assert not any(notice.code == "assembly-jump" for notice in kinematics.notices)


def random_crank(seed: int, t: np.ndarray, near: float | None) -> np.ndarray:
    """Angle of a crank that turns back at `near` rad from its dead point, or passes it many times."""
    rng = np.random.default_rng(seed)
    f = rng.uniform(0.5, 1.5)
    waves = [rng.normal() / h * np.cos(TURN * h * f * t + rng.uniform(0.0, TURN)) for h in (1, 2, 3)]
    angle = np.sum(waves, axis=0)
    angle *= 0.5 / np.abs(angle).max()
    angle -= 0.25 * (angle.max() + angle.min()) if near is None else angle.min() - near
    # At rest at first: there the branch is that of the start pose.
    s = np.clip((t - 0.5) / 0.4, 0.0, 1.0)
    return np.asarray(0.4 + s**3 * (10.0 - 15.0 * s + 6.0 * s**2) * (angle - 0.4))


@pytest.mark.parametrize("near", [0.01, 0.03, 0.1, None], ids=["nearest", "near", "beside", "through"])
@pytest.mark.parametrize("dt", [1e-3, 4e-3, 1e-2])
def test_a_motion_near_or_through_a_dead_point_stays_on_its_branch(tmp_path, near, dt: float) -> None:
    """Lines fitted to both sides took every motion that turns back near a dead point for a passage."""
    file = tmp_path / "robot.yaml"
    file.write_text(
        SLIDER_CRANK.replace("crank: 1.2, elbow: -1.6, slide: 0.27", "crank: 0.4, elbow: -0.55, slide: 0.34")
    )
    robot = load_robot(file)
    t = np.arange(0.0, 4.5, dt)
    for seed in range(4):
        angle = random_crank(seed, t, near)
        slide = 0.1 * np.cos(angle) + np.sqrt(0.25**2 - (0.1 * np.sin(angle)) ** 2)
        slide += 1e-7 * np.random.default_rng(seed).normal(size=len(t))
        log = log_from_arrays(robot, t, slide[:, None], np.zeros((len(t), 1)))
        motion = Motion(log, plan_motions([log], robot, FilterSettings(), MaskSettings())[0])
        kinematics = kinematics_along(robot, motion)
        for low, high in motion.usable():
            states = kinematics.states(low, motion.states(low, high))
            # Within 0.03 rad the low-pass may move the sample to the other side.
            clear = states.fine & (np.abs(angle[low:high]) > 0.03)
            wrong = np.sign(states.q[:, 0]) != np.sign(angle[low:high])
            assert not np.any(wrong & clear)
            assert np.mean(states.fine) > 0.85
