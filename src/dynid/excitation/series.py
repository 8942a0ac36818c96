"""Interface of a motion: positions and exact derivatives at any time."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float

from dynid.common.arrays import Array


@runtime_checkable
class Trajectory(Protocol):
    """Positions and exact derivatives of some coordinates at any time."""

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Positions, shape (n, j), in [rad] or [m]."""

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their rates, per s."""

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Their second rates, per s^2."""


@runtime_checkable
class Series(Trajectory, Protocol):
    """A trajectory of finite duration."""

    @property
    def period(self) -> float:
        """Duration of one execution of the motion, in [s]."""
