"""Comparison of fits on the same logs: drive terms, estimators, models.

Everything else is equal: logs, filters, masks, and held-out samples.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dynid.case import task_case, with_defaults, with_mounted
from dynid.common.batched import single_threaded_blas
from dynid.common.catalogue import CATALOGUE
from dynid.common.errors import DynidError, InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named, gives_bodies, solve_weighted
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.fit import Fit, fit_task
from dynid.mechanism.drive_terms import FRICTION_SETS, NO_FRICTION
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.variant import drive_names
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.motion.plan import MotionPlan
from dynid.problem import Progress, as_asked, as_logs
from dynid.statistics.assemble import fit_of
from dynid.statistics.comparison import Comparison, FTest, Line, bic, f_test, recommend
from dynid.statistics.covariance import covariance_of
from dynid.unknown import Task
from dynid.unknowns.drive_gains import settle_gains
from dynid.validation.crossvalidation import FoldTask, HeldOut, cross_validation, fold_errors
from dynid.validation.folds import FOLDS, Fold, folds, last_part


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One way to fit: a robot and settings under a name."""

    label: str
    mechanism: Mechanism
    experiment: Experiment


def compare_friction(
    robot: str | os.PathLike[str] | Mechanism,
    log: LogSource | Sequence[LogSource],
    *,
    sets: Sequence[Sequence[str]] | None = None,
    folds: int = FOLDS,
    last: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare sets of drive terms on the same logs, and recommend one.

    Args:
        robot: Built-in name, description file, or a mechanism.
        log: One log or several: files, or `Log` objects.
        sets: Drive terms of every joint or motor that has any; default `FRICTION_SETS`, with Ia and Off
            where the robot has them. The first set is what the others are measured by.
        folds: Of the cross-validation; see `dynid.validation.held_out` for how logs are cut.
        last: Hold out only this last share of each log instead: one fit, but one opinion.
        progress: Called with a stage and the fraction of it done.
        options: Fields of `Experiment`, as for `identify`.
    """
    mechanism = load_robot(robot)
    several = log if isinstance(log, Sequence) and not isinstance(log, str) else [log]
    experiment = experiment_from({"robot": mechanism, **options})
    logs = as_logs(several, mechanism, experiment)
    drives = friction_sets(mechanism) if sets is None else sets
    return compare_logs(mechanism, logs, experiment, drives=drives, folds=folds, last=last, progress=progress)


def friction_sets(mechanism: Mechanism) -> tuple[tuple[str, ...], ...]:
    """`FRICTION_SETS` with the rotor inertia and offset that the robot has."""
    present = {symbol for symbols in mechanism.drive.values() for symbol in symbols}
    kept = [symbol for symbol in NO_FRICTION if symbol in present or not present]
    return tuple(_ordered((*kept, *terms)) for terms in FRICTION_SETS)


def compare_experiment(
    experiment: Experiment,
    *,
    drives: Sequence[Sequence[str]] | None = None,
    estimators: Sequence[str] = (),
    models: Sequence[str] = (),
    folds: int = FOLDS,
    last: float | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare variants of one experiment; arguments as for `compare_logs`."""
    mechanism = load_robot(experiment.robot)
    logs = as_logs(experiment.logs, as_asked(mechanism, experiment), experiment)
    return compare_logs(
        mechanism,
        logs,
        experiment,
        drives=drives,
        estimators=estimators,
        models=models,
        folds=folds,
        last=last,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
    )


def compare_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    experiment: Experiment,
    *,
    drives: Sequence[Sequence[str]] | None = None,
    estimators: Sequence[str] = (),
    models: Sequence[str] = (),
    folds: int = FOLDS,
    last: float | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Every combination of drive terms, estimators and models, fitted to the same logs.

    Args:
        logs: To fit and to predict.
        experiment: Everything that is not compared.
        drives: Sets of drive terms; default: those that the robot or the experiment has.
        estimators, models: Names; default: those of the experiment.
        folds: Of the cross-validation; see `dynid.validation.held_out` for how logs are cut.
        last: Hold out only this last share of each log instead: one fit, but one opinion.
        jobs: Processes that fit the folds of all combinations; 1: this one.
        cluster: Address of a Dask scheduler instead.
        progress: Called with a stage and the fraction of it done.
    """
    with single_threaded_blas():
        task = Task(as_asked(mechanism, experiment), tuple(logs), experiment, progress=progress)
        logs = settle_gains(task).task.logs
    plain = experiment.changed(gains=None)
    usual = with_defaults(task.mechanism, experiment).estimator
    candidates = _candidates(mechanism, plain, drives, estimators, models)
    parts = _parts(logs, folds, last)
    plans: dict[str, Sequence[MotionPlan]] = {}
    lines: list[Line] = []
    notices: list[Notice] = []
    solved: list[Fit | None] = []
    known = [_plans(candidate, logs, plans) for candidate in candidates]
    tasks = [
        FoldTask(candidate.mechanism, fold, candidate.experiment, of_logs)
        for candidate, of_logs in zip(candidates, known, strict=True)
        for fold in parts
    ]
    errors = fold_errors(tasks, jobs, cluster, progress)
    for i, candidate in enumerate(candidates):
        folded = errors[i * len(parts) : (i + 1) * len(parts)]
        line, fit, remedy = _line(candidate, logs, parts, known[i], folded, progress)
        lines.append(line)
        solved.append(fit)
        if line.failed:
            notices.append(notice("not-compared", label=line.label, reason=line.failed, remedy=remedy))
    with single_threaded_blas():
        lines = _judged(lines, solved)
    label, words = recommend(lines, usual)
    how = f"{len(parts)} folds, every run or part held out once"
    if last is not None:
        how = f"the last {100 * last:.3g} % of every log held out"
    notices += _uneven(lines, solved)
    return Comparison(
        f"{mechanism.name}: {experiment.name}", how, tuple(lines), label, words, (), tuple(notices)
    )


def _candidates(
    mechanism: Mechanism,
    experiment: Experiment,
    drives: Sequence[Sequence[str]] | None,
    estimators: Sequence[str],
    models: Sequence[str],
) -> list[_Candidate]:
    """Combinations, each with a name that shows its difference from the others."""
    if experiment.unloaded is not None:
        raise InputError(
            "payloads identified with `unloaded:` cannot be compared",
            file=experiment.file,
            place="unloaded",
            remedy="compare ways to fit the robot itself, without `unloaded:`",
        )
    sets: list[tuple[str, ...] | None] = [None] if drives is None else [_ordered(group) for group in drives]
    names = tuple(estimators) or (experiment.estimator,)
    chosen = tuple(models) or (experiment.model or with_mounted(mechanism, experiment).model,)
    candidates = []
    for drive, estimator, model in product(sets, names, chosen):
        # Options belong to the estimator that the experiment names.
        options = experiment.estimator_options if estimator == experiment.estimator else {}
        variant = experiment.changed(estimator=estimator, estimator_options=options, model=model)
        variant = variant if drive is None else variant.changed(drive=drive)
        parts = [
            " ".join(drive or ("no drive terms",)) if drive is not None and len(sets) > 1 else "",
            model if len(chosen) > 1 else "",
            estimator if len(names) > 1 else "",
        ]
        label = ", ".join(part for part in parts if part) or f"{model}, {estimator}"
        candidates.append(_Candidate(label, as_asked(mechanism, variant), variant))
    return candidates


def _ordered(symbols: Sequence[str]) -> tuple[str, ...]:
    for symbol in symbols:
        if symbol not in drive_names():
            from dynid.common.errors import nearest

            raise InputError(f"unknown drive term '{symbol}'" + nearest(symbol, drive_names()))
    return tuple(symbol for symbol in drive_names() if symbol in symbols)


def _parts(logs: Sequence[Log], count: int, last: float | None) -> tuple[Fold, ...]:
    return folds(logs, count) if last is None else last_part(logs, last)


def _plans(
    candidate: _Candidate, logs: Sequence[Log], known: dict[Any, Sequence[MotionPlan]]
) -> Sequence[MotionPlan]:
    """Filters and masks as an identification by the candidate's model; one set for each way."""
    settings = candidate.experiment
    case = task_case(candidate.mechanism, settings)
    way = type(case).plans
    if way not in known:
        with single_threaded_blas():
            known[way] = case.plans(logs, candidate.mechanism, settings)
    return known[way]


def _line(
    candidate: _Candidate,
    logs: Sequence[Log],
    parts: Sequence[Fold],
    plans: Sequence[MotionPlan],
    folded: Sequence[HeldOut | Exception],
    progress: Progress | None,
) -> tuple[Line, Fit | None, str]:
    """Held-out errors of a candidate, and its fit to all data; or what failed, and a remedy."""
    robot, settings = candidate.mechanism, candidate.experiment
    line = Line(candidate.label, settings.model or robot.model, settings.estimator, drive_words(robot))
    try:
        errors = cross_validation(parts, folded, settings)
        with single_threaded_blas():
            task = Task(robot, tuple(logs), settings, plans=plans, progress=progress)
            fit = fit_task(task, refit=True)
        if fit.failure:
            raise NoResultError(fit.failure)
    except InputError as error:
        return replace(line, failed=error.text), None, error.remedy or ""
    except DynidError as error:
        return replace(line, failed=str(error)), None, _remedy(settings)
    total = errors.total
    used = fit.solution if fit.reduced is None else fit.reduced.solution
    line = replace(
        line,
        n_parameters=len(used.chi),
        fit_percent=fit_of(fit.data, used).residual_percent,
        held_out_percent=total.percent,
        effort_percent=None if total.simulated else total.effort_percent,
        by_effort=total.by_effort,
        folds=tuple(fold.percent for fold in errors.errors),
    )
    return line, fit, ""


def _remedy(experiment: Experiment) -> str:
    """If a fit has no result: what its estimator needs, or where to find details."""
    if gives_bodies(experiment.estimator):
        return CATALOGUE["not-consistent"].template.remedy
    return f"for details run 'dynid identify' with estimator: {experiment.estimator}"


def drive_words(robot: Mechanism) -> str:
    """Drive terms of a robot as a short text."""
    kinds = dict.fromkeys(robot.drive.values())
    if len(kinds) <= 1:
        return " ".join(next(iter(kinds), ())) or "none"
    return "; ".join(f"{owner}: {' '.join(symbols)}" for owner, symbols in robot.drive.items())


def _judged(lines: list[Line], solved: Sequence[Fit | None]) -> list[Line]:
    """Change against the first line, F-test and BIC where the rows are the same."""
    known = [fit for fit in solved if fit is not None]
    if not known or solved[0] is None:
        return lines
    first, reference = lines[0], solved[0]
    largest = max(known, key=lambda fit: len(fit.measured.system.parameters))
    worth = rows_worth_one(largest)
    judged = []
    for line, fit in zip(lines, solved, strict=True):
        if fit is None:
            judged.append(line)
            continue
        if first.error and line is not first:
            line = replace(line, change_percent=100.0 * ((line.error or 0.0) / first.error - 1.0))
        if _same_rows(fit, reference):
            weighted = estimator_named("wls")(fit.measured.system)
            counts = np.array([group.n_rows for group in fit.measured.system.groups])
            line = replace(line, bic=bic(weighted.residual_norms, counts, len(weighted.chi), worth))
            test = _nested(reference, fit, worth)
            line = line if test is None else replace(line, F=test.F, p=test.p)
        judged.append(line)
    return judged


def rows_worth_one(fit: Fit) -> float:
    """How many neighbouring rows are worth one: robust over classical variance of the parameters."""
    solution = estimator_named("wls")(fit.measured.system)
    inflation = max(group.inflation for group in fit.measured.system.groups)
    spread = covariance_of(fit.measured.blocked(), solution, None, fit.measured.system)
    ratio = np.diag(spread.covariance) / np.maximum(np.diag(solution.covariance), np.finfo(float).tiny)
    return float(inflation * max(1.0, np.median(ratio)))


def _same_rows(fit: Fit, reference: Fit) -> bool:
    def rows(solved: Fit) -> list[tuple[str, str, int]]:
        return [(group.name, group.log, group.n_rows) for group in solved.measured.system.groups]

    return rows(fit) == rows(reference)


def _nested(small: Fit, large: Fit, worth: float) -> FTest | None:
    """F-test with the weights of the smaller model, if its drive terms are among those of the larger."""
    inner, outer = small.problem.mechanism.drive, large.problem.mechanism.drive
    within = all(set(symbols) <= set(outer.get(owner, ())) for owner, symbols in inner.items())
    if not within or small is large or small.problem.mechanism.terms != large.problem.mechanism.terms:
        return None
    reduced = estimator_named("wls")(small.measured.system)
    other = solve_weighted(large.measured.system, reduced.weights)
    n_rows = sum(group.n_rows for group in large.measured.system.groups)
    more = len(other.chi) - len(reduced.chi)
    return f_test(reduced.residual_norm, other.residual_norm, more, n_rows, len(other.chi), worth)


def _uneven(lines: Sequence[Line], solved: Sequence[Fit | None]) -> list[Notice]:
    """Lines whose rows differ although the model is the same: masks follow the friction terms."""
    first = next((fit for fit in solved if fit is not None), None)
    if first is None:
        return []
    names = [
        line.label
        for line, fit in zip(lines, solved, strict=True)
        if fit is not None and fit.problem.model is first.problem.model and not _same_rows(fit, first)
    ]
    if not names:
        return []
    return [notice("rows-differ", names=", ".join(names))]
