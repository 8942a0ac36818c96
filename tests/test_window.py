"""Parts of logs: windows, excluded intervals and runs of an entry; the end of every log held out."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.experiment.experiment import Experiment, LogEntry, read_experiment
from dynid.motion.logs import read_log
from dynid.pipeline import run_experiment
from dynid.validation.folds import split_hold_out
from tests.arms import arm, recording, write_csv


@pytest.fixture
def file(tmp_path):
    return write_csv(tmp_path / "run.csv", recording(8.0, 100.0))


def test_a_window_without_an_interval_leaves_two_runs(file) -> None:
    whole = read_log(LogEntry(file), arm())
    part = read_log(LogEntry(file, start=1.0, stop=7.0, exclude=((3.0, 4.0),)), arm())
    times = [(part.t[start], part.t[stop - 1]) for start, stop in part.segments]
    # Samples on the borders of the window are used, those of the excluded interval are not.
    np.testing.assert_allclose(times, [(1.0, 2.99), (4.01, 7.0)], atol=1e-9)
    assert not part.valid[(whole.t >= 3.0) & (whole.t <= 4.0)].any()
    assert part.entry == {"from": 1.0, "to": 7.0, "exclude": [[3.0, 4.0]]}


def test_runs_are_numbered_from_one(tmp_path) -> None:
    columns = recording(8.0, 100.0)
    file = write_csv(tmp_path / "runs.csv", {**columns, "segment": np.repeat([1, 2, 3, 4], 200)})
    whole = read_log(LogEntry(file), arm())
    part = read_log(LogEntry(file, runs=(4, 2)), arm())
    assert part.segments == (whole.segments[1], whole.segments[3])
    with pytest.raises(InputError, match="run 5 does not exist; the log has 4"):
        read_log(LogEntry(file, runs=(5,)), arm())


def test_empty_windows_are_refused(file) -> None:
    with pytest.raises(InputError, match=r"no sample is left: the log lasts from 0 to 7\.99 s"):
        read_log(LogEntry(file, start=9.0), arm())
    with pytest.raises(InputError, match="from 3 to 2 s is empty"):
        LogEntry(file, start=3.0, stop=2.0)
    with pytest.raises(InputError, match=r"share of 1\.2"):
        Experiment(robot="scara", hold_out=1.2)


def test_the_file_gives_windows(tmp_path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "robot: scara\nlogs: [{file: run.csv, from: 1, to: 9, exclude: [[2, 3]], runs: [1, 3]}]\n"
        "hold_out: 0.3\n"
    )
    experiment = read_experiment(file)
    (entry,) = experiment.logs
    assert (entry.start, entry.stop, entry.exclude, entry.runs) == (1.0, 9.0, ((2.0, 3.0),), (1, 3))
    assert experiment.hold_out == 0.3


def test_the_end_of_every_log_is_held_out_and_independent(file) -> None:
    experiment = Experiment(robot=arm(), logs=(file,), hold_out=0.3)
    log = read_log(LogEntry(file), arm())
    (fitted,), (unseen,) = split_hold_out([log], [], 0.3)
    assert max(stop for _, stop in fitted.segments) <= min(start for start, _ in unseen.segments)
    assert (unseen.t[unseen.segments[0][0]], unseen.name) == (pytest.approx(5.6, abs=0.011), "run, last 30 %")
    estimate = run_experiment(experiment)
    (checked,) = estimate.validation
    assert checked.independent
    assert estimate.provenance["options"]["hold_out"] == 0.3
