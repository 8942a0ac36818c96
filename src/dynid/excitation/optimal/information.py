"""Information that a motion brings about the base parameters, and its slope along the motion.

G = G_0 + weight sum_samples W_base^T Sigma^-1 W_base,     W_base = N^T W_tree T

Sums of squares are enough here: motions are compared by G, nothing is solved with it. What is reported
in the end comes from singular values of W itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.base.base import BaseSet
from dynid.excitation.optimal.paths import Moved, Path, RobotStates
from dynid.regressor.adjoint import AdjointRegressor
from dynid.regressor.layout import ABSENT
from dynid.regressor.moving import MovingRegressor


@dataclass(frozen=True, eq=False)
class Tape:
    """What the way back needs: states, entries of the tree's rows, and those of the model's rows."""

    states: RobotStates
    packed: Float[Array, "e n"]
    blocks: tuple[Float[Array, "m n"], ...]
    directions: Float[Array, "k v n"] | None


class Information:
    """G of a motion, for one robot and set of base parameters.

    Args:
        path: How the robot follows what is moved.
        base: Structural base set; T are its columns, divided by `scale`.
        sigma: Deviation of the noise of every actuator's effort, shape (a,), in [N m] or [N].
        scale: Size of each base parameter's column, shape (b,); default ones.
        weight: Recorded samples per sample of the design.
        known: G_0 of data already recorded, in unscaled base parameters, shape (b, b).
        softness: Speed over which friction's jump is softened, per coordinate and actuator.
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
        parameters = [base.standard[i] for i in used]
        self.T = base.S[used] / self.scale
        self.known = (
            np.zeros((len(self.scale),) * 2) if known is None else known / np.outer(*2 * [self.scale])
        )
        self.regressor = AdjointRegressor(path.mechanism, parameters, mounted, softness)
        self.sigma_rows = row_sigmas(path.effort_map, sigma)
        self._moving = None
        if path.pick is None:
            self._moving = MovingRegressor(path.mechanism, parameters, len(path.rows), mounted)
        self._entries, self._columns = self._rows()

    def gram(self, moved: Moved) -> tuple[Float[Array, "b b"], Tape] | None:
        """G in scaled base parameters, and what the way back needs; None where the robot cannot follow."""
        states = self.path.states(moved)
        return None if states is None else self.gram_of(states)

    def gram_of(self, states: RobotStates) -> tuple[Float[Array, "b b"], Tape]:
        """G of known states."""
        packed = self.regressor.packed(states.q, states.dq, states.ddq)
        entries, directions = packed, None
        if self._moving is not None:
            from dynid.regressor.kernels import combine_moving

            directions = np.ascontiguousarray(np.asarray(states.N).transpose(2, 1, 0))
            entries = np.empty((self._moving.layout.n_entries, packed.shape[1]))
            combine_moving(packed, self._moving.combination, directions, entries)
        blocks = tuple(
            entries[rows] / sigma for rows, sigma in zip(self._entries, self.sigma_rows, strict=True)
        )
        G = np.zeros((len(self.T),) * 2)
        for columns, block in zip(self._columns, blocks, strict=True):
            G[np.ix_(columns, columns)] += block @ block.T
        found = self.weight * (self.T.T @ G @ self.T) + self.known
        return found, Tape(states, packed, blocks, directions)

    def back(self, tape: Tape, slope: Float[Array, "b b"]) -> Moved:
        """Slopes along the motion of f(G) from its slope with respect to G."""
        outer = 2.0 * self.weight * (self.T @ slope @ self.T.T)
        size = (
            tape.packed.shape
            if self._moving is None
            else (self._moving.layout.n_entries, tape.packed.shape[1])
        )
        weights = np.zeros(size)
        for rows, columns, block, sigma in zip(
            self._entries, self._columns, tape.blocks, self.sigma_rows, strict=True
        ):
            weights[rows] = outer[np.ix_(columns, columns)] @ block / sigma
        N_bar = None
        if self._moving is not None:
            from dynid.regressor.drive_adjoint_kernels import combine_back

            tree, turned = np.zeros_like(tape.packed), np.zeros_like(np.asarray(tape.directions))
            combine_back(tape.packed, self._moving.combination, tape.directions, weights, tree, turned)
            weights, N_bar = tree, turned.transpose(2, 1, 0)
        states = tape.states
        slopes = self.regressor.slopes(states.q, states.dq, states.ddq, weights)
        return self.path.back(states, slopes, N_bar)

    def rows_of(self, states: RobotStates) -> Float[Array, "r b"]:
        """W of unscaled base parameters, every row divided by its noise; for reports."""
        _, tape = self.gram_of(states)
        parts = []
        for columns, block in zip(self._columns, tape.blocks, strict=True):
            parts.append(block.T @ (self.T[columns] * self.scale))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))

    def _rows(self) -> tuple[list[Array], list[Array]]:
        """Entries and parameters of every row of the model, those without parameter left out."""
        moving = self._moving
        layout = self.regressor.layout if moving is None else moving.layout
        picked = self.path.pick if self.path.pick is not None else range(len(self.path.rows))
        entries, columns = [], []
        for row in picked:
            own = np.arange(layout.start[row], layout.start[row + 1])
            own = own[layout.columns[own] != ABSENT]
            entries.append(own)
            columns.append(layout.columns[own])
        return entries, columns


def row_sigmas(effort_map: Float[Array, "k a"], sigma: Float[Array, "a"]) -> Float[Array, "k"]:
    """Noise of each row; a row that no motor enters counts as the quietest one that a motor does."""
    found = np.sqrt((effort_map**2) @ sigma**2)
    driven = found[found > 0.0]
    return np.where(found > 0.0, found, driven.min(initial=np.inf) if len(driven) else 1.0)
