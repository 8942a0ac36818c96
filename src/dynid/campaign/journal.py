"""The journal of a campaign: one line per finished run, so that an interrupted campaign can go on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from dynid.campaign.file import Run
from dynid.campaign.stores import StoreError, remote_stamp
from dynid.campaign.work import Outcome
from dynid.motion.reading import is_address
from dynid.report.output import replace_file

FILE = "journal.jsonl"


class Entry(NamedTuple):
    """A finished run.

    Attributes:
        digest: Of its inputs.
        outcome: What became of it.
        unit, date, variant, logs: As of the run.
        kind: `Run.kind`; empty: written by an older version.
    """

    digest: str
    outcome: Outcome
    unit: str = ""
    date: str = ""
    variant: str = ""
    logs: tuple[str, ...] = ()
    kind: str = ""


def digest(run: Run) -> str:
    """Of what a run is made from: robot, logs and other files (by size and time of change), settings."""
    content = {
        "robot": run.robot,
        "files": [[file, _stamp(file)] for file in (*run.files, *run.logs)],
        "settings": run.settings,
        "unit": [run.unit, run.date],
    }
    return _sha256(content)


def _sha256(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, default=str, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(place: str) -> Any:
    path = Path(place)
    try:
        if is_address(place):
            return remote_stamp(place)
        if path.is_dir():
            return sorted(
                (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in path.iterdir()
            )
        return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None
    except (OSError, StoreError) as error:  # the run is set aside when its log is read
        return f"cannot be read: {error}"


def read_journal(folder: Path) -> tuple[dict[str, Entry], int]:
    """Name of a run -> its newest entry; and the number of damaged lines, now removed."""
    journal: dict[str, Entry] = {}
    file, damaged, line = folder / FILE, 0, b"\n"
    for line in _lines(file):
        entry = _entry(line)
        if entry is None:
            damaged += 1
        else:
            journal[entry.outcome.name] = entry
    if damaged or not line.endswith(b"\n"):  # the next line must begin a line
        replace_file(file, b"".join(line.rstrip() + b"\n" for line in _lines(file) if _entry(line)))
    return journal, damaged


def logs_of_journal(folder: Path) -> list[str]:
    """Logs of all finished runs; the journal is not changed."""
    entries = map(_entry, _lines(folder / FILE))
    return [log for entry in entries if entry is not None for log in entry.logs]


def _lines(file: Path) -> Iterator[bytes]:
    """One after the other: all of them would be a large part of what a client needs."""
    if file.is_file():
        with file.open("rb") as stream:
            yield from stream


def _entry(line: bytes) -> Entry | None:
    """A line of the journal; None if it is damaged."""
    try:
        entry = json.loads(line)
        seal = entry.pop("seal")
        outcome = _outcome(entry["outcome"])
        run = {**entry.get("run", {}), "logs": tuple(entry.get("run", {}).get("logs", ()))}
        finished = Entry(str(entry["digest"]), outcome, **run)
        return finished if seal == _sha256(entry) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    # Names and units are the same in all runs: held once, they need no memory for each.
    parameters = tuple((intern(n), intern(u), float(v), s) for n, u, v, s in entry["parameters"])
    return Outcome(**{**entry, "parameters": parameters, "lengths": tuple(entry.get("lengths", ()))})


def write_entry(folder: Path, finished: Entry) -> None:
    """Add a finished run; it is on the disk when this returns."""
    run = finished._asdict()
    entry = {"digest": run.pop("digest"), "outcome": asdict(run.pop("outcome")), "run": run}
    line = json.dumps({**entry, "seal": _sha256(entry)}, allow_nan=False)
    with (folder / FILE).open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())
