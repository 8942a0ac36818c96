"""Quintic B-splines over equal pieces, clamped at both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

DEGREE = 5


@dataclass(frozen=True, eq=False)
class SplineMotion:
    """A spline per coordinate; constant before its start and after its end.

    Attributes:
        points: Control points, shape (c, j), in [rad] or [m].
        period: Length of the motion, in [s].
    """

    points: Float[Array, "c j"]
    period: float

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Positions at the times t [s], shape (n, j), in [rad] or [m]."""
        return self._value(t, 0)

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Velocities, shape (n, j), per s."""
        return self._value(t, 1)

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n j"]:
        """Accelerations, shape (n, j), per s^2."""
        return self._value(t, 2)

    def _value(self, t: Float[Array, "n"], order: int) -> Float[Array, "n j"]:
        return spline_matrix(t, self.period, len(self.points) - DEGREE, order) @ self.points


def spline_matrix(t: Float[Array, "n"], period: float, pieces: int, order: int) -> Float[Array, "n c"]:
    """Values (or derivatives) of all basis splines, one per column, shape (n, pieces + 5)."""
    from scipy.interpolate import BSpline

    ends = [0.0] * DEGREE, [period] * DEGREE
    knots = np.concatenate([ends[0], np.linspace(0.0, period, pieces + 1), ends[1]])
    basis = BSpline(knots, np.eye(pieces + DEGREE), DEGREE)
    return np.asarray(basis(np.clip(t, 0.0, period), nu=order))
