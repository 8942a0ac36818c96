"""Starts in processes: one that is killed is tried again, and what is done stays done (fault 52)."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from dynid.common.errors import NoResultError
from dynid.excitation.optimal.multistart import SCHEMA, Journal, run_starts
from dynid.excitation.optimal.starts import Start


@dataclass
class Mortal:
    """Its run of number 1 kills its process as often as `deaths` says."""

    folder: str
    deaths: int

    def run(self, number: int) -> int:
        before = len(list(Path(self.folder).iterdir()))
        if number == 1 and before < self.deaths:
            (Path(self.folder) / str(before)).touch()
            os._exit(9)
        return number


class Kept(Journal):
    """A journal without a file."""

    def __init__(self, *done: int) -> None:
        self.done = {number: number for number in done}

    def add(self, start: int) -> None:
        self.done[start] = start


def test_52_a_killed_process_is_replaced(tmp_path):
    assert run_starts(Mortal, (str(tmp_path), 1), 3, Kept(), jobs=2) == (0, 1, 2)


def test_52_a_number_that_kills_every_process_is_named(tmp_path):
    journal = Kept(0)
    with pytest.raises(NoResultError, match="killed 3 times") as failed:
        run_starts(Mortal, (str(tmp_path), 9), 3, journal, jobs=2)
    assert "1" in str(failed.value)
    assert journal.done[0] == 0


def test_49_damaged_lines_of_a_journal_are_done_again(tmp_path):
    file = tmp_path / "a.journal.jsonl"
    asked = {"robot": "arm"}
    header = json.dumps({"schema": SCHEMA, **asked})
    good = json.dumps(asdict(Start(2, (0.1,), 1.0, 0.5, 0.2, 3, -0.1)))
    file.write_text("\n".join([header, "5", "[1]", '{"number": 1}', '{"numb', good, "null"]) + "\n")
    assert sorted(Journal(file, asked).done) == [2]
