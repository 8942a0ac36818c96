"""`dynid check`: the log doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dynid.commands.completion import MODEL, ROBOT
from dynid.commands.shared import NUMBER, experiment_option, shown
from dynid.common.errors import InputError, NoResultError

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment


@click.command(short_help="Examine logs before they are used (log doctor).")
@click.argument("robot", type=ROBOT)
@click.argument("logs", nargs=-1, metavar="LOG...")
@click.option("--model", type=MODEL, help="inverse, power, ... [default: that of the robot].")
@click.option("--drop-bad-rows", is_flag=True, help="Skip rows of text logs with cells that are not numbers.")
@click.option(
    "--column", "columns", multiple=True, metavar="NAME=COLUMN", help="As for identify; repeatable."
)
@click.option("--from", "start", type=NUMBER, metavar="SECONDS", help="Use the logs from this time on.")
@click.option("--to", "stop", type=NUMBER, metavar="SECONDS", help="Use the logs up to this time.")
@click.option("--payload", "payloads", multiple=True, metavar="NAME[=MASS]", help="Mounted in all logs.")
@click.option("--known", multiple=True, metavar="NAME=VALUE", help="Parameter taken as exact: M_payload=2.8.")
@experiment_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for check.html (page with figures) and check.json [default: none].",
)
def check(
    robot: str,
    logs: tuple[str, ...],
    model: str | None,
    drop_bad_rows: bool,
    columns: tuple[str, ...],
    start: float | None,
    stop: float | None,
    payloads: tuple[str, ...],
    known: tuple[str, ...],
    experiment_out: Path | None,
    as_json: bool,
    out: Path | None,
) -> None:
    """Examine logs of ROBOT: clock, units, faulty channels, delays, signs, excitation; worst first.

    ROBOT may be an experiment file; then its logs are examined. Exit codes: 0 logs can be used; 2 identify
    refuses them; 3 no reliable result can be expected.
    """
    from dynid.commands.shared import print_columns, with_options, write_with_columns
    from dynid.doctor.document import diagnosis_document, print_diagnosis, write_diagnosis
    from dynid.doctor.examine import check_experiment
    from dynid.report.json_file import json_text
    from dynid.report.terminal import ProgressBar

    asked = _asked(robot, logs, {"model": model, "drop_bad_rows": drop_bad_rows or None})
    asked = with_options(asked, columns=columns, known=known, payloads=payloads, start=start, stop=stop)
    if experiment_out is not None:
        write_with_columns(asked, experiment_out)
        return
    with ProgressBar() as progress:
        diagnosis = check_experiment(asked, progress)
    if out is not None:
        write_diagnosis(diagnosis, out)
    if as_json:
        click.echo(json_text(diagnosis_document(diagnosis)), nl=False)
    else:
        print_columns(diagnosis.logs)
        print_diagnosis(diagnosis)
        if out is not None:
            click.echo(f"\nwritten: {shown(out)} (check.html, check.json)")
    if diagnosis.refused:
        click.get_current_context().exit(InputError.exit_code)
    if diagnosis.worst == "stop":
        click.get_current_context().exit(NoResultError.exit_code)


def _asked(robot: str, logs: tuple[str, ...], options: dict[str, object]) -> Experiment:
    from dynid.experiment.experiment import Experiment, LogEntry, read_experiment

    chosen = {name: value for name, value in options.items() if value is not None}
    if logs:
        entries = tuple(LogEntry(log) for log in logs)
        return Experiment(robot=robot, logs=entries, name=Path(robot).stem).changed(**chosen)
    if Path(robot).suffix.lower() not in (".yaml", ".yml"):
        raise click.UsageError("give at least one LOG, or an experiment file")
    return read_experiment(Path(robot)).changed(**chosen)
