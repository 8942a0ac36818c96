"""`dynid compare`: fits or finished results by their error on data that were not used."""

from __future__ import annotations

from pathlib import Path

import click

from dynid.commands.shared import NUMBER, Whole, default_out, names_in, payload_option, refuse_given, shown
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
@click.option("--robot", help="Instead of the robot named in the results.")
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
    friction: bool,
    estimators: str | None,
    models: str | None,
    folds: int,
    last: float | None,
    jobs: int,
    cluster: str | None,
    logs: tuple[str, ...],
    robot: str | None,
    payloads: tuple[str, ...],
    speeds: str | None,
    out: Path | None,
) -> None:
    """Compare fits or finished results by their error on data that were not used for the fit.

    TARGET is one experiment file, whose drive terms, estimators and models are varied; or several
    experiment files; or several results (result.json or their folders). With --log, all results
    predict the same log.
    """
    from dynid.report.comparison import FILES, comparison_files, print_comparison
    from dynid.report.output import claimed_folder, replace_folder
    from dynid.report.terminal import ProgressBar
    from dynid.validation.targets import compare_targets

    if not any(target.suffix.lower() in (".yaml", ".yml") for target in targets):
        refuse_given(
            ("folds", "last", "jobs", "cluster"),
            "finished results; only an experiment file can be cross-validated",
        )
    if last is not None:
        refuse_given(("folds",), "--last, which makes a single split")
    if (robot or payloads) and not logs:
        option = "--robot" if robot else "--payload"
        raise click.UsageError(f"{option} needs --log, a log predicted by the results")
    folder = out or default_out(f"{targets[0].stem or 'results'}_compare")
    with claimed_folder(folder, FILES) as path:
        with ProgressBar() as progress:
            comparison = compare_targets(
                targets,
                drives=[names_in(names) or () for names in drives],
                friction=friction,
                estimators=names_in(estimators) or (),
                models=names_in(models) or (),
                folds=folds,
                last=last,
                logs=logs,
                robot=robot,
                payloads=payloads or None,
                speeds=_speeds(speeds),
                jobs=jobs,
                cluster=cluster,
                progress=progress,
            )
        replace_folder(path, comparison_files(comparison))
    print_comparison(comparison)
    click.echo(f"\nwritten: {shown(folder)} (comparison.json, comparison.csv, comparison.html)")


def _speeds(text: str | None) -> list[float]:
    """`0.1,1` as numbers."""
    given = names_in(text) or ()
    if not all(is_number(item) and float(item) > 0.0 for item in given):
        raise click.UsageError(f"--speeds '{text}': give positive numbers, e.g. 0.1,1 (rad/s or m/s)")
    return [float(item) for item in given]
