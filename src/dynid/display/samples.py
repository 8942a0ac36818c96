"""Motion of all joints at the samples of a log that are drawn."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.paged import ranges, release
from dynid.kinematics.coordinates import CoordinateMap, States
from dynid.motion.motion import Motion
from dynid.problem import Problem
from dynid.projection.kinematics import kinematics_along
from dynid.statistics.signals import Signals

_BLOCK = 16384  # samples that are processed at a time
MOST = 500  # samples drawn of a log


def drawn_rows(signals: Signals, most: int = MOST) -> Int[Array, "m"]:
    """Places in the signals of a log that are drawn: evenly spaced, without breaks between pieces."""
    rows = np.flatnonzero(np.isfinite(signals.t) & np.isfinite(signals.predicted).any(axis=1))
    return rows[:: max(1, -(-len(rows) // most))]


def samples_at(motion: Motion, t: Float[Array, "m"]) -> Int[Array, "m"]:
    """Samples of a log at these times; empty where they cannot be assigned.

    A clock that restarts in each run divides log and times into the same number of pieces.
    """
    times, none = motion.log.t, np.zeros(0, dtype=np.int64)
    if len(times) < 2 or not len(t):
        return none
    recorded, asked = _pieces(times), _pieces(t)
    if len(recorded) > 1 and len(recorded) != len(asked):
        return none
    samples = []
    for (a, b), (c, d) in zip(recorded if len(recorded) > 1 else [(0, len(times))], asked, strict=True):
        places = a + np.searchsorted(times[a:b], t[c:d] - 0.5 * motion.log.dt)
        samples.append(np.clip(places, a, b - 1))
    return np.concatenate(samples).astype(np.int64)


def _pieces(t: Float[Array, "n"]) -> list[tuple[int, int]]:
    """Ranges in which times increase."""
    breaks: list[int] = []
    for a, b in ranges(len(t)):
        breaks += (a + 1 + np.flatnonzero(np.diff(t[a : b + 1]) <= 0.0)).tolist()
    return list(zip([0, *breaks], [*breaks, len(t)], strict=True))


def states_at(problem: Problem, motion: Motion, samples: Int[Array, "m"]) -> States | None:
    """Motion of all joints at increasing samples of a log; None where none of them is usable.

    The states have as many samples as those that lie inside the usable pieces.
    """
    kinematics = kinematics_along(problem.mechanism, motion)
    parts: list[States] = []
    for low, high in motion.usable():
        for start in range(low, high, _BLOCK):
            stop = min(high, start + _BLOCK)
            wanted = samples[(samples >= start) & (samples < stop)]
            if not len(wanted):
                continue
            if isinstance(kinematics, CoordinateMap):
                # Between samples that are far apart nothing is filtered.
                for near in np.split(wanted, 1 + np.flatnonzero(np.diff(wanted) > 2 * motion.reach)):
                    first, last = int(near[0]), int(near[-1])
                    measured = tuple(x[near - first] for x in motion.states(first, last + 1))
                    parts.append(kinematics.states(first, measured))
            else:
                stop = int(wanted[-1]) + 1
                parts.append(kinematics.states(start, motion.states(start, stop), wanted - start))
            release()
    return _joined(parts) if parts else None


def inside(motion: Motion, samples: Int[Array, "m"]) -> Int[Array, "k"]:
    """Places of the samples inside the usable pieces: those that `states_at` gives."""
    kept = np.zeros(len(samples), dtype=bool)
    for low, high in motion.usable():
        kept |= (samples >= low) & (samples < high)
    return np.flatnonzero(kept)


def _joined(parts: list[States]) -> States:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((part.q, part.dq, part.ddq, part.N, part.fine) for part in parts), strict=True)
    return States(*(np.concatenate(column) for column in columns))
