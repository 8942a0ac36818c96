"""Output error of free motion: derivatives, the way back to the truth, damping, lengths and held-out runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.cases.free_motion.measured_motion import simulate_free_motions
from dynid.cases.free_motion.output_error import FreeOutputError, free_windows
from dynid.cases.free_motion.refinement import damped_robot, refine_free
from dynid.cases.free_motion.validation import FastFreeMotion, with_simulations
from dynid.common.errors import InputError
from dynid.dynamics.free_motion import LockedCables
from dynid.dynamics.statics import lengths_for
from dynid.experiment.experiment import Experiment
from dynid.experiment.sections import RefineSettings
from dynid.mechanism.load import load_robot
from dynid.problem import prepare
from dynid.refinement.output_error import started
from dynid.statistics.estimate import RunFit
from tests.cable_oracle import platform10
from tests.cable_robots import parameters

DAMPING = 0.004  # N m s/rad per kg


@cache
def free_log(damping: float = 0.0, sigma: float = 1e-4, runs: int = 4, duration: float = 1.7):
    """Robot, log of short runs about different equilibria, and its truth per unit mass."""
    robot, truth = load_robot("cable4"), parameters(platform10())
    specific = {name: value / truth["M_platform"] for name, value in truth.items()}
    on = LockedCables(robot, specific)
    rng = np.random.default_rng(4)
    lengths, starts = [], []
    for _ in range(runs):
        x, y, z = np.array([1.15, -0.15, -0.55]) + 0.2 * rng.uniform(-1.0, 1.0, 3)
        one = lengths_for(on, {"pose_x": x, "pose_y": y, "pose_z": z})
        lengths.append(one.lengths)
        starts.append(one.q + np.r_[0.1, 0.1, 0.0, 0.0, 0.1, 0.1, 0.1] * rng.uniform(-1.0, 1.0, 7))
    turning = ("pose_wx", "pose_wy", "pose_wz")
    damped = replace(robot, drive=dict.fromkeys(turning, ("Fv",)))
    chi = specific | {f"Fv_{name}": damping for name in turning}
    log = simulate_free_motions(
        damped,
        chi,
        np.array(lengths),
        np.array(starts),
        rate=50.0,
        duration=duration,
        position_sigma=sigma,
        angle_sigma=3.0 * sigma,
        seed=1,
    )
    return robot, log, specific


def job_and_map(robot, log):
    """A job with the nine parameters per unit mass as unknowns: standard ones are S chi + c."""
    problem = prepare(robot, [log], Experiment(robot=robot))
    names = [one.name for one in problem.parameters]
    own = [name for name in names if name.endswith("_platform") and not name.startswith("M_")]
    S, c = np.zeros((len(names), len(own))), np.zeros(len(names))
    for k, name in enumerate(own):
        S[names.index(name), k] = 1.0
    c[names.index("M_platform")] = 1.0
    return problem, own, S, c


def test_derivatives_equal_differences() -> None:
    robot, log, truth = free_log(sigma=0.0)
    problem, own, S, c = job_and_map(robot, log)
    chi = np.array([truth[name] for name in own])
    damped = damped_robot(problem, S, c, chi, "both")
    sensors, groups = free_windows(problem, damped.robot, RefineSettings(window=0.2, windows=8))
    theta = np.concatenate([chi, np.zeros(2)])
    ones = np.ones(sensors.count)
    simulated = FreeOutputError(damped.robot, sensors, damped.S, damped.c, ones, theta, 0.0 * theta, 1.0)
    # At starting states that fit: far off, the turn that is missed bends the derivative of the residual.
    windows = started(simulated, theta, groups[0].picked(slice(0, 2)))
    _, by_start, by_parameter = simulated.slopes(theta, windows)
    h = 1e-5
    for k in (0, 8, 9):
        step = h * np.eye(len(theta))[k]
        ends = [simulated.residual(theta + s * step, windows) for s in (1.0, -1.0)]
        # The integration's own error, 1e-5 at these steps, has derivatives that nobody follows.
        size = np.abs(by_parameter[:, :, k]).max()
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * h), by_parameter[:, :, k], atol=1e-3 * size)
    for k in (0, 3, 5):
        step = h * np.tile(np.eye(by_start.shape[2])[k], (2, 1))
        ends = [simulated.residual(theta, simulated.moved(windows, s * step)) for s in (1.0, -1.0)]
        size = np.abs(by_start[:, :, k]).max()
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * h), by_start[:, :, k], atol=1e-3 * size)
    known = replace(simulated, length_sigma=None)
    exact, fast = known.slopes(theta, windows), FastFreeMotion(known).slopes(theta, windows)
    for one, other in zip(exact, fast, strict=True):
        # Forward differences, of an integrator without that error.
        np.testing.assert_allclose(one, other, atol=1e-3 * max(np.abs(other).max(), 0.1))


def test_a_spoiled_estimate_is_led_back() -> None:
    robot, log, truth = free_log(damping=DAMPING)
    problem, own, S, c = job_and_map(robot, log)
    true = np.array([truth[name] for name in own])
    spoiled = true + np.array([2e-3, 3e-4, -3e-4, -2e-3, 3e-4, 2e-3, 1e-3, -1e-3, 4e-3])
    doubt = np.diag((np.abs(spoiled - true)) ** 2)
    found = refine_free(problem, S, c, spoiled, doubt, RefineSettings(window=0.6))
    assert found.covariance is not None
    assert found.after < 0.5 * found.before
    z = np.abs(found.chi - true) / np.sqrt(np.diag(found.covariance))
    assert np.all(z < 6.0)  # six windows tell their own deviation to a third only
    assert np.all(np.abs(found.chi - true) < 0.5 * np.abs(spoiled - true))
    told = float(found.words.rpartition("damping ")[2].split()[0])
    assert told == pytest.approx(DAMPING, rel=0.2)  # 1.2 s of motion decay by some percent


def test_nothing_is_gained_where_nothing_is_wrong() -> None:
    robot, log, truth = free_log()
    problem, own, S, c = job_and_map(robot, log)
    true = np.array([truth[name] for name in own])
    sure = np.diag((1e-5 * np.ones(len(true))) ** 2)
    found = refine_free(problem, S, c, true, sure, RefineSettings(window=0.3, windows=8, damping="none"))
    assert found.covariance is None
    np.testing.assert_array_equal(found.chi, true)
    assert [notice.code for notice in found.notices] == ["refinement-adds-nothing"]


def test_an_estimate_that_cannot_be_simulated_stays() -> None:
    robot, log, truth = free_log()
    problem, own, S, c = job_and_map(robot, log)
    wrong = -np.array([truth[name] for name in own])
    found = refine_free(problem, S, c, wrong, np.eye(len(own)), RefineSettings(window=0.6, damping="none"))
    assert found.covariance is None
    np.testing.assert_array_equal(found.chi, wrong)
    assert found.notices


def test_simulated_runs_tell_good_parameters_from_bad_ones() -> None:
    robot, log, truth = free_log(damping=DAMPING, runs=2, duration=1.0)
    prior = {name.removesuffix("_platform"): 1.1 * value for name, value in truth.items() if name[0] != "M"}
    com = [truth[f"M{axis}_platform"] for axis in "XYZ"]
    body = replace(
        robot.bodies["platform"], prior={"M": 1.0, "MX": com[0], "MY": com[1], "MZ": com[2]} | prior
    )
    believed = replace(robot, bodies={**robot.bodies, "platform": body})
    problem, _, _, _ = job_and_map(believed, log)
    chi = np.array([truth.get(one.name, 0.0) for one in problem.parameters])
    runs = [RunFit(k + 1, 0.0, 0.0, 0.0, 1) for k in range(2)]
    for run in with_simulations(problem, 0, chi, runs):
        # Noise of 0.1 mm in three coordinates and 0.3 mrad about three axes is all that is left.
        assert run.position_rms == pytest.approx(np.sqrt(3.0) * 1e-4, rel=0.2)
        assert run.angle_rms == pytest.approx(np.sqrt(3.0) * 3e-4, rel=0.2)
        assert run.prior_angle_rms > 5.0 * run.angle_rms


def test_the_experiment_asks_for_it() -> None:
    robot = load_robot("cable4")
    made = Experiment(robot=robot, refine={"damping": "none", "lengths": True})
    assert made.refine == RefineSettings(damping="none", lengths=True)
    assert made.refine.seconds(free_motion=True) == 2.5
    with pytest.raises(InputError, match="damping"):
        RefineSettings(damping="all")
    robot, log, _ = free_log()
    problem, own, S, c = job_and_map(robot, log)
    with pytest.raises(InputError, match="too few to refine and to validate"):
        refine_free(problem, S, c, np.ones(len(own)), np.eye(len(own)), RefineSettings())
