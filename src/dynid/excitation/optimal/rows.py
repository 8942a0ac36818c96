"""Rows of the model along a motion: entries of N^T W_tree, and gradients of weighted sums of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.paths import Moved, Path, RobotStates
from dynid.mechanism.parameters import Parameter
from dynid.regressor.adjoint import AdjointRegressor
from dynid.regressor.layout import ABSENT
from dynid.regressor.moving import MovingRegressor


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

    def back(self, entries: Entries, weights: Float[Array, "m n"]) -> Moved:
        """Gradients along the motion of sum weights * model entries."""
        N_bar = None
        if self._moving is not None:
            from dynid.regressor.drive_adjoint_kernels import combine_back

            tree, turned = np.zeros_like(entries.tree), np.zeros_like(np.asarray(entries.directions))
            combination = self._moving.combination
            combine_back(entries.tree, combination, entries.directions, weights, tree, turned)
            weights, N_bar = tree, turned.transpose(2, 1, 0)
        states = entries.states
        slopes = self.regressor.slopes(states.q, states.dq, states.ddq, weights)
        return self.path.back(states, slopes, N_bar)

    def _numbers(self) -> tuple[list[Array], list[Array]]:
        layout = self.regressor.layout if self._moving is None else self._moving.layout
        picked = self.path.pick if self.path.pick is not None else range(len(self.path.rows))
        entries, columns = [], []
        for row in picked:
            own = np.arange(layout.start[row], layout.start[row + 1])
            own = own[layout.columns[own] != ABSENT]
            entries.append(own)
            columns.append(layout.columns[own])
        return entries, columns
