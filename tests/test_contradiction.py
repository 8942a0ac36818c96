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
    best = min(corrected_trials(found, fit, logs, SETTINGS), key=lambda trial: trial.left)
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
