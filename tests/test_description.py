"""Description tests: the correction that explains the log is ranked first, and nothing on clean logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid.checks import CHECKS
from dynid.checks.check import Finished, run_checks
from dynid.checks.turned_gravity import fits_under
from dynid.common.catalogue import codes_with
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.conditioning import stream
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.kinematics.assembly import assembly_of
from dynid.linear_fit import linear_fit
from dynid.mechanism.load import load_robot
from dynid.mechanism.parameters import parameter_table
from dynid.mechanism.variant import resized
from dynid.motion.logs import log_from_arrays
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.report.json_file import read_result, result_document
from dynid.robots.demo_file import demo_file, read_demo
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate import ResidualTest
from dynid.unknown import Task
from dynid.validation import causes, ranking
from dynid.validation.branches import other_poses
from dynid.validation.closure_causes import closure_cause
from dynid.validation.columns import position_orders, position_signs
from dynid.validation.dimensions import best_size, dimension_units, doubted
from dynid.validation.hypotheses import Hypothesis
from dynid.validation.likelihood import residual_percent
from dynid.validation.ranking import (
    explaining_trials,
    fitted_with,
    unconfirmed,
    with_evidence,
    with_size,
    without,
)
from tests import fabricated

pytestmark = pytest.mark.usefixtures("no_symbols")


def simulated(robot: str, seed: int = 1, rate: float = 250.0, seconds: float = 4.0, noise: float = 1.0):
    return recorded(load_robot(robot), robot, seed, rate, seconds, noise)


def recorded(mechanism, robot: str, seed: int, rate: float, seconds: float, noise: float):
    """A log of a built-in robot, or of one that differs from it in what is measured."""
    demo = read_demo(demo_file(robot), mechanism)
    motion = random_motion(mechanism, seed=seed, harmonics=5, frequency=demo.frequency, draws=3)
    log = simulate_log(
        mechanism,
        demo.truth,
        motion,
        rate=rate,
        duration=seconds,
        encoder_resolution=demo.encoder,
        torque_sigma=noise * demo.torque_sigma,
        seed=seed,
    )
    return mechanism, log


def identified(mechanism, *logs):
    return identify_logs(mechanism, list(logs), experiment=Experiment(robot=mechanism, auto="off"))


@pytest.fixture(scope="module")
def fivebar():
    return simulated("fivebar", seconds=2.0, noise=0.1)


@pytest.fixture(scope="module")
def clean(fivebar, no_symbols):
    return identified(*fivebar)


@pytest.fixture(scope="module")
def redundant(tmp_path_factory: pytest.TempPathFactory):
    """A five-bar linkage with an encoder at an elbow too: three for two freedoms."""
    text = Path(str(load_robot("fivebar").file)).read_text(encoding="utf-8")
    file = tmp_path_factory.mktemp("redundant") / "fivebar.yaml"
    file.write_text(text.replace("measured: [motor1, motor2]", "measured: [motor1, motor2, elbow1]"))
    return recorded(load_robot(file), "fivebar", 3, 250.0, 2.0, 1.0)


@pytest.fixture(scope="module")
def dualv():
    return simulated("dualv", seed=3, seconds=2.0)


def test_a_clean_log_fits_as_described(clean, tmp_path) -> None:
    found = clean
    assert found.hypotheses[0].name == "as described"
    assert found.hypotheses[0].residual_percent == pytest.approx(found.fit.residual_percent, rel=0.2)
    document = result_document(found)
    listed = document["description"]["hypotheses"]
    assert [set(one) for one in listed] == [{"name", "residual_percent", "p", "of_positions"}] * len(listed)
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert read_result(tmp_path).hypotheses == found.hypotheses


def test_corrections_that_a_part_of_a_log_refutes_are_not_fitted_to_the_rest(monkeypatch) -> None:
    mechanism, log = simulated("fivebar", seconds=20.0, noise=0.1)
    samples = []

    def fitted(fit, mechanism, logs, *rest, **options):
        samples.append(sum(stop - start for log in logs for start, stop in log.segments))
        return fitted_with(fit, mechanism, logs, *rest, **options)

    monkeypatch.setattr(ranking, "_SECONDS", 0.4)  # a shorter log than users have
    monkeypatch.setattr(ranking, "_ROWS", 5)
    for module in (ranking, causes):
        monkeypatch.setattr(module, "fitted_with", fitted)
    found = identified(mechanism, log)
    assert found.hypotheses[0].name == "as described"
    assert len(samples) > 1  # as described, and another branch
    assert max(samples) < 0.5 * 0.4 * len(log.t)  # of the part that others are compared on


def test_a_wrong_branch_is_ranked_first(fivebar) -> None:
    mechanism, log = fivebar
    start = {**mechanism.start, "elbow1": 1.48, "elbow2": -1.48}
    found = identified(replace(mechanism, start=start), log)
    first = found.hypotheses[0]
    assert first.name.startswith("branch:")
    assert first.p < 0.01
    assert first.residual_percent < 0.5 * next(
        one.residual_percent for one in found.hypotheses if one.name == "as described"
    )
    assert "wrong-branch" in [one.code for one in found.warnings]


def test_gravity_upside_down_is_not_reported_as_a_joint_zero(fivebar) -> None:
    mechanism, log = fivebar
    found = identified(replace(mechanism, gravity=-mechanism.gravity), log)
    assert found.hypotheses[0].name == "gravity [0, -9.81, 0]"
    codes = [one.code for one in found.warnings]
    assert "gravity-off" in codes
    assert "zero-offset" not in codes


def test_fits_under_many_gravities_need_few_passes_over_the_logs(monkeypatch) -> None:
    mechanism, log = simulated("orthoglide", seconds=4.0, noise=0.1)
    experiment = Experiment(robot=mechanism)
    problem = prepare(mechanism, [log], experiment)
    linear_fit(problem, experiment, keep=True)
    fit, passes = fits_under(problem, experiment), []
    new = stream._filtered_anew
    monkeypatch.setattr(
        stream, "_filtered_anew", lambda source, *rest: passes.append(source) or new(source, *rest)
    )
    fits = {tuple(g): fit(g) for g in 9.81 * np.concatenate([np.eye(3), -np.eye(3)])}
    assert len({id(source) for source in passes}) == 3
    for g, found in fits.items():
        expected = fits_under(problem, experiment)(np.array(g))
        # The rows differ by rounding, parameters by that times the condition of the equations.
        np.testing.assert_allclose(found.chi, expected.chi, rtol=0, atol=1e-7 * np.abs(expected.chi).max())


def test_a_fit_that_is_only_compared_is_the_same_where_it_is_good(fivebar) -> None:
    """Poor ones end before their weights converge, and stay poor."""
    mechanism, log = fivebar
    experiment = Experiment(robot=mechanism)
    left = []
    for g in (mechanism.gravity, -np.asarray(mechanism.gravity), np.array([9.81, 0.0, 0.0])):
        problem = prepare(replace(mechanism, gravity=np.asarray(g, float)), [log], experiment)
        whole, compared = (linear_fit(problem, experiment, comparing=brief) for brief in (False, True))
        left.append([residual_percent(fit) for fit in (whole, compared)])
        if len(left) == 1:
            np.testing.assert_array_equal(whole.chi, compared.chi)
    # One percent: a hundredth of what separates a poor fit from a good one.
    np.testing.assert_allclose(*np.transpose(left), rtol=0.01)


def test_degrees_are_confirmed_by_a_fit_and_end_the_search(fivebar) -> None:
    """Speeds of the masks are in degrees per second too: the corrected log would be at rest by them."""
    mechanism, log = fivebar
    found = identified(mechanism, replace(log, q=np.rad2deg(log.q)))
    unit = next(one for one in found.warnings if one.code == "position-unit")
    assert 'columns: {"q_{i}": {unit: deg}}' in unit.remedy
    first, second, *_ = found.hypotheses
    assert first.name == "positions in deg"
    assert first.residual_percent < 0.1 * second.residual_percent


def test_a_large_zero_is_searched_beyond_its_linear_size(fivebar) -> None:
    """Five degrees leave ten times the noise: linear tests are weak there, and see a part of the size."""
    mechanism, log = fivebar
    zero = ResidualTest("zero", "motor2", -0.02, "rad", (-0.04, 0.0), 0.02, False)
    assert doubted(mechanism, log.position_names, [zero], poor=False) == []
    first, *untested = doubted(mechanism, log.position_names, [zero], poor=True)
    assert first == zero
    # What no linear test has judged is searched too: another zero, and dimensions.
    assert [test.about for test in untested] == ["motor1", *mechanism.geometry][:4]
    # A flagged dimension may imitate the zero, so that both are searched.
    flagged = ResidualTest("dimension", "l1", 0.01, "m or rad", None, 1e-9, True, explains=0.5)
    assert doubted(mechanism, log.position_names, [zero, flagged], poor=False)[:2] == [flagged, zero]

    def tried(hypothesis):
        return [with_squares(hypothesis, float(np.mean(hypothesis.logs[0].q[:, 1] - log.q[:, 1])) / -0.09)]

    (best,) = best_size(mechanism, (log,), zero, tried)
    # The squares here are a parabola: only rounding is left.
    assert best.left == pytest.approx(0.1, abs=1e-9)


def with_squares(hypothesis: Hypothesis, part: float) -> Hypothesis:
    """As if the squares of residuals were a parabola over the size, least at part 1, with noise of 1 %."""
    squares = 0.01 + 0.99 * (part - 1.0) ** 2
    return replace(hypothesis, left=float(np.sqrt(squares)), likely=-50.0 * float(np.log(squares)))


def test_a_size_is_found_where_the_linear_one_does_not_close_the_loops(fivebar) -> None:
    mechanism, log = fivebar
    far = ResidualTest("zero", "motor2", 0.3, "rad", None, 1e-9, True)

    def tried(hypothesis):
        size = float(np.mean(hypothesis.logs[0].q[:, 1] - log.q[:, 1]))
        return [with_squares(hypothesis, size / 0.09)] if abs(size) < 0.1 else []

    (best,) = best_size(mechanism, (log,), far, tried)
    assert np.mean(best.logs[0].q[:, 1] - log.q[:, 1]) == pytest.approx(0.09, abs=2e-3)  # 0.02 of the step


def fitted(fivebar, code: str, **figures) -> Hypothesis:
    mechanism, log = fivebar
    remark = Notice(code, code)
    return Hypothesis(remark, mechanism, (log,), code, **figures)


def test_a_correction_without_a_free_size_is_not_weaker_than_a_searched_one(fivebar) -> None:
    """A zero of 18 degrees nearly imitates a position that counts the other way, with one value more."""
    sign = fitted(fivebar, "position-order", likely=110.0, dependence=1.8)
    zero = fitted(fivebar, "zero-offset", likely=106.0, dependence=1.5, added=1)
    first, second = with_evidence([sign, zero], ())
    assert first.evidence > second.evidence
    # Both with the noise of the more likely one: l + log(pi l) / 2 of a tail of one degree of freedom.
    ratio = 106.0 / 1.8
    assert second.evidence == pytest.approx(
        ratio + 0.5 * np.log(np.pi * ratio), abs=0.02
    )  # 1 / (2 l) of the series


def test_a_payload_of_some_grams_is_no_cause(fivebar) -> None:
    """Ten parameters absorb a little of a spring that the model lacks: what they explain must matter."""
    figures = {"evidence": 7.4, "left": 0.99, "added": 10, "rms_described": {"motor1": 1.0}}
    light = fitted(fivebar, "payload-label", rms={"motor1": 0.997}, percent=0.7, **figures)
    heavy = replace(light, percent=7.0)  # 0.05 and 0.5 % of the effort
    assert explaining_trials([light, heavy], {"motor1": 1.0}, ()) == [heavy]


def test_a_branch_competes_with_the_zero_that_imitates_it(fivebar) -> None:
    """Both leave more than the noise (a ripple of the motors): the likelihood decides between them."""
    figures = {"rms_described": {"motor1": 1.4}, "left": 0.8}
    zero = fitted(fivebar, "zero-offset", evidence=300.0, rms={"motor1": 1.05}, **figures)
    branch = fitted(fivebar, "wrong-branch", evidence=400.0, rms={"motor1": 1.0}, **figures)
    found = explaining_trials([zero, branch], {"motor1": 0.6}, {"zero-offset"})
    assert [trial.code for trial in found] == ["wrong-branch", "zero-offset"]
    assert explaining_trials([branch], {"motor1": 0.6}, ()) == []  # nothing else doubts the description


FOURBAR = """
schema: dynid.robot/1
name: fourbar
gravity: [0, -9.81, 0]
joints:
  - {name: crank, kind: revolute, parent: base, child: one}
  - {name: knee, kind: revolute, parent: one, child: two, xyz: [0.15, 0, 0]}
  - {name: rocker, kind: revolute, parent: base, child: three, xyz: [0.4, 0, 0]}
loops: [{name: pin, kind: revolute, a: {body: two, xyz: [0.38, 0, 0]}, b: {body: three, xyz: [0.3, 0, 0]}}]
actuators: [crank]
measured: [crank]
drive: {crank: [Ia, Fv, Fs, Off]}
start: {crank: 1, knee: -0.4, rocker: 1.6}
limits: {crank: {q: [-2, 2], dq: 6, ddq: 40}}
"""


def test_of_mirror_images_the_one_whose_friction_brakes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other branch is the mirror image of a position that counts the other way, and fits as well."""
    file = tmp_path / "fourbar.yaml"
    file.write_text(FOURBAR)
    robot = load_robot(file)
    truth = {one.name: 0.0 for one in parameter_table(robot)}
    truth |= {"Ia_crank": 0.05, "Fv_crank": 0.5, "Fs_crank": 0.8}
    for body, length in (("one", 0.15), ("two", 0.38), ("three", 0.3)):
        truth |= {f"M_{body}": 1.5, f"MX_{body}": 0.75 * length, f"ZZ_{body}": 0.5 * length**2}
    motion = random_motion(robot, seed=2, frequency=0.5, draws=3)
    log = simulate_log(robot, truth, motion, rate=250.0, duration=4.0, torque_sigma=0.005, seed=2)
    other = file.with_name("other.yaml")
    other.write_text(FOURBAR.replace("knee: -0.4, rocker: 1.6", "knee: -1.9, rocker: -2.4"))
    estimate = identified(load_robot(other), log)
    found = estimate.verdict.reasons[0]
    assert found.code == "wrong-branch"
    assert "signs of position and effort of 'crank'" in found.text
    # The list begins with what the verdict names, whichever it is.
    assert estimate.hypotheses[0].name.startswith("branch")
    count = causes._negative_count
    monkeypatch.setattr(causes, "_negative_count", lambda trial: -count(trial))
    estimate = identified(load_robot(other), log)
    assert estimate.verdict.reasons[0].code == "position-order"
    assert "position of 'crank'" in estimate.hypotheses[0].name


@pytest.mark.parametrize("seed", [701, 702])
def test_friction_that_a_level_robot_lacks_is_no_gravity(seed: int) -> None:
    """Gravity in any direction makes parameters visible that follow friction: up and down fit alike."""
    robot = load_robot("dualv")
    elbows = [f"elbow{i}" for i in range(1, 5)]
    real = replace(robot, drive={**robot.drive, **dict.fromkeys(elbows, ("Fv", "Fs"))})
    demo = read_demo(demo_file("dualv"), robot)
    truth = {f"{term}_{name}": x for name in elbows for term, x in (("Fv", 0.1), ("Fs", 0.5))}
    motion = random_motion(real, seed=977 * seed, harmonics=demo.harmonics, frequency=demo.frequency, draws=3)
    log = simulate_log(
        real,
        {**demo.truth, **truth},
        motion,
        rate=250.0,
        duration=max(1, round(5.0 * demo.frequency)) * motion.period,
        encoder_resolution=demo.encoder,
        torque_sigma=demo.torque_sigma,
        seed=977 * seed + 6,
        tension=demo.tension,
    )
    estimate = identified(robot, log)
    assert "gravity-off" not in {one.code for one in estimate.warnings}
    assert estimate.verdict.reasons[0].code == "friction-missing"
    assert estimate.hypotheses[0].name.startswith("friction of passive joints")


def test_exchanged_joints_are_put_back_with_their_efforts(fivebar) -> None:
    mechanism, log = fivebar
    wrong = replace(log, q=log.q[:, ::-1], tau=log.tau[:, ::-1])
    alone, both = position_orders(mechanism, (wrong,))
    assert np.array_equal(alone.logs[0].q, log.q)
    assert np.array_equal(alone.logs[0].tau, wrong.tau)
    assert np.array_equal(both.logs[0].q, log.q)
    assert np.array_equal(both.logs[0].tau, log.tau)
    assert "positions and efforts of 'motor1' and 'motor2'" in both.notice.text
    assert set(both.notice.change["columns"]) == {"q_1", "q_2", "tau_1", "tau_2"}


def test_an_axis_that_points_the_other_way_is_tried_with_both_signs() -> None:
    robot = load_robot("scara")
    q = np.random.default_rng(1).normal(size=(20, len(robot.actuators)))
    log = log_from_arrays(robot, np.arange(20) * 0.01, q, tau=2.0 * q)
    alone, both, *_ = position_signs(robot, (log,))
    assert np.array_equal(both.logs[0].q, alone.logs[0].q)
    assert np.array_equal(both.logs[0].tau[:, 0], -log.tau[:, 0])
    assert np.array_equal(both.logs[0].tau[:, 1:], log.tau[:, 1:])
    assert both.notice.change == {"columns": {"q_1": {"scale": -1}, "tau_1": {"scale": -1}}}


def test_gravity_that_makes_the_parameters_physical_and_fits_better_is_named(fivebar, monkeypatch) -> None:
    """A slow robot absorbs gravity upside down by masses that are impossible by a few sigma only."""
    mechanism, log = fivebar
    fit = fit_task(Task(mechanism, (log,), Experiment(robot=mechanism, auto="off")))
    before = fitted_with(fit, mechanism, (log,))
    monkeypatch.setattr(causes, "realise", lambda *_: (None, None, ()))

    def named(**figures) -> object:
        trial = fitted(fivebar, "gravity-off", fit=before, **({"left": 0.9, "evidence": 100.0} | figures))
        return causes._physical(fit, [trial], False)

    assert named() is not None
    assert named(evidence=3.0) is None  # not significantly better
    assert named(added=3) is None  # has values of its own
    assert named(left=1.02) is None


def test_a_flagged_size_at_which_no_loop_closes_is_withdrawn(fivebar) -> None:
    estimate = identified(*fivebar)
    flagged = ResidualTest("dimension", "l1", 0.4, "m", (0.3, 0.5), 1e-6, True)
    other = replace(flagged, test="zero", about="motor1")
    notices = (Notice("dimension-off", ""), Notice("zero-offset", ""))
    doubtful = replace(estimate, residual_tests=(flagged, other), warnings=notices)
    left = without(doubtful, [flagged], "refuted")
    assert [note.code for note in left.warnings] == ["zero-offset"]
    assert [test.warned for test in left.residual_tests] == [False, True]


def is_one_millimetre(correction: str, dimension: str) -> None:
    assert correction.startswith(f"dimension {dimension} changed by +0.00")
    # Encoder steps of 6e-6 rad: the size is known to some micrometres; the linear model adds 1 % of 1 mm.
    assert correction.endswith(" m")
    assert float(correction.split()[-2]) == pytest.approx(1e-3, rel=0.05)


def test_a_flagged_zero_that_its_own_fit_does_not_confirm_is_withdrawn(fivebar) -> None:
    """Warnings and list of corrections agree; the size found by a fit is the only one shown."""
    linear = ResidualTest("zero", "elbow", 0.137, "rad", (0.064, 0.21), 9e-4, True)
    remark = notice("zero-offset", joint="elbow", shown="0.137 rad", size=0.137, number=3)
    found = replace(fabricated.estimate(), residual_tests=(linear,), warnings=(remark,))
    searched = replace(linear, value=0.102, ci95=(0.029, 0.175))
    weak, strong = (fitted(fivebar, "zero-offset", evidence=x, searched=searched) for x in (2.3, 20.0))
    assert unconfirmed(found, [strong]) == []
    withdrawn = without(found, unconfirmed(found, [weak]), "not confirmed")
    assert not withdrawn.warnings
    assert not withdrawn.residual_tests[0].warned
    assert withdrawn.residual_tests[0].note == "not confirmed"
    [shown] = with_size(found, strong.searched).residual_tests
    assert (shown.value, shown.ci95, shown.p_value) == (0.102, (0.029, 0.175), 9e-4)


def test_one_millimetre_is_seen_by_a_redundant_encoder(redundant) -> None:
    """By the stage that finds it; whole identifications of a larger robot take longer."""
    robot, log = redundant
    wrong = robot.rebuild({"l2": robot.geometry["l2"] - 0.001})
    fit = fit_task(Task(wrong, (log,), Experiment(robot=wrong, auto="off")))
    notices = run_checks(Finished(fit), CHECKS.values()).notices
    assert "loop-misfit" in [one.code for one in notices]
    cause = closure_cause(fit, notices)
    assert cause is not None
    is_one_millimetre(cause.test.name, "l2")
    assert [one.code for one in cause.notices] == ["dimension-off"]


def test_one_millimetre_is_seen_by_redundant_encoders(dualv) -> None:
    mechanism, log = dualv
    wrong = mechanism.rebuild({"d3": mechanism.geometry["d3"] - 0.001})
    found = identified(wrong, log)
    is_one_millimetre(found.hypotheses[0].name, "d3")
    assert {"dimension-off", "loop-misfit"} <= {one.code for one in found.warnings}


@pytest.mark.parametrize(("robot", "name"), [("fivebar", "l1"), ("dualv", "d2")])
def test_a_length_in_millimetres_that_opens_the_loops_is_named(robot: str, name: str, request) -> None:
    mechanism, log = request.getfixturevalue(robot)
    wrong = mechanism.rebuild({name: 1000.0 * mechanism.geometry[name]})
    with pytest.raises(InputError, match=f"The loops close with: dimension {name} in mm"):
        identified(wrong, log)


def test_an_angle_in_degrees_is_noticed_and_can_be_changed(tmp_path) -> None:
    text = (load_robot("puma560").file or "").replace("\\", "/")
    with open(text, encoding="utf-8") as stream:
        file = stream.read().replace("alpha: -pi/2, r: d2", "alpha: -90, r: d2")
    (tmp_path / "arm.yaml").write_text(file)
    arm = load_robot(tmp_path / "arm.yaml")
    assert "angle-beyond-turn" in [one.code for one in arm.notices]
    log = replace(simulated("puma560", seconds=1.0)[1], name="x")
    corrected = {one.name: one.mechanism for one in dimension_units(arm, (log,))}
    found = corrected["dimension joints_1_mdh_alpha in degrees"]
    true = load_robot("puma560")
    for one, other in zip(found.joints, true.joints, strict=True):
        np.testing.assert_allclose(one.placement.R, other.placement.R, atol=1e-12)  # rounding


def test_other_dimensions_keep_what_is_not_of_the_file() -> None:
    robot = replace(load_robot("fivebar"), gravity=np.array([0.0, 0.0, -9.81]))
    other = resized(robot, {"l2": 0.41})
    assert other is not None
    np.testing.assert_array_equal(other.gravity, robot.gravity)
    assert other.loops[0].a.p[0] == pytest.approx(0.41)


def test_other_branches_close_with_the_same_measured_joints(fivebar) -> None:
    mechanism, log = fivebar
    assembly = assembly_of(mechanism)
    here, others = other_poses(assembly, log)
    # Two circles meet in two points: one other branch, with both measured angles as logged.
    assert len(others) == 1
    assert assembly.gaps(others[0][None])[0] < 1e-9
    measured = [mechanism.positions.index(name) for name in log.position_names]
    np.testing.assert_allclose(others[0][measured], log.q[0], atol=1e-9)
    assert np.abs(others[0] - here).max() > 0.1


def test_a_platform_on_the_other_side_of_its_legs_is_found_before_twisted_ones() -> None:
    mechanism = load_robot("delta")
    q = np.tile([0.1, 0.2, 0.3], (20, 1))
    log = log_from_arrays(mechanism, 0.01 * np.arange(20), q, np.zeros((20, 3)))
    here, others = other_poses(assembly_of(mechanism), log)
    height, attitude = mechanism.positions.index("pose_z"), slice(-4, None)
    assert here[height] < -0.4
    assert others[0][height] > 0.4
    np.testing.assert_allclose(others[0][attitude], here[attitude], atol=1e-6)


def test_a_zero_without_a_linear_test_is_searched_both_ways(fivebar) -> None:
    mechanism, log = fivebar
    doubt = ResidualTest("zero", "motor2", 0.02, "rad", None, 1e-4, False)
    _, zero, *_ = doubted(mechanism, log.position_names, [doubt], poor=False)
    assert (zero.test, zero.about) == ("zero", "motor1")
    sizes: list[float] = []

    def tried(hypothesis):
        sizes.append(float(np.mean(hypothesis.logs[0].q[:, 0] - log.q[:, 0])))
        return [with_squares(hypothesis, sizes[-1] / -0.09)]

    (best,) = best_size(mechanism, (log,), zero, tried)
    assert np.mean(best.logs[0].q[:, 0] - log.q[:, 0]) == pytest.approx(-0.09, abs=1e-9)
    sizes.clear()
    # What the parameters absorb is tried once.
    best_size(mechanism, (log,), zero, lambda hypothesis: [*tried(hypothesis)[:0], hypothesis])
    assert len(sizes) == 1


def test_the_distance_from_dead_points_is_a_signal(clean) -> None:
    distance = clean.signals[0].closure["singularity_distance"]
    known = distance[np.isfinite(distance)]
    assert len(known) > 50  # rows of two seconds
    assert np.all((known > 0.0) & (known <= 1.0))
    assert "distance to singular poses" in clean.choices


def test_a_turn_of_a_redundant_encoder_is_removed_and_named(dualv) -> None:
    mechanism, log = dualv
    shift = np.array([0.0, 2.0 * np.pi, 0.0, 0.0])
    turned = log_from_arrays(mechanism, log.t, log.q + shift, log.tau, name="turned")
    found = identified(mechanism, turned)
    assert "whole-turns" in [one.code for one in found.warnings]
    assert found.hypotheses[0].name == "as described"


def test_a_zero_that_is_off_by_a_quarter_of_a_turn_is_found() -> None:
    """As between two conventions of frames: far from linear, 0.3 rad was the nearest size that was tried."""
    robot, log = simulated("ur5", seed=5, seconds=8.0)
    q = log.q.copy()
    q[:, 2] -= 0.5 * np.pi
    found = identified(robot, log_from_arrays(robot, log.t, q, log.tau))
    assert found.verdict.reasons[0].code == "zero-offset"
    assert found.verdict.reasons[0].change["columns"]["q_3"]["offset"] == pytest.approx(0.5 * np.pi, abs=1e-3)


def test_the_sign_of_an_axis_that_masses_absorb_is_found() -> None:
    """A vertical slide fits as well with its sign turned, with a negative mass and friction that drives."""
    robot, log = simulated("scara", seed=5)
    q = log.q.copy()
    q[:, 2] *= -1.0
    found = identified(robot, log_from_arrays(robot, log.t, q, log.tau))
    # Its weight is absorbed by the offset of its drive: position and effort are not told apart.
    assert found.verdict.reasons[0].code in ("position-order", "effort-sign")
    assert "sign of the position of 'quill'" in found.verdict.reasons[0].text


def test_a_clock_twice_too_slow_is_found() -> None:
    robot, log = simulated("puma560", seed=5)
    found = identified(robot, log_from_arrays(robot, 2.0 * log.t, log.q, log.tau))
    assert found.verdict.reasons[0].code == "gravity-off"
    assert found.verdict.reasons[0].change["columns"]["t"]["scale"] == pytest.approx(0.5, rel=1e-2)


def test_a_misfit_of_several_times_the_noise_is_examined_however_small() -> None:
    """A five-bar whose clock is twice too slow: 0.6 % of the peak, six times the noise, and it was good."""
    robot, log = simulated("fivebar", seed=4, seconds=8.0, noise=0.1)
    found = identified(robot, log_from_arrays(robot, 2.0 * log.t, log.q, log.tau))
    assert found.verdict.reasons[0].code == "gravity-off"


def test_half_of_the_squares_are_enough_for_a_correction_with_nothing_fitted(fivebar) -> None:
    mechanism, log = fivebar
    given = Hypothesis(notice("model-misfit", "gravity"), mechanism, (log,), "upside down", left=0.65)
    given = replace(given, rms={"motor1": 1.0})
    assert ranking.is_noise(given, {"motor1": 0.1})
    assert not ranking.is_noise(replace(given, added=1), {"motor1": 0.1})
    assert not ranking.is_noise(replace(given, left=0.75), {"motor1": 0.1})


def test_a_flagged_delay_is_a_reason_to_try_other_causes() -> None:
    """Friction of passive joints looks like a delay."""
    assert "delay" in codes_with("doubt")


def test_a_log_in_degrees_beside_others_is_named_also_where_settings_are_chosen() -> None:
    """Beside its speeds the other logs are at rest: all rows were in one part, and none was left to fit."""
    robot = load_robot("fivebar")
    logs = [simulated("fivebar", seed=seed, rate=100.0)[1] for seed in (1, 2, 3)]
    logs[2] = log_from_arrays(robot, logs[2].t, np.rad2deg(logs[2].q), logs[2].tau)
    found = identify_logs(robot, logs, experiment=Experiment(robot=robot))
    assert found.verdict.reasons[0].code in ("angles-large", "position-unit", "logs-contradict")
