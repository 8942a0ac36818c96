"""Limits of free motions on locked cables: tensions, swings about rest, places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.dynamics.free_motion import FreeMotions
from dynid.excitation.optimal.between import peaks
from dynid.excitation.ranking import symmetric_range
from dynid.mechanism.mechanism import Mechanism

# A sine with 12 or more samples per period exceeds them by up to 1.05 times the value of a parabola.
_ROUNDER = 1.1


@dataclass(frozen=True, eq=False)
class FreeLimits:
    """Limits of a free motion.

    Attributes:
        tension: Smallest and largest tension of each cable, shape (c, 2), in [N]; largest may be infinite.
        swing: Position -> largest displacement from rest, in [m].
        place: Position -> least and largest value, in [m].
    """

    tension: Float[Array, "c 2"]
    swing: dict[int, float]
    place: dict[int, tuple[float, float]]

    def allows(
        self, q: Float[Array, "k q"], pulls: Float[Array, "k c"], spare: float = 0.0
    ) -> Bool[Array, "k"]:
        """Whether equilibria with these tensions satisfy the limits, with a share of the range as margin."""
        low, high = self.tension.T
        room = spare * np.where(np.isinf(high), low, high - low)
        fine = np.all((pulls > low + room) & (pulls < high - room), axis=1)
        for at, (least, most) in self.place.items():
            fine &= (q[:, at] > least) & (q[:, at] < most)
        return np.asarray(fine)

    def use(
        self, motions: FreeMotions, rest: Float[Array, "k q"], rest_pulls: Float[Array, "k c"]
    ) -> Float[Array, "k"]:
        """Largest used share of the range between equilibrium and each limit; above 1: violated."""
        low, high = self.tension.T
        least, most = reached(motions.tensions)
        shares = [
            ((rest_pulls - least) / (rest_pulls - low)).max(axis=1),
            ((most - rest_pulls) / (high - rest_pulls)).max(axis=1),
        ]
        for at, bound in self.swing.items():
            down, up = reached(motions.q[:, :, at] - rest[:, at])
            shares.append(np.maximum(-down, up) / bound)
        for at, (first, last) in self.place.items():
            down, up = reached(motions.q[:, :, at])
            shares.append((up - rest[:, at]) / (last - rest[:, at]))
            shares.append((rest[:, at] - down) / (rest[:, at] - first))
        return np.asarray(np.nan_to_num(np.max(shares, axis=0), nan=np.inf, posinf=np.inf))


def reached(x: Float[Array, "n *k"]) -> tuple[Float[Array, "*k"], Float[Array, "*k"]]:
    """Smallest and largest values of evenly sampled signals, also between the samples."""
    rows, smooth = x.reshape(len(x), -1).T, np.zeros(len(x), dtype=bool)
    found = []
    for signed in (-rows, rows):
        top = signed.max(axis=1)
        found.append((top + _ROUNDER * (peaks(signed, smooth) - top)).reshape(x.shape[1:]))
    return -found[0], found[1]


def free_limits(mechanism: Mechanism, cables: tuple[str, ...]) -> FreeLimits:
    """Limits of the robot file.

    `cables: {tension: [20, 200]}` holds for all cables, `cable1: {tension: ...}` for one. Of a free
    platform joint `pose`, `pose: {x: 0.1}` bounds the swing about rest and `pose: {z: [-1, 0]}` the place.
    """
    shared = mechanism.limits.get("cables", {}).get("tension", (0.0, np.inf))
    tension = [mechanism.limits.get(name, {}).get("tension", shared) for name in cables]
    for name, bound in zip(cables, tension, strict=True):
        low, high = symmetric_range(bound)
        if not 0.0 <= low < high:
            raise InputError(
                f"the tension range of cable '{name}', {low:g} to {high:g} N, is not valid",
                file=mechanism.file,
                place="limits.cables.tension",
                remedy="a cable can only pull: give a positive minimum and a larger maximum, e.g. [20, 200]",
            )
    swing: dict[int, float] = {}
    place: dict[int, tuple[float, float]] = {}
    for joint in mechanism.joints:
        for name, bound in mechanism.limits.get(joint.name, {}).items():
            full = f"{joint.name}_{name}"
            if full not in mechanism.positions:
                continue
            at = mechanism.positions.index(full)
            if isinstance(bound, tuple):
                place[at] = symmetric_range(bound)
            else:
                swing[at] = float(bound)
    return FreeLimits(np.array([symmetric_range(bound) for bound in tension]), swing, place)
