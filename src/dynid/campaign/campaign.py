"""Run a campaign: every run that is not done yet, then the summary of all."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dynid.campaign.factors import FACTORS
from dynid.campaign.file import CampaignFile, Run, kinds_of, read_campaign, runs_of, with_robots_apart
from dynid.campaign.fleet import Fleet, fleet_of
from dynid.campaign.joined import JOINED, RUNS, Joined, joined_robots
from dynid.campaign.journal import FILE, Entry, digest, logs_of_journal, read_journal, write_entry
from dynid.campaign.patterns import asks_for
from dynid.campaign.shared_settings import FILE as SETTINGS
from dynid.campaign.shared_settings import Shared, decided, shared_settings
from dynid.campaign.trend import Sample
from dynid.campaign.work import Made, Outcome, failed, make
from dynid.common.engine import Progress, completed
from dynid.common.errors import InputError
from dynid.report.lock import locked
from dynid.report.output import clear_leftovers, real_path, replace_file, write_files, written_as

_WRITTEN = ("summary.json", "parameters.csv", "parameters.parquet", "campaign.html")


@dataclass(frozen=True)
class Campaign:
    """A finished campaign.

    Attributes:
        folder: Where it is written.
        runs, outcomes: In the order of the file.
        fleet: What the results say together.
        joined: Every robot with all its logs in one estimate, if requested.
        shared: Settings that all runs of a kind of robot share.
        notes: What a user should know besides.
        inputs: The file and digests of all runs: as long as they are the same, so is the campaign.
    """

    name: str
    folder: Path
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    fleet: Fleet
    joined: tuple[Joined, ...] = ()
    shared: tuple[Shared, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

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
    progress: Progress | None = None,
    finished: Callable[[Outcome], None] | None = None,
    before: Campaign | None = None,
) -> Campaign:
    """Identify all runs of a campaign file and write one folder each, and the summary.

    Runs that the journal of `out` has, from the same inputs, are not repeated. Runs whose logs are not found
    any more stay part of the fleet, see `_kept`.

    Args:
        file: `dynid.campaign/1`.
        out: Folder of the results.
        jobs: Processes on this machine; default one per core.
        cluster: Address of a Dask scheduler instead.
        logs_in: Where the patterns of logs start; default the folder of the file.
        progress: Called with a text and the fraction done: of the logs that are asked first, of the runs, of
            the robots that are joined.
        finished: Called with the outcome of each run when it is done.
        before: What the last look of the same process gave. It is given back if no log is new or changed.
            Runs without a result are then not repeated; otherwise they are if the reason may lie outside
            their files.
    """
    campaign = read_campaign(file)
    kinds = kinds_of(campaign, file)
    folder = real_path(out)
    runs = runs_of(campaign, file, logs_in, kinds, partial(logs_of_journal, folder))
    inputs = (repr(campaign), *(digest(run) for run in (*kinds.values(), *runs)))
    if before is not None and before.inputs == inputs:
        return before
    _claim(folder)
    with locked(folder / ".lock"), _writing(folder):
        for place in (folder, folder / RUNS, folder / FACTORS, folder / JOINED):
            if place.is_dir():
                clear_leftovers(place)
        runs, shared = shared_settings(runs, folder, jobs, cluster, progress)
        known, damaged = _known(folder, runs, before is None)
        todo = [run for run in runs if run.name not in known and not run.wrong]
        work = partial(_work, str(folder / RUNS))
        _computed(work, todo, folder, jobs, cluster, progress, finished)
        journal, _ = read_journal(folder)
        kept, dropped = _kept(folder, journal, runs, campaign, kinds)
        aside = {
            run.name: _with_places(Outcome(run.name, reason=run.wrong), run, folder)
            for run in runs
            if run.wrong
        }
        of_runs = (aside.get(run.name) or journal[run.name].outcome for run in runs)
        outcomes = (*of_runs, *(outcome for _, outcome in kept))
        runs = with_robots_apart((*runs, *(run for run, _ in kept)), campaign, kinds)
        joined = joined_robots(folder, runs, outcomes, jobs, cluster, progress) if campaign.joined else ()
        fleet = fleet_of(_samples(runs, outcomes))
        notes = _notes(damaged, outcomes, len(kept), dropped)
        done = Campaign(campaign.name, folder, runs, outcomes, fleet, joined, shared, notes, inputs)
        _write(done)
    return done


def _claim(folder: Path) -> None:
    """Make the folder; one with other files is refused."""
    expected = {*_WRITTEN, FILE, SETTINGS, RUNS, FACTORS, JOINED, ".lock"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir()}
        foreign = sorted(name for name in names if written_as(name) not in expected)
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


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A disk that is full, or fails: what is finished is kept."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            file=error.filename or folder,
            remedy="free space or restore access, and run the same command again: finished runs are kept",
        ) from error


def _notes(damaged: int, outcomes: Sequence[Outcome], kept: int, dropped: int) -> tuple[str, ...]:
    """What a user should know of the journal and of versions."""
    versions = Counter(outcome.version for outcome in outcomes if outcome.version)
    several = ", ".join(f"{version} ({count} runs)" for version, count in sorted(versions.items()))
    notes: tuple[tuple[object, str], ...] = (
        (
            damaged,
            f"lines of {FILE} that are damaged or of an older version: {damaged}; their runs were repeated",
        ),
        (
            len(versions) > 1,
            f"results are of several versions of dynid: {several}; to repeat all, delete {FILE}",
        ),
        (
            dropped,
            f"earlier results that are left out: {dropped}; their robot, settings or pattern has changed",
        ),
        (kept, f"results kept of runs whose logs were not found now: {kept}; to drop one, delete its folder"),
    )
    return tuple(note for said, note in notes if said)


def _known(folder: Path, runs: Sequence[Run], again: bool) -> tuple[set[str], int]:
    """Finished runs whose inputs have not changed, and whose files are there; count of damaged lines."""
    kept: set[str] = set()
    journal, damaged = read_journal(folder)
    for run in runs:
        if run.name not in journal:
            continue
        recorded, outcome, *_ = journal[run.name]
        if outcome.elsewhere and again:
            continue
        files = [folder / RUNS / run.name / "result.json"]
        if run.together and not outcome.apart:
            files.append(folder / FACTORS / f"{run.name}.npz")
            if not (outcome.factors or outcome.reason):  # of an older version
                continue
        if recorded == digest(run) and (outcome.reason or all(file.is_file() for file in files)):
            kept.add(run.name)
    return kept, damaged


def _kept(
    folder: Path,
    journal: Mapping[str, Entry],
    runs: Sequence[Run],
    campaign: CampaignFile,
    kinds: Mapping[tuple[int, str], Run],
) -> tuple[list[tuple[Run, Outcome]], int]:
    """Earlier results whose logs were not found now, archived or elsewhere; and how many are left out.

    The campaign file decides, and not whether the logs still exist, which a store does not show of archives:
    a result stays if the file has its robot and settings, with the content that they had, and patterns that
    match its logs.
    """
    asked: dict[str, tuple[Run, list[str]]] = {}
    for (number, _), given, final in zip(kinds, kinds.values(), decided(kinds.values(), folder), strict=True):
        for kind in {given.kind, final.kind}:  # a log that was alone chose its own terms
            asked.setdefault(kind, (final, []))[1].extend(campaign.runs[number].logs)
    names = {run.name for run in runs}
    kept: list[tuple[Run, Outcome]] = []
    dropped = 0
    for name, entry in journal.items():
        has_result = entry.outcome.verdict and (folder / RUNS / name / "result.json").is_file()
        if name in names or not has_result:
            continue
        run, patterns = asked.get(entry.kind, (None, []))
        if run is None or not all(any(asks_for(one, log) for one in patterns) for log in entry.logs):
            dropped += 1
            continue
        outcome = entry.outcome
        if not (folder / FACTORS / f"{name}.npz").is_file():
            outcome = replace(outcome, apart=outcome.apart or "its log and its factors are gone")
        run = replace(
            run, name=name, unit=entry.unit, date=entry.date, variant=entry.variant, logs=entry.logs
        )
        kept.append((run, outcome))
    return kept, dropped


def _computed(
    work: Callable[[Run], Made],
    runs: Sequence[Run],
    folder: Path,
    jobs: int | None,
    cluster: str | None,
    progress: Progress | None,
    finished: Callable[[Outcome], None] | None,
) -> None:
    """Each outcome is written as soon as it is there, and not kept in memory."""
    done: set[str] = set()
    digests = {run.name: digest(run) for run in runs}

    def left() -> list[Run]:
        return [run for run in runs if run.name not in done]

    if progress is not None and runs:
        progress(f"0 of {len(runs)} runs", 0.0)
    for run, result in completed(work, left, jobs, cluster):
        made = result if isinstance(result, Made) else Made(failed(run, result))
        made = replace(made, outcome=_with_places(made.outcome, run, folder))
        if made.files:
            write_files(folder / RUNS / run.name, made.files)
        if made.factors:
            (folder / FACTORS).mkdir(exist_ok=True)
            replace_file(folder / FACTORS / f"{run.name}.npz", made.factors)
        of_run = (run.unit, run.date, run.variant, run.logs, run.kind)
        write_entry(folder, Entry(digests[run.name], made.outcome, *of_run))
        done.add(run.name)
        if finished is not None:
            finished(made.outcome)
        if progress is not None:
            progress(f"{len(done)} of {len(runs)} runs", len(done) / len(runs))


def _with_places(outcome: Outcome, run: Run, folder: Path) -> Outcome:
    """Logs in the reason of a failure as seen from the folder of the campaign, which others may get."""
    reason = outcome.reason
    for log in run.logs:
        reason = reason.replace(log, _place(log, folder))
    return replace(outcome, reason=reason)


def _place(path: str, folder: Path) -> str:
    """A path as seen from the folder of the campaign; addresses and names of robots as they are."""
    from dynid.report.json_file import relative_place

    return relative_place(path, folder) if os.path.isabs(path) else path


def _work(folder: str, run: Run) -> Made:
    return make(run, f"{folder}/{run.name}")


def _samples(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> list[Sample]:
    """Parameters of all usable results, with the robot and the date that they belong to."""
    kinds = _kinds(runs, outcomes)
    return [
        Sample(run.unit, run.date, run.variant, name, unit, value, sigma, kinds.get(run.robot, ""))
        for run, outcome in zip(runs, outcomes, strict=True)
        if outcome.verdict in ("good", "care")
        for name, unit, value, sigma in outcome.parameters
        if sigma is not None and sigma > 0.0
    ]


def _kinds(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Description -> name of its kind: those whose robots have the same parameters; empty if all have."""
    most: dict[str, tuple[str, ...]] = {}
    for run, outcome in zip(runs, outcomes, strict=True):
        names = tuple(name for name, *_ in outcome.parameters)
        if len(names) > len(most.get(run.robot, ())):
            most[run.robot] = names
    names_of: dict[tuple[str, ...], str] = {}
    for robot, names in most.items():
        stem = Path(robot).stem
        names_of.setdefault(names, robot if stem in names_of.values() else stem)
    return {robot: names_of[names] for robot, names in most.items()} if len(names_of) > 1 else {}


def summary_document(done: Campaign) -> dict[str, Any]:
    """The content of `summary.json`."""
    results: list[Mapping[str, Any]] = []
    aside: list[Mapping[str, Any]] = []
    for run, outcome in zip(done.runs, done.outcomes, strict=True):
        logs = [_place(log, done.folder) for log in run.logs]
        if outcome.reason:
            aside.append({"run": run.name, "file": logs[0], "logs": logs, "reason": outcome.reason})
            continue
        results.append(
            {
                "run": run.name,
                "robot": _place(run.robot, done.folder),
                "unit": run.unit,
                "date": run.date,
                "variant": run.variant,
                "logs": logs,
                "folder": f"{RUNS}/{run.name}",
                "verdict": outcome.verdict,
                "headline": outcome.headline,
            }
        )
    return {
        "schema": "dynid.campaign-summary/1",
        "name": done.name,
        "notes": list(done.notes),
        "results": results,
        "set_aside": aside,
        "shared": [entry._asdict() for entry in done.shared],
        "joined": [robot_result.document() for robot_result in done.joined],
        **done.fleet.document(),
    }


def _write(done: Campaign) -> None:
    from dynid.campaign.page import campaign_html
    from dynid.report.csv_file import table_csv
    from dynid.report.json_file import json_text

    head = ("run", "robot", "date", "variant", "verdict", "parameter", "unit", "value", "sigma")
    texts: dict[str, Callable[[], str]] = {
        "summary.json": lambda: json_text(summary_document(done)),
        "parameters.csv": lambda: table_csv(head, _rows(done)),
        "campaign.html": lambda: campaign_html(done),
    }
    for name, text in texts.items():  # one after the other: a large campaign has tens of megabytes each
        replace_file(done.folder / name, text().encode())
    with contextlib.suppress(ImportError):  # the extra `parquet`
        replace_file(done.folder / "parameters.parquet", _parquet(head, done))


def _rows(done: Campaign) -> Iterator[tuple[Any, ...]]:
    """Of the table of parameters."""
    for run, outcome in zip(done.runs, done.outcomes, strict=True):
        for name, unit, value, sigma in outcome.parameters:
            yield run.name, run.unit, run.date, run.variant, outcome.verdict, name, unit, value, sigma


def _parquet(head: Sequence[str], done: Campaign) -> bytes:
    """The table of parameters as a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    kinds = {"value": pyarrow.float64(), "sigma": pyarrow.float64()}
    arrays = [
        pyarrow.array((row[i] for row in _rows(done)), kinds.get(name, pyarrow.string()))
        for i, name in enumerate(head)
    ]
    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(head, arrays, strict=True))), buffer)
    return bytes(buffer.getvalue())
