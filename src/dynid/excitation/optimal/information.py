"""Information of a motion about the base parameters, and its gradient along the motion.

G = G_0 + weight sum_samples W_base^T Sigma^-1 W_base,     W_base = N^T W_tree T

Sums of squares are sufficient here: motions are compared by G, nothing is solved with it. The reported
values come from the singular values of W itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dynid.base.base import BaseSet
from dynid.common.arrays import Array
from dynid.excitation.optimal.paths import Moved, Path, RobotStates
from dynid.excitation.optimal.rows import Entries, Rows

# Of a scaled column's square: a direction that a motion does not excite has a large but finite cost.
_RIDGE = 1e-13


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
        self._entries = [_run(own) for own in self.rows.entries]
        self._places = [np.ix_(columns, columns) for columns in self.rows.columns]

    def gram(self, moved: Moved) -> tuple[Float[Array, "b b"], Tape] | None:
        """G in scaled base parameters, and data for the gradient; None if the robot cannot follow."""
        states = self.path.states(moved)
        return None if states is None else self.gram_of(states)

    def gram_of(self, states: RobotStates) -> tuple[Float[Array, "b b"], Tape]:
        """G of known states."""
        entries = self.rows.at(states)
        blocks = tuple(entries.model[own] for own in self._entries)
        G = np.zeros((len(self.T),) * 2)
        for place, block, sigma in zip(self._places, blocks, self.sigma_rows, strict=True):
            G[place] += block @ block.T / sigma**2
        return self.weight * (self.T.T @ G @ self.T) + self.known, Tape(entries, blocks)

    def back(self, tape: Tape, slope: Float[Array, "b b"]) -> Moved:
        """Gradient of f(G) along the motion, from its gradient with respect to G."""
        outer = 2.0 * self.weight * (self.T @ slope @ self.T.T)
        weights = np.zeros_like(tape.entries.model)
        parts = zip(self._entries, self._places, tape.blocks, self.sigma_rows, strict=True)
        for own, place, block, sigma in parts:
            weights[own] = (outer[place] / sigma**2) @ block
        return self.rows.back(tape.entries, weights)

    def rows_of(self, states: RobotStates) -> Float[Array, "r b"]:
        """W of unscaled base parameters, every row divided by its noise; for reports."""
        _, tape = self.gram_of(states)
        found = zip(self.rows.columns, tape.blocks, self.sigma_rows, strict=True)
        parts = [block.T @ (self.T[columns] * self.scale / sigma) for columns, block, sigma in found]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))


def row_sigmas(effort_map: Float[Array, "k a"], sigma: Float[Array, "a"]) -> Float[Array, "k"]:
    """Noise of each row; a row without a motor gets the smallest noise of those with a motor."""
    found = np.sqrt((effort_map**2) @ sigma**2)
    driven = found[found > 0.0]
    return np.where(found > 0.0, found, driven.min(initial=np.inf) if len(driven) else 1.0)


def _run(places: Int[Array, "e"]) -> slice | Int[Array, "e"]:
    """Consecutive indices as a slice, which copies nothing."""
    whole = len(places) > 0 and places[-1] - places[0] + 1 == len(places) and np.all(np.diff(places) == 1)
    return slice(int(places[0]), int(places[-1]) + 1) if whole else places
