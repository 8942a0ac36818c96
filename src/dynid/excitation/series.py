"""What a motion is, whatever makes it: positions and exact rates at any time."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float

from dynid.common.arrays import Array


@runtime_checkable
class Trajectory(Protocol):
    """Positions and exact rates of some coordinates at any time."""

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Positions, shape (n, j), in [rad] or [m]."""

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their rates, per s."""

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their second rates, per s^2."""


@runtime_checkable
class Series(Trajectory, Protocol):
    """A trajectory that is done after some time."""

    @property
    def period(self) -> float:
        """Time in which the motion is done once, in [s]."""
