"""Use of every limit by a motion, also between the samples of the design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.between import FineMotion, worst_between
from dynid.excitation.optimal.box import RATES, Box
from dynid.excitation.optimal.families import Family
from dynid.excitation.optimal.soft import SoftLimits
from dynid.excitation.optimal.soft_joints import NEARNESS
from dynid.mechanism.mechanism import Mechanism

DENSER = 20  # times the grid on which linear limits are imposed


@dataclass(frozen=True)
class LimitUse:
    """One limit and its use by a motion.

    Attributes:
        name: Coordinate, motor, body or pair of bodies.
        kind: q, dq, ddq, jerk, or another limited quantity.
        low, high: The limit, in SI; None if there is none on that side.
        least, most: Reached minimum and maximum, in SI.
        margin_percent: Remaining margin; negative: violated.
    """

    name: str
    kind: str
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    margin_percent: float


def dense_times(family: Family) -> Float[Array, "n"]:
    """Times at which a motion is checked: many times as dense as the grid of its limits."""
    t, _ = family.grid()
    return np.union1d(np.linspace(0.0, family.period, DENSER * len(t) + 1), t)


def linear_uses(family: Family, box: Box, x: Float[Array, "m j"]) -> list[LimitUse]:
    """Use of every limit of the moved coordinates."""
    found = []
    signals = family.matrices(dense_times(family)) @ x
    for order, kind in enumerate(RATES):
        for j, name in enumerate(box.names):
            low, high = float(box.low[order, j]), float(box.high[order, j])
            if np.isfinite(high):
                least, most = float(signals[order, :, j].min()), float(signals[order, :, j].max())
                margin = 200.0 * min(high - most, least - low) / (high - low)
                found.append(LimitUse(name, kind, low, high, least, most, margin))
    return found


def soft_uses(soft: SoftLimits | None, motion: FineMotion) -> list[LimitUse]:
    """Use of every nonlinear limit; the two sides of one limit are one entry."""
    if soft is None:
        return []
    worst = worst_between(soft, motion)
    found: dict[tuple[str, str], LimitUse] = {}
    for side, excess, value in zip(soft.sides, worst.tolist(), soft.reached(worst), strict=True):
        key = side.kind, side.name
        other = found.get(key)
        least, most = (other.least, other.most) if other else (None, None)
        least, most = (least, value) if side.above else (value, most)
        left = min(-100.0 * excess, other.margin_percent if other else np.inf)
        found[key] = LimitUse(side.name, side.kind, side.low, side.high, least, most, left)
    return list(found.values())


def unkept_limits(mechanism: Mechanism, uses: Sequence[LimitUse]) -> list[str]:
    """Limits of the robot file that were not applied, named as in the file."""
    kept = {(one.name, one.kind) for one in uses}
    kinds = {one.kind for one in uses}
    whole = {"singularity": NEARNESS in kinds, "cables": "tension" in kinds}
    whole |= {
        joint.name: True for joint in mechanism.joints if joint.has_quaternion
    }  # by the body it carries
    missed = []
    for name, own in mechanism.limits.items():
        for key in own:
            if not whole.get(name, (name, "effort" if key == "tau" else key) in kept):
                missed.append(f"{name}.{key}")
    return missed
