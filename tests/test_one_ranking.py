"""Whoever asks about a log gets the same corrections: `identify`, `check`, and the corrected experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dynid as package
from dynid.doctor.examine import examine
from dynid.experiment.experiment import Experiment
from dynid.motion.log import Log

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
