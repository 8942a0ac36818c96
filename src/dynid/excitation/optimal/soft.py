"""Limits that are not linear in the coefficients: each a function of the state, satisfied if h <= 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.excitation.optimal.paths import Path, RobotStates, states_along

if TYPE_CHECKING:
    from dynid.excitation.optimal.families import Family

_FINER = 5  # times the samples on which soft limits are imposed: each costs a pose
_BESIDE = 1e-4  # of a step: distance from a jump at which its sides are evaluated
_NEAR = 2  # samples on either side whose curvature is used


@dataclass(frozen=True)
class Side:
    """One side of a limit, the meaning of a row h.

    Attributes:
        kind: Limited quantity: q, dq, ddq, effort, distance, ...
        name: Joint, motor, body or pair of bodies.
        low, high: The limit, in SI; None if there is none on that side.
        above: Whether the row is for `high`, else for `low`.
    """

    kind: str
    name: str
    low: float | None
    high: float | None
    above: bool

    @property
    def text(self) -> str:
        """Text for the message if a limit cannot be met."""
        whose = self.name if " " in self.name else f"'{self.name}'"
        return f"{self.kind} of {whose}"


def both_sides(kind: str, name: str, low: float, high: float) -> tuple[Side, Side]:
    """Upper and lower side, in the order of the rows of `shares`."""
    return Side(kind, name, low, high, True), Side(kind, name, low, high, False)


def shares(value: Float[Array, "n"], low: float, high: float) -> tuple[Array, Array]:
    """Rows of both sides of a range: 0.1 means exceeded by a tenth of its half width."""
    share = (value - 0.5 * (low + high)) / (0.5 * (high - low))
    return share - 1.0, -share - 1.0


@runtime_checkable
class SoftLimit(Protocol):
    """One or more limits h(state) <= 0, as shares of the allowed value."""

    sides: tuple[Side, ...]

    @property
    def jumps(self) -> bool:
        """Whether h jumps where a joint reverses, as dry friction does."""

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Values h, shape (s, n): 0.1 means exceeded by a tenth."""

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "o s n d"]:
        """Derivatives by position and first, second (for a jerk also third) rate of the moved coordinates.

        Rows that are not needed may be zero.
        """

    def reached(self, side: Side, h: float) -> float:
        """The value in SI that corresponds to a row h of one side."""


class SoftLimits:
    """Several limits, stacked; `spare` is the unused share of all, `more` that of each in addition."""

    def __init__(
        self, limits: tuple[SoftLimit, ...], spare: float = 0.0, more: Float[Array, "s"] | None = None
    ) -> None:
        self.limits, self.spare = limits, spare
        self.sides = tuple(side for limit in limits for side in limit.sides)
        self._unused = spare + (np.zeros(len(self.sides)) if more is None else more)

    @property
    def jumps(self) -> bool:
        """Whether one of them jumps where a joint reverses."""
        return any(limit.jumps for limit in self.limits)

    def narrowed(self, shares: Float[Array, "s"]) -> SoftLimits:
        """The same limits, each with a larger unused share."""
        return SoftLimits(self.limits, self.spare, self._unused - self.spare + shares)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """All values."""
        parts = [limit.excess(states) for limit in self.limits]
        return self._unused[:, None] + np.concatenate(parts) if parts else np.zeros((0, len(states.q)))

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"]) -> Float[Array, "4 s n d"]:
        """Derivatives of the rows needed; others may be zero."""
        derivatives, at = np.zeros((4, len(self.sides), *states.moved[0].shape)), 0
        for limit in self.limits:
            rows = slice(at, at + len(limit.sides))
            if needed[rows].any():
                part = limit.slopes(states, needed[rows])
                derivatives[: len(part), rows] = part
            at = rows.stop
        return derivatives

    def reached(self, rows: Float[Array, "s"]) -> list[float]:
        """Values in SI that correspond to the rows, without the spare share."""
        values, at = [], 0
        for limit in self.limits:
            for side in limit.sides:
                values.append(limit.reached(side, float(rows[at] - self._unused[at])))
                at += 1
        return values


class Ranged:
    """Base of range limits: values between `low` and `high`, two rows each."""

    sides: tuple[Side, ...]
    jumps = False

    def __bool__(self) -> bool:
        return bool(self.sides)

    def reached(self, side: Side, h: float) -> float:
        """The end of the range, and the excess in half widths beyond it."""
        low, high = side.low or 0.0, side.high or 0.0
        over = 0.5 * (high - low) * h
        return high + over if side.above else low - over


# Nonlinear limits, also between the samples.
#
# A smooth concave h(t) exceeds its samples by less than an eighth of their second difference:
#
#     max h  <=  h_k + max(0, -(h_(k+1) - 2 h_k + h_(k-1))) / 8
#
# This is exact for a parabola, and of fourth order in the step otherwise. If h is a maximum of several
# functions (condition numbers, distances of capsules), its kinks point downwards and lie below the samples.
# Dry friction jumps where a joint reverses: there both sides of the jump are evaluated.


@dataclass(frozen=True, eq=False)
class FineMotion:
    """The robot at many times of one motion.

    Attributes:
        states: At evenly spaced times and on both sides of jumps.
        even: Which of them are evenly spaced, shape (n,).
        torn: Evenly spaced samples with a jump between them and a neighbour, shape (n,).
    """

    states: RobotStates
    even: Int[Array, "n"]
    torn: Bool[Array, "n"]


def fine_motion(
    path: Path, family: Family, x: Float[Array, "m j"], samples: int, soft: SoftLimits | None
) -> FineMotion | None:
    """The robot along one motion, finer than the design; None if it cannot follow, or its pose jumps."""
    n = _FINER * samples
    t = np.arange(n + 1) / n * family.period
    states = states_along(path, family.matrices(t) @ x, t)
    if states is None or soft is None or not soft.jumps:
        return None if states is None else FineMotion(states, np.arange(n + 1), np.zeros(n + 1, dtype=bool))
    jumps = np.union1d(_reversals(path, states, t), family.joins())
    beside = _BESIDE * t[1]
    sides = np.clip(np.concatenate([jumps - beside, jumps + beside]), 0.0, family.period)
    every = np.union1d(t, sides)
    states = states_along(path, family.matrices(every) @ x, every)
    if states is None:
        return None
    torn = np.zeros(n + 1, dtype=bool)
    place = jumps / t[1]
    for neighbour in (-1.0, 0.0, 1.0):
        sample = np.round(place) + neighbour
        torn[np.clip(sample[np.abs(sample - place) < 1.0 + _BESIDE], 0, n).astype(int)] = True
    return FineMotion(states, np.searchsorted(every, t), torn)


def worst_between(soft: SoftLimits, motion: FineMotion) -> Float[Array, "s"]:
    """Largest value of every row along a motion, also between the samples."""
    values = soft.excess(motion.states)
    return np.asarray(np.maximum(values.max(axis=1), peaks(values[:, motion.even], motion.torn)))


def peaks(h: Float[Array, "s n"], torn: Bool[Array, "n"]) -> Float[Array, "s"]:
    """Upper bound of rows between evenly spaced samples, from their curvature away from jumps."""
    bend = np.zeros_like(h)
    bend[:, 1:-1] = np.maximum(0.0, 2.0 * h[:, 1:-1] - h[:, :-2] - h[:, 2:]) / 8.0
    bend[:, torn] = 0.0
    padded = np.pad(bend, ((0, 0), (_NEAR, _NEAR)))
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1, axis=1).max(axis=2)
    return np.asarray((h + near).max(axis=1))


def _reversals(path: Path, states: RobotStates, t: Float[Array, "n"]) -> Float[Array, "k"]:
    """Times at which a joint or motor reverses: zeros of the cubics through velocities and accelerations."""
    D = np.vstack([np.eye(states.dq.shape[1]), path.mechanism.actuator_map])
    speed, rate, h = states.dq @ D.T, states.ddq @ D.T, t[1]
    sample, owner = np.nonzero(speed[:-1] * speed[1:] < 0.0)
    a, b = speed[sample, owner], speed[sample + 1, owner]
    da, db = h * rate[sample, owner], h * rate[sample + 1, owner]
    u = a / (a - b)
    for _ in range(3):  # Newton, kept inside
        value = a + u * (da + u * (3.0 * (b - a) - 2.0 * da - db + u * (2.0 * (a - b) + da + db)))
        slope = da + u * (2.0 * (3.0 * (b - a) - 2.0 * da - db) + u * 3.0 * (2.0 * (a - b) + da + db))
        u = np.clip(u - value / np.where(slope == 0.0, 1.0, slope), 0.0, 1.0)
    return np.asarray(np.unique(t[sample] + u * h))
