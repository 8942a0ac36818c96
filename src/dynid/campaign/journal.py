"""The journal of a campaign: one line per finished run, so that an interrupted campaign can go on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynid.campaign.file import Run
from dynid.campaign.stores import remote_stamp
from dynid.campaign.work import Outcome
from dynid.motion.reading import is_address
from dynid.report.output import replace_file

FILE = "journal.jsonl"


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
    if is_address(place):
        return remote_stamp(place)
    path = Path(place)
    try:
        if path.is_dir():
            return sorted(
                (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in path.iterdir()
            )
        return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None
    except OSError as error:  # the run is set aside when its log is read
        return f"cannot be read: {error.strerror}"


def read_journal(folder: Path) -> tuple[dict[str, tuple[str, Outcome]], int]:
    """Name of a run -> digest of its inputs, its outcome; and the number of damaged lines, now removed."""
    journal: dict[str, tuple[str, Outcome]] = {}
    file = folder / FILE
    if not file.is_file():
        return journal, 0
    lines = file.read_bytes().splitlines()
    intact: list[bytes] = []
    for line in lines:
        try:
            entry = json.loads(line)
            seal = entry.pop("seal")
            outcome = _outcome(entry["outcome"])
            is_intact = seal == _sha256(entry)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if is_intact:
            journal[outcome.name] = (str(entry["digest"]), outcome)
            intact.append(line)
    if len(intact) < len(lines):
        replace_file(file, b"".join(line + b"\n" for line in intact))
    return journal, len(lines) - len(intact)


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    parameters = tuple((str(n), str(u), float(v), s) for n, u, v, s in entry["parameters"])
    return Outcome(**{**entry, "parameters": parameters, "lengths": tuple(entry.get("lengths", ()))})


def write_entry(folder: Path, run_digest: str, outcome: Outcome) -> None:
    """Add a finished run; it is on the disk when this returns."""
    entry = {"digest": run_digest, "outcome": asdict(outcome)}
    line = json.dumps({**entry, "seal": _sha256(entry)}, allow_nan=False)
    with (folder / FILE).open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())
