"""Functions and option types shared by several commands.

What `identify` and `check` are asked: columns, windows, payloads and known values of logs, or a result to
repeat.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from dynid.common.errors import InputError
from dynid.common.strict_number import is_count, is_number
from dynid.common.versions import version_of
from dynid.report.terminal import printable

if TYPE_CHECKING:
    from pathlib import Path

    from dynid.common.settings import Settings
    from dynid.experiment.experiment import ColumnMap, Experiment
    from dynid.mechanism.mechanism import Mechanism, Payload
    from dynid.motion.log import Log
    from dynid.report.output import ResultFolder
    from dynid.statistics.estimate import Estimate


class Number(click.types.FloatParamType):
    """A finite number in ASCII digits, as in files."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a refusal of the option."""
        if isinstance(value, str) and not is_number(value.strip()):
            self.fail(f"'{value}' is not a number.", param, ctx)
        return float(value)


class NumberOr(Number):
    """A number, or one word in its place."""

    def __init__(self, word: str) -> None:
        self.word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number or the word, or a refusal of the option."""
        return value if value == self.word else super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number in ASCII digits within limits."""

    name = "integer range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a refusal of the option."""
        if isinstance(value, str) and not is_count(value.strip().lstrip("+-")):
            self.fail(f"'{value}' is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


NUMBER = Number()
column_option = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Column of a signal: q_1=pos_1[deg], tau_1=current_1*11.9, 'tau_{i}=effort_{name}'; repeatable.",
)
payload_option = click.option(
    "--payload", "payloads", multiple=True, metavar="NAME", help="Payload that is mounted; none: no payload."
)
experiment_option = click.option(
    "--write-experiment",
    "experiment_out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the experiment file with all columns, and stop.",
)


class SeveralLogs(click.Command):
    """A command whose --log and --validate take several files, as a shell expands `--log runs/*.csv`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each further file."""
        spread: list[str] = []
        option, values = "", 0
        for argument in args:
            if argument.startswith("-"):
                option = next(
                    (name for name in ("--log", "--validate") if argument.split("=")[0] == name), ""
                )
                values = int("=" in argument)
            elif option:
                spread += [option] if values else []
                values += 1
            spread.append(argument)
        return super().parse_args(ctx, spread)


def shown(path: Path) -> str:
    """A path relative to the current folder if possible."""
    with contextlib.suppress(ValueError, OSError, RuntimeError):  # elsewhere, or links in a circle
        return printable(str(path.resolve().relative_to(Path.cwd())))
    return printable(str(path))


@contextlib.contextmanager
def logging_to_terminal() -> Iterator[None]:
    """Show what the library logs (that it compiles, which takes a while) if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    import logging

    class Terminal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(record.getMessage(), err=True)  # above a progress bar, which replaces sys.stderr

    logger, handler = logging.getLogger("dynid"), Terminal()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def given_options(kind: type[Settings], **spelled: Any) -> dict[str, Any]:
    """The options of the command line that are keys of settings and were given: they override a file.

    Args:
        kind: The settings.
        spelled: Values of options that are written in another way than in a file.
    """
    from dynid.common.settings import keys_of

    context = click.get_current_context()
    return {
        name: spelled.get(name, value)
        for name, value in context.params.items()
        if name in keys_of(kind) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def refuse_given(names: tuple[str, ...], what: str) -> None:
    """Reject options given on the command line that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} does not apply to {what}")


def keep_unloaded(problem: Experiment, folder: Path) -> None:
    """Reject an output folder that contains the result without load, which is an input."""
    if problem.unloaded is None:
        return
    given = Path(problem.unloaded.result).resolve()
    if folder.resolve() in (given, given.parent):
        text = "would overwrite the result without load, which is needed to compute the payload"
        raise InputError(text, file=folder, remedy="choose another folder with --out")


def names_in(text: str | None) -> tuple[str, ...] | None:
    """`a,b` as names; `none` as no names; nothing given as None."""
    if text is None:
        return None
    if text.strip() == "none":
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise click.UsageError(f"'{text}' contains no name; give names separated by commas")
    return names


def version_text(verbose: bool) -> str:
    """The version; `verbose` adds what a bug report needs: system, processor, Python, packages."""
    import os
    import platform
    from importlib.metadata import requires

    text = f"dynid, version {version_of()}"
    if not verbose:
        return text
    lines = [
        text,
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        f"{platform.python_implementation()} {platform.python_version()}",
    ]
    for name in sorted(
        {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requires("dynid") or ()} - {"dynid"}
    ):
        try:
            lines.append(f"{name} {version_of(name)}")
        except ImportError:
            continue
    return "\n".join(lines)


_FORM = (
    "write NAME=COLUMN, with [unit], *scale, +offset and delay S where needed: q_1=pos_1[deg],"
    " tau_1=current_1*11.9"
)


def column_of(text: str) -> tuple[str, ColumnMap]:
    """`tau_1=current_1*11.9+0.2` as a signal and its column; SI value = scale * (x in unit) + offset."""
    from dynid.motion.column_text import written_column

    key, equals, right = text.partition("=")
    column = written_column(right)
    if not equals or not key.strip() or column is None:
        raise InputError(f"--column '{text}' cannot be read", remedy=_FORM)
    return key.strip(), column


def known_option(text: str) -> tuple[str, float]:
    """`M_payload=2.8` as a parameter and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not is_number(value.strip()):
        raise InputError(f"--known '{text}' cannot be read", remedy="write NAME=NUMBER, e.g. M_payload=2.8")
    return name.strip(), float(value)


def with_options(
    experiment: Experiment,
    *,
    columns: Sequence[str] = (),
    known: Sequence[str] = (),
    payloads: Sequence[str] = (),
    start: float | None = None,
    stop: float | None = None,
) -> Experiment:
    """The experiment with what these options add or replace.

    Args:
        columns: As `column_of`; they have priority over those of the file.
        known: As `known_option`.
        payloads: `NAME` or `NAME=mass`, mounted in all logs.
        start, stop: Window of the logs that are fitted, in [s].
    """
    changes: dict[str, Any] = {}
    values = dict(map(known_option, known))
    if columns:
        changes["columns"] = {**experiment.columns, **dict(map(column_of, columns))}
    if payloads:
        names = [payload.partition("=")[0].strip() for payload in payloads]
        values |= {
            f"M_{payload.partition('=')[0].strip()}": _mass(payload) for payload in payloads if "=" in payload
        }
        changes["payloads"] = {**experiment.payloads, **_new_payloads(experiment, names)}
        for key in ("logs", "validate"):
            logs = getattr(experiment, key)
            changes[key] = tuple(
                log.changed(payloads=tuple(dict.fromkeys([*log.payloads, *names]))) for log in logs
            )
    window = {name: value for name, value in (("start", start), ("stop", stop)) if value is not None}
    if window:
        changes["logs"] = tuple(log.changed(**window) for log in changes.get("logs", experiment.logs))
    if values:
        changes["known"] = {**experiment.known, **values}
    return experiment.changed(**changes) if changes else experiment


def print_replaced(folder: ResultFolder) -> None:
    """One line if an older result was replaced."""
    if folder.older:
        click.echo(f"replaced: {printable(folder.older)}; --out FOLDER keeps both")


def print_proposal(files: Sequence[str], folder: Path) -> None:
    """Print the command that identifies again with the changes that the reasons of a result propose."""
    from dynid.report.corrected import FILE

    if FILE in files:
        click.echo(f"with the proposed change: dynid identify {shown(folder / FILE)}")


def print_columns(logs: Sequence[Log]) -> None:
    """The columns that were matched by other than canonical names, as a table; nothing if there are none."""
    from dynid.report.terminal import plain_table, standard_console, verbatim

    out = standard_console()
    seen: list[object] = []
    for log in logs:
        if not log.guesses or log.guesses in seen:
            continue
        seen.append(log.guesses)
        table = plain_table("column", "read as", "unit", "confidence", left=("column", "read as", "unit"))
        for guess in log.guesses:
            table.add_row(
                verbatim(guess.column),
                verbatim(guess.key),
                guess.unit or ("inferred" if guess.key == "t" else "SI"),
                f"{guess.confidence:.0%}",
            )
        out.print(verbatim(f"Columns of {log.name}, matched by their names:"))
        out.print(table)
        out.print(
            verbatim("If this is wrong: --column 'q_1=NAME', or --write-experiment FILE and edit it.\n")
        )


def write_with_columns(experiment: Experiment, file: Path) -> None:
    """Read the logs, show the columns that were matched, and write the experiment file with them."""
    from dynid.experiment.file import write_experiment
    from dynid.pipeline import read_logs

    logs = read_logs(experiment)
    print_columns(logs)
    write_experiment(experiment, logs, file)
    click.echo(f"written: {shown(file)}; run it: dynid identify {shown(file)}")


def _mass(text: str) -> float:
    mass = text.partition("=")[2].strip()
    if not is_number(mass) or not float(mass) > 0.0:
        raise InputError(
            f"--payload '{text}': the mass is not a positive number", remedy="e.g. tool=2.8, in kg"
        )
    return float(mass)


def _new_payloads(experiment: Experiment, names: Sequence[str]) -> dict[str, Payload]:
    """Payloads that neither robot nor experiment describes: on the last body, if there is only one."""
    from dynid.mechanism.load import load_robot
    from dynid.mechanism.mechanism import Payload

    robot = load_robot(experiment.robot)
    new = [name for name in names if name not in {*robot.payloads, *experiment.payloads}]
    return {name: Payload(name, _last_body(robot, name)) for name in new}


def _last_body(robot: Mechanism, payload: str) -> str:
    inner = {joint.parent for joint in robot.joints}
    ends = [name for name in robot.bodies if name not in inner]
    if len(ends) != 1 or robot.is_closed:
        raise InputError(
            f"payload '{payload}' is not described, and the robot has several ends: {', '.join(ends[:6])}",
            remedy="give it under `payloads:` of the robot file or of the experiment: {NAME: {body: ...}}",
        )
    return ends[0]


def difference(result: Path, again: Estimate) -> str:
    """Whether the parameters of a repetition are those of the result, in words."""
    from dynid.report.json_file import read_result

    before = {entry.name: entry.value for entry in read_result(result).parameters}
    now = {entry.name: entry.value for entry in again.parameters}
    moved = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not moved:
        return f"repeated: all {len(now)} parameters are equal to those of {shown(result)}"
    return (
        f"repeated: {len(moved)} of {len(now)} parameters differ from {shown(result)}: {', '.join(moved[:3])}"
    )


def repeated_experiment(result: Path) -> Experiment:
    """The experiment of a result; refused where its inputs are not what they were."""
    from dynid.experiment.provenance import repeated
    from dynid.report.json_file import read_result
    from dynid.report.seal import verify as verified

    changed = [text for text in verified(result).differences if text.startswith("input ")]
    if changed:
        raise InputError(
            f"this result cannot be repeated: {'; '.join(changed)}",
            file=result,
            remedy="restore these files, or identify with an experiment file",
        )
    folder = result if result.is_dir() else result.parent
    return repeated(read_result(result).provenance, result).changed(name=f"{folder.resolve().name}_again")
