"""Information of existing results and logs about the base parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.base.base import BaseSet
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.experiment.experiment import Experiment, LogEntry, TieChoice
from dynid.mechanism.mechanism import Mechanism
from dynid.report.json_file import read_result
from dynid.statistics.estimate import Estimate

# A row filter passes this share of the band that is left after decimation (`FilterSettings.rows`).
_PASSED = 0.8


def known_information(
    robot: str,
    mechanism: Mechanism,
    base: BaseSet,
    after: Sequence[str | Path],
    ties: Sequence[str] = (),
    payloads: tuple[str, ...] = (),
) -> tuple[Float[Array, "b b"], dict[str, float]]:
    """Sum of the inverse covariances of results, and their estimated effort noise per sample.

    Args:
        robot: As given on the command line, used to identify logs.
        after: Results (result.json or folders) and logs; the logs are identified together.
        ties: Applied when logs are identified. payloads: mounted while they were recorded.
    """
    paths = [Path(source) for source in after]
    results = [path for path in paths if path.is_dir() or path.suffix.lower() == ".json"]
    logs = [path for path in paths if path not in results]
    estimates = [read_result(path) for path in results]
    if logs:
        from dynid.pipeline import run_experiment

        entries = tuple(LogEntry(str(path), payloads) for path in logs)
        applied = tuple(TieChoice(name) for name in ties)
        asked = Experiment(robot=robot, logs=entries, ties=applied, name=Path(robot).stem)
        estimates.append(run_experiment(asked))
    known = np.zeros((len(base.indices),) * 2)
    noise: dict[str, float] = {}
    for estimate in estimates:
        known += _information(estimate, mechanism, base)
        rows = _samples_per_row(estimate)
        noise |= {group.name: group.rms * rows**0.5 for group in estimate.fit.groups if group.rms > 0.0}
    names = [actuator.name for actuator in mechanism.actuators]
    return known, {name: value for name, value in noise.items() if name in names}


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
