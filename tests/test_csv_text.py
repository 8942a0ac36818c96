"""Names with commas and quotes survive every CSV that dynid writes and reads."""

import numpy as np
import pytest

from dynid.cases.free_motion.excitation_files import _csv
from dynid.common.csv_text import csv_line
from dynid.excitation.export import SampledTrajectory, run_csv, trajectory_csv
from dynid.motion.csv_dialect import split
from dynid.motion.csv_file import read_csv
from dynid.motion.logs import read_log
from dynid.simulation.files import write_columns
from tests.test_column_names import robot

NAMES = ("joint, one", 'the "second" one', "a; b")
T = np.arange(200) / 100.0
Q = np.column_stack([np.sin(T), np.cos(T), 0.5 * T**2])


def test_a_row_is_split_into_what_was_written():
    for cells in (NAMES, ("t", *NAMES), ('"', 'a""b', ",")):
        assert tuple(split(csv_line(cells), ",")) == tuple(cells)


def test_a_cell_with_a_line_feed_is_quoted():
    assert csv_line(["a", "b\nc"]) == 'a,"b\nc"'


@pytest.mark.parametrize("kind", ["trajectory", "run"])
def test_a_motion_with_such_names_is_read_back(kind, tmp_path):
    if kind == "trajectory":
        text = trajectory_csv(SampledTrajectory(NAMES, T, Q, np.cos(Q)))
    else:
        text = run_csv(SampledTrajectory(NAMES, T, Q, np.cos(Q), np.sin(Q), ("motion",) * len(T)))
    file = tmp_path / "motion.csv"
    file.write_text(text, encoding="utf-8")
    log = read_log(file, robot(NAMES), need_effort=False)
    np.testing.assert_array_equal(log.q, Q)
    assert log.mapping["q_1"] == "q_joint, one"


def test_tables_with_such_names_are_read_back(tmp_path):
    columns = dict(zip(("t", *NAMES), (T, *Q.T), strict=True))
    write_columns(columns, tmp_path / "log.csv")
    (tmp_path / "free.csv").write_text(_csv(columns, "%.17g"), encoding="utf-8")
    for file in ("log.csv", "free.csv"):
        table = read_csv(tmp_path / file)
        assert tuple(table.columns) == ("t", *NAMES)
        np.testing.assert_array_equal(table.columns[NAMES[0]], Q[:, 0])
