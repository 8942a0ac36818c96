"""What `dynid compare` is given: experiment files or results, and which comparison that means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dynid.common.errors import InputError
from dynid.common.notices import notice
from dynid.experiment.experiment import LogEntry, read_experiment
from dynid.mechanism.load import load_robot
from dynid.motion.logs import READERS, ending
from dynid.problem import Progress
from dynid.statistics.comparison import Comparison, recommend
from dynid.validation.compare import compare_experiment, friction_sets
from dynid.validation.folds import FOLDS
from dynid.validation.results import compare_results

_EXPERIMENTS = (".yaml", ".yml")


def compare_targets(
    targets: Sequence[Path],
    *,
    drives: Sequence[Sequence[str]] = (),
    friction: bool = False,
    estimators: Sequence[str] = (),
    models: Sequence[str] = (),
    folds: int = FOLDS,
    last: float | None = None,
    logs: Sequence[str] = (),
    robot: str | None = None,
    payloads: Sequence[str] | None = None,
    speeds: Sequence[float] = (),
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare variants of one experiment, several experiments, or results.

    Args:
        targets: Experiment files, or results (files or folders), not both.
        drives, estimators, models, folds, last, jobs, cluster, progress: See `compare_logs`.
        friction: Also the drive terms of `friction_sets`.
        logs: That all results predict.
        robot: Instead of the robots named in the results.
        payloads: Mounted in these logs; empty: none; default: see `validate_result`.
        speeds: At which friction of results is compared, in [rad/s] or [m/s].
    """
    experiments = _experiments(targets)
    if not experiments:
        if drives or friction or estimators or models:
            raise InputError(
                "drive terms, estimators and models of a finished result cannot be varied",
                remedy="name an experiment file",
            )
        return compare_results(targets, [LogEntry(log) for log in logs], robot, payloads, speeds)
    if logs or robot:
        raise InputError(
            "an experiment file names its own robot and logs", remedy="leave --log and --robot out"
        )
    compared = []
    for path in experiments:
        experiment = read_experiment(path)
        drive_sets = [*drives, *(friction_sets(load_robot(experiment.robot)) if friction else ())]
        compared.append(
            compare_experiment(
                experiment,
                drives=drive_sets or None,
                estimators=estimators,
                models=models,
                folds=folds,
                last=last,
                jobs=jobs,
                cluster=cluster,
                progress=progress,
            )
        )
    return compared[0] if len(compared) == 1 else _joined(experiments, compared)


def _experiments(targets: Sequence[Path]) -> list[Path]:
    """The targets, if they are experiment files; none if they are results; a mixture is refused."""
    for path in targets:
        if ending(path) in READERS:
            raise InputError(
                f"'{path}' is a log: only experiments or results can be compared",
                remedy="name an experiment file that lists it under `logs:` (dynid compare arm.yaml),"
                f" or results that all predict it: dynid compare results/a results/b --log {path}",
            )
    experiments = [path for path in targets if path.suffix.lower() in _EXPERIMENTS]
    if experiments and len(experiments) < len(targets):
        raise InputError(
            f"'{experiments[0]}' is an experiment, other targets are results",
            remedy="compare experiments with each other, or results with each other",
        )
    return experiments


def _joined(files: Sequence[Path], parts: Sequence[Comparison]) -> Comparison:
    """The lines of several experiments in one table; F and BIC hold within an experiment only."""
    lines = []
    for file, part in zip(files, parts, strict=True):
        for line in part.lines:
            label = file.stem if len(part.lines) == 1 else f"{file.stem}: {line.label}"
            lines.append(replace(line, label=label, F=None, p=None, bic=None, change_percent=None))
    first = lines[0].error
    lines = [lines[0]] + [
        replace(line, change_percent=100.0 * (line.error / first - 1.0)) if first and line.error else line
        for line in lines[1:]
    ]
    chosen, words = recommend(lines)
    notices = [*(warned for part in parts for warned in part.warnings), notice("experiments-differ")]
    return Comparison("experiments", parts[0].held_out, tuple(lines), chosen, words, (), tuple(notices))
