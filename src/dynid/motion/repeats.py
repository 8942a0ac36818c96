"""Parts of a motion that repeat others: a periodic run, or a motion that was recorded again.

Model errors (friction, flexibility) depend on the robot's position and motion. They are equal each time the
same motion is repeated, so repeats give no new information about them.

Two parts are the same motion where the RMS difference of their positions, each joint scaled by its standard
deviation, is less than `_ALIKE` at some time shift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.paged import empty, ranges, release

# Robots repeat a motion to about 1 % of its size, also with another load; random
# motions differ by about one.
_ALIKE = 0.1
# Positions are compared at so many time instants of a part.
_INSTANTS = 8
# A step of the table moves the robot by about this part of a standard deviation; never finer, in [s].
_PART, _FINEST = 0.1, 0.02
# Joints that move less than this part of the one that moves most are not compared.
_STANDING = 1e-2
_ROUNDING = 1e-9  # of squares
_PIECE = 8192  # times of the table that are compared at once

# Log, run, first and last instant in [s] from the beginning of the run.
Stretch = tuple[str, int, float, float]


# Each run of a log: positions in steps that are short compared with the motion, shape (n, m), [rad] or [m];
# the step, in [s]; time of block number 0 of the log before the run begins, counted in blocks, in [s].
Path = tuple[tuple[Float[Array, "_ m"], float, float], ...]


def path_along(
    q: Float[Array, "n m"], pieces: Sequence[tuple[int, int]], dt: float, begins: Sequence[float]
) -> Path | None:
    """The path of a log; None where positions are missing.

    Args:
        q: Measured positions, shape (n, m), in [rad] or [m].
        pieces: Ranges of samples of its runs.
        dt: Of the samples, in [s].
        begins: Time of block number 0 before the beginning of each run, as in `Path`, in [s].
    """
    tracks = [q[start:stop] for start, stop in pieces]
    lag = max(1, round(_FINEST / dt))
    # So many positions, and those one finest step later, show how far and how fast the robot moves.
    apart = max(lag, sum(len(track) for track in tracks) // _PIECE)
    now = [_thinned(track, apart) for track in tracks]
    later = [_thinned(track[lag:], apart) for track in tracks]
    seen = np.concatenate([np.zeros((0, q.shape[1])), *now])
    if not len(seen) or not np.isfinite(seen).all():
        return None
    moved = np.concatenate([b - a[: len(b)] for a, b in zip(now, later, strict=True)])
    speed = np.sqrt(np.sum(moved**2, axis=0) / max(len(moved), 1)) / (lag * dt)
    size = np.std(seen, axis=0)
    swift = size > _STANDING * size.max(initial=0.0)
    step = _PART * float(np.min(size[swift] / speed[swift])) if np.any(speed[swift] > 0) else _FINEST
    every = max(1, int(max(step, _FINEST) / dt))
    return tuple((_thinned(track, every), every * dt, at) for track, at in zip(tracks, begins, strict=True))


def _thinned(q: Float[Array, "n m"], every: int) -> Float[Array, "k m"]:
    """One row in so many, from the first on."""
    kept = empty((-(-len(q) // every), q.shape[1]))
    for low, high in ranges(len(q)):
        first, last = -(-low // every), -(-high // every)
        kept[first:last] = q[first * every : high : every]
    return kept


def first_alike(paths: Mapping[str, Path], stretches: Sequence[Stretch]) -> Int[Array, "n"]:
    """Number of the first part with the same motion, for each part: its own number where the motion is new.

    Args:
        paths: Of each log.
        stretches: In the order of logs, runs and time.
    """
    middles = _middles(stretches)
    first = np.arange(len(stretches))
    for c, match in enumerate(_earlier(paths, stretches)):
        if match is None:
            continue
        place, t = match
        same = [k for k in range(c) if stretches[k][:2] == place]
        if same:
            first[c] = first[same[int(np.argmin(np.abs(middles[same] - t)))]]
    return first


def come_again(paths: Mapping[str, Path], stretches: Sequence[Stretch]) -> Bool[Array, "n"]:
    """Whether the same motion is at another of these parts.

    Args:
        paths: Of each log.
        stretches: In the order of logs, runs and time.
    """
    again = np.zeros(len(stretches), dtype=bool)
    for c, match in enumerate(_earlier(paths, stretches) if len(stretches) > 1 else ()):
        for k, (log, run, start, stop) in enumerate(stretches[:c]):
            around = stop - start
            if match and match[0] == (log, run) and start - around <= match[1] <= stop + around:
                again[[c, k]] = True
    return again


def _middles(stretches: Sequence[Stretch]) -> Float[Array, "n"]:
    return np.array([0.5 * (start + stop) for _, _, start, stop in stretches])


def _earlier(
    paths: Mapping[str, Path], stretches: Sequence[Stretch]
) -> list[tuple[tuple[str, int], float] | None]:
    """Log, run and time of the same earlier motion of each part."""
    length = float(np.median([stop - start for _, _, start, stop in stretches]))
    windows = _Windows(paths, stretches, length)
    return windows.earlier([stretch[:2] for stretch in stretches], _middles(stretches))


class _Windows:
    """Positions at some instants around each time of all runs, in standard deviations of the joints."""

    def __init__(self, paths: Mapping[str, Path], stretches: Sequence[Stretch], length: float) -> None:
        self.paths, self.length = paths, length
        size = _spread([q for path in paths.values() for q, _, _ in path])
        self.used = np.flatnonzero(size > _STANDING * size.max(initial=0.0))
        self.size = size[self.used]
        self.places = list(dict.fromkeys((log, run) for log, run, *_ in stretches))
        self.times = []
        for log, run in self.places:
            q, step, _ = paths[log][run]
            last = step * (len(q) - 1)
            t = np.arange(0.5 * length, max(last - 0.5 * length, 0.5 * length) + 1e-9, step)
            self.times.append(t)
        self.starts = np.cumsum([0, *(len(t) for t in self.times)])

    def _around(self, place: tuple[str, int], t: Float[Array, "k"]) -> Float[Array, "k w"]:
        shifts = self.length * np.linspace(-0.5, 0.5, _INSTANTS)
        q, step, _ = self.paths[place[0]][place[1]]
        parts = [_positions(q, (t + shift) / step)[:, self.used] / self.size for shift in shifts]
        return np.concatenate(parts, axis=1)

    def earlier(
        self, places: Sequence[tuple[str, int]], middles: Float[Array, "n"]
    ) -> list[tuple[tuple[str, int], float] | None]:
        """Log, run and time of the same earlier motion of each part; None where there is none.

        All parts are compared with one piece of the table after the other: it is never stored.
        """
        if not len(self.used):
            return [None] * len(places)
        at = np.array([self.places.index(place) for place in places])
        stop, windows = np.zeros(len(at), dtype=int), np.zeros((len(at), _INSTANTS * len(self.used)))
        for k in np.unique(at).tolist():
            times = self.times[k]
            t = np.clip(middles[at == k], times[0], times[-1])
            stop[at == k] = self.starts[k] + np.searchsorted(times, t - self.length, "right")
            windows[at == k] = self._around(self.places[k], t)
        # A periodic motion comes back exactly: the earliest time counts, not the one that rounding prefers.
        same = _ROUNDING * np.einsum("ij,ij->i", windows, windows)
        least, nearest = np.full(len(at), np.inf), np.zeros(len(at), dtype=int)
        for k, place in enumerate(self.places):
            for low in range(0, len(self.times[k]), _PIECE):
                first = int(self.starts[k]) + low
                open_ = np.flatnonzero(stop > first)
                if not len(open_):
                    continue
                rows = self._around(place, self.times[k][low : low + _PIECE])
                far = np.einsum("ij,ij->i", rows, rows)[:, None] - 2.0 * (rows @ windows[open_].T)
                far[first + np.arange(len(rows))[:, None] >= stop[open_]] = np.inf
                now = far.min(axis=0)
                i = np.argmax(far <= now + same[open_], axis=0)
                better = now < least[open_] - same[open_]
                least[open_[better]], nearest[open_[better]] = now[better], first + i[better]
                release()
        same_motion = self._same(windows, nearest)
        return [match if stop[c] else None for c, match in enumerate(same_motion)]

    def _same(
        self, windows: Float[Array, "n w"], nearest: Int[Array, "n"]
    ) -> list[tuple[tuple[str, int], float] | None]:
        """Log, run and time of a row of the table for each part, where the motion is that of the part."""
        found: list[tuple[tuple[str, int], float] | None] = [None] * len(windows)
        of = np.searchsorted(self.starts, nearest, side="right") - 1
        for k in np.unique(of).tolist():
            place, times, parts = self.places[k], self.times[k], np.flatnonzero(of == k)
            i = nearest[parts] - self.starts[k]
            low, middle, high = (
                self._around(place, times[np.clip(i + d, 0, len(times) - 1)]) for d in (-1, 0, 1)
            )
            off, along = windows[parts] - middle, 0.5 * (high - low)
            # Between two times of the table the motion is interpolated linearly.
            least = np.maximum(np.sum(along**2, axis=1), np.finfo(float).tiny)
            shift = np.clip(np.sum(off * along, axis=1) / least, -1.0, 1.0)
            alike = np.sqrt(np.mean((off - shift[:, None] * along) ** 2, axis=1)) <= _ALIKE
            for c, t in zip(parts[alike].tolist(), times[i[alike]].tolist(), strict=True):
                found[c] = place, t
        return found


def _positions(q: Float[Array, "n m"], rows: Float[Array, "k"]) -> Float[Array, "k m"]:
    """Positions between the rows of a run, shape (k, m)."""
    rows = np.clip(rows, 0.0, len(q) - 1.0)
    low = rows.astype(int)
    high = np.minimum(low + 1, len(q) - 1)
    return np.asarray(q[low] + (rows - low)[:, None] * (q[high] - q[low]))


def _spread(runs: Sequence[Float[Array, "_ m"]]) -> Float[Array, "m"]:
    """Standard deviation of the positions of all runs."""
    count = sum(len(q) for q in runs)
    mean = sum(q[a:b].sum(axis=0) for q in runs for a, b in ranges(len(q))) / count
    squares = (np.sum((q[a:b] - mean) ** 2, axis=0) for q in runs for a, b in ranges(len(q)))
    return np.asarray(np.sqrt(sum(squares) / count))
