"""Limits of the motors' efforts, foretold by the prior model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.rows import Entries, Rows
from dynid.excitation.ranking import symmetric_range
from dynid.mechanism.parameters import parameter_table


class EffortLimits:
    """Efforts of a motion between the limits `tau` of joints and motors.

    Args:
        path: What is moved; its rows are what the motors feel.
        chi: Prior of all standard parameters, shape (p,), SI.
        margin: Share of every limit that stays unused.
    """

    def __init__(
        self,
        path: Path,
        chi: Float[Array, "p"],
        margin: float = 0.0,
        mounted: tuple[str, ...] = (),
        softness: Float[Array, "s"] | None = None,
    ) -> None:
        robot = path.mechanism
        self.path, self.chi = path, chi
        self.rows = Rows(path, parameter_table(robot), mounted, softness)
        self.bounds: list[tuple[int, float, float]] = []  # row, centre, half
        names = []
        for actuator in robot.actuators:
            own = robot.limits.get(actuator.name, {})
            if "tau" in own and actuator.name in path.rows:
                low, high = symmetric_range(own["tau"])
                half = 0.5 * (high - low) * (1.0 - margin)
                self.bounds.append((path.rows.index(actuator.name), 0.5 * (low + high), half))
                names.append(f"effort of '{actuator.name}'")
        self.names = tuple(name for name in names for _ in range(2))
        self._known: tuple[RobotStates, Entries] | None = None

    def __bool__(self) -> bool:
        return bool(self.bounds)

    def efforts(self, states: RobotStates) -> Float[Array, "n k"]:
        """Efforts of all rows, shape (n, k), in [N m] or [N]."""
        entries = self._entries(states)
        pairs = zip(self.rows.entries, self.rows.columns, strict=True)
        return np.stack([self.chi[columns] @ entries.model[rows] for rows, columns in pairs], axis=1)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows a limit: above and below."""
        tau = self.efforts(states)
        rows = []
        for k, centre, half in self.bounds:
            share = (tau[:, k] - centre) / half
            rows += [share - 1.0, -share - 1.0]
        return np.array(rows)

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """One way back a motor."""
        entries = self._entries(states)
        rows = []
        for k, _, half in self.bounds:
            weights = np.zeros_like(entries.model)
            weights[self.rows.entries[k]] = (self.chi[self.rows.columns[k]] / half)[:, None]
            one = np.array(self.rows.back(entries, weights))
            rows += [one, -one]
        return np.array(rows).transpose(1, 0, 2, 3)

    def _entries(self, states: RobotStates) -> Entries:
        if self._known is None or self._known[0] is not states:
            self._known = states, self.rows.at(states)
        return self._known[1]
