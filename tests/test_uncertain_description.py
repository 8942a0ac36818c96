"""Dimensions and zeros that are uncertain or unknown: counted in every sigma, found with the dynamics."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid import built_in_experiment
from dynid.cases.free_motion.simulation import free_logs
from dynid.checks import description_effects, tested_rows
from dynid.checks.description_effects import estimate_slopes, known_slopes, part_slopes
from dynid.checks.summary import grouping_json
from dynid.common.catalogue import Severity
from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit, fit_task
from dynid.linear_fit import linear_fit
from dynid.log_pass import LogPass
from dynid.mechanism.description import at_values, current, with_zeros
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.prediction.predict import EffortPrediction, predict_efforts
from dynid.problem import as_logs, prepare
from dynid.report.json_file import read_result
from dynid.report.output import write_results
from dynid.report.sections.description import effect_lines
from dynid.robots.demo_file import demo_file, read_demo, read_free_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import Estimate
from dynid.statistics.estimate_parts import Description
from dynid.unknown import Task
from dynid.unknowns.calibration import _Blocks, _covariance, _Linearised, _Search

# Two bars in a vertical plane: small, so that every fit takes a fraction of a second.
ARM = """
name: arm
gravity: [0, -9.81, 0]
symbols: {a1: {value: 0.5, sigma: 0.001}}
joints:
  - {name: joint_1, kind: revolute, parent: base, child: upper}
  - {name: joint_2, kind: revolute, parent: upper, child: fore, mdh: {d: a1}}
drive: {"joint_*": [Fv]}
limits: {joint_1: {q: [-2, 2], dq: 4, ddq: 20}, joint_2: {q: [-2, 2], dq: 4, ddq: 20}}
"""
TRUTH = {"M_upper": 3.0, "MX_upper": 0.7, "MY_upper": 0.02, "ZZ_upper": 0.3, "M_fore": 2.0}
TRUTH |= {"MX_fore": 0.4, "MY_fore": -0.03, "ZZ_fore": 0.15, "Fv_joint_1": 0.4, "Fv_joint_2": 0.2}
OTHERS = {f"{s}_{b}": 0.01 for s in ("XX", "XY", "XZ", "YY", "YZ", "MZ") for b in ("upper", "fore")}


def robot_from(text: str, folder: Path) -> Mechanism:
    file = folder / "arm.yaml"
    file.write_text(text, encoding="utf-8")
    return load_robot(file)


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    return robot_from(ARM, tmp_path_factory.mktemp("arm"))


def logs_of(robot: Mechanism, seed: int = 0, noise: float = 0.02, count: int = 2) -> tuple[Log, ...]:
    logs = []
    for i in range(count):
        motion = random_motion(robot, seed=100 * seed + i, harmonics=4, frequency=0.4, draws=2)
        logs.append(
            simulate_log(
                robot,
                TRUTH | OTHERS,
                motion,
                rate=200.0,
                duration=2.0 * motion.period,
                torque_sigma=noise,
                seed=1000 * seed + i,
                name=f"run {i}",
            )
        )
    return tuple(logs)


def fitted(robot: Mechanism, logs: tuple[Log, ...], **options: object) -> Fit:
    experiment = Experiment(robot=robot, auto="off", **options)
    return fit_task(Task(robot, logs, experiment))


def test_a_symbol_may_have_a_sigma(arm: Mechanism) -> None:
    assert arm.geometry["a1"] == 0.5
    assert dict(arm.uncertain) == {"a1": 0.001}


def test_a_sigma_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not positive"):
        robot_from(ARM.replace("sigma: 0.001", "sigma: 0"), tmp_path)


def test_lengths_of_a_source_have_sigma_and_value_by_their_name(tmp_path: Path) -> None:
    source = Path(str(load_robot("ur5").sources[0]))
    elbow = "x_elbow_joint: {value: -0.426, sigma: 0.001}"
    text = f"source: {source}\ndimensions: {{{elbow}, 'z_*': {{sigma: 0.002}}}}\n"
    robot = robot_from(text, tmp_path)
    assert robot.geometry["x_elbow_joint"] == -0.426
    assert robot.uncertain["x_elbow_joint"] == 0.001
    assert robot.uncertain["z_wrist_2_joint"] == 0.002
    with pytest.raises(InputError, match="no dimension"):
        robot_from(f"source: {source}\ndimensions: {{x_elbov_joint: {{sigma: 0.001}}}}\n", tmp_path)


def test_a_zero_is_added_to_the_logged_position(tmp_path: Path) -> None:
    """The robot with a zero at q is the robot without it at q + zero: same efforts."""
    robot = robot_from(ARM + "zeros: {joint_2: {value: 0.1, sigma: 0.005}}\n", tmp_path)
    plain = robot_from(ARM, tmp_path)
    assert robot.uncertain["zero_joint_2"] == 0.005
    log = logs_of(plain, noise=0.0, count=1)[0]
    moved = replace(log, q=log.q - np.array([0.0, 0.1]))
    one, other = (fitted(r, (x,)).linear_chi for r, x in ((plain, log), (robot, moved)))
    # Rounding of two different least-squares problems.
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_zeros_replace_each_other(arm: Mechanism) -> None:
    once = with_zeros(arm, {"joint_2": 0.2})
    again = with_zeros(with_zeros(arm, {"joint_2": -0.5}), {"joint_2": 0.2})
    np.testing.assert_allclose(once.joints[1].placement.R, again.joints[1].placement.R, atol=1e-15)


def test_slopes_are_those_of_the_whole_identification(arm: Mechanism) -> None:
    """d chi / da1 against the change of the estimate of two robots whose a1 differs by 2 mm."""
    fit = fitted(replace(arm, uncertain={}), logs_of(arm))
    slopes, failed = estimate_slopes(fit, ("a1", "zero_joint_2", "tilt_1"))
    assert not failed
    for k, name in enumerate(("a1", "zero_joint_2", "tilt_1")):
        h = 1e-3
        ends = []
        for sign in (1.0, -1.0):
            robot = at_values(fit.task.mechanism, {name: current(arm, name) + sign * h})
            problem_plans = fit.problem.plans
            task = Task(robot, fit.task.logs, replace_robot(fit.experiment, robot), plans=problem_plans)
            ends.append(np.array([p.value for p in fit_task(task).parts.parameters]))
        central = (ends[0] - ends[1]) / (2.0 * h)
        # The weights of every fit are iterated to a part in a thousand: 0.4 % of the slope remain here.
        np.testing.assert_allclose(slopes[:, k], central, atol=1e-2 * np.abs(central).max() + 1e-6)


def replace_robot(experiment: Experiment, robot: Mechanism) -> Experiment:
    return experiment.changed(robot=robot)


def test_the_effect_of_a_part_of_the_log_is_near_that_of_all(arm: Mechanism) -> None:
    fit = fitted(replace(arm, uncertain={}), logs_of(arm))
    names = ("a1", "zero_joint_1", "zero_joint_2")
    whole, part = estimate_slopes(fit, names)[0], part_slopes(fit, names)
    sigma = np.array([p.sigma for p in fit.parts.parameters])
    # A part has another motion than the whole: the figures are for orientation.
    for k in range(len(names)):
        a, b = whole[:, k] / sigma, part[:, k] / sigma
        assert np.linalg.norm(a - b) < 0.5 * np.linalg.norm(a)


def test_columns_of_residual_tests_give_the_effect_of_the_description(arm: Mechanism) -> None:
    fit = fitted(replace(arm, uncertain={}), logs_of(arm))
    names = ("a1", "zero_joint_1", "zero_joint_2")
    assert known_slopes(fit, names) is None  # nothing has been tested yet
    tested_rows.tested_rows(fit.problem, fit.chi)
    assert known_slopes(fit, ("a1", "nothing")) is None
    whole, tested = estimate_slopes(fit, names)[0], known_slopes(fit, names)
    # Five percent: without -dW^T rho, and with slopes that are interpolated between samples.
    sigma = np.array([p.sigma for p in fit.parts.parameters])[:, None]
    assert tested is not None
    off = np.linalg.norm((tested - whole) / sigma, axis=0)
    assert np.all(off < 0.05 * np.linalg.norm(whole / sigma, axis=0))


def test_effects_far_beyond_the_intervals_have_no_digits() -> None:
    effects = {"M_rod": {"crank": -242503.0, "rod": 7.25}}
    assert effect_lines(Description(per_thousandth=effects), 3) == [
        "M_rod: crank below -100 sigma, rod +7.2 sigma"
    ]


@cache
def _errors() -> np.ndarray:
    return np.random.default_rng(5).standard_normal(12)


def test_intervals_count_the_uncertain_length(arm: Mechanism) -> None:
    """Robots whose a1 differs by draws of sigma: with it 85 to 100 % inside, without it far fewer."""
    inside = {True: [], False: []}
    for seed, error in enumerate(_errors()[:6]):
        true = at_values(arm, {"a1": 0.5 + 0.003 * error})
        logs = logs_of(true, seed, noise=0.003)
        truth = fitted(true, logs).true_values(TRUTH | OTHERS)
        for counted in (True, False):
            robot = replace(arm, uncertain={"a1": 0.003} if counted else {})
            for p in fitted(robot, logs).parts.parameters:
                assert p.ci95 is not None
                inside[counted].append(p.ci95[0] <= truth[p.name] <= p.ci95[1])
    assert np.mean(inside[True]) > 0.85  # 95 % of 54 that are not independent: six draws of one length
    assert np.mean(inside[False]) < 0.7


def test_the_misfit_of_an_uncertain_length_is_counted_once(arm: Mechanism) -> None:
    """Residuals of a length that is off do not widen the intervals beside its own variance."""
    logs = logs_of(at_values(arm, {"a1": 0.505}), noise=0.005)
    exact, counted = replace(arm, uncertain={}), replace(arm, uncertain={"a1": 0.005})
    # Without weights: those of a fit with misfit differ, and so does the noise of its estimate.
    right, off, wide = (
        fitted(robot, logs, estimator="ols") for robot in (at_values(exact, {"a1": 0.505}), exact, counted)
    )
    J, _ = estimate_slopes(wide, ("a1",))
    noise, misfit, total = (np.diag(fit.parts.covariance) for fit in (right, off, wide))
    assert np.max(misfit / noise) > 20.0
    # The same noise; slopes at another length and estimate differ by some percent.
    np.testing.assert_allclose(total - (0.005 * J[:, 0]) ** 2, noise, rtol=0.3)


def test_shares_and_files_of_a_result(arm: Mechanism, tmp_path: Path) -> None:
    logs = logs_of(arm, noise=0.003)
    estimate = identify_logs(arm, logs, experiment=Experiment(robot=arm, auto="off"))
    found = estimate.description
    assert found is not None
    name, own = max(found.shares.items(), key=lambda item: item[1].get("a1", 0.0))
    exact = identify_logs(replace(arm, uncertain={}), logs, experiment=Experiment(robot=arm, auto="off"))
    # Without a sigma the effect of a millimetre is listed instead.
    assert exact.description is not None
    assert any("a1" in own for own in exact.description.per_thousandth.values())
    (note,) = (one for one in exact.warnings if one.code == "description-sensitive")
    assert (note.severity, "(a1)" in note.text) == (Severity.NOTE, True)
    assert not any(one.code == note.code for one in estimate.warnings)  # there the intervals contain it
    share = 1.0 - (exact[name].sigma / estimate[name].sigma) ** 2
    assert own["a1"] == pytest.approx(share, abs=0.01)
    write_results(estimate, tmp_path / "out")
    again = read_result(tmp_path / "out").description
    assert again is not None
    assert again.symbols == found.symbols
    np.testing.assert_array_equal(again.slopes, found.slopes)
    assert "a1" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_grouping_matrix_times_standard_parameters_is_the_base(arm: Mechanism) -> None:
    logs = logs_of(arm, noise=0.0)
    estimate = identify_logs(arm, logs, experiment=Experiment(robot=arm, auto="off"), truth=TRUTH | OTHERS)
    document = json.loads(estimate.files["grouping.json"])
    standard = np.array([(TRUTH | OTHERS)[one["name"]] for one in document["standard"]])
    base = np.array(document["K"]) @ standard
    assert [one["name"] for one in document["base"]] == [p.name for p in estimate.parameters]
    assert estimate.truth is not None
    # The same products in another order of sums.
    np.testing.assert_allclose(base, [estimate.truth[p.name] for p in estimate.parameters], rtol=1e-12)


@pytest.mark.parametrize("name", ["ur5", "dualv", "orthoglide"])
def test_grouping_file_alone_gives_the_base_parameters(name: str) -> None:
    """K of the file times any standard parameters: the rows of the logs know nothing else of them."""
    robot = load_robot(name)
    demo = read_demo(demo_file(name), robot)
    motion = random_motion(robot, seed=3, harmonics=3, frequency=0.5, draws=1)
    log = simulate_log(robot, demo.truth, motion, rate=100.0, duration=2.0, tension=demo.tension)
    experiment = Experiment(robot=robot, auto="off")
    fit = linear_fit(prepare(robot, (log,), experiment), experiment)
    document = json.loads(grouping_json(fit.data))
    K, names = np.array(document["K"]), [entry["name"] for entry in document["standard"]]
    truth = np.array([demo.truth.get(standard, 0.0) for standard in names])
    # Other standard parameters with the same base parameters.
    _, s, Vt = np.linalg.svd(K)
    rank = int((s > 1e-9 * s[0]).sum())
    assert rank == len(document["base"])
    other = truth + Vt[rank:].T @ np.random.default_rng(1).standard_normal(len(names) - rank)
    np.testing.assert_allclose(
        K @ other, K @ truth, rtol=0, atol=1e-12 * np.abs(K).max() * np.abs(other).max()
    )
    system = fit.data.source
    assert [parameter.name for parameter in system.parameters] == names
    for group in system.groups:
        for block in group.blocks:
            W = block.W
            size = np.abs(W) @ (np.abs(other) + np.abs(truth))[group.columns]
            # Rows are made of some tens of products, whose rounding is relative to the largest.
            np.testing.assert_allclose(W @ (other - truth)[group.columns], 0.0, atol=1e-12 * size.max())


def test_predictions_count_what_is_not_compensated(arm: Mechanism) -> None:
    """The sigma of an effort is that of identification and prediction together, at a1 and beside it."""
    logs = logs_of(arm, noise=0.003, count=1)
    known = replace(arm, uncertain={})

    def predicted(robot: Mechanism) -> tuple[Estimate, EffortPrediction]:
        options = Experiment(robot=robot, auto="off", estimator="ols", filter={"cutoff": 20.0})
        estimate = identify_logs(robot, logs, experiment=options)
        return estimate, predict_efforts(estimate, logs[0], robot=robot)

    (estimate, both), (exact, noise) = predicted(arm), predicted(known)
    high, low = (predicted(at_values(known, {"a1": 0.5 + sign * 1e-3}))[1] for sign in (1.0, -1.0))
    beside = 0.5 * (high.tau - low.tau)
    expected = np.sqrt(noise.sigma**2 + beside**2)
    # Second derivatives times the sigma of 1 mm, and masks that differ by a sample.
    np.testing.assert_allclose(both.sigma, expected, atol=0.01 * expected.max())
    # Parameters and equations compensate each other in part.
    assert max(estimate[n].sigma / exact[n].sigma for n in exact) > 3.0


def test_an_unknown_zero_is_found_with_the_parameters(arm: Mechanism, tmp_path: Path) -> None:
    """The zero of the first joint turns gravity, which shows; that of the last one only turns its body."""
    plain = replace(arm, uncertain={})
    true = at_values(plain, {"zero_joint_1": 0.02})
    logs = logs_of(true, noise=0.01)
    truth = fitted(true, logs).true_values(TRUTH | OTHERS)
    options = Experiment(robot=plain, auto="off", unknown={"zeros": ["joint_*"]})
    estimate = identify_logs(plain, logs, experiment=options)
    found = estimate.description
    assert found is not None
    zero = found.zeros["joint_1"]
    assert zero.identifiable
    assert not found.zeros["joint_2"].identifiable
    assert "description-unseen" in {one.code for one in estimate.warnings}
    assert abs(zero.value - 0.02) < 3.0 * zero.sigma < 0.015
    for p in estimate.parameters:
        assert abs(p.value - truth[p.name]) < 4.0 * p.sigma
    write_results(estimate, tmp_path / "out")
    again = load_robot(tmp_path / "out" / "robot.corrected.yaml")
    assert again.zeros["joint_1"] == zero.value
    lines = (tmp_path / "out" / "robot.corrected.yaml.diff").read_text().splitlines()
    assert lines[:2] == ["--- arm.yaml", "+++ robot.corrected.yaml"]
    # All other lines of the file stay as they are (but the empty one before the first).
    changed = [line.split(":")[0] for line in lines[2:] if line[:1] in "+-" and line != "-"]
    assert changed == ["+zeros", "+  joint_1", "+  joint_2"]


def test_a_narrow_prior_that_is_wrong_does_not_shorten_the_steps(arm: Mechanism) -> None:
    """A zero that is off by forty prior deviations: the data know it better, and the search ends."""
    plain = replace(arm, uncertain={})
    logs = logs_of(with_zeros(plain, {"joint_1": 0.02}), noise=1e-4)
    doubted = replace(plain, uncertain={"zero_joint_1": 5e-4})
    fit = fitted(doubted, logs, unknown={"zeros": ["joint_1"]})
    assert "description-open" not in {one.code for one in fit.notices}
    assert fit.description is not None
    # Five percent: the prior pulls by its share of the information.
    assert fit.description.zeros["joint_1"].value == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("noise", [1e-4, 0.02])
def test_a_search_ends_after_few_rounds(
    arm: Mechanism, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 mrad: a step, a second one, and at most one more that confirms it."""
    plain = replace(arm, uncertain={})
    logs = logs_of(with_zeros(plain, {"joint_1": 0.02}), noise=noise)
    rounds = list[int]()
    linearised = _Search.linearised
    monkeypatch.setattr(_Search, "linearised", lambda own, x: rounds.append(1) or linearised(own, x))
    fit = fitted(plain, logs, unknown={"zeros": ["joint_1"]})
    assert "description-open" not in {one.code for one in fit.notices}
    assert len(rounds) <= 3
    assert fit.description is not None
    zero = fit.description.zeros["joint_1"]
    assert abs(zero.value - 0.02) < 3.5 * zero.sigma


def test_a_search_that_does_not_end_leaves_the_description(
    arm: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value from a search that was cut off: the described one, with its prior deviation, and named."""
    plain = replace(arm, uncertain={})
    logs = logs_of(with_zeros(plain, {"joint_1": 0.02}), noise=1e-4)
    monkeypatch.setattr("dynid.unknowns.calibration._ROUNDS", 1)
    fit = fitted(plain, logs, unknown={"zeros": ["joint_1"]})
    assert {"description-open", "description-unseen"} <= {one.code for one in fit.notices}
    assert fit.description is not None
    zero = fit.description.zeros["joint_1"]
    assert not zero.identifiable
    assert zero.value == 0.0
    assert zero.sigma == pytest.approx(0.01)


def test_the_direction_of_gravity_is_found(arm: Mechanism) -> None:
    plain = replace(arm, uncertain={})
    true = at_values(plain, {"tilt_2": 0.02})
    estimate = identify_logs(
        plain,
        logs_of(true, noise=0.01),
        experiment=Experiment(robot=plain, auto="off", unknown={"gravity": "direction"}),
    )
    found = estimate.description
    assert found is not None
    # In the plane of the arm; gravity normal to it acts on no motor.
    assert found.gravity[0] == pytest.approx(true.gravity[0], abs=0.05)


def test_what_the_data_do_not_see_is_named_and_counted(arm: Mechanism) -> None:
    """A length whose change the inertial parameters compensate keeps the sigma of the description."""
    estimate = identify_logs(
        arm, logs_of(arm), experiment=Experiment(robot=arm, auto="off", unknown={"symbols": ["a1"]})
    )
    assert estimate.description is not None
    own = estimate.description.symbols["a1"]
    seen = own.sigma is not None and own.sigma < 0.0005
    assert seen == own.identifiable
    assert ("description-unseen" in {one.code for one in estimate.warnings}) == (not seen)


def test_names_of_unknowns_are_checked(arm: Mechanism) -> None:
    with pytest.raises(InputError, match="a2"):
        fitted(arm, logs_of(arm, count=1), unknown={"symbols": ["a2"]})


def test_a_motion_that_repeats_does_not_sharpen_what_is_found(arm: Mechanism) -> None:
    """The same log twice has the same errors twice."""
    plain = replace(arm, uncertain={})
    [log] = logs_of(plain, noise=0.01, count=1)
    again = replace(log, name="again")
    sigma = []
    for logs in ((log,), (log, again)):
        found = fitted(plain, logs, unknown={"zeros": ["joint_1"]}).description
        assert found is not None
        sigma.append(found.zeros["joint_1"].sigma)
    # Blocks of two logs are twice as long, so that other errors are joined; independent ones would give 0.71.
    assert sigma[1] > 0.85 * sigma[0]


def test_the_covariance_is_that_of_estimates_without_one_block() -> None:
    """Refits of (chi, x) without each block: their scatter is the covariance of x."""
    rng = np.random.default_rng(3)
    n, rows, p, k = 12, 9, 5, 2
    X = rng.standard_normal((n, rows, p + k))
    rho = rng.standard_normal((n, rows))
    P = 1e-6 * np.eye(k)
    whole = X.reshape(-1, p + k)
    rho = (rho.reshape(-1) - whole @ np.linalg.lstsq(whole, rho.reshape(-1), rcond=None)[0]).reshape(n, rows)
    blocks = _Blocks(list(X[:, :, :p]), list(X[:, :, p:]), list(rho), list(range(n)))
    found = _covariance(_Linearised(P, np.zeros(k), np.zeros((k, 0)), blocks, None), P)
    moved = []
    for b in range(n):
        kept = np.arange(n) != b
        moved.append(np.linalg.lstsq(X[kept].reshape(-1, p + k), rho[kept].reshape(-1), rcond=None)[0][p:])
    off = np.array(moved) - np.mean(moved, axis=0)
    white = np.linalg.inv(whole.T @ whole)[p:, p:]
    expected = np.maximum(np.diag(off.T @ off) * n / (n - 1), np.diag(white))
    # The prior, which the refits do not have, is a part in a million of the information.
    np.testing.assert_allclose(np.diag(found), expected, rtol=1e-4)


def test_noise_of_columns_is_kept_while_a_length_changes(
    arm: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slopes with the noise of the estimate, against noise drawn again at every value."""
    fit = fitted(
        replace(arm, uncertain={}), logs_of(arm, count=1), estimator={"name": "gtls", "centred": True}
    )
    kept = estimate_slopes(fit, ("a1",))[0]
    monkeypatch.setattr(description_effects, "NearPass", lambda problem, seen, _: LogPass(problem, seen))
    drawn = estimate_slopes(fit, ("a1",))[0]
    sigma = np.array([p.sigma for p in fit.parts.parameters])[:, None]
    # Of the sigma of each parameter, for 1 mm.
    assert np.max(np.abs(kept - drawn) / sigma) * 1e-3 < 0.02


def test_a_pulley_is_found_with_the_parameters() -> None:
    """One coordinate of a pulley 5 mm off: found, and the platform within its intervals."""
    nominal = replace(load_robot("cable3"), uncertain={})
    true = at_values(nominal, {"fromz_cable3": current(nominal, "fromz_cable3") + 5e-3})
    demo = read_free_demo(demo_file("cable3"), true)
    assert demo is not None
    short = replace(demo, motions=4, validation=1, rate=50.0, duration=4.0)
    log = free_logs(true, short, 1)[0]
    options = {"unknown": {"symbols": ["fromz_cable3"]}}
    experiment = Experiment(robot=nominal, auto="off", **options)
    estimate = identify_logs(nominal, as_logs([log], nominal, experiment), experiment=experiment)
    assert estimate.description is not None
    own = estimate.description.symbols["fromz_cable3"]
    assert abs(own.value - true.geometry["fromz_cable3"]) < 3.0 * own.sigma < 6e-3
    for p in estimate.parameters:
        exact = shown(true, demo.truth)[p.name]
        assert abs(p.value - exact) < 4.0 * p.sigma


def shown(robot: Mechanism, truth: dict[str, float]) -> dict[str, float]:
    """Parameters per unit mass of one platform."""
    mass = truth["M_platform"]
    return {f"{name[:2]}/M_platform": value / mass for name, value in truth.items() if name != "M_platform"}


@pytest.mark.parametrize(("name", "joint"), [("scara", 1), ("fivebar", 0)])
def test_the_effect_of_a_milliradian_is_that_of_another_identification(name: str, joint: int) -> None:
    """A part of the log with the weights of the whole had other signs and ten times the size."""
    demo = built_in_experiment(name)
    robot, names = demo.mechanism, demo.logs[0].position_names
    step = np.zeros(len(names))
    step[joint] = 2e-4

    def found(times: float) -> Estimate:
        moved = [replace(log, q=log.q + times * step, origins={}) for log in demo.logs]
        return identify_logs(robot, moved, (), Experiment(robot=robot, auto="off"))

    here, more, less = found(0.0), found(1.0), found(-1.0)
    assert here.description is not None
    stated, refitted = [], []
    for parameter in here.parameters:
        change = (more[parameter.name].value - less[parameter.name].value) / (0.4 * parameter.sigma)
        effects = here.description.per_thousandth.get(parameter.name, {})
        stated.append(effects.get(f"zero_{names[joint]}", 0.0))
        refitted.append(change)
    # Columns are computed at few samples and interpolated; small effects are not stated.
    assert np.max(np.abs(refitted)) > 0.5
    np.testing.assert_allclose(stated, refitted, atol=0.25 * np.max(np.abs(refitted)) + 0.2)
