"""`dynid export`: a result in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.commands.completion import FORMAT, ROBOT
from dynid.commands.shared import given_options, shown
from dynid.common.errors import NoResultError
from dynid.report.terminal import printable

if TYPE_CHECKING:
    from dynid.exporters import Export, Written


@click.command(short_help="Write a result in the format of another program.")
@click.argument("result", type=click.Path(path_type=Path), metavar="RESULT|EXPERIMENT")
@click.argument("others", nargs=-1, metavar="")
@click.option(
    "--to",
    "formats",
    multiple=True,
    type=FORMAT,
    metavar="FORMAT...",
    help="One or several of urdf, mjcf, sdf, yaml, ros2, actuators, ur, franka, c, fmu, numpy.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder [default: RESULT-export]."
)
@click.option("--robot", type=ROBOT, help="Instead of the robot named in the result.")
@click.option(
    "--not-physical",
    type=click.Choice(["noise", "refuse", "nearest", "mark"]),
    default="noise",
    show_default=True,
    help="If no real bodies have these base parameters: write the nearest real set if noise explains the"
    " difference, or if efforts along the logs change by less than half of their errors (noise), never"
    " (refuse) or always (nearest); or write the values as they are (mark).",
)
@click.option(
    "--payload",
    type=click.Choice(["link", "merge", "leave-out"]),
    default="link",
    show_default=True,
    help="Identified payloads as separate links, as part of their carriers, or not at all.",
)
@click.option(
    "--replay",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="LOG",
    help="Simulate this log in MuJoCo with the written MJCF and with the description; repeatable.",
)
def export(
    result: Path, others: tuple[str, ...], formats: tuple[str, ...], robot: str | None, **_: Any
) -> None:
    """Write RESULT (result.json or its folder) in the formats of other programs.

    Instead of RESULT an experiment file, with these options under `export:`; options override.
    Each file is read back by such a program, and its efforts are compared with those of the result.
    """
    from dynid.experiment.experiment import Experiment
    from dynid.experiment.file import is_experiment, load_experiment
    from dynid.experiment.tasks import ExportSettings
    from dynid.tasks import exported

    wanted = tuple(name for given in (*formats, *others) for name in given.split(",") if name)
    options = given_options(ExportSettings)
    options |= {"to": wanted} if wanted else {}
    if is_experiment(result):
        if robot:
            raise click.UsageError("an experiment file names its own robot: leave --robot out")
        asked = load_experiment(result, need_logs=False)
        del options["result"]
    else:
        asked = Experiment(robot=robot or "")
    if asked.export is None and not wanted:
        raise click.UsageError("name the formats: --to urdf, or `export:` of an experiment file")
    settings = asked.export.changed(**options) if asked.export else ExportSettings(**options)
    done = exported(asked.changed(export=settings))
    if not print_export(done):
        raise SystemExit(NoResultError.exit_code)


def print_export(done: Export) -> bool:
    """Print what was written; whether all of it can be used."""
    for note in done.notes:
        click.echo(printable(note))
    for export_file in done.written:
        _show(export_file)
    click.echo(f"details: {shown(done.summary.with_suffix('.html'))}")
    far = [export_file for export_file in done.written if export_file.certificate.far]
    for export_file in far:
        click.echo(
            f"NOT USABLE AS IT IS: {export_file.format} predicts more than twice as badly as the estimate:"
            f" {printable(', '.join(export_file.certificate.far))}. {_why(export_file)}"
        )
    return not far and not any(export_file.certificate.failure for export_file in done.written)


def _why(output: Written) -> str:
    """Why a written model predicts worse than the estimate, and what to do."""
    reasons = []
    if output.not_representable:
        reasons.append(f"This format does not hold all terms (see `not in {output.format}`)")
    if output.moved:
        reasons.append(
            "No real bodies and drives have the efforts of this result, so the nearest ones are written:"
            " identify again with `estimator: consistent`, or use the formats c or numpy, which hold the"
            " estimate unchanged"
        )
    return ". ".join(reasons) + "." if reasons else "Its files, read back, give other efforts."


def _show(output: Written) -> None:
    """Files, certificate, and the subjects of what the format cannot hold; export.html has the details."""
    others = "".join(f", {printable(file.name)}" for file in output.files[1:])
    click.echo(f"written: {shown(output.files[0])}{others}")
    click.echo(f"  {printable(output.certificate.brief)}")
    if output.not_representable:
        subjects = dict.fromkeys(text.partition(":")[0] for text in output.not_representable)
        click.echo(f"  not in {output.format}: {printable('; '.join(subjects))}")
