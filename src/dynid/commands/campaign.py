"""`dynid campaign`: many identifications, and what their results say together."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid.commands.shared import NUMBER, Whole, shown
from dynid.common.errors import InterruptedRun
from dynid.common.interrupts import interruptible
from dynid.report.terminal import printable
from dynid.tasks import default_out

if TYPE_CHECKING:
    from dynid.campaign.campaign import Campaign
    from dynid.campaign.fleet import Change
    from dynid.campaign.work import Outcome
    from dynid.report.terminal import ProgressBar

_NO_RESULT = 3
_MOST_SHOWN = 10


@click.command(short_help="Identify many robots and logs.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="[default: results/<name>].")
@click.option("--jobs", type=Whole(min=1), help="Processes on this machine [default: one per core].")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler instead, e.g. tcp://host:8786.")
@click.option(
    "--watch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Look for logs in FOLDER, and go on with those that arrive until Ctrl-C.",
)
@click.option("--every", type=NUMBER, default=10.0, show_default=True, help="Seconds between two looks.")
@click.option("--looks", type=Whole(min=1), help="Stop after so many looks.")
def campaign(
    file: Path,
    out: Path | None,
    jobs: int | None,
    cluster: str | None,
    watch: Path | None,
    every: float,
    looks: int | None,
) -> None:
    """Identify all runs of a campaign FILE: one result folder each, summary.json and campaign.html.

    Finished runs are not repeated: run the same command again after an interruption, or when logs arrived.
    """
    if jobs is not None and cluster is not None:
        raise click.UsageError("--jobs is for this machine, --cluster for a Dask scheduler: give one of them")
    if every <= 0.0:
        raise click.UsageError("--every takes a number above 0")
    from dynid.campaign.stores import StoreError

    folder = out or default_out(file.stem)
    count, done = 0, None
    try:
        with interruptible():
            while True:
                try:
                    done = _look(file, folder, jobs, cluster, watch, done)
                except StoreError as error:
                    if watch is None:
                        raise
                    click.echo(f"{error}\n  looking again in {every:g} s", err=True)
                count += 1
                if watch is None or (looks is not None and count >= looks):
                    break
                time.sleep(every)
    except KeyboardInterrupt:
        raise InterruptedRun(_interrupted(folder)) from None
    if done is None or all(outcome.reason for outcome in done.outcomes):
        raise SystemExit(_NO_RESULT)


def _interrupted(folder: Path) -> str:
    """What an interrupted campaign keeps: settings are chosen before the first run, and are not kept."""
    from dynid.campaign.journal import read_journal

    count = len(read_journal(folder)[0]) if folder.is_dir() else 0
    if not count:
        return "interrupted before the first run was finished: nothing is kept; run the same command again"
    kept = "1 finished run is" if count == 1 else f"{count} finished runs are"
    return f"interrupted: {kept} kept in {shown(folder)}; run the same command again to continue"


class _Lines:
    """Stages and finished runs as lines on standard error where that is no terminal, which has the bar."""

    def __init__(self, bar: ProgressBar) -> None:
        self._bar, self._stage = bar, ""
        self._prints = not sys.stderr.isatty()

    def stage(self, text: str, fraction: float) -> None:
        """Each stage once: its words without counts."""
        self._bar(text, fraction)
        words = re.sub(r"\d+", "", text)
        if self._prints and words != self._stage:
            self._stage = words
            click.echo(printable(text), err=True)

    def run(self, outcome: Outcome) -> None:
        """A finished run."""
        if self._prints:
            click.echo(f"  {printable(outcome.name)}: {outcome.verdict or 'set aside'}", err=True)


def _look(
    file: Path,
    folder: Path,
    jobs: int | None,
    cluster: str | None,
    watch: Path | None,
    before: Campaign | None,
) -> Campaign:
    from dynid.campaign.campaign import run_campaign
    from dynid.report.terminal import ProgressBar

    new: list[str] = []  # names: outcomes of thousands of runs need memory

    def told(outcome: Outcome) -> None:
        new.append(outcome.name)
        lines.run(outcome)

    with ProgressBar() as progress:
        lines = _Lines(progress)
        done = run_campaign(
            file,
            folder,
            jobs=jobs,
            cluster=cluster,
            logs_in=watch,
            progress=lines.stage,
            finished=told,
            before=before,
        )
    if done is before:
        return done
    if watch is not None and not done.runs:
        click.echo(f"no log matches the patterns of {shown(file)} in {shown(watch)} yet: waiting")
    else:
        _print(done, new)
    return done


def _print(done: Campaign, new: list[str]) -> None:
    from dynid.base.grouping import probability

    levels = [outcome.verdict for outcome in done.outcomes if not outcome.reason]
    verdicts = ", ".join(f"{levels.count(level)} {level}" for level in ("good", "care", "bad"))
    click.echo(
        f"{len(done.outcomes)} runs, {len(new)} of them new: {verdicts}, {len(done.set_aside)} set aside"
    )
    for note in done.notes:
        click.echo(f"  {note}")
    _echo_few(
        f"set aside: {printable(outcome.name)}: {printable(_reason(done, outcome))}"
        for outcome in done.set_aside
    )
    _echo_few(
        f"{change.kind}: {printable(change.words)} of {printable(change.robot)}"
        f" {change.size} since {printable(change.since)} (p {probability(change.p)}{_points_to(change)})"
        for change in done.fleet.changes
    )
    if done.fleet.unproved:
        click.echo(f"  {printable(done.fleet.unproved)}")
    _echo_few(printable(shared.words) for shared in done.shared)
    if done.joined:
        count = sum(not entry.reason for entry in done.joined)
        click.echo(f"{count} of {len(done.joined)} robots have one estimate from their logs (joined/)")
        aside = {outcome.name for outcome in done.set_aside}
        left_out = [pair for entry in done.joined for pair in entry.left_out.items() if pair[0] not in aside]
        _echo_few(f"not in it: {printable(run)}: {printable(reason)}" for run, reason in left_out)
    click.echo(f"written: {shown(done.folder)} (summary.json, parameters.csv, campaign.html)")


def _reason(done: Campaign, outcome: Outcome) -> str:
    """Why a run was set aside and what to do, with its logs as seen from here, not from the results."""
    from dynid.report.json_file import relative_place

    text = "; ".join(line.strip() for line in outcome.reason.splitlines())
    for log in next((run.logs for run in done.runs if run.name == outcome.name), ()):
        text = (
            text.replace(relative_place(log, done.folder), shown(Path(log))) if os.path.isabs(log) else text
        )
    return text


def _points_to(change: Change) -> str:
    return f"; points to: {change.cause}" if change.cause else ""


def _echo_few(lines: Iterable[str]) -> None:
    """The first lines, and how many there are besides."""
    listed = list(lines)
    for line in listed[:_MOST_SHOWN]:
        click.echo(f"  {line}")
    if len(listed) > _MOST_SHOWN:
        click.echo(f"  ... and {len(listed) - _MOST_SHOWN} more in summary.json")
