"""One optimisation: a criterion of the information along a family of motions, as a function of z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.base.base import BaseSet
from dynid.common.arrays import Array, Float, Int
from dynid.excitation.optimal.criteria import Criterion
from dynid.excitation.optimal.paths import Moved, Path, RobotStates, states_along
from dynid.mechanism.parameters import Parameter
from dynid.regressor.adjoint import AdjointRegressor
from dynid.regressor.layout import ABSENT
from dynid.regressor.moving import MovingRegressor

if TYPE_CHECKING:
    from dynid.excitation.optimal.box import Blocks
    from dynid.excitation.optimal.soft import SoftLimits

# Of a scaled column's square: a direction that a motion does not excite has a large but finite cost.
_RIDGE = 1e-13


@dataclass(frozen=True, eq=False)
class Point:
    """A trial motion.

    Attributes:
        z: Variables.
        value: Minimised value; infinite if the motion is not feasible.
        excess: Excess of the soft limits, satisfied if h <= 0, shape (s, n).
        G: Information. tape: intermediate results for its gradient.
    """

    z: Float[Array, "v"]
    value: float
    excess: Float[Array, "s n"]
    G: Float[Array, "b b"] | None = None
    tape: Tape | None = None

    @property
    def violation(self) -> float:
        """Sum of the violations of soft limits."""
        return float(np.maximum(self.excess, 0.0).sum())


class Problem:
    """A criterion as a function of the scaled variables of a family.

    Args:
        blocks: Family and linear limits.
        information: Of its motions.
        criterion: Of the information.
        samples: Number of design samples in one period.
        soft: Nonlinear limits: efforts, poses, distances.
    """

    def __init__(
        self,
        blocks: Blocks,
        information: Information,
        criterion: Criterion,
        samples: int,
        soft: SoftLimits | None = None,
    ) -> None:
        self.blocks, self.information, self.criterion = blocks, information, criterion
        self.soft = soft
        self.t = np.arange(samples) / samples * blocks.family.period
        self.B = np.ascontiguousarray(blocks.family.matrices(self.t))

    @property
    def linear(self) -> bool:
        """Whether every motion within the linear limits is feasible."""
        return self.soft is None and not self.information.path.mechanism.is_closed

    def narrowed(self, shares: Float[Array, "s"]) -> Problem:
        """The same with each soft limit narrowed by a share."""
        soft = None if self.soft is None else self.soft.narrowed(shares)
        return Problem(self.blocks, self.information, self.criterion, len(self.t), soft)

    def states(self, z: Float[Array, "v"], near: RobotStates | None = None) -> RobotStates | None:
        """The robot along the motion, or `near` another one; None if it cannot follow without a jump."""
        return states_along(self.information.path, self.B @ self.blocks.coefficients(z), self.t, near)

    def evaluate(self, z: Float[Array, "v"], near: Point | None = None) -> Point:
        """Value and soft limits at z; `near`: a similar motion."""
        states = self.states(z, None if near is None or near.tape is None else near.tape.states)
        if states is None:
            return Point(z, np.inf, np.zeros((0, 0)))
        G, tape = self.information.gram_of(states)
        excess = np.zeros((0, len(self.t))) if self.soft is None else self.soft.excess(tape.states)
        return Point(z, self.criterion.smooth_value(G), excess, G, tape)

    def gradient(self, point: Point) -> Float[Array, "v"]:
        """Gradient of the value with respect to z."""
        if point.tape is None or point.G is None:
            raise ValueError("an infeasible motion has no gradient")
        y, dy, ddy = self.information.back(point.tape, self.criterion.smooth(point.G)[1])
        return self.blocks.slope(self.B[0].T @ y + self.B[1].T @ dy + self.B[2].T @ ddy)

    def soft_rows(self, point: Point, near: float) -> tuple[Float[Array, "r v"], Float[Array, "r"]]:
        """Rows A and bounds b of the linearised soft limits closer than `near`: A p <= b."""
        if self.soft is None or point.tape is None:
            return np.zeros((0, len(point.z))), np.zeros(0)
        limit, sample = np.nonzero(point.excess > -near)
        rows = np.zeros((len(limit), len(point.z)))
        if len(limit):
            needed = np.any(point.excess > -near, axis=1)
            slopes = self.soft.slopes(point.tape.states, np.asarray(needed))
            for order in range(len(self.B)):
                moved = slopes[order][limit, sample]  # (r, j)
                block = moved[:, :, None] * self.B[order][sample][:, None, :]
                scaled = block * self.blocks.spread * self.blocks.size[:, None]
                rows += scaled.reshape(len(limit), -1)
        return rows, -point.excess[limit, sample]


# Information of a motion about the base parameters, and its gradient along the motion.
#
# G = G_0 + weight sum_samples W_base^T Sigma^-1 W_base,     W_base = N^T W_tree T
#
# Sums of squares are sufficient here: motions are compared by G, nothing is solved with it. The reported
# values come from the singular values of W itself.


@dataclass(frozen=True, eq=False)
class Tape:
    """Intermediate results for the gradient: entries, and those of every row."""

    entries: Entries
    blocks: tuple[Float[Array, "_ n"], ...]

    @property
    def states(self) -> RobotStates:
        """Of the robot."""
        return self.entries.states


class Information:
    """G of a motion, for one robot and set of base parameters.

    Args:
        path: How the robot follows the moved coordinates.
        base: Structural base set; T are its columns, divided by `scale`.
        sigma: Deviation of the noise of every actuator's effort, shape (a,), in [N m] or [N].
        scale: Size of each base parameter's column, shape (b,); default ones.
        weight: Recorded samples per sample of the design.
        known: G_0 of data already recorded, in unscaled base parameters, shape (b, b).
        softness: Speed over which the friction discontinuity is smoothed, per coordinate and actuator.
    """

    def __init__(
        self,
        path: Path,
        base: BaseSet,
        sigma: Float[Array, "a"],
        *,
        scale: Float[Array, "b"] | None = None,
        weight: float = 1.0,
        known: Float[Array, "b b"] | None = None,
        mounted: tuple[str, ...] = (),
        softness: Float[Array, "s"] | None = None,
    ) -> None:
        self.path, self.base = path, base
        self.scale = np.ones(len(base.indices)) if scale is None else scale
        self.weight = weight
        used = np.flatnonzero(np.any(base.S != 0.0, axis=1))
        self.T = base.S[used] / self.scale
        size = np.outer(self.scale, self.scale)
        self.known = _RIDGE * np.eye(len(size)) + (0.0 if known is None else known / size)
        self.rows = Rows(path, [base.standard[i] for i in used], mounted, softness)
        self.sigma_rows = row_sigmas(path.effort_map, sigma)
        self._entries = [_run(row_entries) for row_entries in self.rows.entries]
        self._places = [np.ix_(columns, columns) for columns in self.rows.columns]

    def gram(self, moved: Moved) -> tuple[Float[Array, "b b"], Tape] | None:
        """G in scaled base parameters, and data for the gradient; None if the robot cannot follow."""
        states = self.path.states(moved)
        return None if states is None else self.gram_of(states)

    def gram_of(self, states: RobotStates) -> tuple[Float[Array, "b b"], Tape]:
        """G of known states."""
        entries = self.rows.at(states)
        blocks = tuple(entries.model[row_entries] for row_entries in self._entries)
        G = np.zeros((len(self.T),) * 2)
        for place, block, sigma in zip(self._places, blocks, self.sigma_rows, strict=True):
            G[place] += block @ block.T / sigma**2
        return self.weight * (self.T.T @ G @ self.T) + self.known, Tape(entries, blocks)

    def back(self, tape: Tape, slope: Float[Array, "b b"]) -> Moved:
        """Gradient of f(G) along the motion, from its gradient with respect to G."""
        outer = 2.0 * self.weight * (self.T @ slope @ self.T.T)
        weights = np.zeros_like(tape.entries.model)
        parts = zip(self._entries, self._places, tape.blocks, self.sigma_rows, strict=True)
        for row_entries, place, block, sigma in parts:
            weights[row_entries] = (outer[place] / sigma**2) @ block
        return self.rows.back(tape.entries, weights)

    def rows_of(self, states: RobotStates) -> Float[Array, "r b"]:
        """W of unscaled base parameters, every row divided by its noise; for reports."""
        _, tape = self.gram_of(states)
        pieces = zip(self.rows.columns, tape.blocks, self.sigma_rows, strict=True)
        parts = [block.T @ (self.T[columns] * self.scale / sigma) for columns, block, sigma in pieces]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))


def row_sigmas(effort_map: Float[Array, "k a"], sigma: Float[Array, "a"]) -> Float[Array, "k"]:
    """Noise of each row; a row without a motor gets the smallest noise of those with a motor."""
    sigmas = np.sqrt((effort_map**2) @ sigma**2)
    driven = sigmas[sigmas > 0.0]
    return np.where(sigmas > 0.0, sigmas, driven.min(initial=np.inf) if len(driven) else 1.0)


def _run(places: Int[Array, "e"]) -> slice | Int[Array, "e"]:
    """Consecutive indices as a slice, which copies nothing."""
    whole = len(places) > 0 and places[-1] - places[0] + 1 == len(places) and np.all(np.diff(places) == 1)
    return slice(int(places[0]), int(places[-1]) + 1) if whole else places


def _part(combination: tuple[Array, ...], first: int, last: int) -> tuple[Array, ...]:
    """Of some model entries only; see `kernels.combine_moving`."""
    start, entries, coordinates, rows = combination
    parts = slice(int(start[first]), int(start[last]))
    return start[first : last + 1] - start[first], entries[parts], coordinates[parts], rows[first:last]


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of the model's rows, and intermediate results for the gradient.

    Attributes:
        states: Of the robot.
        tree: Entries of the tree's rows, shape (e, n).
        model: Entries of the model's rows: those of the tree if N only selects rows, shape (m, n).
        directions: N as the kernels read it, shape (k, v, n); None if it only selects rows.
    """

    states: RobotStates
    tree: Float[Array, "e n"]
    model: Float[Array, "m n"]
    directions: Float[Array, "k v n"] | None


class Rows:
    """Computes entries of all rows of a path, for some parameters.

    Attributes:
        entries, columns: Of every row: numbers of its entries, and the parameter of each.
    """

    def __init__(
        self,
        path: Path,
        parameters: Sequence[Parameter],
        mounted: Sequence[str] = (),
        softness: Float[Array, "s"] | None = None,
    ) -> None:
        self.path = path
        self.regressor = AdjointRegressor(path.mechanism, parameters, mounted, softness)
        self._moving = None
        if path.pick is None:
            self._moving = MovingRegressor(path.mechanism, parameters, len(path.rows), mounted)
        self.entries, self.columns = self._numbers()

    def at(self, states: RobotStates) -> Entries:
        """Entries at some states."""
        tree = self.regressor.packed(states.q, states.dq, states.ddq)
        if self._moving is None:
            return Entries(states, tree, tree, None)
        from dynid.regressor.kernels import combine_moving

        directions = np.ascontiguousarray(np.asarray(states.N).transpose(2, 1, 0))
        model = np.empty((self._moving.layout.n_entries, tree.shape[1]))
        combine_moving(tree, self._moving.combination, directions, model)
        return Entries(states, tree, model, directions)

    def back(self, entries: Entries, weights: Float[Array, "m n"], row: int | None = None) -> Moved:
        """Gradients along the motion of sum weights * model entries; `row`: the only one with weights."""
        N_bar = None
        if self._moving is not None:
            from dynid.regressor.drive_kernels import combine_back

            tree, turned = np.zeros_like(entries.tree), np.zeros_like(np.asarray(entries.directions))
            combination, span = self._moving.combination, slice(None)
            if row is not None:
                span = slice(*self._moving.layout.start[row : row + 2].tolist())
                combination = _part(combination, span.start, span.stop)
            combine_back(entries.tree, combination, entries.directions, weights[span], tree, turned)
            weights, N_bar = tree, turned.transpose(2, 1, 0)
        states = entries.states
        slopes = self.regressor.slopes(states.q, states.dq, states.ddq, weights)
        return self.path.back(states, slopes, N_bar)

    def _numbers(self) -> tuple[list[Array], list[Array]]:
        layout = self.regressor.layout if self._moving is None else self._moving.layout
        picked = self.path.pick if self.path.pick is not None else range(len(self.path.rows))
        entries, columns = [], []
        for row in picked:
            span = np.arange(layout.start[row], layout.start[row + 1])
            span = span[layout.columns[span] != ABSENT]
            entries.append(span)
            columns.append(layout.columns[span])
        return entries, columns
