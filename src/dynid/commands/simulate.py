"""`dynid simulate`: simulate a robot and write a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dynid.commands.completion import ENGINE, ROBOT, Words
from dynid.commands.shared import NUMBER, Whole, refuse_given, shown

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Simulate a robot and write a log.")
@click.argument("robot", type=ROBOT)
@click.option(
    "--motion",
    type=Words("random", files=True),
    metavar="FILE|random",
    help="Trajectory or log to follow [default: random].",
)
@click.option("--duration", type=NUMBER, metavar="S", help="Duration of the log.")
@click.option("--rate", type=NUMBER, metavar="HZ", help="Sampling rate.")
@click.option("--seed", type=Whole(min=0), help="Seed of motion and noise [default: 0].")
@click.option(
    "--engine", type=ENGINE, metavar="inverse|dynid|mujoco", help="Simulation engine [default: inverse]."
)
@click.option("--feedback", metavar="encoders|truth", help="Controller feedback [default: encoders].")
@click.option("--payload", "payloads", multiple=True, metavar="NAME", help="Mount a payload.")
@click.option(
    "--truth",
    type=Words("prior|demo", files=True),
    metavar="prior|demo|FILE",
    help="True parameters [default: demo, else prior].",
)
@click.option("--config", type=_FILE, help="Settings file (dynid.simulation/1); options override it.")
@click.option("--table", is_flag=True, help="Write a table for model wrench: one row per body and instant.")
@click.option("--instants", type=Whole(min=1), metavar="N", help="Instants in the table [default: 5].")
@click.option("--digits", type=Whole(2, 17), metavar="N", help="Digits in the table [default: 7].")
@click.option("--out", type=_FILE, help="Log to write, .csv or .parquet [default: <robot>.csv].")
def simulate(
    robot: str,
    config: Path | None,
    table: bool,
    instants: int | None,
    digits: int | None,
    out: Path | None,
    **flags: Any,
) -> None:
    """Simulate a robot with known true parameters and write a log of its motion.

    NAME.truth.json, next to the log, contains the true parameters and the settings of the simulation.
    """
    from dynid.excitation.case_motions import case_motions
    from dynid.mechanism.load import load_robot
    from dynid.report.terminal import plain_table, print_warnings, standard_console, verbatim
    from dynid.simulation.files import check_target, described, write_simulated
    from dynid.simulation.simulation import simulate_led as run
    from dynid.simulation.simulation_file import default_simulation, read_simulation, with_flags
    from dynid.simulation.wrench_table import simulate_table, write_table

    target = check_target(
        out or Path(f"{Path(robot).stem}.csv"), (robot, flags["motion"], flags["truth"], config)
    )
    mechanism = load_robot(robot)
    settings = default_simulation(mechanism) if config is None else read_simulation(config, mechanism)
    settings = with_flags(settings, **{**flags, "payloads": flags["payloads"] or None})
    if table:
        printed = simulate_table(mechanism, settings, instants or 5, digits or 7)
        files, notices = write_table(printed, mechanism.name, target), printed.notices
        words = printed.choices
    else:
        if instants or digits:
            raise click.UsageError("--instants and --digits need --table")
        motions = case_motions(mechanism)
        if motions is None:
            outcome = run(mechanism, settings)
            files, words = write_simulated(outcome, target), described(outcome)
            notices = outcome.notices
        else:
            refuse_given(motions.unused_engine, motions.subject)
            freed = motions.simulate(mechanism, settings)
            files, words = motions.write(freed, target), motions.words(freed)
            notices = freed.notices
    console = standard_console()
    print_warnings(console, notices)
    shown_table = plain_table("simulated", mechanism.name, left=("simulated", mechanism.name))
    for label, text in words.items():
        shown_table.add_row(verbatim(label), verbatim(text))
    console.print(shown_table)
    click.echo(f"\nwritten: {', '.join(shown(file) for file in files)}")
