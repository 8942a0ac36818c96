"""Steps of an encoder: a lost count, or a zero that is reset during the log.

Positions that move far more than their joints can: most likely they are not in radians or metres.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, doubt, notice
from dynid.common.paged import extremes, parts, windows
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.choose import extents
from dynid.motion.log import Log

# Relative to the usual change of the signal's increments from sample to sample (99 % quantile): the
# sharpest corner of a smooth motion stays below 10.
_UNUSUAL = 30.0
_LEAST = 0.01  # of the range of the signal
_FEWEST = 32  # samples
# No motor makes such a step between two samples: times the usual change, and of the range of the signal.
_IMPOSSIBLE, _LARGE = 100.0, 0.05
_Step = tuple[str, float, float]  # name, size in [rad] or [m], time in [s]
_FOUND: WeakKeyDictionary[Log, list[tuple[_Step, bool]]] = WeakKeyDictionary()
_REMEDY = (
    "check for lost encoder counts or a zero set during the log; split the log there with a `segment` column"
)


def refuse_steps(log: Log) -> tuple[Notice, ...]:
    """Refuse a log with a step far beyond its noise: all positions after it, or before it, are wrong."""
    steps = [step for step, impossible in _steps_of(log) if impossible]
    if not steps:
        return ()
    error = InputError(
        f"positions jump between two samples and keep the offset: {_shown(steps)}. No motion does that",
        file=log.file,
        remedy=_REMEDY,
    )
    return (doubt(error),)


def position_steps(log: Log) -> tuple[Notice, ...]:
    """Joints whose position jumps between two samples and then continues as before."""
    steps = [step for step, _ in _steps_of(log)]
    if not steps:
        return ()
    return (notice("position-step", log=log.name, shown=_shown(steps)),)


def _shown(steps: Sequence[_Step]) -> str:
    shown = ", ".join(f"'{name}' by {size:+.3g} at t = {t:.4g} s" for name, size, t in steps[:4])
    return shown + (f" and {len(steps) - 4} more" if len(steps) > 4 else "")


def _steps_of(log: Log) -> list[tuple[_Step, bool]]:
    """Every step of every coordinate, and whether no motor can make it; searched once."""
    if log not in _FOUND:
        _FOUND[log] = [jump for a, b in log.segments if b - a >= _FEWEST for jump in _steps(log, a, b)]
    return _FOUND[log]


def _steps(log: Log, a: int, b: int) -> Iterable[tuple[_Step, bool]]:
    """The steps in a segment: an increment of a smooth motion is close to the mean of its neighbours."""
    q = log.q[a:b]
    sampled = [np.abs(_excess(np.ascontiguousarray(part.T, dtype=float))) for part in windows(q)]
    usual = np.quantile(np.concatenate(sampled, axis=1), 0.99, axis=1)
    low, high, _ = extremes(q)
    # The neighbours of a step show half of it, with the other sign.
    least = np.maximum(np.maximum(_UNUSUAL * usual, _LEAST * (high - low)), 1e-9)
    impossible = np.maximum(np.maximum(_IMPOSSIBLE * usual, _LARGE * (high - low)), 1e-9)
    for part in parts(q, 4):
        moved = np.diff(part.rows, axis=1)
        if np.all(np.ptp(moved, axis=1) <= least):  # an increment differs from others by at most this
            continue
        excess = _excess(part.rows)
        for i, k in np.argwhere(np.abs(excess) > least[:, None]).tolist():
            size = float(excess[i, k])
            # Each entry belongs to one part only: its increment begins there.
            inside = part.start <= part.first + k < part.stop
            if inside and abs(size) >= np.abs(excess[i, max(0, k - 1) : k + 2]).max():
                step = log.position_names[i], size, float(log.t[a + part.first + k + 2])
                yield step, abs(size) > float(impossible[i])


def _excess(q: Float[Array, "m n"]) -> Float[Array, "m k"]:
    """Increments less the mean of their two neighbours; entry i leads to sample i + 2."""
    moved = np.diff(q, axis=1)
    return np.asarray(moved[:, 1:-1] - 0.5 * (moved[:, 2:] + moved[:, :-2]))


def stuck_positions(logs: Sequence[Log], mechanism: Mechanism) -> list[int]:
    """Columns of q that never change although the effort of their motor does: a brake, or a dead encoder."""
    low = np.min([extents(log)[0][0] for log in logs], axis=0)
    high = np.max([extents(log)[0][1] for log in logs], axis=0)
    changing = {
        name
        for i, actuator in enumerate(mechanism.actuators)
        if any(np.subtract(*extents(log)[1][::-1])[i] > 0.0 for log in logs if log.effort_present[i])
        for name in actuator.on
    }
    names = logs[0].position_names
    return [k for k, name in enumerate(names) if high[k] == low[k] and name in changing]


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
