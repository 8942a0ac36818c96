"""`dynid excite`: design an exciting trajectory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid.commands.shared import NUMBER, Whole, refuse_given, shown
from dynid.common.interrupts import interruptible
from dynid.report.terminal import printable

if TYPE_CHECKING:
    from dynid.excitation.free import FreeExciteSettings

_OF_SERIES = (
    *("family", "harmonics", "period", "hops", "noise", "rate", "repeats", "margin", "ties", "along"),
    "prior",
)


@click.command(short_help="Design an exciting trajectory.")
@click.argument("robot")
@click.option(
    "--criterion",
    default=None,
    metavar="logdet|condition|emin|c003|sigma",
    help="Optimality criterion [default: logdet; c003 for free motions; sigma with --sigma].",
)
@click.option(
    "--sigma", "sigma", multiple=True, metavar="NAME", help="Base parameter of interest; repeatable."
)
@click.option("--family", default="fourier", show_default=True, metavar="fourier|spline|points")
@click.option("--harmonics", type=Whole(min=1), help="Harmonics [5]; pieces or points [12].")
@click.option(
    "--period", default=10.0, type=NUMBER, show_default=True, metavar="S", help="Length of the motion."
)
@click.option("--starts", default=8, show_default=True, type=Whole(min=1), help="Random starting motions.")
@click.option("--hops", default=6, show_default=True, type=Whole(min=0), help="Perturbed restarts per start.")
@click.option("--seed", default=0, show_default=True, type=Whole(min=0))
@click.option("--after", multiple=True, metavar="RESULT|LOG", help="Existing data; repeatable.")
@click.option("--noise", metavar="S[,S...]", help="Effort noise (sigma), common or per actuator, N m or N.")
@click.option("--rate", type=NUMBER, metavar="HZ", help="Sampling rate [default: as for simulate].")
@click.option("--repeats", default=1, show_default=True, type=Whole(min=1), help="Recorded periods.")
@click.option(
    "--margin", default=0.02, type=NUMBER, show_default=True, help="Unused fraction of every limit."
)
@click.option("--payload", "payloads", multiple=True, metavar="NAME", help="Payload mounted on the robot.")
@click.option("--tie", "ties", multiple=True, metavar="NAME", help="Apply a tie of the robot file.")
@click.option(
    "--motions",
    default=12,
    show_default=True,
    type=Whole(min=1),
    help="Number of free motions (cable robots only).",
)
@click.option("--along", default="", metavar="BODY", help="Plan the pose of this body (closed-loop robots).")
@click.option("--prior", default="", metavar="FILE", help="Parameter values used to predict efforts.")
@click.option("--jobs", type=Whole(min=1), help="Processes [default: 1 for few starts, else all cores].")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write [default: results/<name>_excitation].",
)
def excite(
    robot: str,
    criterion: str | None,
    sigma: tuple[str, ...],
    family: str,
    harmonics: int | None,
    period: float,
    starts: int,
    hops: int,
    seed: int,
    after: tuple[str, ...],
    noise: str | None,
    rate: float | None,
    repeats: int,
    margin: float,
    payloads: tuple[str, ...],
    ties: tuple[str, ...],
    motions: int,
    along: str,
    prior: str,
    jobs: int | None,
    out: Path | None,
) -> None:
    """Design an exciting trajectory of ROBOT, within its limits, for its base parameters.

    Writes trajectory.csv, coefficients.yaml, joint_trajectory.ros2.yaml, excitation.json and report.html.
    For a cable robot of model `internal` it designs a set of free motions: releases.csv lists the locked
    cable lengths and the poses from which to release the platform.
    Finished starts are saved in a journal next to the folder: an interrupted run continues from there.
    """
    from dynid.mechanism.cable import swings_freely
    from dynid.mechanism.load import load_robot

    name = Path(robot).stem
    folder = out or Path("results") / f"{name}_excitation"
    few = 4
    count = jobs or (1 if starts <= few else os.cpu_count() or 1)
    asked = criterion or ("sigma" if sigma else None)
    if sigma and asked != "sigma":
        raise click.UsageError(f"--sigma needs the criterion 'sigma', not '{asked}'")
    if swings_freely(load_robot(robot)):
        refuse_given(_OF_SERIES, "free motions on locked cables, which have no series and no efforts")
        from dynid.excitation.free import FreeExciteSettings
        from dynid.excitation.free_set import FreeSetSettings

        search = FreeSetSettings(count=motions)
        free = FreeExciteSettings(asked or "c003", sigma, starts, seed, payloads, after, search)
        _free(robot, folder, free, count)
        return
    refuse_given(("motions",), "an actuated robot; use --starts and --period")
    from dynid.excitation.excite import excite as run
    from dynid.excitation.files import FILES, excitation_files, summary
    from dynid.excitation.plan import ExciteSettings
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.report.terminal import ProgressBar, print_warnings, standard_console

    settings = ExciteSettings(
        criterion=asked or "logdet",
        sigma=sigma,
        family=family,
        terms=harmonics,
        period=period,
        starts=starts,
        hops=hops,
        seed=seed,
        noise=_numbers(noise),
        rate=rate,
        repeats=repeats,
        margin=margin,
        payloads=payloads,
        ties=ties,
        along=along,
        prior=prior,
    )
    with claimed_folder(folder, FILES) as path:
        journal = _journal(path)
        with _resumable(journal, starts), ProgressBar() as progress:
            found = run(robot, settings, after=after, journal=journal, jobs=count, progress=progress)
        replace_folder(path, excitation_files(found))
        journal.unlink(missing_ok=True)
    print_warnings(standard_console(), found.notices)
    click.echo(printable(summary(found)))
    tight = sorted(found.limits, key=lambda one: one.margin_percent)[:3]
    click.echo(
        "tightest limits: "
        + ", ".join(f"{one.kind} of {printable(one.name)} {one.margin_percent:.2g} % margin" for one in tight)
    )
    click.echo(f"\nwritten: {shown(folder)} (trajectory.csv, excitation.json, report.html, ...)")


def _free(robot: str, folder: Path, settings: FreeExciteSettings, jobs: int) -> None:
    """A set of free motions on locked cables."""
    from dynid.excitation.free import excite_free
    from dynid.excitation.free_files import FREE_FILES, free_files, free_summary
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.report.terminal import ProgressBar

    with claimed_folder(folder, FREE_FILES) as path:
        journal = _journal(path)
        with _resumable(journal, settings.starts), ProgressBar() as progress:
            found = excite_free(robot, settings, journal=journal, jobs=jobs, progress=progress)
        replace_folder(path, free_files(found))
        journal.unlink(missing_ok=True)
    click.echo(printable(free_summary(found)))
    click.echo(f"\nwritten: {shown(folder)} ({', '.join(FREE_FILES)})")


def _journal(folder: Path) -> Path:
    return folder.parent / f"{folder.name}.journal.jsonl"


@contextlib.contextmanager
def _resumable(journal: Path, starts: int) -> Iterator[None]:
    """On Ctrl-C, keep the finished starts and explain how to continue."""
    from dynid.common.errors import InterruptedRun

    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        done = max(0, len(journal.read_text(encoding="utf-8").splitlines()) - 1) if journal.exists() else 0
        raise InterruptedRun(
            f"interrupted: {done} of {starts} starts are saved in {shown(journal)};"
            " run the same command again to continue"
        ) from None


def _numbers(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"--noise takes numbers, not '{text}'") from None
