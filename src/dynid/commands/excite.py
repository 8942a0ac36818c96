"""`dynid excite`: design an exciting trajectory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.commands.completion import ROBOT, Words
from dynid.commands.shared import NUMBER, NumberOr, Whole, given_options, refuse_given, shown
from dynid.common.interrupts import interruptible
from dynid.report.terminal import printable

if TYPE_CHECKING:
    from dynid.excitation.excite import Excitation


@click.command(short_help="Design an exciting trajectory.")
@click.argument("robot", type=ROBOT, metavar="ROBOT|EXPERIMENT")
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
@click.option("--harmonics", "terms", type=Whole(min=1), help="Harmonics [5]; pieces or points [12].")
@click.option(
    "--period", default=10.0, type=NUMBER, show_default=True, metavar="S", help="Length of the motion."
)
@click.option("--starts", default=8, show_default=True, type=Whole(min=1), help="Random starting motions.")
@click.option(
    "--hops", default=3, show_default=True, type=Whole(min=0), help="Perturbed restarts of the best starts."
)
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
    "search",
    default=12,
    show_default=True,
    type=Whole(min=1),
    help="Number of free motions (cable robots only).",
)
@click.option("--along", default="", metavar="BODY", help="Plan the pose of this body (closed-loop robots).")
@click.option("--prior", default="", metavar="FILE", help="Parameter values used to predict efforts.")
@click.option("--home", metavar="Q[,Q...]", help="Pose of rest at begin and end [default: start pose].")
@click.option(
    "--floor",
    type=NumberOr("none"),
    metavar="Z|none",
    help="Height of the floor, base frame [default: from the description].",
)
@click.option(
    "--clearance", type=NUMBER, metavar="M", help="Least distance of bodies and floor [default: 0.01]."
)
@click.option("--no-collisions", is_flag=True, help="Do not keep bodies apart or above the floor.")
@click.option(
    "--for-controller",
    "controllers",
    multiple=True,
    type=Words("csv|ros2|urscript|krl|rapid"),
    metavar="csv|ros2|urscript|krl|rapid",
    help="Also write the run in this format; repeatable.",
)
@click.option(
    "--controller-rate", type=NUMBER, metavar="HZ", help="Its rate [default: usual for the format]."
)
@click.option("--jobs", type=Whole(min=1), help="Processes [default: 1 for few starts, else all cores].")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler instead, e.g. tcp://host:8786.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write [default: results/<name>_excitation].",
)
def excite(
    robot: str,
    jobs: int | None,
    cluster: str | None,
    noise: str | None,
    home: str | None,
    no_collisions: bool,
    **_: Any,
) -> None:
    """Design an exciting trajectory of ROBOT, within its limits, for its base parameters.

    Instead of ROBOT an experiment file, with the robot and these options under `excite:`; options override.
    Writes trajectory.csv (the motion alone), run.csv and run.ros2.yaml (with the approach from rest and the
    way back), coefficients.yaml, excitation.json and report.html.
    For a cable robot of model `internal` it designs a set of free motions: releases.csv lists the locked
    cable lengths and the poses from which to release the platform.
    Finished starts are saved in a journal next to the folder: an interrupted run continues from there.
    """
    from dynid.excitation.case_motions import case_motions
    from dynid.excitation.design import designing
    from dynid.experiment.experiment import Experiment
    from dynid.experiment.file import is_experiment, load_experiment
    from dynid.experiment.tasks import DRIVEN, OF_FREE_MOTION, ExciteSettings
    from dynid.mechanism.load import load_robot
    from dynid.report.terminal import ProgressBar

    spelled = {"noise": _numbers(noise, "--noise"), "home": _numbers(home, "--home")}
    options = given_options(ExciteSettings, **spelled) | ({"collisions": False} if no_collisions else {})
    asked = (
        load_experiment(robot, need_logs=False)
        if is_experiment(robot)
        else Experiment(robot=robot, name=Path(robot).stem)
    )
    settings = asked.excite or ExciteSettings()
    if "search" in options:  # a number: other settings of the search stay
        options["search"] = settings.search.changed(count=options["search"])
    asked = asked.changed(excite=settings.changed(**options))
    motions = case_motions(load_robot(asked.robot))
    if motions is None:
        refuse_given(OF_FREE_MOTION, DRIVEN)
    else:
        refuse_given((*motions.unused, "no_collisions"), motions.subject)
    with designing(asked) as design:
        with _resumable(design.journal, design.settings.starts), ProgressBar() as progress:
            result = design.search(jobs, progress, cluster)
        written = design.write(result)
    if motions is None:
        _print_limits(result)
    else:
        click.echo(printable(motions.summary(result)))
    click.echo(f"\nwritten: {shown(design.path)} ({', '.join(written)})")


def _print_limits(design: Excitation) -> None:
    """Warnings, the summary, and the limits with the smallest margins."""
    from dynid.excitation.files import summary
    from dynid.report.terminal import print_warnings, standard_console

    print_warnings(standard_console(), design.notices)
    click.echo(printable(summary(design)))
    tight = sorted(design.limits, key=lambda limit: limit.margin_percent)[:3]
    margins = [
        f"{limit.kind} of {printable(limit.name)} {limit.margin_percent:.2g} % margin" for limit in tight
    ]
    click.echo(f"tightest limits: {', '.join(margins)}")


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


def _numbers(text: str | None, option: str) -> tuple[float, ...]:
    if not text:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(f"{option} takes numbers, not '{text}'") from None
