"""Whoever asks about a log gets the same corrections: `identify`, `check`, and the corrected experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dynid as package
from dynid.common.errors import InputError
from dynid.common.notices import notice
from dynid.doctor.examine import examine
from dynid.experiment.experiment import Experiment
from dynid.fit import fit_task
from dynid.motion.log import Log
from dynid.unknown import Task
from dynid.validation.left_out import with_tried_stretches
from tests.fabricated import estimate as fabricated

pytestmark = [pytest.mark.auto, pytest.mark.usefixtures("no_symbols")]


@pytest.mark.parametrize("fault", ["zero", "friction"])
def test_check_and_identify_propose_the_same_correction(fault: str) -> None:
    """One fit, one list of hypotheses and one ranking for both: names, sizes and columns are equal."""
    robot = package.load_robot("scara")
    runs = [package.simulate(robot, {"rate": 200.0, "duration": 10.0, "seed": seed}).log() for seed in (1, 2)]

    def recorded(log: Log) -> Log:
        q = log.q.copy()
        q[:, 1] += 0.05 if fault == "zero" else 0.0
        return replace(log, q=q)

    if fault == "friction":
        robot = replace(robot, drive=dict.fromkeys(robot.drive, ("Fv",)))
    fitted, unseen = map(recorded, runs)
    estimate = package.identify(robot, fitted, validate=unseen)
    found = examine(robot, [fitted], Experiment(robot=robot), validate=[unseen])
    assert found.estimate is not None
    assert found.estimate.hypotheses == estimate.hypotheses
    reason, first = estimate.verdict.reasons[0], found.findings[0]
    assert (first.code, first.text, first.remedy) == (reason.code, reason.text, reason.remedy)


@pytest.mark.parametrize("contact", [True, False])
def test_a_stretch_is_left_out_only_if_other_parts_are_then_predicted_better(contact: bool) -> None:
    """Both fits predict the same parts of the log, which neither has seen."""
    robot = package.load_robot("scara")
    log = package.simulate(robot, {"rate": 200.0, "duration": 10.0, "seed": 3}).log()
    tau = log.tau.copy()
    tau[1000:1060, 1] += 4.0 * tau[:, 1].std() if contact else 0.0
    fit = fit_task(Task(robot, (replace(log, tau=tau),), Experiment(robot=robot, auto="off")))
    change = {"logs": {log.name: {"exclude": [[4.8, 5.6]]}}}
    warned = replace(fabricated(), warnings=(notice("burst", times=8.0, shown=log.name, change=change),))
    (burst,) = with_tried_stretches(fit, warned).warnings
    assert burst.change == (change if contact else {})
    assert ("the rms error of 'elbow' beside it is" in burst.text) == contact
    assert ("predicted no better" in burst.text) == (not contact)
    assert ("leave it out" in burst.remedy) == contact
    assert burst.level == ("care" if contact else "good")


def test_why_a_stretch_could_not_be_left_out_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of the file and a second remedy were inside the text of the reason."""

    def refuse(*_: object) -> None:
        raise InputError("positions jump", file="/data/log.csv", remedy="split the log")

    monkeypatch.setattr("dynid.validation.left_out._errors", refuse)
    robot = package.load_robot("scara")
    log = package.simulate(robot, {"rate": 200.0, "duration": 2.0, "seed": 3}).log()
    fit = fit_task(Task(robot, (log,), Experiment(robot=robot, auto="off")))
    change = {"logs": {log.name: {"exclude": [[0.8, 1.2]]}}}
    warned = replace(fabricated(), warnings=(notice("burst", times=8.0, shown=log.name, change=change),))
    (burst,) = with_tried_stretches(fit, warned).warnings
    assert burst.text.endswith("; to leave it out could not be tried: positions jump")
