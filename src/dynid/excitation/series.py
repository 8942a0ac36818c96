"""Motions as functions of time: their interface, Fourier series, limits, conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Float, Inexact
from dynid.common.errors import InputError
from dynid.mechanism.load import how_to_add
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit

_GRID_PER_HARMONIC = 200  # a peak between two grid points is missed by 1.3e-4 of itself at most
_GRID_ALLOWANCE = 1.0 - 2e-4
# Few rows are enough to compare motions, and keep the linear algebra below the size at which BLAS starts
# threads (which on a busy machine cost more than they save).
SAMPLES = 64


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


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """q(t) = q_0 + sum_l [a_l sin(l w t) - b_l cos(l w t)] / (l w), one series per coordinate.

    Attributes:
        frequency: Base frequency w / (2 pi), in [Hz].
        sine, cosine: a and b, velocity amplitudes, shape (h, j), in [rad/s] or [m/s].
        centre: q_0, shape (j,), in [rad] or [m].
    """

    frequency: float
    sine: Float[Array, "h j"]
    cosine: Float[Array, "h j"]
    centre: Float[Array, "j"]

    @property
    def period(self) -> float:
        """Time after which the motion repeats, in [s]."""
        return 1.0 / self.frequency

    def q(self, t: Inexact[Array, "n"]) -> Inexact[Array, "n j"]:
        """Positions at the times t [s], shape (n, j), in [rad] or [m]."""
        s, c, w = self._waves(t)
        return self.centre + (s / w) @ self.sine - (c / w) @ self.cosine

    def dq(self, t: Inexact[Array, "n"]) -> Inexact[Array, "n j"]:
        """Velocities, shape (n, j), in [rad/s] or [m/s]."""
        s, c, _ = self._waves(t)
        return np.asarray(c @ self.sine + s @ self.cosine)

    def ddq(self, t: Inexact[Array, "n"]) -> Inexact[Array, "n j"]:
        """Accelerations, shape (n, j), in [rad/s^2] or [m/s^2]."""
        s, c, w = self._waves(t)
        return np.asarray((c * w) @ self.cosine - (s * w) @ self.sine)

    def _waves(
        self, t: Inexact[Array, "n"]
    ) -> tuple[Inexact[Array, "n h"], Inexact[Array, "n h"], Float[Array, "h"]]:
        w = 2.0 * np.pi * self.frequency * np.arange(1, len(self.sine) + 1)
        angle = np.asarray(t)[:, None] * w
        return np.sin(angle), np.cos(angle), w


def quintic(u: Inexact[Array, "n"], length: float | Float[Array, "n"]) -> Inexact[Array, "4 n"]:
    """S = 10 u^3 - 15 u^4 + 6 u^5 from rest to rest, and its three derivatives by time, per s, s^2 and s^3.

    Args:
        u: Completed part of the move, 0 to 1.
        length: Of the move, in [s].
    """
    return np.array(
        [
            u**3 * (10.0 - u * (15.0 - 6.0 * u)),
            30.0 * (u * (1.0 - u)) ** 2 / length,
            60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / length**2,
            60.0 * (1.0 - 6.0 * u * (1.0 - u)) / length**3,
        ]
    )


# Largest values of the first three derivatives of s by u.
QUINTIC_PEAKS = (15.0 / 8.0, 10.0 / np.sqrt(3.0), 60.0)


@dataclass(frozen=True, eq=False)
class Limits:
    """What a motion must keep within, per coordinate.

    Attributes:
        low, high: Positions, shape (j,), in [rad] or [m].
        dq, ddq: Largest speed and acceleration, shape (j,), per s and per s^2; infinity: none.
    """

    low: Float[Array, "j"]
    high: Float[Array, "j"]
    dq: Float[Array, "j"]
    ddq: Float[Array, "j"]


def at_rest(frequency: float, sine: Float[Array, "h j"], cosine: Float[Array, "h j"]) -> FourierMotion:
    """The motion nearest to these amplitudes whose velocity and acceleration vanish at t = 0.

    dq(0) = sum a_l and ddq(0) = w sum l b_l: one linear condition on each, by projection.
    """
    order = np.arange(1.0, len(sine) + 1)[:, None]
    a = sine - sine.mean(axis=0)
    b = cosine - order * (order * cosine).sum(axis=0) / (order**2).sum()
    return FourierMotion(frequency, a, b, np.zeros(sine.shape[1]))


def scaled_into(motion: FourierMotion, limits: Limits, margin: float = 0.02) -> FourierMotion:
    """The same shape as large as the limits allow, in the middle of the position range.

    Args:
        motion: Whose shape is kept.
        limits: Per coordinate.
        margin: Share of every limit that stays unused, dimensionless.
    """
    n = _GRID_PER_HARMONIC * len(motion.sine)
    t = np.arange(n) / n * motion.period
    q = motion.q(t)
    swing, middle = np.ptp(q, axis=0), (q.max(axis=0) + q.min(axis=0)) / 2
    sizes = [
        (limits.high - limits.low) / swing,
        limits.dq / np.abs(motion.dq(t)).max(axis=0),
        limits.ddq / np.abs(motion.ddq(t)).max(axis=0),
    ]
    scale = (1.0 - margin) * _GRID_ALLOWANCE * np.min(sizes, axis=0)
    centre = (limits.low + limits.high) / 2 + scale * (motion.centre - middle)
    return FourierMotion(motion.frequency, scale * motion.sine, scale * motion.cosine, centre)


def scaled_condition(W: Float[Array, "r p"]) -> float:
    """Condition number of W with columns of length one; infinite beyond 1e7.

    Computed from the eigenvalues of W^T W. This halves the number of accurate digits: not acceptable
    for solving, but sufficient to compare motions, and much cheaper than singular values.
    """
    norms = np.linalg.norm(W, axis=0)
    if not norms.all():
        return float("inf")
    unit = W / norms
    squares = np.linalg.eigvalsh(unit.T @ unit)
    return float(np.sqrt(squares[-1] / squares[0])) if squares[0] > 1e-14 * squares[-1] else float("inf")


def position_ranges(mechanism: Mechanism, names: Sequence[str]) -> list[tuple[float, float]]:
    """Lowest and highest position of coordinates by the robot's limits, in [rad] or [m]; all are needed."""
    ranges = {name: mechanism.limits.get(name, {}).get("q", turning_range(mechanism, name)) for name in names}
    missing = [name for name, bound in ranges.items() if bound is None]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        joints = f"joint {listed} has" if len(missing) == 1 else f"joints {listed} have"
        keys = ", ".join(f"{name}: {{q: [-1, 1], dq: 2, ddq: 10}}" for name in missing)
        raise InputError(
            f"{joints} no position limits, so the range of motion is unknown",
            file=mechanism.file,
            place="limits",
            remedy=how_to_add(mechanism, f"limits: {{{keys}}}"),
        )
    return [symmetric_range(bound) for bound in ranges.values() if bound is not None]


def turning_range(mechanism: Mechanism, name: str) -> tuple[float, float] | None:
    """Half a turn about zero [rad], for a joint of an open robot that turns without end.

    Such a joint has a limit of speed and no range. None: a range is given, or nothing is known.
    """
    given = mechanism.limits.get(name, {})
    if mechanism.is_closed or "q" in given or "dq" not in given or effort_unit(mechanism, name) != "N m":
        return None
    return (-0.5 * np.pi, 0.5 * np.pi)


def symmetric_range(bound: float | tuple[float, float]) -> tuple[float, float]:
    """[low, high]; a single bound applies to both sides."""
    return bound if isinstance(bound, tuple) else (-bound, bound)


def speed_bound(bound: float | tuple[float, float]) -> float:
    """The largest symmetric bound inside an asymmetric one."""
    return min(-bound[0], bound[1]) if isinstance(bound, tuple) else bound
