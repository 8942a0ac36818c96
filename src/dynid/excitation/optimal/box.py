"""Limits of the moved coordinates: linear in the coefficients of the family, one block per coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.excitation.optimal.families import ORDERS, Family
from dynid.excitation.series import speed_bound, symmetric_range
from dynid.mechanism.mechanism import Mechanism

RATES = ("q", "dq", "ddq", "jerk")
_STILL = 1e-9  # of the largest row of the same rate: rounding


@dataclass(frozen=True, eq=False)
class Box:
    """Limits of every coordinate.

    Attributes:
        names: Of the coordinates, j of them.
        low, high: Bounds of position, velocity, acceleration and jerk, shape (4, j); infinite: none.
    """

    names: tuple[str, ...]
    low: Float[Array, "o j"]
    high: Float[Array, "o j"]

    def narrowed(self, margin: float) -> Box:
        """The same with an unused share of each limit."""
        width = self.high - self.low
        spare = 0.5 * margin * np.where(np.isfinite(width), width, 0.0)
        return Box(self.names, self.low + spare, self.high - spare)


def box_of(mechanism: Mechanism, names: Sequence[str]) -> Box:
    """Limits of the robot file for these coordinates; needs a position range and a speed or acceleration."""
    low, high = np.full((2, ORDERS, len(names)), np.inf)
    for j, name in enumerate(names):
        joint_limits = mechanism.limits.get(name, {})
        if "q" not in joint_limits:
            raise InputError(
                f"joint '{name}' has no position limits, so its range of motion is unknown",
                file=mechanism.file,
                place="limits",
                remedy=f"add  limits: {{{name}: {{q: [-1, 1], dq: 2, ddq: 10}}}}",
            )
        high[0, j] = symmetric_range(joint_limits["q"])[1]
        low[0, j] = -symmetric_range(joint_limits["q"])[0]
        for order, rate in enumerate(RATES[1:], 1):
            low[order, j] = high[order, j] = speed_bound(joint_limits.get(rate, np.inf))
        if not np.isfinite(high[1:, j]).any():
            raise InputError(
                f"joint '{name}' has no limit on speed or acceleration, so no motion is optimal",
                file=mechanism.file,
                place=f"limits.{name}",
                remedy=f"add  limits: {{{name}: {{dq: 2, ddq: 10}}}}",
            )
    return Box(tuple(names), -low, high)


class Blocks:
    """Limits of the coefficients z of a family, scaled so that 1 is about the largest allowed value.

    x_j = size_j spread * z_j for coordinate j; lower_j <= C z_j <= upper_j on the family's grid.

    Args:
        family: Of motions.
        box: Limits.
        rest: Where the robot can rest, shape (j,), in [rad] or [m]; default the middle of all ranges.
    """

    def __init__(self, family: Family, box: Box, rest: Float[Array, "j"] | None = None) -> None:
        t, share = family.grid()
        B = family.matrices(t)
        half = 0.5 * (box.high - box.low)
        centre = 0.5 * (box.high[0] + box.low[0])
        orders = [o for o in range(ORDERS) if np.isfinite(half[o]).any()]
        # Effect of one unit of each coefficient, relative to the limits of a typical coordinate.
        typical = np.full(ORDERS, np.inf)
        for o in orders:
            typical[o] = np.median(half[o][np.isfinite(half[o])])
        effect = np.abs(B).max(axis=1) / typical[:, None]
        self.spread = 1.0 / effect.max(axis=0)
        ratios = half[orders] / typical[orders, None]
        self.size = np.exp(np.mean(np.log(np.where(np.isfinite(ratios), ratios, 1.0)), axis=0))
        self.family, self.box = family, box
        # A constant changes only positions: the position range is used about its middle.
        C = np.concatenate([B[o] * self.spread for o in orders])
        reach = np.concatenate([np.repeat(share * half[o][:, None], len(t), axis=1) for o in orders], axis=1)
        middle = np.zeros_like(reach)
        middle[:, : len(t)] = centre[:, None]
        kept = _acting(C, len(t))
        self.C = np.ascontiguousarray(C[kept])
        self.lower = (middle - reach)[:, kept] / self.size[:, None]
        self.upper = (middle + reach)[:, kept] / self.size[:, None]
        self.rest = self._constant(centre if rest is None else rest)

    @property
    def count(self) -> int:
        """Total number of variables."""
        return len(self.size) * len(self.spread)

    def coefficients(self, z: Float[Array, "v"]) -> Float[Array, "m j"]:
        """Coefficients of the family from scaled variables."""
        return np.asarray((z.reshape(len(self.size), -1) * self.spread * self.size[:, None]).T)

    def variables(self, x: Float[Array, "m j"]) -> Float[Array, "v"]:
        """Scaled variables from coefficients."""
        return np.asarray((x.T / self.spread / self.size[:, None]).ravel())

    def slope(self, slope_x: Float[Array, "m j"]) -> Float[Array, "v"]:
        """A gradient with respect to coefficients as one with respect to variables."""
        return np.asarray((slope_x.T * self.spread * self.size[:, None]).ravel())

    def uses(self, z: Float[Array, "v"]) -> Float[Array, "j"]:
        """Largest used share of the distance from rest to a limit, per coordinate: at most 1 is inside."""
        value, rest = (x.reshape(len(self.size), -1) @ self.C.T for x in (z, self.rest))
        way = value - rest
        room = np.where(way >= 0.0, self.upper - rest, rest - self.lower)
        finite = np.isfinite(room)
        shares = np.where(finite, np.abs(way), 0.0) / np.where(finite, np.maximum(room, 1e-300), 1.0)
        return np.asarray(shares.max(axis=1))

    def use(self, z: Float[Array, "v"]) -> float:
        """The largest of all."""
        return float(self.uses(z).max())

    def inside(self, z: Float[Array, "v"], share: float = 0.999) -> Float[Array, "v"]:
        """The same motion, reduced towards rest until it uses at most this share."""
        used = self.use(z)
        return z if used <= share else self.towards_rest(z, share / used)

    def towards_rest(self, z: Float[Array, "v"], size: float) -> Float[Array, "v"]:
        """The same motion, scaled down about the rest pose."""
        return np.asarray(self.rest + size * (z - self.rest))

    def random(self, rng: np.random.Generator, share: float = 0.7) -> Float[Array, "v"]:
        """Random variables: every coordinate uses this share of its range."""
        move = rng.normal(size=(len(self.size), len(self.spread)))
        used = self.uses(self.rest + move.ravel())
        return np.asarray(self.rest + (share * move / used[:, None]).ravel())

    def _constant(self, pose: Float[Array, "j"]) -> Float[Array, "v"]:
        """Variables of rest at a pose."""
        t, _ = self.family.grid()
        B = self.family.matrices(t)[0]
        ones = np.linalg.lstsq(B, np.ones(len(t)), rcond=None)[0]
        return self.variables(np.outer(ones, pose))


def _acting(C: Float[Array, "r m"], n: int) -> Bool[Array, "r"]:
    """Rows that depend on a coefficient: rates at the ends of a motion at rest are always zero."""
    sizes = np.linalg.norm(C, axis=1)
    largest = np.repeat(sizes.reshape(-1, n).max(axis=1), n)  # of each rate
    return np.asarray(sizes > _STILL * largest)
