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
from dynid.campaign.work import Outcome

FILE = "journal.jsonl"


def digest(run: Run) -> str:
    """Of what a run is made from: robot, logs (by size and time of change) and settings."""
    content = {
        "robot": [run.robot, _stamp(run.robot)],
        "logs": [[log, _stamp(log)] for log in run.logs],
        "settings": run.settings,
        "unit": [run.unit, run.date],
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(place: str) -> Any:
    path = Path(place)
    if path.is_dir():
        return sorted((one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in path.iterdir())
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None


def read_journal(folder: Path) -> dict[str, tuple[str, Outcome]]:
    """Name of a run -> digest of its inputs, and its outcome; a last line that was cut off is ignored."""
    found: dict[str, tuple[str, Outcome]] = {}
    file = folder / FILE
    if not file.is_file():
        return found
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            outcome = _outcome(entry["outcome"])
            found[outcome.name] = (str(entry["digest"]), outcome)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    parameters = tuple((str(n), str(u), float(v), s) for n, u, v, s in entry["parameters"])
    return Outcome(**{**entry, "parameters": parameters})


def write_entry(folder: Path, run_digest: str, outcome: Outcome) -> None:
    """Add a finished run; it is on the disk when this returns."""
    line = json.dumps({"digest": run_digest, "outcome": asdict(outcome)}, allow_nan=False)
    with (folder / FILE).open("a", encoding="utf-8") as stream:
        if stream.tell() and not _ends_a_line(folder / FILE):
            stream.write("\n")
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
