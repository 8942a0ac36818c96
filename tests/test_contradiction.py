"""A log that contradicts the others is named, with what is wrong with its columns alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.doctor.examine import examine
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import LinearFit, linear_fit
from dynid.mechanism.load import load_robot
from dynid.motion.log import Log
from dynid.pipeline import identify_logs
from dynid.problem import prepare
from dynid.simulation.simulation import simulate
from dynid.simulation.simulation_file import default_simulation
from dynid.validation.contradiction import contradiction_of, corrected_trials
from dynid.validation.hypotheses import payload_labels

ROBOT = load_robot("scara")
SETTINGS = Experiment(robot=ROBOT, auto="off")


@pytest.fixture(scope="module")
def runs() -> list[Log]:
    """Three good logs of other motions, at 100 Hz."""
    found = [simulate(ROBOT, replace(default_simulation(ROBOT), rate=100.0, seed=k)) for k in (3, 4, 5)]
    return [one.log(k, f"run{k}", ROBOT) for k, one in enumerate(found)]


def fitted(logs: list[Log], robot=ROBOT) -> LinearFit:
    return linear_fit(prepare(robot, logs, SETTINGS), SETTINGS)


def exchanged(log: Log) -> Log:
    return replace(log, name="bad", tau=log.tau[:, [1, 0, 2, 3]])


def turned(log: Log) -> Log:
    return replace(log, name="bad", tau=log.tau * np.array([1.0, -1.0, 1.0, 1.0]))


def in_mm(log: Log) -> Log:
    return replace(log, name="bad", tau=1000.0 * log.tau)


def position(log: Log) -> Log:
    return replace(log.with_positions(np.array([1.0, -1.0, 1.0, 1.0])), name="bad")


FAULTS = {
    exchanged: {"tau_1": {"name": "tau_2"}, "tau_2": {"name": "tau_1"}},
    turned: {"tau_2": {"scale": -1}},
    in_mm: {f"tau_{i}": {"scale": pytest.approx(1e-3, rel=0.02)} for i in (1, 2, 3, 4)},
    position: {"q_2": {"scale": -1}},
}


@pytest.mark.parametrize(("fault", "others"), [(exchanged, 1), (turned, 2), (in_mm, 1), (position, 1)])
def test_the_wrong_log_and_its_columns_are_found(runs, fault, others):
    logs = [*runs[:others], fault(runs[2])]
    fit = fitted(logs)
    found = contradiction_of(fit)
    assert found is not None
    assert found.logs == ("bad",) or found.mirror is not None
    assert found.after < 2.0 < found.before
    trials = corrected_trials(found, fit, logs)
    best, second = sorted(trials, key=lambda trial: trial.left)[:2]
    if fault is in_mm:  # or the other log is 1000 times too small: nothing in two logs can tell
        assert best.likely == pytest.approx(second.likely, abs=1.0)
        best = next(trial for trial in (best, second) if trial.logs[0].name == "bad")
    assert best.left < 0.1
    assert best.notice.change == {"logs": {"bad": {"columns": FAULTS[fault]}}}


def test_logs_that_a_model_does_not_explain_contradict_nothing(runs):
    """Other motion, noise and length; a robot without its friction, or with gravity along another axis."""
    a, b, _ = runs
    noise = np.random.default_rng(0).normal(size=b.tau.shape) * 0.3 * b.tau.std(axis=0)
    brief = replace(b, segments=((0, len(b.tau) // 2),))
    assert contradiction_of(fitted([a])) is None
    for other in (b, brief, replace(b, tau=b.tau + noise)):
        assert contradiction_of(fitted([a, other])) is None
    for robot in (replace(ROBOT, drive={}), replace(ROBOT, gravity=np.array([0.0, 9.81, 0.0]))):
        assert contradiction_of(fitted([a, brief], robot)) is None


def test_a_result_names_it_first_and_so_does_the_doctor(runs):
    estimate = identify_logs(ROBOT, [runs[0], exchanged(runs[1])], (), SETTINGS)
    first = estimate.verdict.reasons[0]
    assert (first.code, first.level) == ("logs-contradict", "bad")
    assert "log 'bad' contradicts 'run0'" in first.text
    assert "the efforts of 'shoulder' and 'elbow' seem to be exchanged" in first.text
    assert "log 'bad' `columns: {tau_1: {name: tau_2}, tau_2: {name: tau_1}}`" in first.remedy
    assert "model-misfit" not in {one.code for one in estimate.warnings}
    diagnosis = examine(ROBOT, [runs[0], exchanged(runs[1])], SETTINGS)
    assert diagnosis.findings[0].code == "logs-contradict"
    assert diagnosis.findings[0].text == first.text


def test_a_validation_log_counts_and_a_contradiction_without_a_cause_is_named(runs):
    """Half of the efforts of one log are those of another motion."""
    good, other, _ = runs
    n = min(len(good.tau), len(other.tau))
    mixed = replace(other, name="mixed", tau=other.tau.copy())
    mixed.tau[:n, :2] += 0.5 * good.tau[:n, :2]
    estimate = identify_logs(ROBOT, [good], [mixed], SETTINGS)
    notes = {one.code: one for one in estimate.warnings}
    assert "log 'mixed' contradicts the others" in notes["logs-contradict"].text
    assert not notes["logs-contradict"].change


def test_a_contact_in_one_log_is_no_contradiction_of_it(runs):
    """An effort of one log is lost for half a second: the stretch is named, not the log."""
    good, other, _ = runs
    lost = replace(other, name="lost", tau=other.tau.copy())
    lost.tau[200:250, 1] = 0.01 * np.random.default_rng(1).normal(size=50)
    assert contradiction_of(fitted([good, lost])) is not None
    estimate = identify_logs(ROBOT, [lost], [good], SETTINGS)
    assert estimate.verdict.reasons[0].code == "burst"
    assert "logs-contradict" not in {one.code for one in estimate.warnings}


GANTRY = """
schema: dynid.robot/1
name: gantry
gravity: [0, 0, -9.81]
joints:
  - {name: x, kind: prismatic, parent: base, child: carriage, axis: [1, 0, 0]}
  - {name: z, kind: prismatic, parent: carriage, child: ram, axis: [0, 0, 1]}
  - {name: tilt, kind: revolute, parent: ram, child: fork, xyz: [0, 0, -0.2], axis: [0, 1, 0]}
bodies:
  carriage: {prior: {M: 20}}
  ram: {prior: {M: 8}}
  fork: {prior: {M: 3, MX: 0.3, MZ: -0.4, YY: 0.12}}
measured: [x, z, tilt]
actuators: [x, z, tilt]
drive: {x: [Fv, Fs], z: [Fv, Fs], tilt: [Ia, Fv, Fs]}
limits:
  x: {q: [-1, 1], dq: 2, ddq: 10}
  z: {q: [-0.4, 0.4], dq: 2, ddq: 10}
  tilt: {q: [-1.5, 1.5], dq: 3, ddq: 20}
"""


def test_torques_in_another_unit_than_forces_are_named(tmp_path):
    (tmp_path / "gantry.yaml").write_text(GANTRY)
    robot = load_robot(tmp_path / "gantry.yaml")
    logs = [simulate(robot, replace(default_simulation(robot), rate=100.0, seed=k)) for k in (1, 2)]
    scale = np.array([1.0, 1.0, 1000.0])
    wrong = [replace(log, tau=log.tau * scale) for log in (one.log(0, "a", robot) for one in logs)]
    settings = Experiment(robot=robot, auto="off")
    first = identify_logs(robot, wrong[:1], wrong[1:], settings).verdict.reasons[0]
    assert (first.code, first.level) == ("scale-implausible", "bad")
    assert "columns: {tau_3: {unit: Nmm}}" in first.remedy


@pytest.mark.parametrize(("name", "body"), [("scara", "tool"), ("dualv", "platform"), ("delta", "platform")])
def test_another_payload_is_tried_on_the_last_body_or_the_platform(name, body):
    robot = load_robot(name)
    logs = [simulate(robot, replace(default_simulation(robot), rate=50.0, seed=1)).log(0, "a", robot)]
    other = [trial for trial in payload_labels(robot, (logs[0], logs[0])) if "another" in trial.name]
    assert {trial.mechanism.payloads["unknown_load"].body for trial in other} == {body}
