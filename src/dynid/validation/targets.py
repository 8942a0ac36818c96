"""What `dynid compare` is given: experiment files or results, and which comparison that means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dynid.common.errors import InputError
from dynid.common.notices import notice
from dynid.experiment.experiment import Experiment
from dynid.experiment.file import load_experiment
from dynid.experiment.tasks import CompareSettings
from dynid.mechanism.load import load_robot
from dynid.motion.logs import READERS, ending
from dynid.problem import Progress
from dynid.statistics.comparison import Comparison, recommend
from dynid.validation.compare import compare_experiment, friction_sets
from dynid.validation.folds import FOLDS

_EXPERIMENTS = (".yaml", ".yml")


def read_targets(targets: Sequence[Path], robot: str | None = None) -> list[Experiment]:
    """What the targets of a comparison ask for: experiments from their files, or one that names the results.

    Args:
        targets: Experiment files, or results (files or folders), not both.
        robot: Instead of the robots named in the results.
    """
    for path in targets:
        if ending(path) in READERS:
            raise InputError(
                f"'{path}' is a log: only experiments or results can be compared",
                remedy="name an experiment file that lists it under `logs:` (dynid compare arm.yaml),"
                f" or results that all predict it: dynid compare results/a results/b --log {path}",
            )
    files = [path for path in targets if path.suffix.lower() in _EXPERIMENTS]
    if not files:
        results = CompareSettings(results=tuple(map(str, targets)))
        return [Experiment(robot=robot or "", compare=results, name=targets[0].stem)]
    if len(files) < len(targets):
        raise InputError(
            f"'{files[0]}' is an experiment, other targets are results",
            remedy="compare experiments with each other, or results with each other",
        )
    if robot:
        raise InputError("an experiment file names its own robot", remedy="leave --robot out")
    return [load_experiment(file, need_logs=len(files) > 1) for file in files]


def compare_fits(
    experiments: Sequence[Experiment],
    settings: CompareSettings,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare variants of one experiment, or several experiments.

    Args:
        experiments: To fit.
        settings: What is varied, and how data are held out.
        jobs, cluster, progress: See `compare_logs`.
    """
    compared = []
    for experiment in experiments:
        if not experiment.logs:
            raise InputError(
                "nothing to compare: neither logs to fit nor results are named",
                file=experiment.file,
                remedy="add `logs:`, or `compare: [RESULT, RESULT]`",
            )
        friction = friction_sets(load_robot(experiment.robot)) if settings.friction else ()
        compared.append(
            compare_experiment(
                experiment,
                drives=[*settings.drives, *friction] or None,
                estimators=settings.estimators,
                models=settings.models,
                folds=settings.folds or FOLDS,
                last=settings.last,
                jobs=jobs,
                cluster=cluster,
                progress=progress,
            )
        )
    files = [Path(experiment.file or experiment.name) for experiment in experiments]
    return compared[0] if len(compared) == 1 else _joined(files, compared)


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
