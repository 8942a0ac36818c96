"""What a motion uses of every limit, between the samples of the design too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.excitation.optimal.box import RATES, Box
from dynid.excitation.optimal.families import Family
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft import SoftLimits

DENSER = 20  # of the grid on which linear limits are set
_FINER = 5  # of the samples on which soft limits are set: each costs a pose


@dataclass(frozen=True)
class LimitUse:
    """One limit and what a motion uses of it.

    Attributes:
        name: Coordinate, motor, body or pair of bodies.
        kind: q, dq, ddq, jerk, or what else is limited.
        low, high: The limit, in SI; None where it is a share.
        least, most: What is reached, in SI.
        margin_percent: Left of the limit; negative is too much.
    """

    name: str
    kind: str
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    margin_percent: float


def dense_times(family: Family) -> Float[Array, "n"]:
    """Times at which a motion is judged: many times as dense as the grid of its limits."""
    t, _ = family.grid()
    return np.union1d(np.linspace(0.0, family.period, DENSER * len(t) + 1), t)


def linear_uses(family: Family, box: Box, x: Float[Array, "m j"]) -> list[LimitUse]:
    """Use of every limit of the coordinates moved."""
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


def fine_states(path: Path, family: Family, x: Float[Array, "m j"], samples: int) -> RobotStates | None:
    """The robot at many times of one motion; None where it cannot follow, or jumps."""
    t = np.arange(_FINER * samples + 1) / (_FINER * samples) * family.period
    B = family.matrices(t)
    states = path.states((B[0] @ x, B[1] @ x, B[2] @ x))
    return states if states is not None and path.continuous(states, t) else None


def soft_uses(soft: SoftLimits | None, states: RobotStates) -> list[LimitUse]:
    """Use of every limit that is not linear, as shares; two sides of one limit are one entry."""
    if soft is None:
        return []
    worst: dict[str, float] = {}
    for name, row in zip(soft.names, soft.excess(states), strict=True):
        worst[name] = max(worst.get(name, -np.inf), float(row.max()))
    found = []
    for name, excess in worst.items():
        kind, _, of = name.partition(" of ")
        found.append(LimitUse(of.strip("'") or name, kind, None, None, None, None, -100.0 * excess))
    return found
