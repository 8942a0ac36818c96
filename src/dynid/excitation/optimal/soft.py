"""Limits that are not linear in the coefficients: each a function of the state, satisfied if h <= 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.paths import RobotStates


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

    def slopes(self, states: RobotStates) -> Float[Array, "o s n d"]:
        """Derivatives by position and first, second (for a jerk also third) rate of the moved coordinates."""

    def reached(self, side: Side, h: float) -> float:
        """The value in SI that corresponds to a row h of one side."""


class SoftLimits:
    """Several limits, stacked; `spare` is the unused share of each."""

    def __init__(self, limits: tuple[SoftLimit, ...], spare: float = 0.0) -> None:
        self.limits, self.spare = limits, spare
        self.sides = tuple(side for limit in limits for side in limit.sides)

    @property
    def jumps(self) -> bool:
        """Whether one of them jumps where a joint reverses."""
        return any(limit.jumps for limit in self.limits)

    def narrowed(self, share: float) -> SoftLimits:
        """The same limits with a larger spare share."""
        return SoftLimits(self.limits, self.spare + share)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """All values."""
        found = [limit.excess(states) for limit in self.limits]
        return self.spare + np.concatenate(found) if found else np.zeros((0, len(states.q)))

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"]) -> Float[Array, "4 s n d"]:
        """Derivatives of the rows needed; others may be zero."""
        found, at = np.zeros((4, len(self.sides), *states.moved[0].shape)), 0
        for limit in self.limits:
            rows = slice(at, at + len(limit.sides))
            if needed[rows].any():
                own = limit.slopes(states)
                found[: len(own), rows] = own
            at = rows.stop
        return found

    def reached(self, rows: Float[Array, "s"]) -> list[float]:
        """Values in SI that correspond to the rows, without the spare share."""
        found, at = [], 0
        for limit in self.limits:
            for side in limit.sides:
                found.append(limit.reached(side, float(rows[at]) - self.spare))
                at += 1
        return found


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
