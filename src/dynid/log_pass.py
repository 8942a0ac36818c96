"""LogPass: the logs of a problem streamed once more, for estimators that need the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

import numpy as np

from dynid.base.system import BaseSystem, mapped_blocks
from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError
from dynid.common.paged import in_order
from dynid.conditioning.rewritten import (
    MixedRows,
    centred_rows,
    half_differences,
    joined_rows,
    predictor,
    replaced_rows,
)
from dynid.conditioning.stream import compared
from dynid.estimator.rework import Change, Reduce
from dynid.estimator.wls import group_factors
from dynid.motion.choose import spectrum_in
from dynid.motion.disturb import disturbed, drawn
from dynid.motion.log import Log, runs_by_content
from dynid.motion.motion import Motion
from dynid.problem import Problem, row_groups
from dynid.projection.factor import Factor, triangle
from dynid.projection.model import PackedRows, RowSource
from dynid.projection.projection import Group, System

T = TypeVar("T")

_TASK_SAMPLES = 16384
_TILE = 1024
_SEED = 20240229
_NOTHING = 1e-9  # of a column: what is left of it beside the others is rounding


class LogPass:
    """A `SecondPass` over the rows of a problem, in the parameters that its data see.

    Args:
        problem: Mechanism, logs and filters.
        data: The system that was condensed from them.
    """

    def __init__(self, problem: Problem, data: BaseSystem) -> None:
        self.problem, self.data = problem, data
        self._groups = _group_numbers(problem, data.source.groups)
        self._drawn: dict[tuple[float, int, bytes | None], list[PackedRows]] = {}

    def blocked(self) -> System:
        """The equations with their blocks in time order."""
        return self.data.blocked()

    def residuals(self, chi: Float[Array, "p"], reduce: Reduce[T], filtered: bool = False) -> Iterator[T]:
        """Y - W chi piece by piece, in time order, reduced where they are made."""
        standard = self._standard(chi)
        if filtered:
            yield from self._filtered_residuals(standard, reduce)
            return
        tasks = [
            (i, at, min(at + _TASK_SAMPLES, stop))
            for i, source in enumerate(self.problem.sources)
            for start, stop in source.pieces()
            for at in range(start, stop, _TASK_SAMPLES)
        ]
        yield from in_order(lambda task: self._sample_residuals(standard, reduce, *task), tasks)

    def replaced(self, chi: Float[Array, "p"], change: Change) -> System:
        """The equations with the measured side W chi + change(rho), sample by sample."""
        standard = self._standard(chi)
        sources = [
            replaced_rows(source, standard, _in_groups(change, numbers))
            for source, numbers in zip(self.problem.sources, self._groups, strict=True)
        ]
        return self._system(sources)

    def whitened(self, covariance: Float[Array, "k k"]) -> System:
        """The equations with the rows of each instant multiplied by chol(covariance)^-1."""
        return self._system([MixedRows(source, covariance) for source in self.problem.sources])

    def instruments(self, kind: str, cutoff: float) -> System:
        """Rows [Z W Y] over twice as many parameters."""
        p = len(self.problem.parameters)
        make = _smoothed(cutoff) if kind == "smoothed" else _reference
        sources = [joined_rows(source, self._rows(make(source.motion)), p) for source in self.problem.sources]
        joined = System(
            (*self.problem.parameters, *self.problem.parameters), row_groups(self.problem, sources)
        )
        S, seen = self.data.S, self.data.system.parameters
        both = np.zeros((2 * p, 2 * len(seen)))
        both[p:, : len(seen)], both[:p, len(seen) :] = S, S
        known = np.concatenate([self.data.base.c, np.zeros(p)])
        return mapped_blocks(joined, both, known, (*seen, *seen))

    def noise(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> tuple[Factor, ...]:
        """Differences [dW dY] that noise of the positions makes in the rows, one factor a group.

        Half the difference of the rows with noise added and subtracted: to second order that is the noise
        of centred rows. The even part, products of noise, is in their mean.
        """
        drawn: list[list[Factor]] = []
        for draw in range(draws):
            drawn.append(group_factors(self._system(self.noise_rows(position, draw))))
        return tuple(_mean(factors) for factors in zip(*drawn, strict=True))

    def noise_rows(
        self, position: Float[Array, "m"] | float | None = None, draw: int = 0
    ) -> list[PackedRows]:
        """Rows of each log that noise of the positions makes: see `noise`."""
        both = zip(self._noisy(position, 1.0, draw), self._noisy(position, -1.0, draw), strict=True)
        return [half_differences(minus, plus) for plus, minus in both]

    def centred(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> System:
        """The equations less what noise of the positions adds to them on average, with their blocks."""
        drawn = [self._noisy(position, sign, draw) for draw in range(draws) for sign in (1.0, -1.0)]
        pairs = zip(self._sources, *drawn, strict=True)
        return self._system([centred_rows(source, disturbed) for source, *disturbed in pairs])

    def _noisy(
        self, position: Float[Array, "m"] | float | None, sign: float = 1.0, draw: int = 0
    ) -> list[PackedRows]:
        """Rows of every log with noise added to its positions, the same at every call."""
        key = (sign, draw, _bytes(position))
        if key in self._drawn:  # centring and the noise of the columns share their draws
            return self._drawn[key]
        rng = np.random.default_rng([_SEED, draw] if draw else _SEED)
        sources, noisy = self.problem.sources, dict[int, PackedRows]()
        for i in dict.fromkeys(i for i, *_ in runs_by_content(self.problem.logs)):
            noisy[i] = self._rows(_disturbed(sources[i].motion, position, rng, sign), sources[i])
        self._drawn[key] = [noisy[i] for i in range(len(sources))]
        return self._drawn[key]

    def _standard(self, chi: Float[Array, "v"]) -> Float[Array, "p"]:
        """Standard parameters that give the same rows."""
        return np.asarray(self.data.S @ chi + self.data.base.c)

    @property
    def _sources(self) -> Sequence[PackedRows]:
        """Rows of each log as they are."""
        return self.problem.sources

    def _rows(self, motion: Motion, aligned_to: RowSource | None = None) -> PackedRows:
        return self.problem.rows_along(motion, aligned_to)

    def _system(self, sources: Sequence[PackedRows]) -> System:
        """Rewritten rows over the parameters seen."""
        system = System(self.problem.parameters, row_groups(self.problem, sources))
        return mapped_blocks(system, self.data.S, self.data.base.c, self.data.system.parameters)

    def _sample_residuals(
        self, standard: Float[Array, "p"], reduce: Reduce[T], i: int, start: int, stop: int
    ) -> T:
        source = self.problem.sources[i]
        compare, rho, valid = predictor(source.layout, standard), [], []
        for _, packed, weights in source.rows(start, stop, _TILE):
            measured, predicted = compare(packed)
            rho.append(measured - predicted)
            valid.append(weights > 0)
        return reduce(np.concatenate(rho, axis=1), np.concatenate(valid, axis=1), self._groups[i])

    def _filtered_residuals(self, standard: Float[Array, "p"], reduce: Reduce[T]) -> Iterator[T]:
        for source, rows, numbers in zip(
            self.problem.sources, self.problem.filters, self._groups, strict=True
        ):
            for _, measured, predicted, valid in compared(source, rows, standard):
                yield reduce(measured - predicted, valid, numbers)


class KeptNoise:
    """What noise does to the rows of a problem, computed once for many `NearPass` beside it."""

    def __init__(self, near: LogPass) -> None:
        self._near = near
        self._noise: dict[tuple[int, bytes | None], tuple[Factor, ...]] = {}
        self._maps: dict[tuple[int, bytes | None], list[Float[Array, "q q"]]] = {}

    def noise(self, position: Float[Array, "m"] | float | None, draws: int) -> tuple[Factor, ...]:
        """See `LogPass.noise`."""
        key = (draws, _bytes(position))
        if key not in self._noise:
            self._noise[key] = self._near.noise(position, draws)
        return self._noise[key]

    def maps(self, position: Float[Array, "m"] | float | None, draws: int) -> list[Float[Array, "q q"]]:
        """Column map of each group from its rows to its centred rows."""
        key = (draws, _bytes(position))
        if key not in self._maps:
            plain, centred = self._near.blocked(), self._near.centred(position, draws)
            pairs = zip(plain.groups, centred.groups, strict=True)
            self._maps[key] = [_column_map(*pair) for pair in pairs]
        return self._maps[key]


class NearPass(LogPass):
    """The pass of a slightly different robot: what noise does to its rows is taken from the other pass.

    Noise of the positions changes with the robot far less than the rows do. Centred rows A_c of the other
    pass are A M for its rows A, group by group, M = R^-1 R_c near the identity; here they are A' M. The
    estimate differs by products of the two small changes, and no noise is drawn again.

    Args:
        problem: Of the changed robot.
        data: Its system, over the same parameters.
        near: Of the robot as it is.
    """

    def __init__(self, problem: Problem, data: BaseSystem, near: KeptNoise) -> None:
        super().__init__(problem, data)
        self.near = near

    def noise(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> tuple[Factor, ...]:
        """Those of the other pass."""
        return self.near.noise(position, draws)

    def centred(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> System:
        """The equations, centred as those of the other pass are."""
        system, groups = self.blocked(), []
        for group, columns in zip(system.groups, self.near.maps(position, draws), strict=True):
            groups.append(replace(group, blocks=group.multiplied(columns)))
        return replace(system, groups=tuple(groups))


def _bytes(position: Float[Array, "m"] | float | None) -> bytes | None:
    return None if position is None else np.asarray(position, dtype=float).tobytes()


def _column_map(plain: Group, centred: Group) -> Float[Array, "q q"]:
    """M with R M = R_c: triangles with positive diagonals, columns of nothing unchanged."""
    import scipy.linalg

    R, R_c = (_positive(group.merged.R) for group in (plain, centred))
    size = np.linalg.norm(R, axis=0)
    seen = np.flatnonzero(np.abs(np.diag(R)) > _NOTHING * size)
    M = np.eye(R.shape[1])
    inner = _positive(triangle(R[:, seen])), _positive(triangle(R_c[:, seen]))
    M[np.ix_(seen, seen)] = scipy.linalg.solve_triangular(*inner)
    return M


def _positive(R: Float[Array, "q q"]) -> Float[Array, "q q"]:
    """A square triangle with the same products of columns and no negative diagonal."""
    q = R.shape[1]
    R = triangle(np.concatenate([R, np.zeros((max(0, q - len(R)), q))]))
    return np.asarray(np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None] * R)


def _mean(factors: Sequence[Factor]) -> Factor:
    """The factor whose Gram matrix is the mean of theirs."""
    R = triangle(np.concatenate([part.R for part in factors]) / np.sqrt(len(factors)))
    return Factor(R, factors[0].n_rows)


def _group_numbers(problem: Problem, groups: Sequence[Group]) -> list[Int[Array, "k"]]:
    """Group of each row of each source; -1 where it has no valid row and so no group."""
    numbered, at = [], 0
    for source in problem.sources:
        numbers = np.full(len(problem.directions.names), -1)
        for name, rows in groupby(range(len(numbers)), key=lambda k: problem.directions.group_names[k]):
            if at < len(groups) and (groups[at].name, groups[at].log) == (name, source.motion.log.name):
                numbers[list(rows)] = at
                at += 1
        numbered.append(numbers)
    return numbered


def _in_groups(change: Change, numbers: Int[Array, "k"]) -> Callable[[int, Array], Array]:
    return lambda k, rho: change(int(numbers[k]), rho) if numbers[k] >= 0 else rho


def _smoothed(part: float) -> Callable[[Motion], Motion]:
    """The same log through a heavier low-pass on its coordinates."""

    def make(motion: Motion) -> Motion:
        plan = motion.plan
        if plan.cutoff is None:
            raise InputError(
                "instruments: smoothed needs a low-pass filter on the logs",
                remedy="give filter: {cutoff: ...}, or instruments: reference",
            )
        cutoff = None if plan.cutoff is None else part * plan.cutoff
        return Motion(motion.log, replace(plan, cutoff=cutoff, edge=int(np.ceil(plan.edge / part))))

    return make


def _reference(motion: Motion) -> Motion:
    """The reference trajectory, differentiated like the measured one."""
    log = motion.log
    if log.q_ref is None:
        raise InputError(
            f"log '{log.name}' has no reference trajectory",
            file=log.file,
            remedy="map q_ref_1.. under `columns:`, or use instruments: smoothed",
        )
    return Motion(replace(log, q=log.q_ref, dq=None, ddq=None), replace(motion.plan, velocity="derived"))


def _disturbed(
    motion: Motion, position: Float[Array, "m"] | float | None, rng: np.random.Generator, sign: float = 1.0
) -> Motion:
    """The log with noise added to its positions (and to measured velocities, as much as they have)."""
    log = motion.log
    changes: dict[str, Array] = {"q": disturbed(log, position, rng, sign)}
    if motion.plan.velocity == "measured" and log.dq is not None:
        noise = spectrum_in(log, log.dq).sigma
        changes["dq"] = log.dq + sign * noise * drawn(log, rng, log.dq.shape[1])
    return Motion(_with(log, changes), motion.plan)


def _with(log: Log, changes: dict[str, Array]) -> Log:
    return replace(log, **changes)  # type: ignore[arg-type]
