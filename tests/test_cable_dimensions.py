"""Pulleys, attachments and frames of measured poses are tested by the lengths of the cables."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dynid.case import task_case
from dynid.cases.free_motion.locked_lengths import estimated
from dynid.cases.free_motion.simulation import free_logs
from dynid.checks import cable_dimensions
from dynid.checks.cable_dimensions import poses
from dynid.checks.check import Finished, run_checks
from dynid.common.arrays import Array, Float
from dynid.experiment.experiment import Experiment
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.description import at_values
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.robots.demo_file import demo_file, read_free_demo
from dynid.statistics.estimate import NOT_TESTED
from dynid.unknown import Task
from dynid.validation.ranking import ranked

_GOOD = 2e-5  # m: markers ten times better than the usual ones


@cache
def _simulated() -> Log:
    """Seven runs of free motion of cable4, without noise."""
    robot = load_robot("cable4")
    demo = read_free_demo(demo_file("cable4"), robot)
    assert demo is not None
    demo = replace(
        demo, motions=7, validation=1, rate=50.0, duration=3.0, position_sigma=0.0, angle_sigma=0.0
    )
    return free_logs(robot, demo, 5)[0]


def _log(sigma: float = 2e-4) -> Log:
    """The same with noise of markers a third of a metre apart, in [m]."""
    log = _simulated()
    noise = np.random.default_rng(11).standard_normal(log.q.shape)
    q = log.q + noise * (3 * [sigma] + 4 * [1.5 * sigma])
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    return replace(log, q=q)


def _described(about: str = "", off: float = 0.0) -> Mechanism:
    """The description, one dimension smaller than that of the robot."""
    robot = load_robot("cable4")
    return at_values(robot, {about: robot.geometry[about] - off}) if about else robot


def _lengths(log: Log) -> Float[Array, "s c"]:
    """True locked lengths of the runs."""
    robot = load_robot("cable4")
    return estimated(_simulated(), robot, log.position_names).mean


def _with_lengths(log: Log, columns: list[int], zeros: list[float]) -> Log:
    """The log with some coordinates of the pose, and with the lengths that winches show."""
    names = [cable.name for cable in driven_cables(load_robot("cable4"))]
    logged = np.zeros((len(log.t), len(names)))
    for (a, b), row in zip(log.segments, _lengths(log), strict=True):
        logged[a:b] = row + np.array(zeros)
    kept = tuple(log.position_names[i] for i in columns)
    return replace(log, q=np.column_stack([log.q[:, columns], logged]), position_names=(*kept, *names))


def _checked(log: Log, robot: Mechanism) -> Finished:
    experiment = Experiment(robot=robot, auto="off")
    read = task_case(robot, experiment).read(log, robot, experiment)
    fit = SimpleNamespace(problem=Task(robot, (read,), experiment).problem)
    return run_checks(Finished(fit), [poses])  # type: ignore[arg-type]


def _flagged(checked: Finished) -> list[str]:
    return [test.about for test in checked.tests if test.warned]


def test_an_attachment_off_by_a_millimetre_is_named() -> None:
    checked = _checked(_log(), _described("toy_cable2", 1e-3))
    assert [note.code for note in checked.notices] == ["cable-misfit"]
    assert "toy_cable2" in checked.notices[0].text  # alone, or as one that cannot be separated
    codes = {note.code for note in checked.notices}
    listed = ranked([], 3.0, checked.tests, [], codes)
    assert "cable2" in listed[0].name
    assert listed[0].residual_percent < 100.0
    assert listed[1].name == "as described"


def test_a_pulley_off_by_a_millimetre_is_named_with_good_markers() -> None:
    """Within a run a pulley changes lengths little: markers of 0.2 mm do not show a millimetre in 21 s."""
    [note] = _checked(_log(_GOOD), _described("fromz_cable3", 1e-3)).notices
    assert "fromz_cable3" in note.text
    unseen = _checked(_log(), _described("fromz_cable3", 1e-3))
    assert not unseen.notices
    assert "errors of 1 mm or 1 mrad of" in unseen.choices[NOT_TESTED]


@pytest.mark.parametrize("sigma", [2e-4, _GOOD])
def test_a_right_description_is_left_alone(sigma: float) -> None:
    checked = _checked(_log(sigma), _described())
    assert not checked.notices
    assert "none flagged" in checked.choices["cable lengths at the measured poses"]


def test_given_lengths_of_several_runs_show_a_pulley() -> None:
    """One unknown zero of each winch for all runs, instead of one for each run."""
    log = _with_lengths(_log(), list(range(7)), [0.001, -0.002, 0.0, 0.0005])
    [note] = _checked(log, _described("fromz_cable3", 2e-3)).notices
    assert "fromz_cable3" in note.text
    assert not _checked(log, _described()).notices


def test_a_displaced_camera_is_no_pulley() -> None:
    log = _log(_GOOD)
    q = log.q.copy()
    q[:, :3] += [0.004, -0.003, 0.005]
    checked = _checked(replace(log, q=q), _described())
    assert _flagged(checked)[0] == "the pose of 'platform' in the base"
    assert "displaced by" in checked.notices[0].text


def test_free_coordinates_alone_test_nothing() -> None:
    checked = _checked(_with_lengths(_log(), [0, 1], [0.0] * 4), _described())
    assert not checked.tests
    assert "pose is not measured as a whole" in checked.choices[NOT_TESTED]


def test_an_angle_is_said_in_mrad_and_each_dimension_keeps_its_remedy(tmp_path: Path) -> None:
    """Two attachments off, one of them placed by an angle: both units, both remedies."""
    text = Path(str(load_robot("cable4").file)).read_text()
    x, y = load_robot("cable4").cables[1].A[:2]
    entry = f"xyz: [{x:g}, {y:g},"
    assert text.count(entry) == 1
    r = float(np.hypot(x, y))
    turned = f"xyz: [{r!r}*cos(bearing), {r!r}*sin(bearing),"
    file = tmp_path / "robot.yaml"
    file.write_text(f"symbols: {{bearing: {float(np.arctan2(y, x))!r}}}\n" + text.replace(entry, turned))
    robot = load_robot(file)
    assert robot.angles == {"bearing"}
    off = {"bearing": robot.geometry["bearing"] + 0.01, "tox_cable4": robot.geometry["tox_cable4"] - 3e-3}
    [note] = _checked(_log(_GOOD), at_values(robot, off)).notices
    assert "'bearing' is off by -10 +- " in note.text
    assert " mrad: with" in note.text
    assert " mm: with" in note.text
    assert "symbols: [bearing]" in note.remedy
    assert "symbols: [tox_cable4]" in note.remedy


def test_short_runs_are_not_called_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cable_dimensions, "_MOST_SAMPLES", 1)
    checked = _checked(_log(), _described())
    assert "the runs are too short" in checked.choices[NOT_TESTED]
