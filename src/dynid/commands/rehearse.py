"""`dynid rehearse`: expected accuracy of an experiment, by Monte Carlo simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dynid.commands.completion import ENGINE, Words
from dynid.commands.shared import NUMBER, Whole, shown

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Expected accuracy, by simulation.")
@click.argument("experiment", type=_FILE)
@click.option(
    "--motion",
    type=Words("random|excite", files=True),
    metavar="FILE|random|excite",
    help="Motion of all logs [default: its own].",
)
@click.option("--runs", type=Whole(min=2), default=50, show_default=True, help="Number of runs.")
@click.option("--seed", type=Whole(min=0), default=0, show_default=True, help="Seed of motion and noise.")
@click.option(
    "--engine", type=ENGINE, metavar="inverse|dynid|mujoco", help="Simulation engine [default: inverse]."
)
@click.option("--duration", type=NUMBER, metavar="S", help="Duration of logs without a file.")
@click.option("--rate", type=NUMBER, metavar="HZ", help="Sampling rate.")
@click.option(
    "--truth",
    type=Words("prior|demo", files=True),
    metavar="prior|demo|FILE",
    help="True parameters [default: demo, else prior].",
)
@click.option("--config", type=_FILE, help="Settings of the simulation (dynid.simulation/1).")
@click.option("--jobs", type=Whole(min=1), default=1, show_default=True, help="Parallel processes.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler instead, e.g. tcp://host:8786.")
@click.option("--full", is_flag=True, help="Print all parameters.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of rehearsal.json, .csv and .html [default: results/<name>_rehearsal].",
)
def rehearse(
    experiment: Path,
    motion: str | None,
    runs: int,
    seed: int,
    config: Path | None,
    jobs: int,
    cluster: str | None,
    full: bool,
    out: Path | None,
    **flags: Any,
) -> None:
    """Simulate and identify an experiment many times, and compare the errors with the reported sigma.

    The logs of EXPERIMENT may be recorded logs or trajectories (as written by `dynid excite`). For files
    that do not exist yet, random motions are used. An interrupted run continues when started again.
    """
    from dynid.experiment.file import load_experiment
    from dynid.mechanism.load import load_robot
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.report.rehearsal import FILES, print_rehearsal, rehearsal_files
    from dynid.report.terminal import ProgressBar
    from dynid.simulation.rehearsal import RehearsalPlan
    from dynid.simulation.rehearsal import rehearse as run
    from dynid.simulation.simulation_file import default_simulation, read_simulation, with_flags

    asked = load_experiment(experiment, need_logs=False)
    mechanism = load_robot(asked.robot)
    settings = default_simulation(mechanism) if config is None else read_simulation(config, mechanism)
    settings = with_flags(settings, **flags)
    folder = out or Path("results") / f"{Path(asked.name).name or 'experiment'}_rehearsal"
    with claimed_folder(folder, FILES) as path:
        journal = path.parent / f".{path.name}.journal"
        with ProgressBar() as progress:
            plan = RehearsalPlan(asked, settings, motion, seed)
            outcome = run(plan, runs, jobs=jobs, cluster=cluster, journal=journal, progress=progress)
        replace_folder(path, rehearsal_files(outcome))
    print_rehearsal(outcome, full=full)
    click.echo(f"\nwritten: {shown(folder)} (rehearsal.json, rehearsal.csv, rehearsal.html)")
