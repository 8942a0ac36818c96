"""From a robot and its logs to an estimate with a verdict: `_identified` is the flow on one screen.

settings left open are chosen -> fit -> checks -> prediction of logs that were not used -> causes -> verdict.
`fit_task` of `fit.py` is the inner half: unknowns settled, system, base parameters, estimate, covariance.
Command line, notebooks and the studio all identify by these functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from dynid.base.grouping import Symbols
from dynid.base.structural import grouping_symbols
from dynid.case import with_defaults
from dynid.checks import CHECKS
from dynid.checks.check import Finished, run_checks
from dynid.checks.description_effects import described, sensitive
from dynid.checks.summary import choices_of, description_files
from dynid.checks.tested_rows import begin_tests
from dynid.choice.choose import choose
from dynid.choice.excerpt import words as excerpt_words
from dynid.common.batched import single_threaded_blas
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, forced
from dynid.common.paged import stoppable
from dynid.display.drawing import drawing_of
from dynid.experiment.experiment import Experiment, experiment_from
from dynid.experiment.file import load_experiment
from dynid.experiment.provenance import provenance
from dynid.fit import Fit, fit_task
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log, named_apart
from dynid.motion.logs import LogSource
from dynid.problem import Problem, Progress, as_asked, as_logs, build_system, prepare, several
from dynid.regressor.kernels_ahead import prepare_kernels
from dynid.report.corrected import with_whole_entries
from dynid.statistics.assemble import history_of
from dynid.statistics.estimate import Estimate
from dynid.unknown import Task
from dynid.validation.causes import with_causes
from dynid.validation.closing import with_likely_cause
from dynid.validation.crossvalidation import cross_validate_and_gate
from dynid.validation.folds import split_hold_out
from dynid.validation.held_out import (
    fitted_signals,
    held_out_problem,
    predict_held_out,
    validate_result,
    with_errors,
)
from dynid.validation.left_out import with_tried_stretches
from dynid.validation.unseen import unseen_errors
from dynid.validation.verdict import verdict_of

__all__ = [
    "build_system",
    "identify",
    "identify_logs",
    "prepare",
    "read_logs",
    "run_experiment",
    "validate_result",
]


def identify(
    robot: str | os.PathLike[str] | Mechanism,
    log: LogSource | Sequence[LogSource],
    *,
    validate: LogSource | Sequence[LogSource] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Estimate:
    """Identify a robot from logs; options are the fields of `Experiment`, or as in its file.

    Args:
        robot: Built-in name, description file, or a mechanism.
        log: One log or several: files, `Log` objects (see `log_from_arrays`), data frames, or mappings of
            column names to arrays.
        validate: One log or several to predict with the result.
        progress: Called with a stage and the fraction of it done.
        options: `model`, `estimator`, `filter`, `mask`, `efforts`, `essential`, `keep`, ...
    """
    mechanism = load_robot(robot)
    experiment = experiment_from({"robot": mechanism, **options})
    return _identify_sources(mechanism, several(log), several(validate), experiment, progress)


def run_experiment(
    experiment: Experiment | str | os.PathLike[str],
    progress: Progress | None = None,
    show: Callable[[Sequence[Log]], None] | None = None,
    fitted: Callable[[Fit], None] | None = None,
) -> Estimate:
    """Identify with all settings of an experiment file.

    Args:
        experiment: What to identify, from which logs; or its file.
        progress: Called with a stage and the fraction of it done.
        show: Called with all logs when they are read, before anything is computed.
        fitted: Called with the fit, before it is checked and judged.
    """
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    mechanism = load_robot(experiment.robot)
    sources = experiment.logs, experiment.validate
    return _identify_sources(mechanism, *sources, experiment, progress, show, fitted)


def read_logs(experiment: Experiment) -> list[Log]:
    """The logs of an experiment, those to fit first; nothing is computed."""
    mechanism = as_asked(load_robot(experiment.robot), experiment)
    return as_logs((*experiment.logs, *experiment.validate), mechanism, experiment)


def _identify_sources(
    mechanism: Mechanism,
    logs: Sequence[LogSource],
    held_out: Sequence[LogSource],
    experiment: Experiment,
    progress: Progress | None,
    show: Callable[[Sequence[Log]], None] | None = None,
    fitted: Callable[[Fit], None] | None = None,
) -> Estimate:
    mechanism = as_asked(mechanism, experiment)
    prepare_kernels(mechanism, logs=True)
    with forced(experiment.force):
        read = as_logs(logs, mechanism, experiment)
        unseen = as_logs(held_out, mechanism, experiment)
    if show is not None:
        show([*read, *unseen])
    read, unseen = split_hold_out(read, unseen, experiment.hold_out)
    return identify_logs(mechanism, read, unseen, experiment, progress, fitted=fitted)


def identify_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log] = (),
    experiment: Experiment | None = None,
    progress: Progress | None = None,
    truth: Mapping[str, float] | None = None,
    fitted: Callable[[Fit], None] | None = None,
) -> Estimate:
    """Identify from logs already read; the other entrances end here.

    Args:
        mechanism: The robot.
        logs: To identify from.
        validate: To predict with the result.
        experiment: Settings; default all chosen from the data.
        progress: Called with a stage and the fraction of it done.
        truth: True standard parameters by name, where a simulation knows them.
        fitted: Called with the fit, before it is checked and judged.
    """
    asked = experiment or Experiment(robot=mechanism)
    named = tuple(named_apart([*logs, *validate]))
    task = Task(mechanism, named[: len(logs)], asked, named[len(logs) :], progress=progress)
    with forced(asked.force), single_threaded_blas(), stoppable():
        return _identified(task, truth, fitted)


def _identified(
    task: Task, truth: Mapping[str, float] | None, fitted: Callable[[Fit], None] | None
) -> Estimate:
    """The flow from a task to an estimate with its verdict."""
    robot, asked = task.mechanism, task.experiment
    try:
        task, tried, notices = choose(task)
        fit = fit_task(task, symbols=_symbols)
    except InputError as error:
        raise with_likely_cause(error, task) from error
    if fitted is not None:
        fitted(fit)
    signals = fitted_signals(fit.problem, fit.chi)
    unseen_problem = cache(lambda: held_out_problem(fit.problem, fit.task.held_out, fit.experiment))
    predicted = cache(lambda: predict_held_out(fit.problem, unseen_problem(), fit.chi, fit.experiment))
    finished = Finished(fit, lambda: predicted()[0])
    begin_tests(finished)
    checked = run_checks(finished, CHECKS.values())
    validation, unseen = predicted()
    gate_words, refusal = cross_validate_and_gate(fit)
    decided = {**gate_words, **(excerpt_words(task.logs) if tried else {})}
    estimate = replace(
        _content(fit, asked, task.experiment, checked, decided, notices),
        validation=validation,
        signals=(*signals, *unseen),
        truth=None if truth is None else fit.true_values(truth),
        tried=tried,
        mechanism=robot,
        drawing=drawing_of(fit, signals, unseen_problem(), unseen),
    )
    errors = unseen_errors(fit, estimate.signals, estimate.validation)
    estimate = with_tried_stretches(fit, with_causes(fit, replace(estimate, verdict=errors)))
    warnings = with_whole_entries(estimate.warnings, asked.tree().get("columns", {}))
    estimate = replace(estimate, warnings=warnings)
    failure = fit.no_consistent_set or refusal or fit.not_converged
    verdict = verdict_of(fit, estimate, failure)
    estimate = replace(estimate, verdict=verdict, validation=with_errors(validation, unseen, verdict))
    if failure:
        raise NoResultError(failure, estimate)
    return estimate


def _content(
    fit: Fit,
    asked: Experiment,
    chosen: Experiment,
    checked: Finished,
    choices: Mapping[str, str],
    notices: Sequence[Notice],
) -> Estimate:
    """All of an estimate that follows from the fit and its checks.

    Args:
        fit: With everything that was searched.
        asked: The experiment as it was given.
        chosen: The experiment that was fitted, before anything was searched.
        checked: Answers of the checks.
        choices: What was decided besides, in words.
        notices: What was noticed before the fit.
    """
    problem, parts, task = fit.problem, fit.parts, fit.task
    before = with_defaults(task.mechanism, chosen)
    description = described(fit)
    entries = () if fit.standard is None else tuple(fit.standard.entries)
    recorded_as, standard, files = problem.case.recorded(fit, entries)
    return Estimate(
        robot=task.mechanism.name,
        model=problem.model.key,
        estimator=fit.experiment.estimator,
        parameters=parts.parameters,
        not_identifiable=parts.not_identifiable,
        fit=parts.fit,
        covariance=parts.covariance,
        shared=parts.shared,
        warnings=(*notices, *checked.notices, *sensitive(description, parts.parameters)),
        uncertainty=parts.spread.facts,
        correlations=parts.correlations,
        invisible=parts.invisible,
        choices=choices_of(fit, checked.choices, choices),
        provenance=provenance(
            task.mechanism, task.logs, task.held_out, recorded_as, problem.plans[0], before, asked
        ),
        standard=standard,
        residual_tests=checked.tests,
        history=history_of(fit.linear, parts.parameters),
        files={**files, **description_files(fit)},
        description=description,
    )


def _symbols(problem: Problem, experiment: Experiment) -> Symbols:
    """Names of dimensions for the groupings."""
    ties = experiment.tie_names()
    return grouping_symbols(
        problem.mechanism,
        problem.model,
        ties=ties,
        rows=problem.directions.names,
        loads=problem.loads,
        base=None if problem.mechanism.is_closed else problem.base(ties),
    )
