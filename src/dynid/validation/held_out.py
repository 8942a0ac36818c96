"""Prediction of logs that were not used: by the identification itself, or later from its result."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.errors import InputError
from dynid.common.notices import Notice, at_level, notice
from dynid.conditioning.lowpass import RowFilter
from dynid.experiment.experiment import Experiment, FilterSettings
from dynid.experiment.provenance import fitted_inputs, recorded_loads, unloaded_inputs
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.fingerprint import comparable, fingerprint, shares_samples
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import ColumnMap, column_maps
from dynid.prediction.mounted import NONE, mounted, payloads_of, refuse_unloaded
from dynid.prediction.result_values import saved, standard_values, with_result_gains
from dynid.problem import Problem, as_logs, prepare
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.model import RowSource
from dynid.projection.projection import Directions
from dynid.statistics.estimate import Estimate, GroupFit, Validation
from dynid.statistics.estimate_parts import Signals, Verdict, level_of, log_error, worst
from dynid.statistics.prediction import Prediction, predict_rows, unfiltered
from dynid.statistics.tension import tension_of

_POOR_TIMES, _POOR_PERCENT = 3.0, 2.0  # a good log is suspicious above both: of the error before, of the peak
_PASSING = 2.0  # the low-pass on coordinates attenuates by 0.4 % at half its cutoff
Predicted = tuple[tuple[Validation, ...], tuple[Signals, ...]]


def validate_result(
    result: str | os.PathLike[str] | Estimate,
    logs: Sequence[LogSource],
    robot: str | os.PathLike[str] | Mechanism | None = None,
    payloads: Sequence[str] | None = None,
    *,
    columns: Mapping[str, ColumnMap | str | Mapping[str, Any]] | None = None,
    drop_bad_rows: bool = False,
) -> Predicted:
    """Predict other logs with a result: its file or folder, or the estimate itself.

    The settings are those the result was made with, as its provenance recorded them.

    Args:
        result: File, folder or estimate.
        logs: Files or logs to predict.
        robot: Default: the robot named in the result's provenance.
        payloads: Mounted in all logs that name none themselves; empty: none are. Default: what every log of
            the fit carried, and a warning where the result knows a payload.
        columns: Signal -> column of these logs, as of `identify`. Default: as when the result was made.
        drop_bad_rows: Drop rows with cells that are no numbers, also if the identification did not.
    """
    estimate, experiment, mechanism = saved(result, robot)
    if columns is not None:
        experiment = experiment.changed(columns=column_maps(columns))
    if drop_bad_rows:
        experiment = experiment.changed(drop_bad_rows=True)
    read = as_logs(logs, mechanism, experiment)
    loads, assumed = mounted(estimate, mechanism, payloads)
    open_logs = [not log.payloads for log in read]
    read = [
        replace(log, payloads=loads, notices=(*log.notices, *assumed)) if is_open else log
        for log, is_open in zip(read, open_logs, strict=True)
    ]
    validations, shown = _predicted(estimate, experiment, mechanism, read)
    judged = [_judged(prediction, estimate.verdict) for prediction in validations]
    for i, log in enumerate(read):
        poor = _poor(judged[i])
        if assumed and open_logs[i] and poor is not None:
            judged[i] = _with_likely_payload(judged[i], poor, estimate, experiment, mechanism, log)
    return tuple(judged), shown


def with_errors(
    validations: Sequence[Validation], signals: Sequence[Signals], verdict: Verdict
) -> tuple[Validation, ...]:
    """Validations with their model errors, which the noise floors of the verdict define.

    Args:
        validations: Of the logs.
        signals: Of the same logs, in their order.
        verdict: Of the result.
    """
    pairs = zip(validations, signals, strict=True)
    return tuple(replace(item, error=log_error(part, verdict)) for item, part in pairs)


def _predicted(
    estimate: Estimate, experiment: Experiment, mechanism: Mechanism, logs: Sequence[Log]
) -> Predicted:
    """Predict logs, with the payloads that they name, by the settings of a result."""
    if experiment.unloaded is None:  # else the robot without load is known for itself
        for log in logs:
            loads = recorded_loads(estimate.provenance)
            refuse_unloaded(loads, mechanism.payloads, log.payloads, f"log '{log.name}'")
    logs = with_result_gains(logs, estimate, experiment)
    experiment = experiment.changed(filter=_velocity_for(logs, experiment.filter))
    with single_threaded_blas():
        problem = prepare(mechanism, logs, experiment)
        if filters_rows(problem):
            problem = problem.on(logs, held_out_plans(problem, logs, experiment), experiment)
        predictor_values = problem.case.predicting(problem, estimate, mechanism)
        if predictor_values is not None:
            problem, chi = predictor_values
        else:
            chi = standard_values(
                estimate,
                problem.mechanism,
                problem.parameters,
                experiment,
                problem.model,
                problem.directions,
                mechanism.payloads,
            ).chi
        used = (*fitted_inputs(estimate.provenance), *unloaded_inputs(experiment))
        checked, shown = predict(problem, chi, used)
        return with_errors(checked, shown, estimate.verdict), shown


def _judged(validation: Validation, verdict: Verdict) -> Validation:
    """With a warning where the verdict on this log alone would not be good, or it is far worse than before.

    Before: on the unseen motion of the identification.
    """
    error = validation.error
    if not error.worst:
        return validation
    before = max((joint.error_percent for joint in verdict.joints), default=np.inf)
    level = level_of(error.percent, verdict.purpose)
    if level == "good" and error.percent <= max(_POOR_TIMES * before, _POOR_PERCENT):
        return validation
    compared = f", {before:.2g} % when identified" if np.isfinite(before) else ""
    poor = notice("poor-prediction", percent=error.percent, worst=error.worst, compared=compared)
    poor = at_level(poor, worst([level, "care"]))
    return replace(validation, warnings=(*validation.warnings, poor))


def _poor(validation: Validation) -> Notice | None:
    """The warning of a log that is predicted poorly."""
    return next((item for item in validation.warnings if item.code == "poor-prediction"), None)


def _with_likely_payload(
    validation: Validation,
    poor: Notice,
    estimate: Estimate,
    experiment: Experiment,
    mechanism: Mechanism,
    log: Log,
) -> Validation:
    """A poorly predicted log whose payload was not named: with the one, or none, that predicts it well."""
    loads = [(), *((name,) for name in payloads_of(estimate, mechanism))]
    for load in loads:
        if load == log.payloads:
            continue
        try:
            ((other,), _) = _predicted(estimate, experiment, mechanism, [replace(log, payloads=load)])
        except InputError:  # the robot without its payload is not known
            continue
        if not _poor(_judged(other, estimate.verdict)):
            found = notice(
                "poor-prediction",
                "payload",
                percent=validation.error.percent,
                worst=validation.error.worst,
                other=other.error.percent,
                what=f"with payload '{load[0]}'" if load else "without payload",
                name=load[0] if load else NONE,
            )
            kept = [
                item for item in validation.warnings if item is not poor and item.code != "payload-assumed"
            ]
            return replace(validation, warnings=(*kept, at_level(found, poor.level)))
    return validation


def held_out_problem(problem: Problem, held_out: Sequence[Log], experiment: Experiment) -> Problem | None:
    """The same equations along other logs, with the filters of the identification; None without logs.

    Args:
        problem: The identification.
        held_out: Logs to predict.
        experiment: Its settings.
    """
    if not held_out:
        return None
    for log in held_out if experiment.unloaded is None else ():
        refuse_unloaded(problem.loads, problem.mechanism.payloads, log.payloads, f"log '{log.name}'")
    return problem.on(held_out, held_out_plans(problem, held_out, experiment), experiment)


def predict_held_out(
    problem: Problem, held: Problem | None, chi: Float[Array, "p"], experiment: Experiment
) -> Predicted:
    """Predict logs with the filters that the identification used.

    Args:
        problem: The identification.
        held: The logs to predict (`held_out_problem`).
        chi: Standard parameters that give the same efforts as its estimate, shape (p,), SI.
        experiment: Its settings.
    """
    if held is None:
        return (), ()
    used = [{"sha256": log.sha256, "samples": fingerprint(log)} for log in problem.logs]
    return predict(held, chi, (*used, *unloaded_inputs(experiment)))


def held_out_plans(problem: Problem, logs: Sequence[Log], experiment: Experiment) -> tuple[MotionPlan, ...]:
    """Filters of a problem for logs that it has not seen; measured velocities if all of these have them."""
    plan = problem.plans[0]
    chosen = experiment.filter.changed(
        cutoff=plan.cutoff,
        decimate=plan.decimate,
        derivative=plan.derivative,
        velocity=plan.velocity if all(log.dq is not None for log in logs) else "derived",
        kind=plan.kind,
    )
    if filters_rows(problem):
        cutoff = min(_PASSING * plan.rows_cutoff, 0.2 / plan.dt)  # what the rows of the fit used passes whole
        chosen = chosen.changed(kind=FilterSettings().kind, cutoff=cutoff)
    return problem.case.plans(logs, problem.mechanism, experiment, chosen)


def filters_rows(problem: Problem) -> bool:
    """Whether a fit filters rows, not coordinates: efforts are predicted from smooth coordinates."""
    noisy = problem.plans[0].kind == "none" and bool(np.any(problem.directions.homogeneous))
    return noisy and not problem.case.moves_freely


def predict(problem: Problem, chi: Float[Array, "p"], used: Sequence[Mapping[str, Any]]) -> Predicted:
    """Predict every log of a problem; those that share samples with one of `used` are not independent.

    Args:
        problem: The logs to predict.
        chi: Standard parameters, shape (p,), SI.
        used: Of every log of the fit its fingerprint (`samples`) and the hash of its file (`sha256`), which
            decides where older results have no fingerprint.
    """
    checked: list[Validation] = []
    shown: list[Signals] = []
    predicted = problem.by_efforts(chi)
    sources = problem.with_load_parameters(chi).sources
    for source, efforts, rows, log in zip(sources, predicted, problem.filters, problem.logs, strict=True):
        filtered = predict_rows(source, rows, chi, validation=True)
        simulated = problem.case.simulated
        runs = simulated.runs(problem, len(checked), chi, filtered.runs()) if simulated else ()
        logged = filtered if simulated else predict_rows(efforts, unfiltered(log.dt), chi, validation=True)
        if not filtered.count.any():
            raise InputError(
                f"no sample of log '{log.name}' can be predicted: all are masked, or have no effort",
                file=log.file,
                remedy="leave this log out, or check its speeds and effort columns",
            )
        groups = tuple(group for group in _groups(problem, logged, efforts.directions) if group.n_rows)
        own = fingerprint(log) if used else ()
        independent = not _is_among(log, own, used)
        off = float("nan") if simulated else logged.percent
        notices = (*log.notices, *source.notices, *(_unproven(log, own, used) if independent else ()))
        checked.append(Validation(log.name, independent, filtered.percent, off, groups, notices, runs))
        shown.append(_with_tension(problem, source, rows, chi, filtered.signals))
    return tuple(checked), tuple(shown)


def _is_among(log: Log, own: Collection[str], used: Sequence[Mapping[str, Any]]) -> bool:
    """Whether samples of a log, or the file where no samples were recorded, are in one of the fit."""
    return any(
        shares_samples(own, entry["samples"])
        if entry.get("samples")
        else log.sha256 is not None and log.sha256 == entry.get("sha256")
        for entry in used
    )


def _unproven(log: Log, own: Collection[str], used: Sequence[Mapping[str, Any]]) -> Iterator[Notice]:
    """That a log is too short to be recognised if it is a part of one of the fit."""
    known = [entry["samples"] for entry in used if entry.get("samples")]
    if not all(comparable(own, samples) for samples in known):
        yield notice("validation-unproven", log=log.name)


def _groups(problem: Problem, prediction: Prediction, directions: Directions) -> tuple[GroupFit, ...]:
    """Every effort on its own; of tables forces and moments of each body, as in the fit.

    A row with several motors is not one effort: its name shows this.
    """
    if not problem.case.is_series:
        return prediction.groups(directions.group_names)
    felt = np.count_nonzero(directions.effort_map, axis=1)
    shared = {name for name, count in zip(directions.names, felt.tolist(), strict=True) if count > 1}
    return tuple(
        replace(group, name=f"J_a^T tau along {group.name}") if group.name in shared else group
        for group in prediction.groups()
    )


def fitted_signals(problem: Problem, chi: Float[Array, "p"]) -> tuple[Signals, ...]:
    """Measured against predicted rows of the logs of a fit, with the tension of redundant robots."""
    shown = []
    for source, rows in zip(problem.sources, problem.filters, strict=True):
        signals = predict_rows(source, rows, chi).signals
        shown.append(_with_tension(problem, source, rows, chi, signals))
    return tuple(shown)


def _with_tension(
    problem: Problem, source: RowSource, rows: RowFilter, chi: Float[Array, "p"], signals: Signals
) -> Signals:
    if not problem.case.is_series:
        return signals
    kinematics = kinematics_along(problem.mechanism, source.motion)
    closure = kinematics.residuals(signals.t) if isinstance(kinematics, ClosedKinematics) else {}
    tension = tension_of(problem.mechanism, problem.parameters, source, rows, chi)
    return replace(signals, tension=tension, closure=closure)


def _velocity_for(logs: Sequence[Log], settings: FilterSettings) -> FilterSettings:
    """Measured velocities only where every log has them."""
    if all(log.dq is not None for log in logs):
        return settings
    return settings.changed(velocity="derived")
