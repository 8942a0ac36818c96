"""`dynid compare`: fits or finished results by their error on data that were not used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dynid.commands.completion import ROBOT
from dynid.commands.shared import (
    NUMBER,
    Whole,
    given_options,
    names_in,
    payload_option,
    refuse_given,
    shown,
)
from dynid.common.strict_number import is_number


@click.command(short_help="Compare fits or results.")
@click.argument("targets", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TARGET...")
@click.option("--drive", "drives", multiple=True, metavar="Ia,Fv,...", help="Drive terms; repeatable.")
@click.option("--friction", is_flag=True, help="Compare standard friction models, from simple to complex.")
@click.option("--estimators", metavar="ols,wls,...", help="Estimators to compare.")
@click.option("--models", metavar="inverse,power,...", help="Models to compare.")
@click.option("--folds", type=Whole(min=2), default=4, show_default=True, help="Cross-validation folds.")
@click.option("--last", type=NUMBER, metavar="SHARE", help="Hold out the last share of each log, e.g. 0.25.")
@click.option("--jobs", type=Whole(min=1), default=1, show_default=True, help="Processes that fit folds.")
@click.option("--cluster", metavar="ADDRESS", help="Dask scheduler instead, e.g. tcp://host:8786.")
@click.option("--log", "logs", multiple=True, metavar="FILE", help="Log predicted by all results.")
@click.option("--robot", type=ROBOT, help="Instead of the robot named in the results.")
@payload_option
@click.option("--speeds", metavar="0.1,1,...", help="Speeds at which friction of results is compared.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of comparison.json, .csv and .html [default: results/<name>_compare].",
)
def compare(
    targets: tuple[Path, ...],
    drives: tuple[str, ...],
    estimators: str | None,
    models: str | None,
    jobs: int,
    cluster: str | None,
    robot: str | None,
    speeds: str | None,
    **_: Any,
) -> None:
    """Compare fits or finished results by their error on data that were not used for the fit.

    TARGET is one experiment file, whose drive terms, estimators and models are varied, or which names
    results under `compare:`; or several experiment files; or several results (result.json or their folders).
    With --log, all results predict the same log.
    """
    from dynid.experiment.tasks import CompareSettings
    from dynid.report.comparison import print_comparison
    from dynid.report.terminal import ProgressBar
    from dynid.tasks import compared
    from dynid.validation.targets import read_targets

    options = given_options(
        CompareSettings,
        drives=[names_in(names) or () for names in drives],
        estimators=names_in(estimators) or (),
        models=names_in(models) or (),
        speeds=_speeds(speeds),
    )
    if robot and "logs" not in options:
        raise click.UsageError("--robot needs --log, a log predicted by the results")
    asked, *others = read_targets(targets, robot)
    settings = (asked.compare or CompareSettings()).changed(**options)
    asked = asked.changed(compare=settings)
    if settings.results:
        refuse_given(("jobs", "cluster"), "finished results; only an experiment can be cross-validated")
    with ProgressBar() as progress:
        comparison, folder = compared([asked, *others], progress, jobs, cluster)
    print_comparison(comparison)
    click.echo(f"\nwritten: {shown(folder)} (comparison.json, comparison.csv, comparison.html)")


def _speeds(text: str | None) -> list[float]:
    """`0.1,1` as numbers."""
    given = names_in(text) or ()
    if not all(is_number(item) and float(item) > 0.0 for item in given):
        raise click.UsageError(f"--speeds '{text}': give positive numbers, e.g. 0.1,1 (rad/s or m/s)")
    return [float(item) for item in given]
