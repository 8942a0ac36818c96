"""Rows of a servo log with a column for each unknown of its PD law.

    W(q_read - bias) chi + Kd dq  =  kp e(delay) + known efforts,        e = q_ref(t - delay) - q_read

kp and Kd are linear. Delay and bias are linearised about their present values: their columns are

    -kp dq_ref(t - delay)   in the rows of the motor          and        d(W chi)/dq   in all rows

on the side of the efforts. So one fit gives all of them with one covariance, and repeated fits give delay
and bias.

Filters of servo logs: both sides of the equations alike, because friction jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.case import task_case
from dynid.common.arrays import Array, Float
from dynid.conditioning.rewritten import Tiles, WiderRows
from dynid.experiment.experiment import Experiment
from dynid.mechanism.parameters import known_columns
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.servo import Law, servo_of
from dynid.problem import Problem, Progress, row_groups
from dynid.projection.factor import Factor
from dynid.projection.model import PackedRows, RowSource
from dynid.projection.projection import Group, System
from dynid.unknown import Task

# rad or m: central differences of W are exact to 1e-9 of it, and rounding to 1e-11.
_STEP = 1e-5
# From a range of samples and the size of a tile to one row each, shape (k, n), of consecutive tiles.
_Side = Callable[[int, int, int], Iterator[Float[Array, "k n"]]]


@dataclass(frozen=True)
class Column:
    """One unknown of the law.

    Attributes:
        kind: kp, delay or bias.
        motor: Its number among the actuators.
    """

    kind: str
    motor: int


@dataclass(frozen=True, eq=False)
class ServoSystem:
    """Equations of a servo log.

    Attributes:
        plain: Over the standard parameters; Y are the known efforts.
        sides: The same groups over the columns of the law, shape (rows, c), on the side of the efforts.
    """

    plain: System
    sides: tuple[Group, ...]


def servo_system(
    problem: Problem,
    law: Law,
    columns: Sequence[Column],
    chi: Float[Array, "p"],
    progress: Progress | None = None,
) -> ServoSystem:
    """Stream the logs of a problem with the columns of a law.

    Args:
        problem: Its logs have the bodies' positions and the known part of the efforts.
        law: Present values.
        columns: Unknowns that have columns.
        chi: Present standard parameters, shape (p,), SI, about which biases are linearised.
    """
    p = len(problem.parameters)
    sources = [_law_rows(problem, source, law, columns, chi) for source in problem.sources]
    groups = row_groups(problem, sources, progress)
    plain, sides = [], []
    for group in groups:
        inner, more = np.flatnonzero(group.columns < p), np.flatnonzero(group.columns >= p)
        numbers = group.columns[more] - p
        plain.append(replace(group, columns=group.columns[inner], blocks=_blocks(group, inner)))
        sides.append(replace(group, columns=numbers, blocks=_blocks(group, more)))
    known = known_columns(problem.mechanism, problem.parameters)
    return ServoSystem(System(problem.parameters, tuple(plain), known), tuple(sides))


def _blocks(group: Group, columns: Array) -> tuple[Factor, ...]:
    return tuple(Factor(np.column_stack([b.W[:, columns], b.Y]), b.n_rows) for b in group.blocks)


def _law_rows(
    problem: Problem, source: RowSource, law: Law, columns: Sequence[Column], chi: Float[Array, "p"]
) -> WiderRows:
    """Rows with the columns of a law before each measured side."""
    joints = servo_of(source.motion.log).joints
    felt = source.directions.effort_map != 0.0
    sides: list[_Side] = []
    by_row: list[list[tuple[int, int]]] = [[] for _ in felt]  # column, place of its side
    for kind in ("kp", "delay"):
        members = [(c, column.motor) for c, column in enumerate(columns) if column.kind == kind]
        if members:
            for k, row in enumerate(felt):
                by_row[k] += [(c, len(sides)) for c, motor in members if row[motor]]
            log = _effort_of(kind, law, source.motion.log)
            sides.append(_effort_side(problem.rows_along(Motion(log, source.motion.plan))))
    for c, column in enumerate(columns):
        if column.kind == "bias":
            for row_columns in by_row:
                row_columns.append((c, len(sides)))
            sides.append(_bias_side(problem, source, joints[column.motor], chi))
    take = [place * len(felt) + k for k, row in enumerate(by_row) for _, place in row]

    def tiles(start: int, stop: int, tile: int) -> Tiles:
        streams = [side(start, stop, tile) for side in sides]
        for at, packed, weights in source.rows(start, stop, tile):
            more = [next(stream) for stream in streams]
            yield at, packed, weights, np.concatenate([packed[:0], *more])[take]

    p = len(problem.parameters)
    return WiderRows(source, [[p + c for c, _ in row] for row in by_row], tiles)


def _effort_of(kind: str, law: Law, log: Log) -> Log:
    """The log with the derivative of the efforts by kp, or by the delay, as its efforts."""
    if kind == "kp":
        return replace(log, tau=law.error(log))
    later, earlier = (law.changed(delay=law.delay + x * log.dt).delayed(log) for x in (0.5, -0.5))
    return replace(log, tau=law.kp * servo_of(log).ratio * (later - earlier) / log.dt)


def _effort_side(rows: PackedRows) -> _Side:
    """Measured sides of rows whose efforts are a derivative."""
    ends = rows.layout.start[1:] - 1

    def values(start: int, stop: int, tile: int) -> Iterator[Float[Array, "k n"]]:
        for _, packed, _ in rows.rows(start, stop, tile):
            yield packed[ends]

    return values


def _bias_side(problem: Problem, source: RowSource, joint: int, chi: Float[Array, "p"]) -> _Side:
    """Derivative of W chi by a joint: what its bias adds on the side of the efforts."""
    log, layout = source.motion.log, source.layout
    coefficients = layout.coefficients(chi)
    moved = []
    for step in (_STEP, -_STEP):
        q = log.q.copy()
        q[:, joint] += step
        motion = Motion(replace(log, q=q), source.motion.plan)
        moved.append(problem.rows_along(motion, aligned_to=source))

    def values(start: int, stop: int, tile: int) -> Iterator[Float[Array, "k n"]]:
        ahead, behind = (rows.rows(start, stop, tile) for rows in moved)
        for (_, more, _), (_, less, _) in zip(ahead, behind, strict=True):
            yield layout.sums(more - less, coefficients) / (2.0 * _STEP)

    return values


_SHARPER, _SMOOTHER = 2.5, 0.25  # low-pass of coordinates and of rows, times the cutoff for coordinates alone
_MOST_RATE = 0.2  # of the sampling rate: a low-pass on coordinates above is none
_SIGMAS = 3.0  # of the noise of a speed
_SMEARED = 0.75  # periods of the low-pass on coordinates: how far a jump of an acceleration is felt
_RISE = 0.5  # periods of the low-pass on rows


def with_filters(task: Task) -> Experiment:
    """Settings that filter the rows more than the coordinates, where the user has chosen neither.

    Coulomb friction jumps. If only coordinates are filtered, its jumps are smooth in W and sharp in the
    efforts, and this difference is larger than the noise of an encoder; a filter of both sides keeps them
    equal. The sign of a speed below its noise is not known, and the filter of coordinates smears the jump of
    the acceleration beside it: these samples are masked, with weights that rise smoothly beside them.
    """
    experiment, filters = task.experiment, task.experiment.filter
    if task.plans is not None or filters.cutoff or filters.rows or filters.kind == "none":
        return experiment
    case = task_case(task.mechanism, experiment)
    chosen = min(case.plans(task.logs, task.mechanism, experiment), key=lambda plan: plan.cutoff or np.inf)
    if chosen.cutoff is None:
        return experiment
    cutoff = min(_SHARPER * chosen.cutoff, _MOST_RATE / chosen.dt)
    rows = min(_SMOOTHER * chosen.cutoff, 0.8 * cutoff)
    experiment = experiment.changed(filter=filters.changed(cutoff=cutoff, rows=rows))
    mask = experiment.mask
    if mask.around is None:
        mask = mask.changed(around=int(np.ceil(_SMEARED / (cutoff * chosen.dt))))
    if mask.ramp is None:
        mask = mask.changed(ramp=int(np.ceil(_RISE / (rows * chosen.dt))))
    if mask.speed is None:
        plans = case.plans(task.logs, task.mechanism, experiment)
        speed = _SIGMAS * max(max(plan.noise, default=0.0) for plan in plans)
        mask = mask.changed(speed=float(speed))
    return experiment.changed(mask=mask)
