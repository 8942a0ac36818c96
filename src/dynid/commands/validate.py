"""`dynid validate`: other logs predicted by a result. `dynid predict`: efforts for a desired trajectory."""

from __future__ import annotations

from pathlib import Path

import click

from dynid.commands.completion import ROBOT
from dynid.commands.shared import NUMBER, column_of, column_option, payload_option, shown
from dynid.common.errors import InputError, NoResultError
from dynid.report.terminal import printable

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Validate a result on other logs.")
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of validation.json [default: that of RESULT].",
)
@click.option("--robot", type=ROBOT, help="Instead of the robot named in the result.")
@payload_option
@column_option
@click.option("--drop-bad-rows", is_flag=True, help="Skip rows of text logs with cells that are not numbers.")
def validate(
    result: Path,
    logs: tuple[str, ...],
    out: Path | None,
    robot: str | None,
    payloads: tuple[str, ...],
    columns: tuple[str, ...],
    drop_bad_rows: bool,
) -> None:
    """Validate a result (result.json or its folder) on other logs; writes validation.json.

    Exit code 3: a finding is `stop`, for instance a log that is predicted too badly.
    """
    from dynid.common.catalogue import Severity
    from dynid.experiment.experiment import LogEntry
    from dynid.pipeline import validate_result
    from dynid.report.prediction import validated_logs, validation_document, write_validation
    from dynid.report.text import print_validation

    folder = out or (result if result.is_dir() else result.parent)
    named = dict(column_of(text) for text in columns)
    entries = [LogEntry(log, columns=named or None) for log in logs]
    validations, signals = validate_result(
        result, entries, robot, payloads or None, drop_bad_rows=drop_bad_rows
    )
    replaced = validated_logs(folder)
    write_validation(validation_document(result, validations), folder, signals)
    print_validation(validations, warnings=True)
    click.echo(f"\nwritten: {shown(folder / 'validation.json')}, validation_signals.csv")
    if replaced and replaced != tuple(item.log for item in validations):
        click.echo(f"  instead of the validation on {printable(', '.join(replaced))}; --out keeps both")
    if any(item.severity is Severity.STOP for validation in validations for item in validation.warnings):
        click.get_current_context().exit(NoResultError.exit_code)


@click.command(short_help="Predict efforts for a desired trajectory.")
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("trajectory", type=_FILE)
@click.option("--out", type=_FILE, help="CSV file to write [default: ./<name of TRAJECTORY>_efforts.csv].")
@click.option("--robot", type=ROBOT, help="Instead of the robot named in the result.")
@payload_option
@column_option
@click.option("--body", metavar="NAME", help="Body whose pose is in TRAJECTORY [default: platform].")
@click.option("--tension", default=0.0, type=NUMBER, metavar="C", help="Internal tension, N m or N.")
def predict(
    result: Path,
    trajectory: Path,
    out: Path | None,
    robot: str | None,
    payloads: tuple[str, ...],
    columns: tuple[str, ...],
    body: str | None,
    tension: float,
) -> None:
    """Predict efforts and power for a desired trajectory of the joints, or of the pose of a body.

    TRAJECTORY is a file with the columns of a log: t and q_1.. (or joint names), optionally dq_1.. and
    ddq_1..; or with the columns of the result's logs. For the pose of a body: t and x y z roll pitch yaw
    (or some of them, or a quaternion).
    """
    from dynid.prediction.predict import predict_efforts
    from dynid.report.prediction import write_prediction
    from dynid.report.text import print_prediction

    file = out or Path(f"{trajectory.stem}_efforts.csv")
    result_file = result / "result.json" if result.is_dir() else result
    if file.resolve() in (trajectory.resolve(), result_file.resolve()):
        raise InputError("this input would be overwritten", file=file, remedy="choose another --out")
    if file.suffix.lower() != ".csv":
        raise InputError(
            f"efforts are written as .csv, not '{file.suffix}'", file=file, remedy="rename --out"
        )
    prediction = predict_efforts(
        result,
        trajectory,
        robot=robot,
        payloads=payloads or None,
        tension=tension,
        body=body,
        columns=dict(column_of(text) for text in columns) or None,
    )
    write_prediction(prediction, file)
    print_prediction(prediction)
    click.echo(f"\nwritten: {shown(file)}")
