"""Rows of drive gains: every motor's current has a column of its own beside those of the parameters.

W chi - C g = -w        C: what the current of each motor does in the rows, w: the known part
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.system import BaseSystem
from dynid.checks.total_mass import Weighed
from dynid.common.arrays import Array, Float
from dynid.conditioning.rewritten import Tiles, WiderRows
from dynid.estimator.gains import GroupNoise
from dynid.log_pass import LogPass
from dynid.mechanism.parameters import Parameter, known_columns
from dynid.motion.choose import middle_parts, spectrum_in
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.problem import Problem, Progress, build_system, row_groups
from dynid.projection.factor import Factor
from dynid.projection.model import PackedRows, RowSource
from dynid.projection.projection import Group, System
from dynid.statistics.sandwich import Spread


@dataclass(frozen=True, eq=False)
class MotorSystem:
    """Rows with a column for what every motor does in them.

    Attributes:
        system: Over the standard parameters; Y is the sum of the motors' columns.
        motors: The same groups over the motors.
        spreads: Variance that each motor's noise brings to a row of each group, shape (g, a), any scale.
    """

    system: System
    motors: tuple[Group, ...]
    spreads: Float[Array, "g a"]

    def noise(self, T: Float[Array, "a u"]) -> list[GroupNoise]:
        """Noise of the gains' columns in each group; at nominal gains it is one."""
        noises = []
        for spread in self.spreads:
            share = spread / spread.sum() if spread.sum() > 0 else spread
            fixed = float(np.sum(share * (1.0 - T.sum(axis=1)))) if spread.sum() > 0 else 1.0
            noises.append(GroupNoise(share @ T, fixed))
        return noises


def motor_system(problem: Problem, progress: Progress | None = None) -> MotorSystem:
    """Stream the problem; a row with several motors is computed once for each of them."""
    if not _several(problem):
        return motors_of(problem, build_system(problem, progress).groups)
    sources = [split_rows(problem, source, len(problem.parameters)) for source in problem.sources]
    return motors_of(problem, row_groups(problem, sources, progress))


def _several(problem: Problem) -> bool:
    """Whether several motors act in a row."""
    return bool(np.any(np.count_nonzero(problem.directions.effort_map, axis=1) > 1))


def motors_of(problem: Problem, groups: Sequence[Group]) -> MotorSystem:
    """Parameters and motors of streamed rows apart; a row of one motor has its side in Y."""
    p, a = len(problem.parameters), len(problem.mechanism.actuators)
    plain, motors, spreads = [], [], []
    felt = dict(zip(problem.directions.names, problem.directions.effort_map, strict=True))
    logs = {log.name: log for log in problem.logs}
    for group in groups:
        inner = np.flatnonzero(group.columns < p)
        split = _per_motor(group, felt[group.name], p, a)
        blocks = tuple(Factor(np.column_stack([b.W[:, inner], b.Y]), b.n_rows) for b in group.blocks)
        plain.append(replace(group, columns=group.columns[inner], blocks=blocks))
        motors.append(split)
        spreads.append(_spread(split, logs[group.log]))
    known = known_columns(problem.mechanism, problem.parameters)
    system = System(problem.parameters, tuple(plain), known)
    return MotorSystem(system, tuple(motors), np.array(spreads))


def _per_motor(group: Group, felt: Float[Array, "a"], p: int, a: int) -> Group:
    """The same blocks over the motors alone: what each does in these rows."""
    at = {int(c) - p: k for k, c in enumerate(group.columns) if c >= p}
    blocks = []
    for block in group.blocks:
        C = np.zeros((len(block.R), a))
        for motor, k in at.items():
            C[:, motor] = block.W[:, k]
        if not at and np.any(felt):
            C[:, int(np.argmax(felt != 0))] = block.Y
        blocks.append(Factor(np.column_stack([C, block.Y]), block.n_rows))
    return replace(group, columns=np.arange(a), blocks=tuple(blocks))


def _spread(group: Group, log: Log) -> Float[Array, "a"]:
    """Variance that noise of each motor brings to a row: noise^2 times the mean square of its lever."""
    sums = np.sum([np.sum(block.W**2, axis=0) for block in group.blocks], axis=0) / group.n_rows
    felt = sums > 0
    if felt.sum() <= 1:
        return np.asarray(felt, dtype=float)
    known = np.nan_to_num(log.tau)
    tau = np.concatenate(middle_parts(log, known))
    lever = sums / np.maximum(np.mean(tau**2, axis=0), np.finfo(float).tiny)
    noise = spectrum_in(log, known).sigma ** 2
    # A current without any noise at all (a simulation) is taken to have a little.
    return np.asarray(lever * np.maximum(noise, 1e-12 * np.mean(tau**2, axis=0)))


class OpenParameters:
    """Parameters seen, less the one that a weighed mass gives by the others: chi = chi_0 + Z y.

    Attributes:
        S, c: Standard parameters are S y + c, shapes (p, y) and (p,), SI.
        parameters: Those of y.
    """

    def __init__(self, data: BaseSystem, weighed: Weighed | None) -> None:
        v = data.S.shape[1]
        self.chi_0, self.Z, self.parameters = np.zeros(v), np.eye(v), data.system.parameters
        self._given: int | None = None
        if weighed is not None:
            size = np.linalg.norm(data.system.factor().W, axis=0)
            self.chi_0, self.Z, self._given = weighed.solved(size)
            self.parameters = tuple(p for k, p in enumerate(data.system.parameters) if k != self._given)
        self.S, self.c = data.S @ self.Z, data.base.c + data.S @ self.chi_0

    def all_of(self, theta: Float[Array, "t"], spread: Spread) -> tuple[Float[Array, "p"], Spread]:
        """Every parameter seen, then the gains, with their covariance."""
        if self._given is None:
            return theta, spread
        y = self.Z.shape[1]
        u = len(theta) - y
        T = np.zeros((len(self.Z) + u, len(theta)))
        T[: len(self.Z), :y], T[len(self.Z) :, y:] = self.Z, np.eye(u)
        # The one given up is as well known as the worst of those that give it.
        by = np.flatnonzero(self.Z[self._given])
        dof = np.insert(spread.dof, self._given, spread.dof[by].min() if len(by) else spread.dof.max())
        methods = list(spread.methods)
        methods.insert(self._given, methods[by[0]] if len(by) else methods[0])
        chi = T @ theta + np.append(self.chi_0, np.zeros(u))
        covariance = T @ spread.covariance @ T.T
        return chi, replace(spread, covariance=covariance, dof=dof, methods=tuple(methods))


def gain_equations(
    rows: MotorSystem, data: OpenParameters, T: Float[Array, "a u"], names: tuple[Parameter, ...]
) -> System:
    """W chi - C g = -w over the parameters to find and the gains, block by block."""
    v, u = data.S.shape[1], T.shape[1]
    fixed = 1.0 - T.sum(axis=1)
    groups = []
    for plain, motors in zip(rows.system.groups, rows.motors, strict=True):
        selected = data.S[plain.columns]
        seen = np.flatnonzero(np.any(selected != 0, axis=0))
        c = data.c[plain.columns]
        blocks = []
        for block, side in zip(plain.blocks, motors.blocks, strict=True):
            known = -block.W @ c + side.W @ fixed
            R = np.column_stack([block.W @ selected[:, seen], -side.W @ T, known])
            blocks.append(Factor(R, block.n_rows))
        columns = np.concatenate([seen, v + np.arange(u)])
        groups.append(replace(plain, columns=columns, blocks=tuple(blocks)))
    return System((*data.parameters, *names), tuple(groups))


class GainPass(LogPass):
    """The rows once more, over the parameters to find and the gains.

    Args:
        problem: Mechanism, logs and filters.
        data: The system that was condensed from them.
        held: The parameters to find.
        T: Gain of each motor, shape (a, u), ones and zeros.
        names: Of the gains.
    """

    def __init__(
        self,
        problem: Problem,
        data: BaseSystem,
        held: OpenParameters,
        T: Float[Array, "a u"],
        names: tuple[Parameter, ...],
    ) -> None:
        super().__init__(problem, data)
        self.T, self._held, self._names, self._split = T, held, names, _several(problem)

    def equations(self, rows: MotorSystem) -> System:
        """W chi - C g = -w over the parameters to find and the gains, block by block."""
        return gain_equations(rows, self._held, self.T, self._names)

    def blocked(self) -> System:
        """The equations with their blocks in time order."""
        return self._system(self._sources)

    @property
    def _sources(self) -> Sequence[PackedRows]:
        return [self._with_motors(source) for source in self.problem.sources]

    def _rows(self, motion: Motion, aligned_to: RowSource | None = None) -> PackedRows:
        return self._with_motors(self.problem.rows_along(motion, aligned_to))

    def _with_motors(self, source: RowSource) -> PackedRows:
        return split_rows(self.problem, source, len(self.problem.parameters)) if self._split else source

    def _system(self, sources: Sequence[PackedRows]) -> System:
        return self.equations(motors_of(self.problem, row_groups(self.problem, sources)))


def split_rows(problem: Problem, source: RowSource, n_parameters: int) -> WiderRows:
    """Rows with one further column per motor: what its effort does in them.

    Args:
        source: The rows; each motor's column is computed from a log in which only it acts.
        n_parameters: Columns of motors are numbered from here on.
    """
    log, ends = source.motion.log, source.layout.start[1:] - 1
    motors = np.flatnonzero(np.any(source.directions.effort_map != 0, axis=0))
    alone: list[PackedRows] = []
    for motor in motors[:-1]:  # the last one is what is left of the sum
        tau = np.zeros_like(log.tau)
        tau[:, motor] = log.tau[:, motor]
        alone.append(problem.rows_along(Motion(replace(log, tau=tau), source.motion.plan)))

    def tiles(start: int, stop: int, tile: int) -> Tiles:
        streams = [rows.rows(start, stop, tile) for rows in (source, *alone)]
        for (at, packed, weights), *others in zip(*streams, strict=True):
            sides = [other[ends] for _, other, _ in others]
            sides.append(packed[ends] - sum(sides))
            yield at, packed, weights, np.stack(sides, axis=1).reshape(-1, packed.shape[1])

    return WiderRows(source, [(n_parameters + motors).tolist()] * len(ends), tiles)
