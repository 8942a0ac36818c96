"""Rows in which no effort acts, 0 = W chi, beside rows with measured efforts: too few cables or motors."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from dynid.cases.free_motion.simulation import random_releases
from dynid.common.errors import InputError
from dynid.dynamics.free_motion import LockedCables, free_motions
from dynid.estimator.estimator import estimator_named
from dynid.estimator.settings import GainSettings, TotalMass
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.motion.disturb import _turned
from dynid.motion.logs import log_from_arrays
from dynid.motion.settings import FilterSettings
from dynid.pipeline import identify
from dynid.problem import as_asked
from dynid.projection.inverse import inverse_directions
from dynid.projection.projection import System
from dynid.report.html import report_html
from dynid.report.json_file import result_document
from dynid.report.text import _group_table
from dynid.robots.truth import built_in_free
from dynid.unknown import Task
from dynid.validation.crossvalidation import held_out_error
from dynid.validation.held_out import validate_result
from tests.built_in import written_robot
from tests.free_oscillations import STARTS, TRUTH
from tests.systems import group, parameters
from tests.test_joined_mass import SWINGARM

MASS = 9.4
CHI = {name: MASS * value for name, value in TRUTH.items()}
RATE = 100.0
# Noise of the experiment: force cells, position and attitude of the platform.
FORCE, PLACE, TURN = 0.5, 2e-4, 4e-4


@lru_cache(maxsize=4)
def swings(
    robot: str, runs: int, duration: float, ballast: tuple[tuple[str, float], ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Poses (runs, n, 7) and tensions (runs, n, c) of free motions of cable3 or cable4."""
    if robot == "cable3":
        mechanism = load_robot(robot)
        demo = built_in_free(mechanism)
        release = random_releases(mechanism, demo, 0)
        found = free_motions(
            mechanism, demo.truth, release.lengths[:runs], release.starts[:runs], duration, RATE
        )
    else:
        chi = CHI | {f"{s}_platform": CHI[f"{s}_platform"] + value for s, value in ballast}
        cables = LockedCables(load_robot(robot), chi)
        starts = STARTS[:runs].copy()
        starts[:, 3:] /= np.linalg.norm(starts[:, 3:], axis=1, keepdims=True)
        lengths = np.array([cables.lengths(one[None])[0] for one in starts])
        found = free_motions(cables, chi, lengths, starts, duration, RATE)
    return found.q.transpose(1, 0, 2)[:, :, :7], found.tensions.transpose(1, 0, 2)


def noisy_log(
    robot, seed: int, runs: int = 4, duration: float = 5.0, bias=0.0, noise: float = 1.0, gain=1.0, ballast=()
):
    """Poses and tensions / gain + bias with the noise of the experiment."""
    q, tau = swings(robot.name, runs, duration, ballast)
    rng = np.random.default_rng(seed)
    n = q.shape[1]
    place = q[:, :, :3] + noise * PLACE * rng.standard_normal((runs, n, 3))
    turned = [_turned(one[:, 3:], noise * TURN * rng.standard_normal((n, 3))) for one in q]
    poses = np.concatenate([place, np.array(turned)], axis=2).reshape(-1, 7)
    tau = tau / gain + bias + noise * FORCE * rng.standard_normal(tau.shape)
    t = np.concatenate([np.arange(n) / RATE + 100.0 * i for i in range(runs)])
    segments = [(i * n, (i + 1) * n) for i in range(runs)]
    return log_from_arrays(robot, t, poses, tau.reshape(runs * n, -1), name="tensions", segments=segments)


def fitted(seed: int, bias=0.0, noise: float = 1.0, *, robot: str = "cable4", gain=1.0, **options):
    experiment = Experiment(robot=robot, model="inverse", **options)
    mechanism = as_asked(load_robot(robot), experiment)
    log = noisy_log(mechanism, seed, bias=bias, noise=noise, gain=gain)
    return fit_task(Task(mechanism, (log,), experiment))


def missed(fit, truth=CHI) -> dict[str, float]:
    """Error of every parameter in its stated deviations."""
    return {one.name: (one.value - truth[one.name]) / one.sigma for one in fit.parts.parameters}


def test_small_parameters_are_not_rewarded() -> None:
    """Efforts that the model explains badly, as those of a robot with a wrong geometry: weights of rows
    without effort by their own residual let chi shrink, and every step makes them heavier."""
    rng = np.random.default_rng(0)
    chi = np.array([10.0, 1.0, 0.5])
    W, W_free = rng.normal(size=(2, 400, 3))
    Y = W @ chi + 5.0 * rng.normal(size=400)
    # Rows 0 = W chi with errors of the geometry, 30 % of the largest term.
    W_free[:, 0] = -(W_free[:, 1:] @ chi[1:]) / chi[0] + 0.3 * rng.normal(size=400)
    rows = replace(group(W_free, np.zeros(400), name="free1"), homogeneous=True)
    system = System(parameters(3), (group(W, Y), rows))
    found = estimator_named("wls")(system).chi
    unmarked = System(parameters(3), (group(W, Y), replace(rows, homogeneous=False)))
    collapsed = estimator_named("wls")(unmarked).chi
    assert np.linalg.norm(collapsed) < 1e-3 * np.linalg.norm(chi)  # what the mark is for
    # Least squares still draw towards zero: to 1 / (1 + 1 / r^2) with a ratio r = 2 of signal to noise.
    assert found[0] == pytest.approx(0.8 * chi[0], rel=0.1)


def test_wls_and_gtls_do_not_feel_the_unit_of_mass() -> None:
    rng = np.random.default_rng(1)
    W, W_free = rng.normal(size=(2, 300, 3))
    Y = W @ [3.0, 1.0, 2.0] + rng.normal(size=300)
    rows = replace(group(W_free, np.zeros(300), name="free1"), homogeneous=True)
    cov = np.diag([0.1, 0.1, 0.1, 0.0])
    for estimator in (estimator_named("wls"), estimator_named("gtls", {"covariance": cov})):
        one, other = (
            estimator(System(parameters(3), (group(W, factor * Y), rows))).chi for factor in (1.0, 1e-3)
        )
        # Weights iterate to 1e-10.
        np.testing.assert_allclose(1e-3 * one, other, rtol=1e-7)


@pytest.mark.parametrize("name", ["cable3", "cable4"])
def test_directions_of_too_few_cables_are_orthonormal_and_bounded(name: str) -> None:
    robot = load_robot(name)
    directions, assembly = inverse_directions(robot), assembly_of(robot)
    poses = assembly.walk(np.random.default_rng(3), 200, reach=0.6)
    N = assembly.tangent(assembly.closure.values(poses).A)
    found = directions.moving(N, np.zeros(N.shape[:2]))
    cables = len(robot.cables)
    pulls = robot.actuator_map @ found
    # Products of doubles of size one to ten.
    np.testing.assert_allclose(pulls[:, :, :cables] - np.eye(cables), 0.0, atol=1e-9)
    np.testing.assert_allclose(pulls[:, :, cables:], 0.0, atol=1e-9)
    own = found[:, :6]
    free = own[:, :, cables:]
    np.testing.assert_allclose(
        np.swapaxes(free, 1, 2) @ free,
        np.broadcast_to(np.eye(6 - cables), (200, 6 - cables, 6 - cables)),
        atol=1e-9,
    )
    np.testing.assert_allclose(np.swapaxes(own[:, :, :cables], 1, 2) @ free, 0.0, atol=1e-9)
    assert directions.homogeneous.tolist() == [False] * cables + [True] * (6 - cables)


def test_every_run_has_directions_of_its_own() -> None:
    """The free motion of cable4 turns from pose to pose: rows stay smooth along each run."""
    robot = load_robot("cable4")
    asked = Experiment(robot="cable4", model="inverse", estimator="wls")
    fit = fit_task(Task(robot, (noisy_log(robot, 0, noise=0.0),), asked))
    source = fit.problem.sources[0]
    assert len(source._moving) == len(source.pieces()) == 4
    for start, stop in source.pieces():
        states = source.kinematics.states(start, source.motion.states(start, stop))
        N = source.tangents(start, states.N, states.dq)
        assert np.abs(np.diff(N, axis=0)).max() < 0.3  # of a unit motion, at 100 Hz; a flip would be two
    values = {one.name: one.value for one in fit.parts.parameters}
    for name, value in CHI.items():
        # Without noise what is left is the low-pass and the derivative formula.
        assert values[name] == pytest.approx(value, abs=2e-3 * max(abs(value), 0.05))


def test_noise_in_the_columns_does_not_bias_by_default() -> None:
    """M was 9 deviations low, inertias 3 to 7. Long figures are in docs/howto/cables.md."""
    fits = [fitted(seed) for seed in range(2)]
    assert all(one.experiment.estimator == "gtls" for one in fits)
    z = np.array([[*missed(one).values()] for one in fits])
    # Twenty errors over their deviations, of which a few exceed two by chance.
    assert np.abs(z).max() < 4.0
    assert np.sqrt(np.mean(z**2)) < 1.6
    plain = missed(fitted(0, estimator="wls", noise=3.0))
    assert plain["MZ_platform"] < -2.5  # an estimator that is asked for stays, with its bias


def test_coordinates_are_not_low_passed_and_oscillations_are_no_repeats() -> None:
    fit = fitted(0)
    assert fit.problem.plans[0].cutoff is None
    assert fit.problem.plans[0].decimate > 1
    assert fit.parts.spread.facts["method"] == "bootstrap"
    assert fit.experiment.estimator_options["centred"]
    asked = fitted(0, estimator="wls", filter=FilterSettings(cutoff=10.0))
    assert asked.problem.plans[0].cutoff == 10.0


def test_intervals_hold_the_truth_with_measured_tensions() -> None:
    """Every parameter alone: 40 draws hold 92.5 to 100 %, together 95.5 % (docs/howto/cables.md)."""
    held = []
    for seed in range(1000, 1008):
        parts = fitted(seed).parts
        held.append([one.ci95[0] <= CHI[one.name] <= one.ci95[1] for one in parts.parameters])
    # Eight draws of ten parameters, which are correlated: 76 of 80 are expected.
    assert np.mean(held) > 0.88
    # Six of eight or fewer have a probability of 6 % for one parameter, five or fewer of 0.6 %.
    assert np.min(np.sum(held, axis=0)) >= 5


@pytest.mark.parametrize("estimator", ["covariance", "robust"])
def test_no_weighting_rewards_small_parameters(estimator: str) -> None:
    """Noise that no filter reduces: weights by the residual of rows without effort gave M = 0."""
    robot = load_robot("cable4")
    options = {"estimator": "robust"}
    if estimator == "covariance":
        options = {"estimator": "wls", "estimator_options": {"weights": "covariance"}}
    asked = Experiment(robot=robot, model="inverse", filter=FilterSettings(decimate=1), **options)
    log = noisy_log(robot, 0, runs=2, duration=3.0, noise=2.0)
    values = {one.name: one.value for one in fit_task(Task(robot, (log,), asked)).parts.parameters}
    # Least squares are biased towards zero by such noise, to 0.1 and 3 kg, but not without end.
    assert values["M_platform"] > 0.05


CELL_GAINS = np.array([0.8, 1.1, 1.25, 0.9])


@pytest.mark.parametrize("known", ["mass", "payload", "gain"])
def test_gains_of_force_cells_are_parameters(known: str) -> None:
    """The scale is given by a weighed platform, by a payload in some logs, or by one known cell."""
    gain, robot, logs = CELL_GAINS, load_robot("cable4"), None
    settings = GainSettings(total_mass=TotalMass(MASS))
    if known == "gain":
        gain = np.append(1.0, CELL_GAINS[1:])
        settings = GainSettings(unknown=("cable2", "cable3", "cable4"))
    if known == "payload":
        settings = GainSettings()
        ballast = {"M": 3.0, "MX": 0.0, "MY": 0.0, "MZ": 0.3}
        robot = replace(robot, payloads={"ballast": Payload("ballast", "platform", known=ballast)})
        loaded = noisy_log(robot, 1, gain=gain, ballast=tuple(ballast.items()))
        logs = (noisy_log(robot, 0, gain=gain), replace(loaded, name="loaded", payloads=("ballast",)))
    experiment = Experiment(robot=robot, model="inverse", gains=settings)
    fit = fit_task(Task(robot, logs or (noisy_log(robot, 0, gain=gain),), experiment))
    truth = {**CHI, **{f"gain_cable{k + 1}": value for k, value in enumerate(gain)}}
    listed = {one.name: one for one in fit.parts.parameters}
    shown = [one for name, one in listed.items() if name in truth and one.sigma]
    z = [(one.value - truth[one.name]) / one.sigma for one in shown]
    # Thirteen errors over their deviations, which are correlated.
    assert np.abs(z).max() < 4.0
    # A payload of unknown inertia, a third of the platform's mass, tells less than the platform's own mass.
    assert all(one.sigma < 5e-3 for name, one in listed.items() if name.startswith("gain"))
    if known == "mass":
        assert listed["M_platform"].value == pytest.approx(MASS, rel=1e-6)  # where weights stop iterating


def test_bias_of_force_cells_is_a_parameter() -> None:
    """`drive: [Off]` of a cable is along its length: a cell that reads too much gives a negative one."""
    bias = np.array([3.0, -2.0, 1.0, 4.0])
    fit = fitted(0, bias=bias, drive=("Off",))
    truth = {**CHI, **{f"Off_cable{i + 1}": -value for i, value in enumerate(bias)}}
    z = missed(fit, truth)
    assert max(map(abs, z.values())) < 4.0
    sigma = {one.name: one.sigma for one in fit.parts.parameters}
    assert sigma["Off_cable1"] < 0.2  # N, of tensions of 15 to 110 N


def test_results_show_no_figure_that_needs_an_effort() -> None:
    log = noisy_log(load_robot("cable4"), 0, duration=5.0)
    estimate = identify("cable4", log, model="inverse", validate=noisy_log(load_robot("cable4"), 1))
    assert estimate.estimator == "gtls"
    assert "free1, free2" in estimate.choices["estimator"]
    assert not [one for one in estimate.warnings if one.code in ("gain", "delay")]
    about_free = {one.test for one in estimate.residual_tests if one.about.startswith("free")}
    assert about_free <= {"white"}
    document = result_document(estimate)
    for groups in (document["fit"]["groups"], document["validation"][0]["groups"]):
        by_name = {one["name"]: one for one in groups}
        assert by_name["cable1"]["r2"] > 0.9
        assert by_name["free1"]["r2"] is None
        assert by_name["free1"]["residual_percent"] is None
        assert by_name["free1"]["rms"] > 0.0
    cells = [list(column.cells) for column in _group_table(estimate.fit.groups, "effort").columns]
    assert [str(column[-1]) for column in cells][-1] == "N, N m"  # a size with its unit, and no percentage
    assert "free1" in report_html(estimate)  # a residual in percent of no effort is not drawn
    # Efforts as logged are predicted from smooth coordinates, by the same formulas: rounding.
    [later], _ = validate_result(estimate, [noisy_log(load_robot("cable4"), 1)])
    assert later.effort_percent == pytest.approx(estimate.validation[0].effort_percent, rel=1e-6)


def test_held_out_efforts_are_those_of_smooth_coordinates() -> None:
    """As logged 49 % of the efforts were noise of raw accelerations, where `identify` shows 3.8 %."""
    fit = fitted(0, estimator="wls")
    log = noisy_log(load_robot("cable4"), 1)
    plans = fit.problem.plans
    error = held_out_error(fit.problem, fit.chi, [log], fit.experiment, plans)
    assert error.effort_percent < 5.0


def test_only_rows_with_efforts_keep_least_squares() -> None:
    cables = ("cable1", "cable2", "cable3", "cable4")
    fit = fitted(0, efforts=cables)
    assert fit.experiment.estimator == "wls"


CART = """
schema: dynid.robot/1
name: cart
gravity: [0, 0, -9.81]
joints:
  - {name: rail, kind: prismatic, parent: base, child: cart, axis: [1, 0, 0]}
  - {name: pivot, kind: revolute, parent: cart, child: pole, axis: [0, 1, 0]}
actuators: [rail]
measured: [rail, pivot]
"""
CART_MASS, POLE_MASS, ARM, INERTIA = 2.0, 0.8, 0.3, 0.02  # kg, kg, m, kg m^2 about the centre of mass


def cart_log(robot, seed: int):
    """A pendulum on a cart that a spring and a force move, by equations written out here."""
    from scipy.integrate import solve_ivp

    m, arm, J = POLE_MASS, ARM, INERTIA + POLE_MASS * ARM**2

    def force(t, x, v):
        return 6.0 * np.sin(2.1 * t) + 5.0 * np.sin(5.3 * t + 1.0) - 30.0 * x - 2.0 * v

    def slope(t, y):
        x, a, v, w = y
        H = np.array([[CART_MASS + m, -m * arm * np.cos(a)], [-m * arm * np.cos(a), J]])
        c = [force(t, x, v) - m * arm * np.sin(a) * w**2, -m * 9.81 * arm * np.sin(a)]
        return [v, w, *np.linalg.solve(H, c)]

    t = np.arange(0.0, 40.0, 0.005)
    y = solve_ivp(slope, (0.0, 40.0), [0.0, 0.8, 0.0, 0.0], t_eval=t, rtol=1e-10, atol=1e-10).y
    rng = np.random.default_rng(seed)
    tau = force(t, y[0], y[2]) + 0.3 * rng.standard_normal(len(t))
    q = y[:2].T + [5e-4, 3e-3] * rng.standard_normal((len(t), 2))
    return log_from_arrays(robot, t, q, tau[:, None], name="cart")


def test_a_joint_without_motor_is_such_a_row(tmp_path) -> None:
    robot = written_robot(tmp_path, CART)
    assert inverse_directions(robot).homogeneous.tolist() == [False, True]
    log = cart_log(robot, 0)
    fit = fit_task(Task(robot, (log,), Experiment(robot=robot)))
    assert fit.experiment.estimator == "gtls"
    J = INERTIA + POLE_MASS * ARM**2
    truth = {
        "M_cart": CART_MASS,
        "M_pole": POLE_MASS,
        "MX_pole": 0.0,
        "MZ_pole": -POLE_MASS * ARM,
        "YY_pole": J,
    }
    true = fit.true_values(truth)
    z = {one.name: (one.value - true[one.name]) / one.sigma for one in fit.parts.parameters}
    # Four errors over their deviations; least squares are further off.
    assert max(map(abs, z.values())) < 3.5
    plain = fit_task(Task(robot, (log,), Experiment(robot=robot, estimator="wls")))
    biased = max(abs(one.value - true[one.name]) / one.sigma for one in plain.parts.parameters)
    assert biased > max(3.0, *map(abs, z.values()))


def test_the_gain_of_a_motor_beside_a_joint_without_motor(tmp_path) -> None:
    """The weighed cart sets the scale; noise of the columns and of the force must not shrink the gain."""
    robot = written_robot(tmp_path, CART)
    log = cart_log(robot, 0)
    log = replace(log, tau=log.tau / 1.7)
    settings = GainSettings(total_mass=TotalMass(CART_MASS + POLE_MASS))
    fit = fit_task(Task(robot, (log,), Experiment(robot=robot, gains=settings)))
    assert fit.experiment.estimator == "gtls"
    assert "gtls" in fit.choices["drive gains"]
    gain = {one.name: one for one in fit.parts.parameters}["gain_rail"]
    assert abs(gain.value - 1.7) < 3.5 * gain.sigma
    assert gain.sigma < 0.02
    with pytest.raises(InputError, match=r"rows in which no effort acts \(pivot\) need estimator 'gtls'"):
        fit_task(Task(robot, (log,), Experiment(robot=robot, gains=settings, estimator="wls")))


def test_a_gain_that_nothing_ties_to_the_scale_is_named(tmp_path) -> None:
    """A second slide on the base shares no parameter with the weighed cart."""
    slide = "  - {name: slide, kind: prismatic, parent: base, child: block, axis: [0, 1, 0]}\n"
    text = CART.replace("actuators: [rail]", slide + "actuators: [rail, slide]").replace(
        "measured: [rail, pivot]", "measured: [rail, pivot, slide]"
    )
    log = cart_log(written_robot(tmp_path, CART), 0)
    robot = written_robot(tmp_path, text)
    t = log.t
    moved = 0.2 * np.sin(3.0 * t)
    tau = np.column_stack([log.tau, -9.0 * moved * 1.5])
    both = log_from_arrays(robot, t, np.column_stack([log.q, moved]), tau, name="two")
    settings = GainSettings(total_mass=TotalMass(CART_MASS + POLE_MASS, ("cart", "pole")))
    with pytest.raises(InputError, match="drive gain of slide is not identifiable"):
        fit_task(Task(robot, (both,), Experiment(robot=robot, gains=settings)))


def test_a_platform_on_cables_with_a_free_hinge_has_a_row_for_each_freedom(tmp_path) -> None:
    robot = written_robot(tmp_path, SWINGARM)
    directions = inverse_directions(robot)
    freedoms = assembly_of(robot).dof
    assert len(directions.names) == freedoms == 7
    assert int(directions.homogeneous.sum()) == freedoms - len(robot.actuators)
