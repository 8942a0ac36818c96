"""Parts of a motion that repeat others: a periodic run, or a motion that was recorded again.

Model errors (friction, flexibility) depend on the robot's position and motion. They are equal each time the
same motion is repeated, so repeats give no new information about them.

Two parts are the same motion where the RMS difference of their positions, each joint scaled by its standard
deviation, is less than `_ALIKE` at some time shift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.common.paged import ranges

# Robots repeat a motion to about 1 % of its size, also with another load; random
# motions differ by about one.
_ALIKE = 0.1
# Positions are compared at so many time instants of a part.
_INSTANTS = 8
# A step of the table moves the robot by about this part of a standard deviation; never finer, in [s].
_PART, _FINEST = 0.1, 0.02
# Joints that move less than this part of the one that moves most are not compared.
_STANDING = 1e-2

# Log, run, first and last instant in [s] from the beginning of the run.
Stretch = tuple[str, int, float, float]


@dataclass(frozen=True, eq=False)
class Path:
    """Positions along the runs of a log in steps that are short compared with the motion.

    Attributes:
        runs: Positions of each run, each shape (n, m), in [rad] or [m].
        step: From one row to the next, in [s].
        begins: Time of block number 0 of the log before the beginning of each run, counted in blocks, in [s].
    """

    runs: tuple[Float[Array, "_ m"], ...]
    step: float
    begins: tuple[float, ...]

    def at(self, run: int, t: Float[Array, "k"]) -> Float[Array, "k m"]:
        """Positions at times in [s] from the beginning of a run, shape (k, m)."""
        q = self.runs[run]
        grid = self.step * np.arange(len(q))
        return np.stack([np.interp(t, grid, column) for column in q.T], axis=1)


def path_along(
    q: Float[Array, "n m"], pieces: Sequence[tuple[int, int]], dt: float, begins: Sequence[float]
) -> Path | None:
    """The path of a log; None where positions are missing.

    Args:
        q: Measured positions, shape (n, m), in [rad] or [m].
        pieces: Ranges of samples of its runs.
        dt: Of the samples, in [s].
        begins: See `Path`.
    """
    own = [q[start:stop] for start, stop in pieces]
    lag = max(1, round(_FINEST / dt))
    count, moves = 0, 0
    total, squares, strides = (np.zeros(q.shape[1]) for _ in range(3))
    for one in own:
        for low, high in ranges(len(one)):
            part = one[low:high]
            if not np.all(np.isfinite(part)):
                return None
            moved = one[low + lag : high + lag] - part[: max(len(one) - low - lag, 0)]
            count, moves = count + len(part), moves + len(moved)
            total += part.sum(axis=0)
            squares += np.sum((part - own[0][0]) ** 2, axis=0)
            strides += np.sum(moved**2, axis=0)
    if not count:
        return None
    speed = np.sqrt(strides / max(moves, 1)) / (lag * dt)
    # About the first sample: a joint that moves little must not lose digits.
    size = np.sqrt(np.maximum(squares / count - (total / count - own[0][0]) ** 2, 0.0))
    swift = size > _STANDING * size.max(initial=0.0)
    step = _PART * float(np.min(size[swift] / speed[swift])) if np.any(speed[swift] > 0) else _FINEST
    every = max(1, int(max(step, _FINEST) / dt))
    return Path(tuple(np.array(one[::every]) for one in own), every * dt, tuple(begins))


def first_alike(paths: Mapping[str, Path], stretches: Sequence[Stretch]) -> Int[Array, "n"]:
    """Number of the first part with the same motion, for each part: its own number where the motion is new.

    Args:
        paths: Of each log.
        stretches: In the order of logs, runs and time.
    """
    n = len(stretches)
    length = float(np.median([stop - start for _, _, start, stop in stretches]))
    middles = np.array([0.5 * (start + stop) for _, _, start, stop in stretches])
    windows = _Windows(paths, stretches, length)
    first = np.arange(n)
    for c, (log, run, *_) in enumerate(stretches):
        found = windows.nearest(log, run, float(middles[c]))
        if found is None:
            continue
        place, t = found
        same = [k for k in range(c) if stretches[k][:2] == place]
        if same:
            first[c] = first[same[int(np.argmin(np.abs(middles[same] - t)))]]
    return first


class _Windows:
    """Positions at some instants around each time of all runs, in standard deviations of the joints."""

    def __init__(self, paths: Mapping[str, Path], stretches: Sequence[Stretch], length: float) -> None:
        self.paths, self.length = paths, length
        whole = np.concatenate([q for path in paths.values() for q in path.runs])
        size = np.std(whole, axis=0)
        self.used = np.flatnonzero(size > _STANDING * size.max(initial=0.0))
        self.size = size[self.used]
        self.places = list(dict.fromkeys((log, run) for log, run, *_ in stretches))
        self.times, rows = [], []
        for log, run in self.places:
            path = paths[log]
            last = path.step * (len(path.runs[run]) - 1)
            t = np.arange(0.5 * length, max(last - 0.5 * length, 0.5 * length) + 1e-9, path.step)
            self.times.append(t)
            rows.append(self._around(path, run, t))
        self.starts = np.cumsum([0, *(len(t) for t in self.times)])
        self.rows = np.concatenate(rows)
        self.squares = np.einsum("ij,ij->i", self.rows, self.rows)

    def _around(self, path: Path, run: int, t: Float[Array, "k"]) -> Float[Array, "k w"]:
        shifts = self.length * np.linspace(-0.5, 0.5, _INSTANTS)
        return np.concatenate([path.at(run, t + one)[:, self.used] / self.size for one in shifts], axis=1)

    def nearest(self, log: str, run: int, t: float) -> tuple[tuple[str, int], float] | None:
        """Run and time of the same earlier motion; None where there is none."""
        k = self.places.index((log, run))
        t = float(np.clip(t, self.times[k][0], self.times[k][-1]))
        before = int(np.searchsorted(self.times[k], t - self.length, side="right"))
        stop = self.starts[k] + before
        if stop == 0 or not len(self.used):
            return None
        own = self._around(self.paths[log], run, np.array([t]))[0]
        i = int(np.argmin(self.squares[:stop] - 2.0 * (self.rows[:stop] @ own)))
        place = int(np.searchsorted(self.starts, i, side="right")) - 1
        low, high = max(i - 1, int(self.starts[place])), min(i + 1, int(self.starts[place + 1]) - 1)
        off, along = own - self.rows[i], 0.5 * (self.rows[high] - self.rows[low])
        # Between two times of the table the motion is interpolated linearly.
        shift = np.clip(off @ along / max(float(along @ along), np.finfo(float).tiny), -1.0, 1.0)
        if np.sqrt(np.mean((off - shift * along) ** 2)) > _ALIKE:
            return None
        return self.places[place], float(self.times[place][i - self.starts[place]])
