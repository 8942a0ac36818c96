"""Positions that move far more than their joints can: most likely they are not in radians or metres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynid.mechanism.mechanism import Mechanism
from dynid.motion.choose import extents
from dynid.motion.log import Log

# Six turns of a joint without limits: a wheel may, an arm in degrees does.
_SWEEP = 12.0 * np.pi
# Ranges of a linear joint with limits: no joint goes so far beyond them, millimetres do.
_TRAVELS = 10.0


@dataclass(frozen=True)
class WideRange:
    """One measured coordinate that moves too far.

    Attributes:
        column: Its number in the log, from 0.
        sweep: Largest less smallest value, in [rad] or [m].
        room: Range of its limits, in [rad] or [m]; infinite without limits.
        angle: Whether it is an angle.
    """

    name: str
    column: int
    sweep: float
    room: float
    angle: bool

    @property
    def bounded(self) -> bool:
        """Whether its joint has limits."""
        return bool(np.isfinite(self.room))

    @property
    def unit(self) -> str:
        """What it is probably in."""
        return "degrees" if self.angle else "millimetres"


def wide_ranges(log: Log, mechanism: Mechanism) -> Iterator[WideRange]:
    """Coordinates of a log that sweep far more than their joints can."""
    for i, name in enumerate(log.position_names):
        joint = mechanism.joint_of_coordinate.get(name)
        if joint is None or joint.has_quaternion or not log.valid.any():
            continue
        low, high = extents(log)[0][:, i]
        sweep = float(high - low)
        least, most = mechanism.limits.get(name, {}).get("q", (-np.inf, np.inf))
        room = float(most - least)
        angle = joint.is_angle(name)
        bounded = (2.0 * np.pi if angle else _TRAVELS) * room
        if sweep > (_SWEEP if angle and not np.isfinite(room) else bounded):
            yield WideRange(name, i, sweep, room, angle)
