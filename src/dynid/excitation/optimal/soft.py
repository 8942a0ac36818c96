"""Limits that are not linear in the coefficients: each a function of the state, kept where h <= 0."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.excitation.optimal.paths import RobotStates


@runtime_checkable
class SoftLimit(Protocol):
    """One or more limits h(state) <= 0, in shares of what is allowed."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is limited, one a row, as told when a limit cannot be met."""

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Values h, shape (s, n): 0.1 is a tenth too much."""

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """Derivatives with respect to position, rate and second rate of what is moved."""


class SoftLimits:
    """Several of them, stacked."""

    def __init__(self, limits: tuple[SoftLimit, ...]) -> None:
        self.limits = limits
        self.names = tuple(name for limit in limits for name in limit.names)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """All values."""
        found = [limit.excess(states) for limit in self.limits]
        return np.concatenate(found) if found else np.zeros((0, len(states.q)))

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """All derivatives."""
        return np.concatenate([limit.slopes(states) for limit in self.limits], axis=1)
