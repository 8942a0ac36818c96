"""Logs that do not close the loops of a description: which correction closes them.

No model can be fitted there, but kinematics alone decide: with a correction, the measured positions at some
samples close the loops, and all encoders agree with the closed poses. Where no unit, sign, order or branch
does, another size of one dimension or joint zero may: of those that close the loops, the one with which the
efforts fit best is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.sensors import sensors_of
from dynid.linear_fit import linear_fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.problem import prepare
from dynid.projection.kinematics import MISFIT, OPEN
from dynid.unknown import Task
from dynid.validation.branches import flipped_starts
from dynid.validation.columns import position_orders, position_signs
from dynid.validation.dimensions import dimension_units, other_size
from dynid.validation.hypotheses import (
    Hypothesis,
    position_units,
    shifted_zero,
)
from dynid.validation.likelihood import residual_percent

_PROBES = 240
_PARTS = (-0.1, -0.05, -0.02, -0.01, 0.01, 0.02, 0.05, 0.1)  # of a dimension; m or rad of a zero
_CLOSES = 0.99  # of the probes
_ALIKE = 2.0  # times the misfit of the best: as good
_OPEN = "do not close the loops"
_ELSEWHERE = "Samples close one by one: the start pose is probably on another branch (`start:`)"


def with_likely_cause(error: InputError, task: Task) -> InputError:
    """The same error, with the correction that closes the loops where one does."""
    robot, logs = task.mechanism, tuple(task.logs)
    if not robot.is_closed or robot.cables or not logs:
        return error
    share, _ = closing(robot, logs)
    if share > _CLOSES:
        return _continued(error, _ELSEWHERE) if _OPEN in error.text else error
    fixes = list(_closing_corrections(robot, logs)) or list(_closing_sizes(task))
    if not fixes:
        return error
    least = min(miss for miss, _ in fixes)
    names = [name for miss, name in sorted(fixes) if miss <= _ALIKE * least + 1e-9]
    return _continued(error, f"The loops close with: {', or '.join(names[:2])}")


def _continued(error: InputError, text: str) -> InputError:
    return InputError(f"{error.text}. {text}", file=error.file, place=error.place, remedy=error.remedy)


def _closing_corrections(robot: Mechanism, logs: tuple[Log, ...]) -> Iterator[tuple[float, str]]:
    """Corrections that close the loops: what redundant encoders still miss, and the name."""
    for candidate in _candidates(robot, logs):
        share, miss = closing(candidate.mechanism, candidate.logs)
        if share > _CLOSES:
            yield miss, candidate.name


def _closing_sizes(task: Task) -> Iterator[tuple[float, str]]:
    """Other sizes of a dimension or joint zero that close the loops: residual in percent, and the name."""
    robot, logs = task.mechanism, tuple(task.logs)
    at_size: list[tuple[Callable[[float], Hypothesis | None], float]] = [
        (partial(_resized, robot, logs, name), abs(value)) for name, value in robot.geometry.items()
    ]
    at_size += [(partial(shifted_zero, robot, logs, k), 1.0) for k in range(len(logs[0].position_names))]
    for correction, unit in at_size:
        fitted = [fit for part in _PARTS for fit in _fitted(task, correction(part * unit), part)]
        if not fitted:
            continue
        # Between the best and its neighbours.
        best = min(fitted)[1]
        others = sorted(abs(best - part) for part in (0.0, *_PARTS) if part != best)
        for part in (best - 0.5 * others[0], best + 0.5 * others[0]):
            fitted += _fitted(task, correction(part * unit), part)
        percent, _, name = min(fitted)
        yield percent, name


def _fitted(task: Task, correction: Hypothesis | None, part: float) -> list[tuple[float, float, str]]:
    """Residual in percent, size and name of a correction; empty where it does not close the loops."""
    if correction is None or closing(correction.mechanism, correction.logs)[0] < _CLOSES:
        return []
    try:
        problem = prepare(correction.mechanism, correction.logs, task.experiment)
        return [(residual_percent(linear_fit(problem, task.experiment)), part, correction.name)]
    except (DynidError, np.linalg.LinAlgError):
        return []


def _resized(robot: Mechanism, logs: tuple[Log, ...], name: str, change: float) -> Hypothesis | None:
    return other_size(robot, logs, name, robot.geometry[name] + change)


def _candidates(robot: Mechanism, logs: tuple[Log, ...]) -> Iterator[Hypothesis]:
    yield from dimension_units(robot, logs)
    yield from position_units(robot, logs)
    yield from flipped_starts(robot, logs)
    yield from position_signs(robot, logs)
    yield from position_orders(robot, logs)


def closing(robot: Mechanism, logs: Sequence[Log]) -> tuple[float, float]:
    """Part of some samples at which the loops close, and the rms that encoders miss, in [rad] or [m]."""
    fine, missed = [], []
    try:
        assembly = assembly_of(robot)
        for log in logs:
            sensors = sensors_of(robot, log.position_names)
            wanted = _probes(log)
            pose = assembly.follow(wanted, sensors)
            miss = np.abs(sensors.miss(pose, wanted)).max(axis=1, initial=0.0)
            fine.append((assembly.gaps(pose) < OPEN) & (miss < MISFIT))
            missed.append(miss)
    except (DynidError, np.linalg.LinAlgError):
        return 0.0, np.inf
    return float(np.mean(np.concatenate(fine))), float(np.sqrt(np.mean(np.concatenate(missed) ** 2)))


def _probes(log: Log) -> Float[Array, "n w"]:
    pieces = [np.linspace(a, b - 1, _PROBES).astype(int) for a, b in log.segments[:4]]
    return np.asarray(log.q[np.unique(np.concatenate(pieces))], dtype=float)
