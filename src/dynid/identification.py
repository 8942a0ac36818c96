"""The whole data flow on one screen: from a robot and its logs to an estimate.

description + log -> motion -> rows of a model -> triangular factors -> base parameters
-> estimate -> statistics -> validation. The command line calls these functions and no others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.base.base import BaseSet, tie_regrouped
from dynid.base.grouping import Symbols
from dynid.base.system import BaseSystem, base_system
from dynid.checks import check_estimate, check_validation
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.conditioning.stream import stream
from dynid.errors import InputError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.experiment import Experiment, FilterSettings, LogEntry
from dynid.info import grouping_symbols, known_columns, structural_base, tie_groups, variant
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.motion.log import Log
from dynid.motion.logs import read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.projection.inverse import choose_rows, inverse_directions
from dynid.projection.projection import Directions, Group, System
from dynid.projection.rows import TreeRows
from dynid.provenance import provenance
from dynid.regressor.layout import ABSENT
from dynid.statistics.assemble import EstimateParts, estimate_parameters
from dynid.statistics.essential import EssentialRule, Reduced, essential_parameters, keep_parameters
from dynid.statistics.estimate import Estimate, Signals, Validation
from dynid.statistics.prediction import predict_rows, unfiltered
from dynid.threads import single_threaded_blas

Progress = Callable[[str, float], None]
MODELS = ("inverse",)


def identify(
    robot: str | os.PathLike[str] | Mechanism,
    log: str | os.PathLike[str] | Log | Sequence[str | os.PathLike[str] | Log],
    *,
    validate: Sequence[str | os.PathLike[str] | Log] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Estimate:
    """Identify a robot from logs; options are the fields of `Experiment`.

    Args:
        robot: Built-in name, description file, or a mechanism.
        log: One log or several: files, or `Log` objects (see `log_from_arrays`).
        validate: Logs to predict with the result.
        options: `model`, `estimator`, `filter`, `mask`, `efforts`, `essential`, `keep`, ...
    """
    many = [log] if isinstance(log, str | os.PathLike | Log) else list(log)
    mechanism = load_robot(robot)
    experiment = Experiment(robot=mechanism, **options)
    return identify_logs(
        mechanism,
        [_as_log(one, mechanism, experiment) for one in many],
        [_as_log(one, mechanism, experiment) for one in validate],
        experiment,
        progress,
    )


def run_experiment(experiment: Experiment, progress: Progress | None = None) -> Estimate:
    """The main job: everything an experiment file asks for."""
    mechanism = load_robot(experiment.robot)
    if experiment.payloads:
        mechanism = replace(mechanism, payloads={**mechanism.payloads, **experiment.payloads})
    logs = [_as_log(entry, mechanism, experiment) for entry in experiment.logs]
    held_out = [_as_log(entry, mechanism, experiment) for entry in experiment.validate]
    return identify_logs(mechanism, logs, held_out, experiment, progress)


def identify_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log] = (),
    experiment: Experiment | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """Identify from logs already read; the other entrances end here."""
    experiment = experiment or Experiment(robot=mechanism)
    with single_threaded_blas():
        return _identify(mechanism, logs, validate, experiment, progress)


def _identify(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log],
    experiment: Experiment,
    progress: Progress | None,
) -> Estimate:
    job = prepare(mechanism, logs, experiment)
    system = build_system(job, progress)
    base = _base(job, experiment)
    data = base_system(system, base)
    solution = estimator_named(experiment.estimator)(data.system)
    reduced = _reduced(experiment, data, solution)
    parts = estimate_parameters(
        data, solution, essential=reduced, priors=_priors(job.mechanism), symbols=_symbols(job, experiment)
    )
    chi = standard_values(data, parts, reduced)
    signals = tuple(_fit_signals(job, k, chi) for k in range(len(job.sources)))
    validation, more = _validations(job, chi, logs, validate, experiment)
    estimate = Estimate(
        robot=mechanism.name,
        model=job.model,
        estimator=experiment.estimator,
        parameters=parts.parameters,
        not_identifiable=parts.not_identifiable,
        fit=parts.fit,
        covariance=parts.covariance,
        validation=validation,
        warnings=_warnings(job, parts),
        choices=_choices(job),
        provenance=provenance(mechanism, (*logs, *validate), experiment, job.plans[0]),
        signals=signals + more,
    )
    return replace(
        estimate, warnings=estimate.warnings + check_estimate(estimate) + check_validation(estimate)
    )


@dataclass(frozen=True, eq=False)
class Job:
    """A mechanism with its logs, ready to be condensed into a system.

    Attributes:
        sources: Rows of the model along each log.
        filters: The row filter of each log.
    """

    mechanism: Mechanism
    model: str
    parameters: tuple[Parameter, ...]
    directions: Directions
    plans: tuple[MotionPlan, ...]
    sources: tuple[TreeRows, ...]
    filters: tuple[RowFilter, ...]


def prepare(mechanism: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Job:
    """Choose rows and filters, and join mechanism and motion; nothing is computed yet."""
    if not logs:
        raise InputError("no log to identify from", file=experiment.file, remedy="list files under `logs:`")
    model = _supported(experiment.model or mechanism.model, experiment)
    robot = variant(mechanism, payloads=tuple(dict.fromkeys(p for log in logs for p in log.payloads)))
    parameters = parameter_table(robot)
    present = np.all([log.effort_present for log in logs], axis=0)
    directions = choose_rows(inverse_directions(robot), experiment.efforts, present)
    if not directions.names:
        raise InputError(
            "no equation can be used: the logs share no effort",
            file=experiment.file,
            remedy="map the effort columns under `columns:`",
        )
    plans = plan_motions(logs, robot, experiment.filter, experiment.mask)
    return _join(robot, model, parameters, directions, plans, logs, experiment.filter)


def build_system(job: Job, progress: Progress | None = None, threads: int | None = None) -> System:
    """Stream every log into triangular factors: W chi = Y over the standard parameters."""
    groups = []
    for source, rows in zip(job.sources, job.filters, strict=True):
        log = source.motion.log
        told = None if progress is None else _stage(progress, f"rows of {log.name}")
        blocks = stream(source, rows, threads, told)
        for k, factors in enumerate(blocks):
            entries = source.layout.columns[source.layout.start[k] : source.layout.start[k + 1]]
            columns = np.array([column for column in entries if column != ABSENT], dtype=np.int64)
            if factors:
                groups.append(
                    Group(
                        job.directions.names[k],
                        log.name,
                        job.directions.units[k],
                        columns,
                        tuple(factors),
                        rows.inflation,
                    )
                )
    if not groups:
        raise InputError(
            "every row is masked: the robot stands still in these logs",
            remedy="check the speeds, or lower `mask: {rest: ...}`",
        )
    return System(job.parameters, tuple(groups), known_columns(job.mechanism, job.parameters))


def standard_values(data: BaseSystem, parts: EstimateParts, reduced: Reduced | None) -> Float[Array, "p"]:
    """Standard parameters that give the same efforts as the estimate (others zero or known)."""
    chi = np.zeros(len(data.indices))
    kept = range(len(chi)) if reduced is None else reduced.kept
    chi[list(kept)] = parts.solution.chi
    return np.asarray(data.S @ chi + data.base.c)


def validate_result(
    result: str | os.PathLike[str] | Estimate,
    logs: Sequence[str | os.PathLike[str] | Log],
    robot: str | os.PathLike[str] | Mechanism | None = None,
) -> tuple[tuple[Validation, ...], tuple[Signals, ...]]:
    """Predict other logs with a result: its file or folder, or the estimate itself.

    Args:
        robot: Default: the robot named in the result's provenance.
    """
    from dynid.report.json_file import read_result

    estimate = result if isinstance(result, Estimate) else read_result(os.fspath(result))
    options = estimate.provenance.get("options", {})
    experiment = _recorded_experiment(options)
    mechanism = load_robot(robot or options.get("robot", estimate.robot))
    read = [_as_log(log, mechanism, experiment) for log in logs]
    job = prepare(mechanism, read, experiment)
    chi = _chi_of_names(estimate, job.parameters, known_columns(job.mechanism, job.parameters))
    used = {one.get("sha256") for one in estimate.provenance.get("inputs", ())}
    return _predict(job, chi, read, used)


def _as_log(
    source: str | os.PathLike[str] | LogEntry | Log, mechanism: Mechanism, experiment: Experiment
) -> Log:
    if isinstance(source, Log):
        return source
    entry = source if isinstance(source, LogEntry) else LogEntry(os.fspath(source))
    columns = {**experiment.columns, **(entry.columns or {})}
    return read_log(
        entry, mechanism, columns=columns, angles=experiment.angles, cutoff=experiment.filter.cutoff
    )


def _supported(model: str, experiment: Experiment) -> str:
    if model not in MODELS:
        raise InputError(
            f"model '{model}' is not in this version",
            file=experiment.file,
            remedy=f"use one of {', '.join(MODELS)}",
        )
    if experiment.estimator not in ESTIMATORS:
        raise InputError(
            f"estimator '{experiment.estimator}' is not in this version",
            file=experiment.file,
            remedy=f"use one of {', '.join(ESTIMATORS)}",
        )
    return model


def _join(
    robot: Mechanism,
    model: str,
    parameters: tuple[Parameter, ...],
    directions: Directions,
    plans: Sequence[MotionPlan],
    logs: Sequence[Log],
    settings: FilterSettings,
) -> Job:
    motions = [Motion(log, plan) for log, plan in zip(logs, plans, strict=True)]
    sources = tuple(TreeRows(robot, parameters, directions, motion) for motion in motions)
    # A cutoff asked for rows is meant as the same filter as on coordinates; the default one only
    # guards the decimation, and a sharp sinc does that better.
    order = settings.order if settings.rows is not None and settings.kind == "butterworth" else None
    filters = tuple(row_filter(plan.dt, plan.decimate, plan.rows_cutoff, butterworth=order) for plan in plans)
    return Job(robot, model, parameters, directions, tuple(plans), sources, filters)


def _base(job: Job, experiment: Experiment) -> BaseSet:
    """Structural base parameters, with the ties asked for."""
    before = [tie.name for tie in experiment.ties if tie.apply == "standard"]
    after = [tie.name for tie in experiment.ties if tie.apply == "regrouped"]
    base = structural_base(job.mechanism, job.parameters, job.directions, ties=before)
    return tie_regrouped(base, tie_groups(job.mechanism, job.parameters, after)) if after else base


def _symbols(job: Job, experiment: Experiment) -> Symbols:
    before = [tie.name for tie in experiment.ties if tie.apply == "standard"]
    return grouping_symbols(job.mechanism, ties=before, rows=job.directions.names)


def _reduced(experiment: Experiment, data: BaseSystem, solution: Any) -> Reduced | None:
    if experiment.keep is not None:
        return keep_parameters(data.system, solution, experiment.keep)
    if experiment.essential is not None:
        return essential_parameters(data.system, solution, EssentialRule(**experiment.essential))
    return None


def _priors(mechanism: Mechanism) -> dict[str, float]:
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    return {f"{symbol}_{owner.name}": value for owner in owners for symbol, value in owner.prior.items()}


def _fit_signals(job: Job, k: int, chi: Float[Array, "p"]) -> Signals:
    """Measured against predicted efforts of one log, as the filtered rows that were fitted."""
    return predict_rows(job.sources[k], chi, job.filters[k]).signals


def _validations(
    job: Job, chi: Float[Array, "p"], logs: Sequence[Log], validate: Sequence[Log], experiment: Experiment
) -> tuple[tuple[Validation, ...], tuple[Signals, ...]]:
    """Prediction of held-out logs with the filters the identification used."""
    if not validate:
        return (), ()
    plan = job.plans[0]
    has_velocity = all(log.dq is not None for log in validate)
    settings = replace(
        experiment.filter,
        cutoff=plan.cutoff,
        decimate=plan.decimate,
        derivative=plan.derivative,
        velocity=plan.velocity if has_velocity else "derived",
    )
    plans = plan_motions(validate, job.mechanism, settings, experiment.mask)
    held_out = _join(
        job.mechanism, job.model, job.parameters, job.directions, plans, validate, experiment.filter
    )
    return _predict(held_out, chi, validate, {log.sha256 for log in logs if log.sha256})


def _predict(
    job: Job, chi: Float[Array, "p"], logs: Sequence[Log], used: set[str | None]
) -> tuple[tuple[Validation, ...], tuple[Signals, ...]]:
    found, shown = [], []
    for source, rows, log in zip(job.sources, job.filters, logs, strict=True):
        filtered = predict_rows(source, chi, rows, validation=True)
        logged = predict_rows(source, chi, unfiltered(log.dt), validation=True)
        independent = log.sha256 is None or log.sha256 not in used
        found.append(Validation(log.name, independent, filtered.percent, logged.percent, logged.groups()))
        shown.append(filtered.signals)
    return tuple(found), tuple(shown)


def _chi_of_names(
    estimate: Estimate, parameters: Sequence[Parameter], known: dict[int, float]
) -> Float[Array, "p"]:
    """Standard values of a saved result: each base value stands at the parameter it is named after."""
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    chi = np.zeros(len(parameters))
    for i, value in known.items():
        chi[i] = value
    for one in estimate.parameters:
        name = one.name if one.name in index else one.name.removesuffix("_R")
        if name not in index:
            raise InputError(
                f"the result's parameter '{one.name}' is not one of robot '{estimate.robot}' as it is now",
                remedy="validate with the robot file that the result was made with",
            )
        chi[index[name]] = one.value
    return chi


def _recorded_experiment(options: dict[str, Any]) -> Experiment:
    """The settings a result was made with, as its provenance recorded them."""
    from dynid.provenance import experiment_of

    return experiment_of(options)


def _choices(job: Job) -> dict[str, str]:
    """Every choice of the data flow in words; those that differ between logs carry the log's name."""
    choices: dict[str, str] = {"equations": ", ".join(job.directions.names)}
    for source, plan, rows in zip(job.sources, job.plans, job.filters, strict=True):
        log = source.motion.log
        inflation = (
            f"neighbouring rows correlated by the row filter: variances times {rows.inflation:.3g}"
            if rows.inflation > 1.0
            else "rows taken as independent"
        )
        told = {**log.choices, **plan.choices, "uncertainty": f"classical, {inflation}"}
        for name, text in told.items():
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


def _warnings(job: Job, parts: EstimateParts) -> tuple[Any, ...]:
    told = [*job.mechanism.notices]
    for source, plan in zip(job.sources, job.plans, strict=True):
        told += [*source.motion.log.notices, *plan.notices]
    return tuple(dict.fromkeys([*told, *parts.warnings]))


def _stage(progress: Progress, stage: str) -> Callable[[float], None]:
    return lambda fraction: progress(stage, fraction)


__all__ = [
    "FilterSettings",
    "Job",
    "build_system",
    "identify",
    "identify_logs",
    "prepare",
    "run_experiment",
    "validate_result",
]
