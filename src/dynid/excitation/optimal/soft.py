"""Limits that are not linear in the coefficients: each a function of the state, kept where h <= 0."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

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
    """Several of them, stacked; `spare` is a share of each that stays unused."""

    def __init__(self, limits: tuple[SoftLimit, ...], spare: float = 0.0) -> None:
        self.limits, self.spare = limits, spare
        self.names = tuple(name for limit in limits for name in limit.names)

    def narrowed(self, share: float) -> SoftLimits:
        """The same limits with a larger spare share."""
        return SoftLimits(self.limits, self.spare + share)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """All values."""
        found = [limit.excess(states) for limit in self.limits]
        return self.spare + np.concatenate(found) if found else np.zeros((0, len(states.q)))

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"]) -> Float[Array, "3 s n d"]:
        """Derivatives of the rows needed; others may be zero."""
        parts, at = [], 0
        for limit in self.limits:
            count = len(limit.names)
            if needed[at : at + count].any():
                parts.append(limit.slopes(states))
            else:
                parts.append(np.zeros((3, count, *states.moved[0].shape)))
            at += count
        return np.concatenate(parts, axis=1)
