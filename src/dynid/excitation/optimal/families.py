"""Families of motions, each linear in its coefficients: q_j(t) = B(t) x_j for every coordinate j.

| family   | coefficients                                    | between samples                 |
|----------|-------------------------------------------------|---------------------------------|
| fourier  | centre and harmonics, at rest at both ends      | Ehlich and Zeller's bound       |
| spline   | control points of quintic B-splines, at rest    | the worst spline of a fine grid |
| points   | points of rest, equal times between them        | the grid contains all extremes  |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.excitation.random_motion import PointToPoint
from dynid.excitation.series import FourierMotion, Series, quintic

ORDERS = 4  # position, velocity, acceleration, jerk
# Grid points of limits in each piece of a spline. The worst splines, found by linear programs for position
# and its three derivatives, exceed their grid values by 0.9 % between points.
_PER_PIECE, _SPLINE_SHARE = 16, 0.99
# Where position, velocity, acceleration and jerk of a quintic move are largest, as shares of its duration.
_EXTREMES = (0.0, (3.0 - 3.0**0.5) / 6.0, 0.5, (3.0 + 3.0**0.5) / 6.0)
_POINTS_SHARE = 0.9999  # rounding of the quadratic programs
_ROUNDED = 1e-9  # of a move: a time this close to its start belongs to it
DEGREE = 5


@runtime_checkable
class Family(Protocol):
    """Motions that are linear in their coefficients."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def period(self) -> float:
        """Length of the motion, in [s]."""

    @property
    def count(self) -> int:
        """Coefficients of one coordinate, m."""

    def matrices(self, t: Float[Array, "n"]) -> Float[Array, "o n m"]:
        """B of position, velocity, acceleration and jerk at the times t, shape (4, n, m)."""

    def grid(self) -> tuple[Float[Array, "n"], float]:
        """Times at which limits are imposed, in [s], and the usable share of each limit."""

    def motion(self, x: Float[Array, "m j"]) -> Series:
        """The motion with these coefficients, one column per coordinate."""

    def joins(self) -> Float[Array, "k"]:
        """Times inside the motion at which the jerk jumps, in [s]."""


@dataclass(frozen=True)
class FourierFamily:
    """Fourier series; `resting` ones begin and end at rest.

    Attributes:
        harmonics: Terms of the series, h.
        per_harmonic: Grid points of limits per harmonic. Between n h points a trigonometric polynomial
            of degree h exceeds its largest value on them by 1 / cos(pi / n) at most (Ehlich and Zeller).
    """

    harmonics: int
    period: float
    resting: bool = True
    per_harmonic: int = 20
    name: str = "fourier"

    def __post_init__(self) -> None:
        least = 3 if self.resting else 1
        if self.harmonics < least:
            raise InputError(
                f"{self.harmonics} harmonics cannot begin and end at rest", remedy=f"use {least} or more"
            )
        if not 0.0 < self.period < np.inf:
            raise InputError(f"period {self.period} s is not valid", remedy="e.g. --period 10")

    @property
    def count(self) -> int:
        """Coefficients of one coordinate."""
        return 2 * self.harmonics + (-1 if self.resting else 1)

    def matrices(self, t: Float[Array, "n"]) -> Float[Array, "o n m"]:
        """B of position, velocity, acceleration and jerk."""
        w = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        s, c, unit = np.sin(np.outer(t, w)), np.cos(np.outer(t, w)), np.ones((len(t), 1))
        raw = [
            np.hstack([unit, s / w, -c / w]),
            np.hstack([0 * unit, c, s]),
            np.hstack([0 * unit, -s * w, c * w]),
            np.hstack([0 * unit, -c * w**2, -s * w**2]),
        ]
        return np.array(raw) @ self._free()

    def grid(self) -> tuple[Float[Array, "n"], float]:
        """One period, and cos(pi / n)."""
        n = self.per_harmonic * self.harmonics
        return np.arange(n) / n * self.period, float(np.cos(np.pi / self.per_harmonic))

    def motion(self, x: Float[Array, "m j"]) -> FourierMotion:
        """The series with velocity amplitudes and centres."""
        raw = self._free() @ x
        h = self.harmonics
        return FourierMotion(1.0 / self.period, raw[1 : 1 + h], raw[1 + h :], raw[0])

    def joins(self) -> Float[Array, "k"]:
        """A series is smooth."""
        return np.zeros(0)

    def _free(self) -> Float[Array, "r m"]:
        """Raw coefficients (centre, a, b) from free ones: sum a = 0 and sum l b = 0 where it rests.

        Amplitudes are scaled to positions, so that coefficients have similar size.
        """
        h = self.harmonics
        w = 2.0 * np.pi / self.period * np.arange(1.0, h + 1)
        if not self.resting:
            return np.diag(np.concatenate([[1.0], w, w]))
        a, b = _complement(w), _complement(np.arange(1.0, h + 1) * w)
        free = np.zeros((2 * h + 1, 2 * h - 1))
        free[0, 0] = 1.0
        free[1 : 1 + h, 1:h] = w[:, None] * a
        free[1 + h :, h:] = w[:, None] * b
        return free


@dataclass(frozen=True)
class SplineFamily:
    """Quintic B-splines over equal pieces, at rest at both ends; four times smoothly differentiable."""

    pieces: int
    period: float
    name: str = "spline"

    def __post_init__(self) -> None:
        if self.pieces < 2 or not 0.0 < self.period < np.inf:
            raise InputError(
                f"{self.pieces} pieces in {self.period} s are not a motion", remedy="use 2 pieces or more"
            )

    @property
    def count(self) -> int:
        """Free control points: the first three are equal, and so are the last three."""
        return self.pieces + 1

    def matrices(self, t: Float[Array, "n"]) -> Float[Array, "o n m"]:
        """B of position, velocity, acceleration and jerk."""
        return np.array([spline_matrix(t, self.period, self.pieces, o) for o in range(ORDERS)]) @ self._free()

    def grid(self) -> tuple[Float[Array, "n"], float]:
        """Both ends and points between."""
        return np.linspace(0.0, self.period, _PER_PIECE * self.pieces + 1), _SPLINE_SHARE

    def motion(self, x: Float[Array, "m j"]) -> SplineMotion:
        """Its control points."""
        return SplineMotion(self._free() @ x, self.period)

    def joins(self) -> Float[Array, "k"]:
        """The jerk and its rate are continuous."""
        return np.zeros(0)

    def _free(self) -> Float[Array, "c m"]:
        """Three equal control points at either end: velocity and acceleration are zero there."""
        places = np.concatenate([[0, 0], np.arange(self.count), [self.count - 1] * 2])
        return np.asarray(np.eye(self.count)[places])


@dataclass(frozen=True)
class PointsFamily:
    """Quintic moves between points of rest, all of the same length in time."""

    points: int
    period: float
    name: str = "points"

    def __post_init__(self) -> None:
        if self.points < 2 or not 0.0 < self.period < np.inf:
            raise InputError(
                f"{self.points} points in {self.period} s are not a motion", remedy="use 2 points or more"
            )

    @property
    def count(self) -> int:
        """Points."""
        return self.points

    def matrices(self, t: Float[Array, "n"]) -> Float[Array, "o n m"]:
        """B of position, velocity, acceleration and jerk."""
        moves = self.points - 1
        length = self.period / moves
        i = np.clip((t / length + _ROUNDED).astype(int), 0, moves - 1)
        u = np.clip(t / length - i, 0.0, 1.0)
        out = np.zeros((ORDERS, len(t), self.points))
        rows = np.arange(len(t))
        for order, shape in enumerate(quintic(u, length)):
            out[order, rows, i] = (1.0 if order == 0 else 0.0) - shape
            out[order, rows, i + 1] = shape
        return out

    def grid(self) -> tuple[Float[Array, "n"], float]:
        """Start and extremes of every move: values between them are not larger."""
        moves = self.points - 1
        t = (np.arange(moves)[:, None] + np.array(_EXTREMES)).ravel() / moves * self.period
        return np.append(t, self.period), _POINTS_SHARE

    def motion(self, x: Float[Array, "m j"]) -> PointToPoint:
        """The moves."""
        count = self.points - 1
        length = self.period / count
        return PointToPoint(x, np.arange(count) * length, np.full(count, length), self.period)

    def joins(self) -> Float[Array, "k"]:
        """Points of rest."""
        return np.arange(1.0, self.points - 1) * self.period / (self.points - 1)


FAMILIES = ("fourier", "spline", "points")


def family_of(name: str, terms: int, period: float) -> Family:
    """A family by name; `terms` are harmonics, pieces or points."""
    if name == "fourier":
        return FourierFamily(terms, period)
    if name == "spline":
        return SplineFamily(terms, period)
    if name == "points":
        return PointsFamily(terms, period)
    raise InputError(f"no family of motions '{name}'" + nearest(name, FAMILIES))


def _complement(direction: Float[Array, "h"]) -> Float[Array, "h m"]:
    """An orthonormal basis of the complement of a vector."""
    return np.asarray(np.linalg.svd(direction[None])[2][1:].T)


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
