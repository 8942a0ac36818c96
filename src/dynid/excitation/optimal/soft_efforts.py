"""Limits of the motors' efforts, foretold by the prior model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.rows import Entries, Rows
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.excitation.ranking import symmetric_range
from dynid.mechanism.parameters import parameter_table


class EffortLimits(Ranged):
    """Efforts of a motion between the limits `tau` of motors.

    Args:
        path: What is moved; its rows are what the motors feel.
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
        for actuator in robot.actuators:
            own = robot.limits.get(actuator.name, {})
            if "tau" in own and actuator.name in path.rows:
                low, high = symmetric_range(own["tau"])
                self._bounds.append((path.rows.index(actuator.name), low, high))
                sides += both_sides("effort", actuator.name, low, high)
        self.sides = tuple(sides)
        self._known: tuple[RobotStates, Entries] | None = None

    def efforts(self, states: RobotStates) -> Float[Array, "n k"]:
        """Efforts of all rows, shape (n, k), in [N m] or [N]."""
        entries = self._entries(states)
        pairs = zip(self.rows.entries, self.rows.columns, strict=True)
        return np.stack([self.chi[columns] @ entries.model[rows] for rows, columns in pairs], axis=1)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows a limit: above and below."""
        tau = self.efforts(states)
        return np.array([row for k, low, high in self._bounds for row in shares(tau[:, k], low, high)])

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """One way back a motor."""
        entries = self._entries(states)
        rows = []
        for k, low, high in self._bounds:
            weights = np.zeros_like(entries.model)
            weights[self.rows.entries[k]] = (2.0 * self.chi[self.rows.columns[k]] / (high - low))[:, None]
            one = np.array(self.rows.back(entries, weights))
            rows += [one, -one]
        return np.array(rows).transpose(1, 0, 2, 3)

    def _entries(self, states: RobotStates) -> Entries:
        if self._known is None or self._known[0] is not states:
            self._known = states, self.rows.at(states)
        return self._known[1]
