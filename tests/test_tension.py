"""Internal tension of redundantly actuated robots: found in a log, rebuilt, and shown."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from rich.console import Console

from dynid.conditioning.lowpass import row_filter
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.kinematics.tension import carried_along, driven_freedoms, redundancy, tension_directions
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Actuator
from dynid.mechanism.parameters import parameter_table
from dynid.pipeline import identify_logs, validate_result
from dynid.problem import prepare
from dynid.report.csv_file import signals_csv
from dynid.report.html import report_html
from dynid.report.sections.predicts import tension_summary, without_tension
from dynid.report.text import print_verdict
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.prediction import predict_rows, unfiltered
from dynid.statistics.tension import tension_of
from tests.built_in import EXACT, truth_of

pytestmark = pytest.mark.usefixtures("no_symbols")

OLS = {**EXACT, "estimator": "ols"}
SIZE = 6.0  # N m


@cache
def dualv():
    robot = load_robot("dualv")
    truth = truth_of("dualv")
    return robot, truth, random_motion(robot, 4, harmonics=6, frequency=0.5, draws=1)


@cache
def log_of(tension: float = SIZE, periods: int = 1, sigma: float = 0.0, rate: float = 250.0):
    robot, truth, motion = dualv()
    log = simulate_log(
        robot,
        truth,
        motion,
        rate=rate,
        duration=periods * motion.period,
        tension=tension,
        torque_sigma=sigma,
        velocity=True,
    )
    return replace(log, ddq=motion.ddq(log.t))


def known_tension(t):
    """What `simulate_log` puts into the log."""
    return SIZE * (0.6 + 0.4 * np.sin(2.0 * np.pi * 0.37 * t))


@cache
def estimate_of(model: str):
    robot = dualv()[0]
    return identify_logs(robot, [log_of()], [log_of(0.0)], Experiment(robot=robot, model=model, **OLS))


@cache
def as_logged():
    """Times and tension of every sample, with the true parameters and no filter."""
    robot, truth, _ = dualv()
    problem = prepare(robot, [log_of()], Experiment(robot=robot, **OLS))
    chi = np.array([truth[p.name] for p in problem.parameters])
    source, rows = problem.sources[0], unfiltered(log_of().dt)
    t = predict_rows(source, rows, chi).signals.t
    return t, tension_of(problem.mechanism, problem.parameters, source, rows, chi)


def test_a_known_tension_is_found_to_rounding() -> None:
    t, motors = as_logged()
    assert np.isfinite(motors.c).sum() > 450
    # Z^T tau holds no parameter: rounding of closures and of efforts of some 50 N m alone.
    c = motors.c[:, 0]
    np.testing.assert_allclose(c, np.sign(c[0]) * known_tension(t), rtol=0, atol=1e-9)
    # With the true parameters nothing else is left.
    np.testing.assert_allclose(motors.rebuilt, motors.measured, rtol=0, atol=1e-8)


@pytest.mark.parametrize("model", ["power", "inverse", "energy"])
def test_a_known_tension_is_found_whatever_the_model(model: str) -> None:
    signals = estimate_of(model).signals[0]
    motors = signals.tension
    used = np.isfinite(motors.c[:, 0])
    assert used.sum() > 150
    c, known = motors.c[used, 0], known_tension(signals.t[used])
    # At the ends of the log the row filter is one-sided and shifts efforts by a part of a sample; windows of
    # the energy model begin half a sample late. The tension changes by 0.02 N m a sample.
    np.testing.assert_allclose(c, np.sign(c[0]) * known, rtol=0, atol=0.05)
    off = np.linalg.norm((motors.rebuilt - motors.measured)[used]) / np.linalg.norm(motors.measured[used])
    # Noise-free rows, but friction that jumps within the window of a derivative or of the filter.
    assert off < 0.01


def test_rebuilt_efforts_are_least_efforts_and_tension() -> None:
    robot, _, motion = dualv()
    t, motors = as_logged()
    Z = tension_directions(robot, motion.states(t).N)[:, :, 0]
    c = motors.c[:, 0]
    Z *= np.sign(Z[0] @ (motors.rebuilt - motors.min_norm)[0] * c[0])  # motions begin at different poses
    # Rounding of efforts of 50 N m and of a null space found twice.
    close = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(motors.rebuilt, motors.min_norm + Z * c[:, None], **close)
    np.testing.assert_allclose(np.sum(Z * motors.min_norm, axis=1), 0.0, **close)
    np.testing.assert_allclose(np.sum(Z * motors.measured, axis=1), c, **close)
    # What is left is explained by no tension.
    np.testing.assert_allclose(np.sum(Z * (motors.measured - motors.rebuilt), axis=1), 0.0, **close)


def test_noise_of_the_tension_is_that_of_the_motors() -> None:
    robot, _, _ = dualv()
    sigma, log = 0.8, log_of(periods=2, sigma=0.8, rate=1000.0)
    clean = log_of(periods=2, rate=1000.0)
    problem = prepare(robot, [log], Experiment(robot=robot, **OLS))
    chi = np.zeros(len(problem.parameters))
    for rows in (unfiltered(log.dt), row_filter(log.dt, 5)):
        noisy = tension_of(robot, problem.parameters, problem.sources[0], rows, chi)
        exact = tension_of(robot, problem.parameters, replace_log(problem, clean).sources[0], rows, chi)
        error = noisy.c - exact.c
        expected = sigma * np.linalg.norm(rows.kernel)
        # Some 800 to 2000 errors, neighbours correlated by the filter: a few percent.
        assert np.nanstd(error) == pytest.approx(expected, rel=0.1)


def replace_log(problem, log):
    return problem.on([log], problem.plans, Experiment(robot=problem.mechanism, **OLS))


def test_signals_share_their_times() -> None:
    """The rows of the fit and the motors' efforts stand side by side in one table."""
    robot, _, _ = dualv()
    log = log_of(periods=2)
    broken = replace(log, segments=((0, 400), (450, len(log.t))))
    problem = prepare(robot, [broken], Experiment(robot=robot, model="energy"))
    chi = np.zeros(len(problem.parameters))
    signals = predict_rows(problem.sources[0], problem.filters[0], chi).signals
    motors = tension_of(robot, problem.parameters, problem.sources[0], problem.filters[0], chi)
    assert len(motors.c) == len(signals.t)
    (gap,) = np.flatnonzero(np.diff(signals.t) == 0.0)  # the row between the two segments
    assert np.isnan(signals.measured[gap]).all()
    assert np.isnan(motors.c[gap]).all()


def test_directions_do_not_jump_over_a_long_motion_or_between_blocks() -> None:
    robot, _, motion = dualv()
    N = motion.states(np.arange(0.0, 4 * motion.period, 0.002)).N
    # A tangent basis may be any: its signs and turns must not reach the tension.
    rng = np.random.default_rng(5)
    turned = N @ np.linalg.qr(rng.normal(size=(len(N), 3, 3)))[0]
    Z = tension_directions(robot, turned)
    assert np.linalg.norm(np.diff(Z, axis=0), axis=1).max() < 0.1  # some 20 rad/s at 2 ms
    assert redundancy(robot) == 1
    blocks, before = [], None
    for start in range(0, len(N), 37):
        blocks.append(tension_directions(robot, N[start : start + 37], before))
        before = blocks[-1][-1]
    # The same directions from another basis: rounding of two factorisations.
    np.testing.assert_allclose(np.concatenate(blocks), Z, rtol=0, atol=1e-10)


def test_the_first_direction_is_fixed_by_the_pose_alone() -> None:
    robot, _, motion = dualv()
    N = motion.states(np.linspace(0.0, motion.period, 50)).N
    first = [tension_directions(robot, N[i : i + 1])[0] for i in range(50)]
    again = [tension_directions(robot, -N[i : i + 1, :, ::-1])[0] for i in range(50)]
    np.testing.assert_allclose(first, again, rtol=0, atol=1e-12)  # rounding of the factorisation


def test_several_directions_turn_as_little_as_they_can() -> None:
    """Against the rule applied sample by sample."""
    rng = np.random.default_rng(8)
    start, drift = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    path = np.linalg.qr(start + np.linspace(0.0, 1.0, 60)[:, None, None] * drift)[0]
    shuffled = path @ np.linalg.qr(rng.normal(size=(60, 3, 3)))[0]
    found = carried_along(shuffled, path[0])
    before = path[0]
    for k in range(60):
        left, _, right = np.linalg.svd(shuffled[k].T @ before)
        before = shuffled[k] @ left @ right
        np.testing.assert_allclose(found[k], before, rtol=0, atol=1e-12)  # rounding of 60 products
    np.testing.assert_allclose(np.swapaxes(found, 1, 2) @ found, np.eye(3)[None].repeat(60, 0), atol=1e-13)


def test_three_motors_on_one_joint_have_two_tensions() -> None:
    robot = load_robot("scara")
    first = robot.coordinates[0]
    extra = tuple(Actuator(f"extra{i}", {first: float(i)}) for i in (1, 2))
    robot = replace(robot, actuators=(*robot.actuators, *extra))
    assert (redundancy(robot), driven_freedoms(robot)) == (2, (4, 4))
    truth = {p.name: 0.3 for p in parameter_table(robot)}
    motion = random_motion(robot, seed=2, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=motion.period, velocity=True)
    log = replace(log, ddq=motion.ddq(log.t))
    problem = prepare(robot, [log], Experiment(robot=robot, **OLS))
    chi = np.full(len(problem.parameters), 0.3)
    motors = tension_of(robot, problem.parameters, problem.sources[0], unfiltered(log.dt), chi)
    used = np.isfinite(motors.c).all(axis=1)
    assert used.sum() > 500
    # Simulated efforts are the least ones: there is no tension, and nothing else is left.
    np.testing.assert_allclose(motors.c[used], 0.0, atol=1e-10)
    np.testing.assert_allclose(motors.min_norm[used], motors.measured[used], rtol=0, atol=1e-10)


def test_a_robot_without_spare_motors_has_no_tension_columns() -> None:
    robot = load_robot("orthoglide")
    truth = truth_of("orthoglide")
    motion = random_motion(robot, 1, harmonics=6, frequency=0.5, draws=1)
    log = simulate_log(robot, truth, motion, rate=100.0, duration=motion.period, velocity=True)
    problem = prepare(robot, [log], Experiment(robot=robot, **OLS))
    chi = np.zeros(len(problem.parameters))
    assert redundancy(robot) == 0
    assert tension_of(robot, problem.parameters, problem.sources[0], problem.filters[0], chi) is None
    signals = predict_rows(problem.sources[0], problem.filters[0], chi).signals
    header = signals_csv([signals]).splitlines()[0].split(",")
    assert header[:5] == ["log", "use", "t", "measured_slide1", "predicted_slide1"]
    assert not [name for name in header if name.startswith(("tau", "c_"))]


def test_a_motor_that_was_not_logged_hides_the_tension() -> None:
    robot, _, _ = dualv()
    problem = prepare(robot, [log_of()], Experiment(robot=robot, **OLS))
    log = problem.logs[0]
    tau, present = log.tau.copy(), np.array([True, True, False, True])
    tau[:, 2] = np.nan
    partial = replace_log(problem, replace(log, tau=tau, effort_present=present))
    chi = np.zeros(len(problem.parameters))
    assert tension_of(robot, problem.parameters, partial.sources[0], problem.filters[0], chi) is None


def test_signals_and_report_show_what_was_found() -> None:
    estimate = estimate_of("inverse")
    rows = list(csv.DictReader(io.StringIO(signals_csv(estimate.signals))))
    assert {row["use"] for row in rows} == {"identify", "validate"}
    used = [row for row in rows if row["use"] == "identify" and row["c_1"]]
    c = np.array([float(row["c_1"]) for row in used])
    known = known_tension(np.array([float(row["t"]) for row in used]))
    np.testing.assert_allclose(np.abs(c), known, rtol=0, atol=0.05)  # as above
    motors = ("motor1", "motor2", "motor3", "motor4")
    both = [
        [float(row[f"tau_rebuilt_{m}"]) - float(row[f"tau_min_norm_{m}"]) for m in motors] for row in used
    ]
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), np.abs(c), rtol=0, atol=1e-7)  # ten digits
    text = report_html(estimate)
    assert 'id="tension"' in text
    assert "rebuilt, tension included" in text
    strained = tension_summary("log", estimate.signals[0].tension)
    assert abs(strained.means[0]) == pytest.approx(3.6, abs=1.0)  # 0.6 of 6 N m and a part of a swing
    assert strained.off_percent < 1.0  # noise-free
    unstrained = tension_summary("log", estimate.signals[1].tension)
    assert unstrained.share_percent < 0.1


@pytest.mark.parametrize("model", ["power", "inverse"])
def test_a_redundant_robot_is_not_said_to_predict_single_motors(model: str) -> None:
    """The power does not show the internal tension, and no model predicts it."""
    found = estimate_of(model)
    told = without_tension(found)
    assert told.startswith("Single motor efforts only where the internal tension is measured or commanded")
    page, out = report_html(found), Console(width=400, file=io.StringIO())
    print_verdict(out, found)
    assert told in page
    assert told in out.file.getvalue()
    assert ("predicting efforts (torques, forces)" in page) == (model == "inverse")
    assert without_tension(replace(found, verdict=replace(found.verdict, level="bad"))) == ""


def test_later_validation_has_the_same_signals() -> None:
    robot, estimate = dualv()[0], estimate_of("power")
    _, (signals,) = validate_result(estimate, [log_of()], robot)
    used = np.isfinite(signals.tension.c[:, 0])
    c, known = signals.tension.c[used, 0], known_tension(signals.t[used])
    np.testing.assert_allclose(c, np.sign(c[0]) * known, rtol=0, atol=0.05)  # as above
