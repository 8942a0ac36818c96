"""The command line: parses arguments, calls the library, prints what it returns.

The library is imported inside the commands, so that `dynid --help` is fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.commands.campaign import campaign
from dynid.commands.check import check
from dynid.commands.compare import compare
from dynid.commands.completion import ESTIMATOR, MODEL, PURPOSE, ROBOT
from dynid.commands.excite import excite
from dynid.commands.export import export, print_export
from dynid.commands.rehearse import rehearse
from dynid.commands.shared import (
    NUMBER,
    SeveralLogs,
    column_option,
    experiment_option,
    keep_unloaded,
    logging_to_terminal,
    names_in,
    print_proposal,
    print_replaced,
    shown,
    version_text,
)
from dynid.commands.simulate import simulate
from dynid.commands.studio import studio
from dynid.commands.validate import predict, validate
from dynid.commands.verify import verify
from dynid.commands.warm import warm
from dynid.common import limits
from dynid.common.errors import DynidError, InputError, NoResultError
from dynid.common.interrupts import interruptible, reader_may_leave
from dynid.mechanism.load import expanding_as_written
from dynid.report.terminal import printable
from dynid.tasks import default_out

if TYPE_CHECKING:
    from dynid.experiment.experiment import Experiment
    from dynid.report.output import ResultFolder
    from dynid.statistics.estimate import Estimate

_FILE = click.Path(dir_okay=False, path_type=Path)


class Commands(click.Group):
    """Turns errors into a message and an exit code; a traceback appears only for a bug in dynid."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Also for a reader that leaves, as `head` does: the command goes on, and its exit code counts."""
        with reader_may_leave():
            return super().main(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command; exit 2 for rejected input, 3 for no result, 130 for Ctrl-C."""
        try:
            with interruptible(), logging_to_terminal():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            _complain("interrupted: nothing was changed; run the same command again")
            ctx.exit(130)
        except DynidError as error:
            _complain(error.message)
            ctx.exit(error.exit_code)
        except MemoryError as error:
            _complain(f"not enough memory{': ' if str(error) else ''}{error}; nothing was written")
            ctx.exit(InputError.exit_code)
        except OSError as error:
            _complain(str(error))
            ctx.exit(InputError.exit_code)


@click.group(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--version", is_flag=True, help="Show the version and exit; with --verbose for bug reports.")
@click.option("--verbose", is_flag=True, help="With --version: system, Python and packages too.")
@click.option("--no-limits", is_flag=True, help="Read descriptions, results and logs of any size.")
@click.option(
    "--xacro", metavar="NAME:=VALUE...", help="Expand xacro files that you trust; '' for no arguments."
)
@click.pass_context
def main(context: click.Context, version: bool, verbose: bool, no_limits: bool, xacro: str | None) -> None:
    """Identify the dynamic parameters of a robot from its description and logs of its motion.

    ROBOT is a built-in name, a robot file, a URDF, MJCF, SDF or .par. Exit codes: 0 success; 2 input
    rejected, nothing written; 3 no reliable result, or verdict bad (results are written); 130 interrupted.
    """
    if version:
        click.echo(version_text(verbose))
        context.exit()
    if verbose:
        raise click.UsageError("--verbose goes with --version")
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit()
    context.with_resource(limits.lifted(no_limits))
    context.with_resource(expanding_as_written(xacro))


out_option = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Result folder [default: results/<name>]."
)
drive_option = click.option(
    "--drive", metavar="none|Ia,Fv,...", help="Drive terms of all joints (replaces the robot's)."
)
full_option = click.option("--full", is_flag=True, help="Print every parameter, choice and reason.")


@main.command(short_help="Simulate, identify, compare with the true values.")
@click.argument("robot", default="ur5", type=ROBOT)
@out_option
@full_option
def demo(robot: str, out: Path | None, full: bool) -> None:
    """Simulate a built-in robot, identify it and compare the result with the true parameters."""
    from dynid.report.output import claimed
    from dynid.report.terminal import ProgressBar
    from dynid.simulation.demo import run_demo

    with claimed(out or default_out(robot)) as folder:
        with ProgressBar() as progress, _saving(folder):
            estimate = run_demo(robot, progress)
        if not _finish(estimate, folder, full=full):
            click.get_current_context().exit(NoResultError.exit_code)


@main.command()
def robots() -> None:
    """List the built-in robots."""
    from dynid.mechanism.load import builtin_robots

    available = builtin_robots()
    width = max((len(name) for name in available), default=0)
    for name, description in available.items():
        click.echo(f"{name:<{width}}  {description}")


@main.command(short_help="Structure and identifiable parameters of a robot.")
@click.argument("robot", type=ROBOT)
@drive_option
@click.option("--tie", "ties", multiple=True, metavar="NAME", help="Apply a tie of the robot file.")
@click.option("--payload", "payloads", multiple=True, metavar="NAME", help="Mount a payload.")
@click.option("--open", "open_loops", is_flag=True, help="Open the loops; every joint moves freely.")
@click.option("--bodies", metavar="A,B,...", help="Analyse only this sub-chain.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(
    robot: str,
    drive: str | None,
    ties: tuple[str, ...],
    payloads: tuple[str, ...],
    open_loops: bool,
    bodies: str | None,
    as_json: bool,
) -> None:
    """Show degrees of freedom, bodies and loop closures, and which parameters can be identified."""
    from dynid.info import describe
    from dynid.mechanism.load import load_robot
    from dynid.report.info_text import info_document, print_info
    from dynid.report.json_file import json_text

    description = describe(
        load_robot(robot),
        drive=names_in(drive),
        ties=ties,
        payloads=payloads,
        open_loops=open_loops,
        bodies=names_in(bodies),
    )
    if as_json:
        click.echo(json_text(info_document(description)), nl=False)
    else:
        print_info(description)


@main.command(cls=SeveralLogs, short_help="Identify parameters from logs (main command).")
@click.argument("files", nargs=-1, metavar="[EXPERIMENT]", type=click.Path(path_type=Path))
@click.option(
    "--robot",
    type=ROBOT,
    help="Built-in name, robot file, URDF, MJCF, SDF or .par (instead of an experiment file).",
)
@click.option("--log", "logs", multiple=True, metavar="FILE", help="Logs: files, folders or 'runs/*.mcap'.")
@click.option("--validate", "unseen", multiple=True, metavar="FILE", help="Validation logs, likewise.")
@click.option("--model", type=MODEL, help="inverse, power, ... [default: that of the robot].")
@click.option("--estimator", type=ESTIMATOR, help="ols, wls, ... [default: chosen by left-out data].")
@drive_option
@click.option("--hold-out", type=NUMBER, metavar="SHARE", help="Validate on the last share of each log.")
@click.option("--auto", type=click.Choice(["on", "off"]), help="Choose open settings by left-out data.")
@click.option("--drop-bad-rows", is_flag=True, help="Skip rows of text logs with cells that are not numbers.")
@click.option("--force", is_flag=True, help="Use logs that the checks refuse; recorded in the result.")
@column_option
@click.option("--from", "start", type=NUMBER, metavar="SECONDS", help="Use the logs from this time on.")
@click.option("--to", "stop", type=NUMBER, metavar="SECONDS", help="Use the logs up to this time.")
@click.option(
    "--payload", "payloads", multiple=True, metavar="NAME[=MASS]", help="Mounted in all logs; mass if known."
)
@click.option("--known", multiple=True, metavar="NAME=VALUE", help="Parameter taken as exact: M_payload=2.8.")
@experiment_option
@click.option(
    "--for", "purpose", type=PURPOSE, metavar="PURPOSE", help="feedforward, simulation, payload or collision."
)
@out_option
@full_option
def identify(
    files: tuple[Path, ...],
    robot: str | None,
    logs: tuple[str, ...],
    unseen: tuple[str, ...],
    model: str | None,
    estimator: str | None,
    drive: str | None,
    hold_out: float | None,
    auto: str | None,
    drop_bad_rows: bool,
    force: bool,
    columns: tuple[str, ...],
    start: float | None,
    stop: float | None,
    payloads: tuple[str, ...],
    known: tuple[str, ...],
    experiment_out: Path | None,
    purpose: str | None,
    out: Path | None,
    full: bool,
) -> None:
    """Identify the parameters of a robot from logs: an experiment file, or --robot and --log.

    A result (result.json or its folder) is repeated with its logs and all settings that were chosen.
    If the file has `compare:` or `export:`, the result is then compared with others, or exported.
    """
    from dynid.commands.shared import (
        difference,
        print_columns,
        with_options,
        write_with_columns,
    )
    from dynid.experiment.file import is_result
    from dynid.pipeline import run_experiment
    from dynid.report.terminal import ProgressBar
    from dynid.tasks import identifying, result_folder

    chosen = {"model": model, "estimator": estimator, "purpose": purpose, "hold_out": hold_out, "auto": auto}
    flags = {
        **chosen,
        "drive": names_in(drive),
        "drop_bad_rows": drop_bad_rows or None,
        "force": force or None,
    }
    experiment = _only_one(files, robot)
    problem = _experiment(experiment, robot, logs, unseen, flags)
    problem = with_options(problem, columns=columns, known=known, payloads=payloads, start=start, stop=stop)
    if experiment_out is not None:
        write_with_columns(problem, experiment_out)
        return
    problem = problem if out is None else problem.changed(out=str(out))
    keep_unloaded(problem, result_folder(problem))
    with identifying(problem) as folder:
        with ProgressBar() as progress, _saving(folder):
            estimate = run_experiment(problem, progress, print_columns)
        if experiment is not None and is_result(experiment):
            click.echo(difference(experiment, estimate))
        usable = _finish(estimate, folder, full=full)
    usable = _follow(problem) and usable
    if not usable:
        click.get_current_context().exit(NoResultError.exit_code)


def _only_one(files: tuple[Path, ...], robot: str | None) -> Path | None:
    """The experiment file; robots and logs without their options are refused with the line to write."""
    if not files:
        return None
    if len(files) == 1 and (robot is None or files[0].suffix in (".yaml", ".yml", ".json")):
        return files[0]
    name, logs = (robot, files) if robot else (printable(str(files[0])), files[1:])
    listed = " ".join(printable(str(log)) for log in logs)
    raise click.UsageError(
        f"only an experiment file needs no option; a robot and its logs: --robot {name} --log {listed}"
    )


def _experiment(
    file: Path | None,
    robot: str | None,
    logs: tuple[str, ...],
    unseen: tuple[str, ...],
    flags: dict[str, Any],
) -> Experiment:
    """The experiment from a file or from flags; flags override the file."""
    from dynid.commands.shared import repeated_experiment
    from dynid.experiment.experiment import Experiment, LogEntry, read_experiment
    from dynid.experiment.file import is_result

    chosen = {key: value for key, value in flags.items() if value is not None}
    if file is not None:
        if robot or logs or unseen:
            raise click.UsageError("do not combine an experiment file with --robot, --log or --validate")
        asked = repeated_experiment(file) if is_result(file) else read_experiment(file)
        if chosen.get("estimator") not in (None, asked.estimator):
            chosen["estimator_options"] = {}  # the options in the file belong to another estimator
        return asked.changed(**chosen)
    if robot is None or not logs:
        raise click.UsageError("give an experiment file, or --robot with at least one --log")
    return Experiment(
        robot=robot,
        logs=tuple(LogEntry(log) for log in logs),
        validate=tuple(LogEntry(log) for log in unseen),
        name=Path(robot).stem,
        **chosen,
    )


@contextlib.contextmanager
def _saving(folder: ResultFolder) -> Iterator[None]:
    """Save the estimate and print its warnings also if the run has no reliable result."""
    from dynid.report.terminal import standard_console
    from dynid.report.text import print_verdict

    try:
        yield
    except NoResultError as error:
        if error.estimate is not None:
            files = folder.write(error.estimate)
            print_verdict(standard_console(), error.estimate)
            click.echo(f"saved for inspection: {shown(folder.path)} (report.html, result.json)")
            print_replaced(folder)
            print_proposal(files, folder.path)
        raise


def _follow(asked: Experiment) -> bool:
    """Compare and export the result as the experiment asks for; whether all exports can be used."""
    from dynid.tasks import compared, exported

    if asked.compare is not None:
        from dynid.report.comparison import print_comparison
        from dynid.report.terminal import ProgressBar

        with ProgressBar() as progress:
            comparison, folder = compared([asked], progress)
        click.echo()
        print_comparison(comparison)
        click.echo(f"\nwritten: {shown(folder)}")
    if asked.export is None:
        return True
    click.echo()
    return print_export(exported(asked))


def _finish(estimate: Estimate, folder: ResultFolder, *, full: bool) -> bool:
    """Write and print a result; whether its verdict allows to use it."""
    from dynid.report.text import print_summary

    files = folder.write(estimate)
    print_summary(estimate, full=full)
    click.echo(f"\nwritten: {shown(folder.path)} ({', '.join(files)})")
    print_replaced(folder)
    print_proposal(files, folder.path)
    return estimate.verdict.level != "bad"


def _complain(message: str) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(printable(message), err=True)


for _command in (
    campaign,
    check,
    compare,
    excite,
    export,
    predict,
    rehearse,
    simulate,
    studio,
    validate,
    verify,
    warm,
):
    main.add_command(_command)
