"""Prediction from a saved result says what the identification itself would have said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid import identify
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment, TieChoice
from dynid.mechanism.load import load_robot, reference
from dynid.mechanism.parameters import parameter_table
from dynid.motion.fingerprint import RECORDED, fingerprint
from dynid.motion.log import Log
from dynid.pipeline import identify_logs, validate_result
from dynid.report.numbers import percent
from dynid.report.text import print_validation
from dynid.simulation.prescribed import simulate_log
from dynid.statistics.estimate_parts import log_error
from dynid.validation.held_out import _is_among, _unproven
from tests.built_in import codes

TWIN = """
name: twin
joints:
  - {name: a, kind: revolute, parent: base, child: left, mdh: {alpha: pi/2}}
  - {name: b, kind: revolute, parent: base, child: right, mdh: {alpha: pi/2, d: 1}}
drive: {"*": [Fv, Fs]}
limits: {a: {q: 1, dq: 3, ddq: 20}, b: {q: 1, dq: 3, ddq: 20}}
ties: {sides: [[left, right]], motors: [[a, b]]}
payloads: {block: {body: left, xyz: [0.2, 0, 0]}}
"""
TRUE = {"ZZ": 0.3, "MX": 1.0, "M": 3.0, "Fv": 0.5, "Fs": 0.4}


@pytest.fixture
def robot(tmp_path):
    file = tmp_path / "twin.yaml"
    file.write_text(TWIN)
    return load_robot(file)


def log(robot, seed, payloads=()):
    carried = replace(robot, payloads={name: robot.payloads[name] for name in payloads})
    truth = {p.name: TRUE.get(p.symbol, 0.0) for p in parameter_table(carried)}
    motion = random_motion(carried, seed=seed, draws=3)
    return simulate_log(
        carried,
        truth,
        motion,
        rate=200.0,
        duration=10.0,
        torque_sigma=0.01,
        seed=seed,
        payloads=tuple(payloads),
        name=f"log {seed}",
    )


@pytest.mark.parametrize("apply", ["standard", "regrouped"])
def test_ties_hold_for_all_members(robot, apply):
    ties = (TieChoice("sides", apply), TieChoice("motors", apply))
    other = log(robot, 2)
    estimate = identify_logs(robot, [log(robot, 1)], [other], Experiment(robot=robot, ties=ties))
    assert len(estimate.parameters) == 5
    (later,), _ = validate_result(estimate, [other], robot)
    # The same rows and parameters: only rounding of the filter design may differ.
    assert later.residual_percent == pytest.approx(estimate.validation[0].residual_percent, rel=1e-6)


def test_unloaded_log_is_predicted_by_a_result_with_payload(robot):
    empty = log(robot, 3)
    logs = [log(robot, 1), log(robot, 2, ["block"])]
    estimate = identify_logs(robot, logs, [empty], Experiment(robot=robot))
    (later,), _ = validate_result(estimate, [empty], robot)
    assert later.residual_percent == pytest.approx(estimate.validation[0].residual_percent, rel=1e-6)
    (loaded,), _ = validate_result(estimate, [log(robot, 4, ["block"])], robot)
    assert loaded.residual_percent < 1.0  # noise of 0.01 N m on efforts of some 10 N m


def test_result_of_another_robot_is_refused(robot):
    estimate = identify_logs(robot, [log(robot, 1)])
    renamed = replace(estimate.parameters[0], name="ZZ_elsewhere")
    wrong = replace(estimate, parameters=(renamed, *estimate.parameters[1:]))
    with pytest.raises(InputError, match="ZZ_elsewhere"):
        validate_result(wrong, [log(robot, 2)], robot)


def test_a_payload_the_result_does_not_know_is_refused(robot):
    estimate = identify_logs(robot, [log(robot, 1)])
    with pytest.raises(InputError, match="is not in the result"):
        validate_result(estimate, [log(robot, 2, ["block"])], robot)
    with pytest.raises(InputError, match="in no log used for identification"):
        identify_logs(robot, [log(robot, 1)], [log(robot, 2, ["block"])])


def test_a_payload_that_was_always_mounted_cannot_be_taken_off(robot):
    """Its mass is inside its carrier's parameters: predicting without it would be wrong in silence."""
    estimate = identify_logs(robot, [log(robot, 1, ["block"])])
    assert not any(parameter.name.endswith("_block") for parameter in estimate.parameters)
    (loaded,), _ = validate_result(estimate, [log(robot, 2, ["block"])], robot)
    assert loaded.residual_percent < 1.0  # noise of 0.01 N m on efforts of some 10 N m
    for none in ((), ("none",)):
        with pytest.raises(InputError, match="mounted in every log"):
            validate_result(estimate, [log(robot, 2)], robot, none)
    mixed = [replace(log(robot, 2, ["block"]), payloads=()), log(robot, 4, ["block"])]
    with pytest.raises(InputError, match="log 2"):
        validate_result(estimate, mixed, robot, ())
    with pytest.raises(InputError, match="log 2"):
        identify_logs(robot, [log(robot, 1, ["block"])], [log(robot, 2)])


def unnamed(robot, seed, payloads):
    """A log of a robot with payloads that does not name them."""
    return replace(log(robot, seed, payloads), payloads=())


def test_what_every_log_of_the_fit_carried_is_mounted_unless_it_is_said(robot):
    estimate = identify_logs(robot, [log(robot, 1, ["block"])])
    (assumed,) = estimate.validate(unnamed(robot, 2, ["block"]), robot)
    assert assumed.residual_percent < 1.0  # noise of 0.01 N m on efforts of some 10 N m
    assert codes(assumed) == ["payload-assumed"]
    (named,) = estimate.validate(unnamed(robot, 2, ["block"]), robot, ["block"])
    assert codes(named) == []
    assert named.residual_percent == assumed.residual_percent


def test_a_payload_that_may_be_mounted_is_asked_for_and_found(robot):
    estimate = identify_logs(robot, [log(robot, 1), log(robot, 2, ["block"])])
    (empty,) = estimate.validate(log(robot, 3), robot)
    assert codes(empty) == ["payload-assumed"]
    assert "block" in empty.warnings[0].text
    (said,) = estimate.validate(log(robot, 3), robot, payloads=[])
    assert codes(said) == []
    (loaded,) = estimate.validate(unnamed(robot, 4, ["block"]), robot)
    (warning,) = loaded.warnings  # the other payload is tried where the prediction is poor
    assert warning.code == "poor-prediction"
    assert "with payload 'block'" in warning.text
    assert warning.remedy.endswith("--payload block")
    with pytest.raises(InputError, match="'none' means no payload"):
        estimate.validate(log(robot, 3), robot, ["none", "block"])


def test_a_trajectory_is_predicted_with_the_payload_of_the_fit(robot):
    motion = log(robot, 3)
    always = identify_logs(robot, [log(robot, 1, ["block"])])
    assumed = always.predict(motion, robot=robot)
    assert "payload-assumed" in [item.code for item in assumed.notices]
    np.testing.assert_array_equal(assumed.tau, always.predict(motion, robot=robot, payloads=["block"]).tau)
    both = identify_logs(robot, [log(robot, 1), log(robot, 2, ["block"])])
    assert "without payload" in both.predict(motion, robot=robot).notices[0].text
    assert "payload-assumed" not in [n.code for n in both.predict(motion, robot=robot, payloads=()).notices]


def test_payloads_of_the_experiment_are_remembered(robot, tmp_path):
    from dynid.report.json_file import read_result
    from dynid.report.output import write_results

    bare = replace(robot, payloads={})
    experiment = Experiment(robot=bare, payloads=robot.payloads)
    logs = [log(robot, 1), log(robot, 2, ["block"])]
    estimate = identify_logs(robot, logs, (), experiment)
    write_results(estimate, tmp_path / "out")
    later = read_result(tmp_path / "out")
    (loaded,), _ = validate_result(later, [log(robot, 4, ["block"])], bare)
    assert loaded.residual_percent < 1.0  # noise of 0.01 N m on efforts of some 10 N m


def without_effort(log, column):
    """The same log without one effort."""
    tau = log.tau.copy()
    tau[:, column] = np.nan
    present = log.effort_present.copy()
    present[column] = False
    return replace(log, tau=tau, effort_present=present)


def test_log_without_an_effort_is_predicted_on_the_others(robot):
    other = log(robot, 2)
    whole = identify_logs(robot, [log(robot, 1)], [other], Experiment(robot=robot)).validation[0]
    partial = identify_logs(robot, [log(robot, 1)], [without_effort(other, 1)], Experiment(robot=robot))
    (found,) = partial.validation
    assert [group.name for group in found.groups] == ["a"]
    # The same rows of the same log: nothing but the other effort's absence differs.
    assert found.groups[0].residual_percent == pytest.approx(whole.groups[0].residual_percent, rel=1e-9)
    assert found.effort_percent == pytest.approx(found.groups[0].residual_percent, rel=1e-9)


def test_log_of_which_nothing_can_be_predicted_is_refused(robot):
    still = log(robot, 2)
    still = replace(still, q=np.zeros_like(still.q))
    with pytest.raises(InputError, match="log 2"):
        identify_logs(robot, [log(robot, 1)], [still], Experiment(robot=robot))


def test_joint_that_never_moves_gives_no_friction_rows(robot):
    """At standstill stiction takes any value between -Fs and Fs: such rows would bias the rest."""
    moving = log(robot, 1)
    q, tau = moving.q.copy(), moving.tau.copy()
    q[:, 1] = 0.3
    tau[:, 1] = 7.0  # held by a brake
    estimate = identify_logs(robot, [replace(moving, q=q, tau=tau)])
    assert {group.name for group in estimate.fit.groups} == {"a"}


def test_result_finds_its_robot_from_any_folder(robot, tmp_path, monkeypatch):
    """A path relative to where the result was made would lead to another file of that name, or to none."""
    monkeypatch.chdir(tmp_path)
    recording = log(robot, 1)
    estimate = identify("twin.yaml", recording)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "twin.yaml").write_text(TWIN.replace("d: 1", "d: 2"))
    monkeypatch.chdir(elsewhere)
    assert validate_result(estimate, [log(robot, 2)])[0][0].residual_percent < 1.0


def test_result_refuses_a_robot_file_that_has_changed(robot, tmp_path):
    file = tmp_path / "twin.yaml"
    estimate = identify(file, log(robot, 1))
    assert estimate.provenance["inputs"][0]["file"] == str(file)
    file.write_text(TWIN + "gravity: [0, 0, -1.62]\n")
    validate_result(estimate, [log(robot, 2)])  # it remembers the robot it was made with
    saved = replace(estimate, mechanism=None)  # as it is read from its file
    with pytest.raises(InputError, match="has changed since"):
        validate_result(saved, [log(robot, 2)])
    validate_result(saved, [log(robot, 2)], file)  # named on purpose: taken


def test_built_in_robot_is_recorded_by_its_name():
    assert reference(load_robot("scara")) == "scara"


def test_what_was_noticed_in_a_log_stays_with_its_figures(robot, capsys):
    gap = Notice("gap", "1 gap longer than 10 ms", "check the recorder")
    estimate = identify_logs(robot, [log(robot, 1)])
    validations, _ = validate_result(estimate, [replace(log(robot, 2), notices=(gap,))], robot)
    assert validations[0].warnings == (gap,)
    print_validation(validations, warnings=True)
    assert "log 2: 1 gap longer than 10 ms" in capsys.readouterr().out


def test_a_log_predicted_far_worse_than_the_fit_is_reported(robot):
    estimate = identify_logs(robot, [log(robot, 1)])
    good, doubled = log(robot, 2), log(robot, 3)
    validations, _ = validate_result(estimate, [good, replace(doubled, tau=2.0 * doubled.tau)], robot)
    assert validations[0].warnings == ()
    (warning,) = validations[1].warnings
    assert warning.code == "poor-prediction"
    assert warning.level == "bad"
    assert "payload" in warning.remedy


def test_one_percentage_of_a_log_is_given_everywhere(robot, capsys):
    estimate = identify_logs(robot, [log(robot, 1)])
    doubled = log(robot, 3)
    ((check,), signals) = validate_result(estimate, [replace(doubled, tau=2.0 * doubled.tau)], robot)
    assert check.error == log_error(signals[0], estimate.verdict)
    figure, worst = percent(check.error.percent), check.error.worst
    assert f"model error {check.error.percent:.2g} % of the peak ({worst})" in check.warnings[0].text
    print_validation([check], warnings=True)
    printed = " ".join(capsys.readouterr().out.split())
    assert f" {figure} {check.error.worst}" in printed
    assert f"{check.residual_percent:.2g} %" not in printed


def test_a_log_slightly_worse_than_the_limit_needs_care_only(robot):
    estimate = identify_logs(robot, [log(robot, 1)])
    other = log(robot, 3)
    ((check,), _) = validate_result(estimate, [replace(other, tau=1.1 * other.tau)], robot)
    (warning,) = check.warnings
    assert 2.0 < check.error.percent < 10.0  # a tenth of the rms effort, which is below the peak
    assert warning.level == "care"


def test_same_samples_from_another_file_are_not_independent(robot):
    recording = log(robot, 1)
    copy = replace(recording, name="copy", sha256="0" * 64)
    estimate = identify_logs(robot, [recording], [copy, log(robot, 2)])
    assert [check.independent for check in estimate.validation] == [False, True]
    assert "validation-not-independent" in {notice.code for notice in estimate.warnings}


@pytest.mark.parametrize(("share", "found", "said"), [(0.03, True, False), (0.002, False, True)])
def test_a_part_is_recognised_later_or_said_to_be_too_short(robot, share, found, said):
    """A result keeps some hashes of a log: a part with three of them is recognised."""
    recording, rng = log(robot, 1), np.random.default_rng(0)
    n, width = 60_000, recording.q.shape[1]

    def cut(a: int, b: int) -> Log:
        q, tau = rng.normal(size=(n, width)), rng.normal(size=(n, recording.tau.shape[1]))
        parts = {"t": np.arange(n) * recording.dt, "q": q, "tau": tau, "valid": np.ones(n, bool)}
        return replace(recording, segments=((a, b),), origins={}, **parts)

    whole = cut(0, n)
    used = [{"samples": list(fingerprint(whole, RECORDED))}]
    at = int(0.4 * n)
    part = replace(whole, segments=((at, at + int(share * n)),))
    assert _is_among(part, fingerprint(part), used) == found
    assert bool(list(_unproven(part, fingerprint(part), used))) == said
    other = cut(0, int(0.1 * n))
    assert not _is_among(other, fingerprint(other), used)
    assert not list(_unproven(other, fingerprint(other), used))


def test_a_part_of_a_log_of_the_fit_is_not_unseen(robot):
    """As the whole log: the verdict is judged on parts that are left out, not on it."""
    recording = log(robot, 1)
    at = slice(400, 1200)
    part = replace(
        recording,
        name="part",
        **{key: getattr(recording, key)[at] for key in ("t", "q", "tau", "valid")},
        segments=((0, 800),),
        origins={},
    )
    estimate = identify_logs(robot, [recording], [part])
    assert [check.independent for check in estimate.validation] == [False]
    assert "validation-not-independent" in {notice.code for notice in estimate.warnings}
    assert "left out of the fit" in estimate.verdict.judged_on
    (later,), _ = validate_result(estimate, [part], robot)
    assert not later.independent
    repeated = identify_logs(robot, [recording, part])
    assert "log-repeated" in {notice.code for notice in repeated.warnings}
    assert repeated.verdict.level == "bad"  # each left-out part is still in the fit


def test_parts_of_one_log_without_common_samples_are_independent(robot):
    recording = log(robot, 1)
    halves = (0, 1000), (1000, len(recording.t))
    first, second = (replace(recording, segments=(at,), sha256="0" * 64) for at in halves)
    estimate = identify_logs(robot, [first], [second])
    (later,), _ = validate_result(estimate, [second], robot)
    assert estimate.validation[0].independent
    assert later.independent


def test_a_tie_that_binds_nothing_says_so():
    from dynid.simulation.demo import built_in_experiment

    demo = built_in_experiment("dualv")
    experiment = Experiment(robot=demo.mechanism, ties=(TieChoice("proximals"),))
    estimate = identify_logs(demo.mechanism, demo.logs[:1], (), experiment)
    assert estimate.choices["tie 'proximals'"] == "no effect"
    assert "tie-idle" in {notice.code for notice in estimate.warnings}


def test_ties_are_tested_against_the_data(robot):
    ties = (TieChoice("sides"), TieChoice("motors"))
    equal = identify_logs(robot, [log(robot, 1)], (), Experiment(robot=robot, ties=ties))
    assert "accepted by these data" in equal.choices["tie 'sides', 'motors'"]
    clean = log(robot, 1)
    # One side drives against three times the friction: the sides are not equal.
    dragged = replace(clean, tau=clean.tau + [0.0, 1.0] * np.sign(np.gradient(clean.q, axis=0)))
    unequal = identify_logs(robot, [dragged], (), Experiment(robot=robot, ties=ties))
    assert "tie-rejected" in {notice.code for notice in unequal.warnings}


def test_the_tie_test_rejects_as_often_as_it_says(robot):
    """Equal sides, fresh noise: p is uniform, so about 5 % of the tests fall below 0.05."""
    ties = (TieChoice("sides"), TieChoice("motors"))
    clean = log(robot, 1)
    below = 0
    for seed in range(60):
        noise = 0.05 * np.random.default_rng(seed).normal(size=clean.tau.shape)
        found = identify_logs(
            robot, [replace(clean, tau=clean.tau + noise)], (), Experiment(robot=robot, ties=ties)
        )
        below += float(found.choices["tie 'sides', 'motors'"].rpartition("p = ")[2].split()[0]) < 0.05
    # 60 draws at 5 %: more than 9 happen once in a thousand times.
    assert below <= 9


def test_a_validation_shows_itself_in_one_line(robot):
    estimate = identify_logs(robot, [log(robot, 1)])
    (check,) = estimate.validate(log(robot, 2), robot)
    assert repr(check) == (
        f"Validation('log 2', independent=True, model error {check.error.percent:.2g} %"
        f" ({check.error.worst}), warnings: none)"
    )
    assert f"model error {max(j.error_percent for j in estimate.verdict.joints):.2g} %" in repr(estimate)
