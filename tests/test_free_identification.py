"""Identification from free motion: exact without noise, honest with it, and in kilograms with a payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid import identify
from dynid.experiment.experiment import Experiment
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Payload
from dynid.pipeline import identify_logs
from dynid.problem import as_log as prepared
from dynid.problem import build_system, prepare
from dynid.report.html import report_html
from dynid.simulation.demo import built_in_experiment
from dynid.validation.held_out import validate_result
from dynid.validation.results import agreement, mass_by_payload, payload_mass
from tests.free_oscillations import STARTS, TRUTH, as_log, oscillations, simulated

ROBOT = load_robot("cable4")
MARKER_NOISE = 2e-4


def identified(logs, robot=ROBOT, validate=(), truth=TRUTH, **options):
    return identify_logs(robot, logs, validate, Experiment(robot=robot, **options), truth=truth)


def errors(estimate):
    return np.array([p.value - estimate.truth[p.name] for p in estimate.parameters])


@pytest.fixture(scope="module")
def exact():
    return identified([as_log(ROBOT, oscillations(5, 4.0))])


def test_without_noise_the_truth_is_found(exact) -> None:
    assert exact.estimator == "gtls"
    assert [p.unit for p in exact.parameters if p.name.startswith("M")] == ["m"] * 3
    assert len(exact.parameters) == 9
    assert exact.fit.rank == 9
    for parameter, error in zip(exact.parameters, errors(exact), strict=True):
        # The seven-point formula at 100 Hz on oscillations below 3 Hz: (2 pi 3 / 100)^6 / 140 = 3e-7.
        size = 0.06 if parameter.unit == "m^2" else 0.2
        assert abs(error) < 1e-6 * size, parameter.name
    assert exact.fit.residual_percent < 1e-3
    assert [group.unit for group in exact.fit.groups] == ["N, N m per kg"] * 2
    assert exact.fit.cost_C > 1.0
    assert exact.fit.sigma_W < 1e-4
    assert "M_platform" not in [p.name for p in exact.parameters]


def test_the_measured_side_is_the_mass_column(exact) -> None:
    """residual_percent is relative to what a unit point mass at the origin would need."""
    [found], [shown] = validate_result(exact, [as_log(ROBOT, oscillations(2, 3.0))], ROBOT)
    kept = np.isfinite(shown.measured).all(axis=1)  # a blank line separates runs
    left = np.linalg.norm((shown.measured - shown.predicted)[kept])
    assert found.residual_percent == pytest.approx(
        100 * left / np.linalg.norm(shown.measured[kept]), rel=1e-6
    )
    assert np.isnan(found.effort_percent)
    assert len(found.runs) == 2
    total = np.sqrt(sum(run.sigma_perp**2 * run.n_samples for run in found.runs))
    assert total == pytest.approx(left, rel=1e-6)


def test_plain_total_least_squares_is_the_smallest_singular_vector() -> None:
    """Eqs (28)-(33) by a dense SVD of all ten columns."""
    options = {"filter": {"decimate": 10}, "internal": {"nullspace": "free", "free": ("x", "y")}}
    measured = as_log(ROBOT, oscillations(4, 3.0), MARKER_NOISE)
    estimate = identified([measured], estimator="tls", **options)
    experiment = Experiment(robot=ROBOT, **options)
    problem = prepare(ROBOT, [prepared(measured, ROBOT, experiment)], experiment)
    system = build_system(problem)
    rows = [(group.factor(len(problem.parameters)).R, group.n_rows) for group in system.groups]
    assert problem.parameters[9].name == "M_platform"
    # The mass column is the negative measured side.
    A = np.concatenate([np.column_stack([R[:, :9], -R[:, -1]]) for R, _ in rows])
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    chi = Vt[-1] / Vt[-1][9]
    n = sum(count for _, count in rows)
    W_hat = A - s[-1] * np.outer(U[:, 9], Vt[-1])
    sigma_W = s[-1] / np.sqrt(n - 10)
    C = sigma_W**2 * (1 + chi[:9] @ chi[:9]) * np.linalg.inv(W_hat[:, :9].T @ W_hat[:, :9])
    assert [p.value for p in estimate.parameters] == pytest.approx(chi[:9], rel=1e-8, abs=1e-10)
    assert estimate.fit.sigma_W == pytest.approx(sigma_W, rel=1e-8)
    assert estimate.fit.cost_C == pytest.approx((s[0] + 1) / s[8], rel=1e-8)
    # The row filter correlates rows: that is counted on top of (32).
    inflation = max(group.inflation for group in system.groups)
    sigma = np.array([p.sigma for p in estimate.parameters])
    assert sigma == pytest.approx(np.sqrt(np.diag(C) * inflation), rel=1e-8)


def test_intervals_hold_the_truth_under_marker_noise() -> None:
    """A small version of `benchmarks/studies/cable4.py`: three runs of the default under 0.2 mm."""
    q = oscillations(8, 4.0)
    found = [identified([as_log(ROBOT, q, MARKER_NOISE, seed)]) for seed in range(3)]
    held = [p.ci95[0] <= e.truth[p.name] <= p.ci95[1] for e in found for p in e.parameters]
    assert np.mean(held) >= 0.8  # 27 intervals that promise 95 %: below 0.8 with a chance of 0.3 %
    mean = np.mean([errors(e) for e in found], axis=0)
    sigma = np.mean([[p.sigma for p in e.parameters] for e in found], axis=0)
    # The mean of three errors has a deviation of 0.58 sigma: four of them.
    assert np.all(np.abs(mean) < 2.3 * sigma)
    for p in found[0].parameters:
        if p.name in ("MZ/M_platform", "XX/M_platform", "YY/M_platform", "ZZ/M_platform"):
            assert p.sigma_rel_percent < 0.5


def test_a_known_payload_gives_the_mass() -> None:
    mass, com = 2.0, np.array([0.1, -0.05, 0.3])
    inertia = mass * (com @ com * np.eye(3) - np.outer(com, com)) + np.diag([2e-3, 3e-3, 4e-3])
    own = {"M": mass, "MX": mass * com[0], "MY": mass * com[1], "MZ": mass * com[2]}
    names = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")
    own |= dict(zip(names, inertia[np.triu_indices(3)].tolist(), strict=True))
    known = {name: float(own[name]) for name in ("M", "MX", "MY", "MZ")}
    robot = replace(ROBOT, payloads={"ballast": Payload("ballast", "platform", known=known)}, rebuild=None)
    chi = {name: 10.0 * value for name, value in TRUTH.items()}
    chi |= {f"{name}_ballast": value for name, value in own.items()}
    loaded = simulated(robot, chi, STARTS[:5], 4.0, mounted=("ballast",))
    bare = as_log(robot, oscillations(5, 4.0), MARKER_NOISE, 1, name="bare")
    with_it = as_log(robot, loaded, MARKER_NOISE, 2, ("ballast",), name="loaded")

    together = identified([bare, with_it], robot, truth=chi)
    found = together["M_platform"]
    assert found.unit == "kg"
    assert found.value == pytest.approx(10.0, rel=0.02)
    assert abs(found.value - 10.0) < 4.0 * found.sigma

    # The same by eqs (23), (24) from two results on their own.
    one = identified([bare], truth=None)
    two = identified([with_it], robot, truth=None, payloads=robot.payloads)
    apart = payload_mass(one, two, mass, com.tolist())
    # A comparison of both results, as of `dynid compare bare loaded`, lists it too.
    [line] = mass_by_payload([one, two])
    assert line.values == (None, apart.value)
    assert line.sigmas == (None, apart.sigma)
    assert not mass_by_payload([one, one])
    assert apart.value == pytest.approx(10.0, rel=0.02)
    assert abs(apart.value - 10.0) < 4.0 * apart.sigma
    # Three equations more are used together: never less sure.
    assert found.sigma < 1.5 * apart.sigma

    # A result with the mass predicts loaded motion.
    [checked], _ = validate_result(together, [replace(with_it, name="again")], robot)
    assert checked.residual_percent < 2.0 * together.fit.residual_percent + 0.1


def test_a_payload_that_is_always_there_tells_no_mass() -> None:
    known = {"M": 2.0, "MX": 0.0, "MY": 0.0, "MZ": 0.0}
    robot = replace(ROBOT, payloads={"ballast": Payload("ballast", "platform", known=known)}, rebuild=None)
    log = as_log(robot, oscillations(4, 3.0), payloads=("ballast",))
    estimate = identified([log], robot, truth=None)
    assert "payload-always" in [w.code for w in estimate.warnings]
    assert "M_platform" not in [p.name for p in estimate.parameters]


def test_a_product_of_inertia_near_zero_stays(exact) -> None:
    """Its relative deviation is large because it is nearly zero, not because it is badly known."""
    chi = TRUTH | {"XY_platform": 0.0, "YZ_platform": 0.0}
    q = simulated(ROBOT, chi, STARTS[:5], 4.0)
    found = identified([as_log(ROBOT, q, MARKER_NOISE)], truth=chi, essential={"sigma_percent": 10.0})
    assert all(p.essential for p in found.parameters)
    assert found["XY/M_platform"].sigma_rel_percent > 10.0
    # Known to 1e-5 m^2 beside inertias of 0.06: no weak parameter.
    assert "weak-parameters" not in [w.code for w in found.warnings]


def test_energy_that_grows_is_reported() -> None:
    q = oscillations(3, 3.0).copy()
    for one in q:
        middle = one.mean(axis=0)
        one[:] = middle + np.linspace(0.4, 1.0, len(one))[:, None] * (one - middle)
        one[:, 3:] /= np.linalg.norm(one[:, 3:], axis=1, keepdims=True)
    told = [w for w in identified([as_log(ROBOT, q)]).warnings if w.code == "not-free-motion"]
    assert told
    assert "energy grows" in told[0].text


def test_results_are_compared_as_the_paper_does(exact) -> None:
    other = replace(exact, parameters=tuple(replace(p, value=1.01 * p.value) for p in exact.parameters))
    for one in agreement(exact, other):
        assert one.change_percent == pytest.approx(1.0)
        assert one.distance == pytest.approx(0.01 * abs(one.reference) / (np.sqrt(2) * exact[one.name].sigma))


TWO_CABLES = """
name: two
gravity: [0, 0, -9.81]
joints: [{name: pose, kind: free, parent: base, child: platform}]
cables:
  - {name: a, from: {body: base, xyz: [-0.6, 0, 1.5]}, to: {body: platform, xyz: [-0.2, 0.02, 0.3]}}
  - {name: b, from: {body: base, xyz: [0.6, 0.1, 1.5]}, to: {body: platform, xyz: [0.2, -0.03, 0.28]}}
start: {pose_x: 0, pose_y: 0, pose_z: 0, pose_qw: 1}
measured: [pose]
model: internal
"""


def test_two_cables_do_not_mind_poor_free_coordinates(tmp_path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO_CABLES)
    robot = load_robot(file)
    rng = np.random.default_rng(3)
    starts = np.array(
        [[*rng.uniform(-0.15, 0.15, 3), 1.0, *(rng.normal(size=3) * [0.12, 0.06, 0.12])] for _ in range(5)]
    )
    q = simulated(robot, TRUTH, starts, 3.0)
    estimate = identified([as_log(robot, q, MARKER_NOISE)], robot)
    assert len(estimate.parameters) == 9
    # Nine errors over deviations from 15 blocks: five deviations are never reached by chance.
    assert np.all(np.abs(errors(estimate)) < 5.0 * np.array([p.sigma for p in estimate.parameters]))
    assert estimate["MZ/M_platform"].sigma < 2e-3
    # Four freedoms that z, x, y and the turn about x hardly describe: rows grow without bound.
    poor = {"nullspace": "free", "free": ("z", "x", "y", "wx")}
    worse = identified([as_log(robot, q, MARKER_NOISE)], robot, estimator="tls", internal=poor)
    assert "free-singular" in [w.code for w in worse.warnings]
    assert abs(worse["MZ/M_platform"].value - 0.2) > 10.0 * abs(estimate["MZ/M_platform"].value - 0.2)


def test_little_data_settle_though_noise_and_parameters_chase_each_other() -> None:
    """Four runs of 4 s: plain iteration jumps between two answers for ever."""
    demo = built_in_experiment("cable4", seed=13)
    log = demo.logs[0]
    short = replace(log, segments=tuple((a, min(b, a + 400)) for a, b in log.segments[:4]))
    estimate = identify(demo.mechanism, short)
    for parameter in estimate.parameters:
        assert parameter.sigma is not None
        assert np.isfinite(parameter.sigma)


def test_tensions_and_modes_are_drawn(exact) -> None:
    """At rest the cables carry the weight, and the log swings with the frequencies of the model."""
    swings = exact.drawing["swings"]
    assert swings["unit"] == "N"  # the description gives a mass of 10 kg
    assert len(swings["runs"]) == 5
    for run in swings["runs"]:
        for model, log in zip(run["frequencies"], run["measured"], strict=True):
            # the main lobe of a Hann window over 4 s is 2 / 4 s = 0.5 Hz to each side
            assert log == pytest.approx(model, abs=0.5)
        at_rest, least, most = run["tensions"]
        assert (least > 0.0).all()
        assert (most > least).all()
        # cables pull upwards at an angle: together more than the weight of 10 kg
        assert at_rest.sum() > 98.1
    assert [len(one["t"]) > 10 for one in swings["modes"]] == [True, True]
    page = report_html(exact)
    assert "free oscillation" in page
    assert "rotation about" in page
