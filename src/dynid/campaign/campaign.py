"""Run a campaign: every run that is not done yet, then the summary of all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dynid.campaign.factors import FACTORS
from dynid.campaign.file import Run, read_campaign, remote_stamp, runs_of
from dynid.campaign.fleet import Fleet, Sample, fleet_of
from dynid.campaign.joined import JOINED, RUNS, Joined, joined_robots
from dynid.campaign.work import Made, Outcome, make
from dynid.common.engine import TRIES, Died, completed
from dynid.common.errors import InputError
from dynid.report.lock import locked
from dynid.report.output import real_path, replace_folder

FILE = "journal.jsonl"
_WRITTEN = ("summary.json", "parameters.csv", "parameters.parquet", "campaign.html")


@dataclass(frozen=True)
class Campaign:
    """A finished campaign.

    Attributes:
        folder: Where it is written.
        runs, outcomes: In the order of the file.
        fleet: What the results say together.
        joined: Every robot with all its logs in one estimate, if requested.
    """

    name: str
    folder: Path
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    fleet: Fleet
    joined: tuple[Joined, ...] = ()

    @property
    def set_aside(self) -> tuple[Outcome, ...]:
        """Runs without a result."""
        return tuple(outcome for outcome in self.outcomes if outcome.reason)


def run_campaign(
    file: str | Path,
    out: str | Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    logs_in: str | Path | None = None,
    progress: Callable[[str, float], None] | None = None,
    finished: Callable[[Outcome], None] | None = None,
) -> Campaign:
    """Identify all runs of a campaign file and write one folder each, and the summary.

    Runs that the journal of `out` has, from the same inputs, are not repeated.

    Args:
        file: `dynid.campaign/1`.
        out: Folder of the results.
        jobs: Processes on this machine; default one per core.
        cluster: Address of a Dask scheduler instead.
        logs_in: Where the patterns of logs start; default the folder of the file.
        progress: Called with a text and the fraction of runs done.
        finished: Called with the outcome of each run when it is done.
    """
    campaign = read_campaign(file)
    runs = runs_of(campaign, file, logs_in)
    folder = real_path(out)
    _claim(folder)
    with locked(folder / ".lock"):
        known = _journal(folder, runs, campaign.joined)
        todo = [run for run in runs if run.name not in known]
        work = partial(_work, str(folder / RUNS), campaign.joined)
        new = _computed(work, todo, folder, jobs, cluster, progress, finished)
        outcomes = tuple((known | new)[run.name] for run in runs)
        joined = joined_robots(folder, runs, outcomes, set(new), jobs) if campaign.joined else ()
        fleet = fleet_of(_samples(runs, outcomes))
        done = Campaign(campaign.name, folder, runs, outcomes, fleet, joined)
        _write(done)
    return done


def _claim(folder: Path) -> None:
    """Make the folder; one with other files is refused."""
    expected = {*_WRITTEN, FILE, RUNS, FACTORS, JOINED, ".lock"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in expected)
        (folder / RUNS).mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", file=folder, remedy="choose another folder with --out"
        ) from error
    if foreign:
        raise InputError(
            f"folder contains other files: {', '.join(foreign[:3])}",
            file=folder,
            remedy="choose another folder with --out",
        )


def _journal(folder: Path, runs: Sequence[Run], joined: bool) -> dict[str, Outcome]:
    """Finished runs whose inputs have not changed, and whose files are there."""
    kept = {}
    journal = read_journal(folder)
    for run in runs:
        if run.name not in journal:
            continue
        recorded, outcome = journal[run.name]
        files = [folder / RUNS / run.name / "result.json"]
        files += [folder / FACTORS / f"{run.name}.npz"] if joined and not outcome.apart else []
        if recorded == digest(run) and (outcome.reason or all(file.is_file() for file in files)):
            kept[run.name] = outcome
    return kept


def _computed(
    work: Callable[[Run], Made],
    runs: Sequence[Run],
    folder: Path,
    jobs: int | None,
    cluster: str | None,
    progress: Callable[[str, float], None] | None,
    finished: Callable[[Outcome], None] | None,
) -> dict[str, Outcome]:
    """Outcomes by name; each is written as soon as it is there."""
    began = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    digests = {run.name: digest(run) for run in runs}

    def left() -> list[Run]:
        return [run for run in runs if run.name not in outcomes]

    for run, result in completed(work, left, jobs, cluster):
        made = result if isinstance(result, Made) else Made(Outcome(run.name, reason=_failure(result)))
        if made.files:
            replace_folder(folder / RUNS / run.name, made.files)
        if made.factors:
            (folder / FACTORS).mkdir(exist_ok=True)
            _replace(folder / FACTORS / f"{run.name}.npz", made.factors)
        write_entry(folder, digests[run.name], made.outcome)
        outcomes[run.name] = made.outcome
        if finished is not None:
            finished(made.outcome)
        if progress is not None:
            share = len(outcomes) / len(runs)
            seconds = (time.monotonic() - began) * (1.0 / share - 1.0)
            progress(f"{len(outcomes)} of {len(runs)} runs, about {_duration(seconds)} left", share)
    return outcomes


def _work(folder: str, joined: bool, run: Run) -> Made:
    return make(run, f"{folder}/{run.name}", joined)


def _failure(error: BaseException) -> str:
    if isinstance(error, Died):
        return f"its process died {TRIES} times: probably too little memory"
    return f"internal error, {type(error).__name__}: {error}"


def _duration(seconds: float) -> str:
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _samples(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> list[Sample]:
    """Parameters of all usable results, with the robot and the date that they belong to."""
    return [
        Sample(run.unit, run.date, run.variant, name, unit, value, sigma)
        for run, outcome in zip(runs, outcomes, strict=True)
        if outcome.verdict in ("good", "care")
        for name, unit, value, sigma in outcome.parameters
        if sigma is not None and sigma > 0.0
    ]


def summary_document(done: Campaign) -> dict[str, Any]:
    """The content of `summary.json`."""
    results: list[Mapping[str, Any]] = []
    aside: list[Mapping[str, Any]] = []
    for run, outcome in zip(done.runs, done.outcomes, strict=True):
        if outcome.reason:
            aside.append(
                {"run": run.name, "file": run.logs[0], "logs": list(run.logs), "reason": outcome.reason}
            )
            continue
        results.append(
            {
                "run": run.name,
                "robot": run.robot,
                "unit": run.unit,
                "date": run.date,
                "variant": run.variant,
                "logs": list(run.logs),
                "folder": f"{RUNS}/{run.name}",
                "verdict": outcome.verdict,
                "headline": outcome.headline,
            }
        )
    return {
        "schema": "dynid.campaign-summary/1",
        "name": done.name,
        "results": results,
        "set_aside": aside,
        "joined": [robot_result.document() for robot_result in done.joined],
        **done.fleet.document(),
    }


def _write(done: Campaign) -> None:
    from dynid.campaign.page import campaign_html
    from dynid.report.csv_file import table_csv
    from dynid.report.json_file import json_text

    rows = [
        (run.name, run.unit, run.date, run.variant, outcome.verdict, name, unit, value, sigma)
        for run, outcome in zip(done.runs, done.outcomes, strict=True)
        for name, unit, value, sigma in outcome.parameters
    ]
    head = ("run", "robot", "date", "variant", "verdict", "parameter", "unit", "value", "sigma")
    texts = {
        "summary.json": json_text(summary_document(done)),
        "parameters.csv": table_csv(head, rows),
        "campaign.html": campaign_html(done),
    }
    for name, text in texts.items():
        _replace(done.folder / name, text.encode())
    with contextlib.suppress(ImportError):  # the extra `parquet`
        _replace(done.folder / "parameters.parquet", _parquet(head, rows))


def _parquet(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A table as a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    kinds = {"value": pyarrow.float64(), "sigma": pyarrow.float64()}
    arrays = [
        pyarrow.array([row[i] for row in rows], kinds.get(name, pyarrow.string()))
        for i, name in enumerate(head)
    ]
    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(head, arrays, strict=True))), buffer)
    return bytes(buffer.getvalue())


def _replace(file: Path, content: bytes) -> None:
    """Write a file: the old one stays until the new one is complete."""
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(content)
    new.replace(file)


# The journal of a campaign: one line per finished run, so that an interrupted campaign can go on.


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
    if "://" in place:
        return remote_stamp(place)
    path = Path(place)
    if path.is_dir():
        return sorted(
            (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in path.iterdir()
        )
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None


def read_journal(folder: Path) -> dict[str, tuple[str, Outcome]]:
    """Name of a run -> digest of its inputs, and its outcome; a last line that was cut off is ignored."""
    journal: dict[str, tuple[str, Outcome]] = {}
    file = folder / FILE
    if not file.is_file():
        return journal
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            outcome = _outcome(entry["outcome"])
            journal[outcome.name] = (str(entry["digest"]), outcome)
        except (ValueError, KeyError, TypeError):
            continue
    return journal


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
