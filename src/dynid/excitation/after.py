"""Existing results and logs: drive terms, parameter values, noise, rate and information for a new motion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.base.base import BaseSet
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.experiment.experiment import Experiment, LogEntry, TieChoice
from dynid.experiment.file import is_result
from dynid.experiment.provenance import IDENTIFIED, experiment_of
from dynid.experiment.tasks import ExciteSettings
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.prediction.result_values import standard_values
from dynid.projection.model import effort_model
from dynid.report.json_file import read_result
from dynid.statistics.estimate import Estimate

# A row filter passes this share of the band that is left after decimation (`FilterSettings.rows`).
_PASSED = 0.8


def existing(robot: str | Mechanism, settings: ExciteSettings) -> list[Estimate]:
    """Results of `settings.after`; its logs are identified together.

    Args:
        robot: As given.
        settings: With ties, and payloads that were mounted while the logs were recorded.
    """
    paths = [Path(source) for source in settings.after]
    results = [path for path in paths if is_result(path)]
    logs = [path for path in paths if path not in results]
    estimates = [read_result(path) for path in results]
    if logs:
        from dynid.pipeline import run_experiment

        entries = tuple(LogEntry(str(path), settings.payloads) for path in logs)
        applied = tuple(TieChoice(name) for name in settings.ties)
        name = robot.name if isinstance(robot, Mechanism) else Path(robot).stem
        asked = Experiment(robot=robot, logs=entries, ties=applied, name=name)
        estimates.append(run_experiment(asked))
    return estimates


def used_terms(estimates: Sequence[Estimate]) -> Experiment:
    """An experiment with the drive terms that the first result has: a new motion is designed for the same."""
    options = estimates[0].provenance.get("options", {}) if estimates else {}
    kept = {key: options[key] for key in ("drive", "stribeck") if options.get(key) is not None}
    return experiment_of({"robot": "", **kept})


def known_information(
    estimates: Sequence[Estimate], mechanism: Mechanism, base: BaseSet
) -> tuple[Float[Array, "b b"], dict[str, float]]:
    """Sum of the inverse covariances of results, and their estimated effort noise per sample."""
    known = np.zeros((len(base.indices),) * 2)
    noise: dict[str, float] = {}
    for estimate in estimates:
        known += _information(estimate, mechanism, base)
        rows = _samples_per_row(estimate)
        noise |= {group.name: group.rms * rows**0.5 for group in estimate.fit.groups if group.rms > 0.0}
    names = [actuator.name for actuator in mechanism.actuators]
    return known, {name: value for name, value in noise.items() if name in names}


def recorded_rate(estimates: Sequence[Estimate]) -> float | None:
    """Lowest rate of the logs of results, in [Hz]; None: not recorded."""
    inputs = [source for estimate in estimates for source in estimate.provenance.get("inputs", ())]
    rates = [source.get("rate") for source in inputs if source.get("use") == IDENTIFIED]
    return min((float(rate) for rate in rates if rate), default=None)


def identified_values(estimates: Sequence[Estimate], mechanism: Mechanism) -> tuple[float, ...] | None:
    """Standard parameters that give the efforts of the last result that may be used, SI; None: there is none.

    A result that leaves a parameter open does not predict every motion.
    """
    usable = [entry for entry in estimates if entry.verdict.level != "bad" and not entry.not_identifiable]
    if not usable:
        return None
    model, options = effort_model(), usable[-1].provenance.get("options", {})
    experiment = experiment_of({"robot": "", **{key: options[key] for key in ("ties",) if key in options}})
    rows = None if mechanism.is_closed else model.directions(mechanism)
    parameters = parameter_table(mechanism)
    values = standard_values(usable[-1], mechanism, parameters, experiment, model, rows, mechanism.payloads)
    return tuple(values.chi.tolist())


def _samples_per_row(estimate: Estimate) -> float:
    """Samples of white noise averaged in a filtered and decimated row; its noise is smaller by the root."""
    decimate = estimate.provenance.get("options", {}).get("filter", {}).get("decimate") or 1
    return decimate / _PASSED if decimate > 1 else 1.0


def _information(estimate: Estimate, mechanism: Mechanism, base: BaseSet) -> Float[Array, "b b"]:
    """Inverse covariance of the parameters that an estimate determined, in the order of the base set."""
    if estimate.robot != mechanism.name:
        raise InputError(
            f"the result is for robot '{estimate.robot}', the motion for '{mechanism.name}'",
            remedy="give results of the same robot",
        )
    names = [p.name for p in estimate.parameters if p.sigma is not None]
    for name in names:
        if name not in base.names:
            raise InputError(
                f"parameter '{name}' of the result is not a base parameter of this robot"
                + nearest(name, base.names),
                remedy="identify again with the same robot file, ties and payloads",
            )
    at = [base.names.index(name) for name in names]
    size = np.sqrt(np.diag(estimate.covariance))
    size = np.where(size > 0.0, size, 1.0)
    unit = estimate.covariance / np.outer(size, size)
    values, vectors = np.linalg.eigh(unit)
    values = np.maximum(values, 1e-12 * values[-1])
    known = np.zeros((len(base.indices),) * 2)
    known[np.ix_(at, at)] = (vectors / values) @ vectors.T / np.outer(size, size)
    return known
