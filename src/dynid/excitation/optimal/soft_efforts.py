"""Limits of the motor efforts, predicted by the prior model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.efforts import effort_range
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.rows import Entries, Rows
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.adjoint import Slopes


class EffortLimits(Ranged):
    """Efforts of a motion between the limits of motors and cables.

    With redundant cables, a controller keeps all of them taut about the middle of their range m:

        tau = m + D^T (W chi - C^T m)        D as in `ClosedPath`: the internal part of m remains

    Args:
        path: Moved coordinates; its rows are the motor efforts.
        chi: Prior of all standard parameters, shape (p,), SI.
    """

    jumps = True

    def __init__(
        self,
        path: Path,
        chi: Float[Array, "p"],
        mounted: tuple[str, ...] = (),
        softness: Float[Array, "s"] | None = None,
    ) -> None:
        robot = path.mechanism
        self.path, self.chi = path, chi
        self.rows = Rows(path, parameter_table(robot), mounted, softness)
        self._bounds: list[tuple[int, float, float]] = []  # row, low, high
        sides: list[Side] = []
        cables = {cable.name for cable in robot.cables}
        middle = np.zeros(len(robot.actuators))
        for i, actuator in enumerate(robot.actuators):
            bounds = effort_range(robot, actuator.name)
            if bounds is not None and actuator.name in path.rows:
                self._bounds.append((path.rows.index(actuator.name), *bounds))
                kind = "tension" if actuator.name in cables else "effort"
                sides += both_sides(kind, actuator.name, *bounds)
                middle[i] = 0.5 * sum(bounds) if actuator.name in cables else 0.0
        self.sides = tuple(sides)
        self._middle = middle if middle.any() else None
        self._known: tuple[RobotStates, Entries] | None = None

    def efforts(self, states: RobotStates) -> Float[Array, "n k"]:
        """Efforts of all rows, shape (n, k), in [N m] or [N]."""
        entries = self._entries(states)
        pairs = zip(self.rows.entries, self.rows.columns, strict=True)
        tau = np.stack([self.chi[columns] @ entries.model[rows] for rows, columns in pairs], axis=1)
        if self._middle is None or states.N is None:
            return tau
        return np.asarray(tau + self._middle - np.einsum("nvk,v->nk", states.N, self._strain))

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows per limit: above and below."""
        tau = self.efforts(states)
        return np.array([row for k, low, high in self._bounds for row in shares(tau[:, k], low, high)])

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """One adjoint pass per motor."""
        entries = self._entries(states)
        rows = []
        for k, low, high in self._bounds:
            weights = np.zeros_like(entries.model)
            weights[self.rows.entries[k]] = (2.0 * self.chi[self.rows.columns[k]] / (high - low))[:, None]
            one = np.array(self.rows.back(entries, weights))
            if self._middle is not None:
                one += self._strained_back(states, k, 2.0 / (high - low))
            rows += [one, -one]
        return np.array(rows).transpose(1, 0, 2, 3)

    @property
    def _strain(self) -> Float[Array, "v"]:
        """C^T m."""
        return np.asarray(self.path.mechanism.actuator_map.T @ self._middle)

    def _strained_back(self, states: RobotStates, k: int, size: float) -> Float[Array, "3 n d"]:
        """Gradients of -size D_k^T C^T m: only D varies."""
        N_bar = np.zeros((*states.dq.shape, len(self.path.rows)))
        N_bar[:, :, k] = -size * self._strain
        none = Slopes(*(np.zeros((len(states.q), states.dq.shape[1])) for _ in range(3)))
        return np.array(self.path.back(states, none, N_bar))

    def _entries(self, states: RobotStates) -> Entries:
        if self._known is None or self._known[0] is not states:
            self._known = states, self.rows.at(states)
        return self._known[1]
