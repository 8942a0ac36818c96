"""The whole data flow on one screen: from a robot and its logs to an estimate.

description + log -> motion -> rows of a model -> triangular factors -> base parameters
-> estimate -> statistics -> validation. The command line calls these functions and no others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.base.grouping import Symbols
from dynid.base.system import base_system
from dynid.checks import check_estimate, check_logs, check_options
from dynid.compensation_export import compensation_files
from dynid.errors import NoResultError
from dynid.estimator.estimator import estimator_named
from dynid.estimator.solution import CONVERGED
from dynid.effort_order import refuse_misplaced, refuse_reversed
from dynid.experiment import Experiment, from_plain
from dynid.fitted import fit_logs
from dynid.free_motion_checks import check_free_motion
from dynid.gate import judge
from dynid.info import grouping_symbols
from dynid.job import Job, LogSource, Progress, as_asked, as_log, build_system, prepare
from dynid.linear import base_of, tie_names
from dynid.load_words import load_words
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.notices import Notice
from dynid.provenance import provenance
from dynid.residual_checks import residual_checks
from dynid.scale_checks import check_scale
from dynid.sensor_angles import settled_sensor, shown_entries
from dynid.sensor_rotation import check_rotation
from dynid.solve import Solved
from dynid.statistics.assemble import EstimateParts, recorded
from dynid.statistics.estimate import Estimate
from dynid.statistics.tie_test import idle_tie, tie_test
from dynid.threads import single_threaded_blas
from dynid.validation import fitted_signals, predict_held_out, validate_result

__all__ = ["build_system", "identify", "identify_logs", "prepare", "run_experiment", "validate_result"]


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
        log: One log or several: files, or `Log` objects (see `log_from_arrays`).
        validate: One log or several to predict with the result.
        progress: Called with a stage and the fraction of it done.
        options: `model`, `estimator`, `filter`, `mask`, `efforts`, `essential`, `keep`, ...
    """
    mechanism = load_robot(robot)
    experiment = Experiment(robot=mechanism, **from_plain(options))
    return _identify_sources(mechanism, _several(log), _several(validate), experiment, progress)


def _several(logs: LogSource | Sequence[LogSource]) -> Sequence[LogSource]:
    return logs if isinstance(logs, Sequence) and not isinstance(logs, str) else [logs]


def run_experiment(experiment: Experiment, progress: Progress | None = None) -> Estimate:
    """The main job: everything an experiment file asks for."""
    mechanism = load_robot(experiment.robot)
    return _identify_sources(mechanism, experiment.logs, experiment.validate, experiment, progress)


def _identify_sources(
    mechanism: Mechanism,
    logs: Sequence[LogSource],
    held_out: Sequence[LogSource],
    experiment: Experiment,
    progress: Progress | None,
) -> Estimate:
    mechanism = as_asked(mechanism, experiment)
    read = [as_log(one, mechanism, experiment) for one in logs]
    unseen = [as_log(one, mechanism, experiment) for one in held_out]
    return identify_logs(mechanism, read, unseen, experiment, progress)


def identify_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    validate: Sequence[Log] = (),
    experiment: Experiment | None = None,
    progress: Progress | None = None,
    truth: Mapping[str, float] | None = None,
) -> Estimate:
    """Identify from logs already read; the other entrances end here.

    Args:
        mechanism: The robot.
        logs: To identify from.
        validate: To predict with the result.
        experiment: Settings; default all chosen from the data.
        progress: Called with a stage and the fraction of it done.
        truth: True standard parameters by name, where a simulation knows them.
    """
    with single_threaded_blas():
        fit = fit_logs(mechanism, logs, validate, experiment, progress, symbols=_symbols)
        mechanism, logs, validate, experiment = fit.mechanism, fit.logs, fit.held_out, fit.experiment
        unloaded, stage, solved, parts = fit.unloaded, fit.stage, fit.solved, fit.parts
        refined, chi = fit.refined, fit.chi
        job, settled, real, data = solved.job, solved.settled, solved.real, solved.data
        refuse_misplaced(job, solved.seen, chi, experiment)
        refuse_reversed(parts.parameters, job)
        tied, tie_notices = _tested_ties(solved, experiment)
        tested = residual_checks(job, data, chi, experiment)
        fitted = fitted_signals(job, chi)
        validation, unseen = predict_held_out(job, chi, validate, experiment)
        gate = judge(mechanism, solved, chi, logs, validate, experiment, progress)
    estimate = Estimate(
        robot=mechanism.name,
        model=job.model.name,
        estimator=experiment.estimator,
        parameters=parts.parameters,
        not_identifiable=parts.not_identifiable,
        fit=parts.fit,
        covariance=parts.covariance,
        shared=parts.shared,
        validation=validation,
        warnings=(
            *check_options(experiment, job.model.name),
            *tie_notices,
            *(() if unloaded is None else unloaded.notices),
            *settled.notices,
            *real.notices,
            *(() if refined is None else refined.notices),
            *_warnings(job, validate, parts),
            *tested.notices,
            *check_free_motion(job, chi),
            *check_rotation(job, parts.parameters, [one.name for one in parts.not_identifiable]),
        ),
        uncertainty=parts.spread.facts,
        correlations=parts.correlations,
        invisible=parts.invisible,
        choices={
            **_choices(job),
            "uncertainty": parts.spread.words,
            **stage.choices,
            **settled.choices,
            **tied,
            **real.choices,
            **gate.choices,
            **tested.choices,
            **({} if refined is None else {"refinement": refined.words}),
            **({} if unloaded is None else {"robot without load": unloaded.words}),
            **load_words(parts, job.loaded_bodies),
        },
        provenance=provenance(mechanism, logs, validate, _recorded(experiment, job, chi), job.plans[0]),
        signals=(*fitted, *unseen),
        truth=None if truth is None else fit.true_values(truth),
        standard=shown_entries(job, real.entries),
        residual_tests=tested.tests,
        history=recorded(solved.linear, parts.parameters),
        files=compensation_files(job, chi, [one.name for one in parts.not_identifiable]),
    )
    scale = check_scale(parts.parameters, job.mechanism, job.model.homogeneous)
    estimate = replace(estimate, warnings=(*estimate.warnings, *check_estimate(estimate), *scale))
    if real.failure or gate.failure:
        raise NoResultError(real.failure or gate.failure, estimate)
    if parts.solution.status != CONVERGED:
        raise NoResultError(
            f"'{experiment.estimator}' has not converged after {parts.solution.iterations} iterations",
            estimate,
        )
    return estimate


def _recorded(experiment: Experiment, job: Job, chi: Float[Array, "p"]) -> Experiment:
    """The experiment as its result records it: a force sensor with the biases' runs and its angles."""
    sensor = settled_sensor(job, chi)
    return experiment if sensor is None else replace(experiment, force_sensor=sensor)


def _tested_ties(solved: Solved, experiment: Experiment) -> tuple[dict[str, str], tuple[Notice, ...]]:
    """Whether the data accept the ties, in words, and a warning if they do not."""
    if not experiment.ties:
        return {}, ()
    # Where its equations were rewritten, the F-test needs the plain weighted solution.
    linear = solved.linear
    solution = linear if linear.equations is None else estimator_named("wls")(solved.seen.system)
    free = replace(experiment, ties=())
    loose = base_system(solved.system, base_of(solved.job, free))
    found = tie_test(solution, solved.seen, loose, experiment.uncertainty)
    names = ", ".join(f"'{tie.name}'" for tie in experiment.ties)
    if found is None:
        return {f"tie {names}": "restricts nothing"}, (idle_tie(names),)
    return {f"tie {names}": found.words}, found.notices(names)


def _symbols(job: Job, experiment: Experiment) -> Symbols:
    """Names of dimensions for the groupings."""
    return grouping_symbols(
        job.mechanism, job.model, ties=tie_names(experiment), rows=job.directions.names, loads=job.loads
    )


def _choices(job: Job) -> dict[str, str]:
    """Every choice of the data flow in words; those that differ between logs carry the log's name."""
    rows = ", ".join(dict.fromkeys(job.directions.group_names))
    shared = job.model.name == "inverse" and np.all(np.count_nonzero(job.directions.effort_map, axis=1) > 1)
    choices: dict[str, str] = {"equations": f"J_a^T tau along {rows}" if shared else rows}
    for log, plan, source in zip(job.logs, job.plans, job.sources, strict=True):
        for name, text in {**log.choices, **plan.choices, **source.choices}.items():
            if (job.model.direct or job.reference is not None) and name in ("reversals", "rest"):
                continue  # there is no friction whose sign would matter
            if choices.setdefault(name, text) != text:
                choices[f"{name} ({log.name})"] = text
    return choices


def _warnings(job: Job, held_out: Sequence[Log], parts: EstimateParts) -> tuple[Notice, ...]:
    """Everything noticed on the way; with several logs, each notice says which one it is about."""
    logs = (*job.logs, *held_out)
    told = [*job.mechanism.notices, *job.notices, *check_logs(job.logs, job.mechanism)]
    for log in logs:
        about = f"{log.name}: " if len(logs) > 1 else ""
        told += [replace(notice, text=about + notice.text) for notice in log.notices]
    for plan, source in zip(job.plans, job.sources, strict=True):
        told += [*plan.notices, *source.notices]
    return tuple(dict.fromkeys([*told, *parts.warnings]))
