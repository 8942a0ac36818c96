"""Steps of an encoder: a lost count, or a zero that is reset during the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.forced import doubt
from dynid.common.notices import Notice, notice
from dynid.common.paged import ranges, windows
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
    found = [step for step, impossible in _steps_of(log) if impossible]
    if not found:
        return ()
    error = InputError(
        f"positions jump between two samples and keep the offset: {_shown(found)}. No motion does that",
        file=log.file,
        remedy=_REMEDY,
    )
    return (doubt(error),)


def position_steps(log: Log) -> tuple[Notice, ...]:
    """Joints whose position jumps between two samples and then continues as before."""
    found = [step for step, _ in _steps_of(log)]
    if not found:
        return ()
    return (notice("position-step", log=log.name, shown=_shown(found)),)


def _shown(found: Sequence[_Step]) -> str:
    shown = ", ".join(f"'{name}' by {size:+.3g} at t = {t:.4g} s" for name, size, t in found[:4])
    return shown + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _steps_of(log: Log) -> list[tuple[_Step, bool]]:
    """Every step of every coordinate, and whether no motor can make it; searched once."""
    if log not in _FOUND:
        _FOUND[log] = [one for i in range(log.q.shape[1]) for one in _steps(log, i)]
    return _FOUND[log]


def _steps(log: Log, column: int) -> Iterable[tuple[_Step, bool]]:
    """The steps of one coordinate: an increment of a smooth motion is close to the mean of its neighbours."""
    for a, b in log.segments:
        if b - a < _FEWEST:
            continue
        q = log.q[a:b, column]
        some = np.concatenate([np.abs(_excess(part)) for part in windows(q)])
        usual = float(np.quantile(some, 0.99))
        low, high = np.inf, -np.inf
        for c, d in ranges(len(q)):
            part = np.ascontiguousarray(q[c:d])
            low, high = min(low, float(np.min(part))), max(high, float(np.max(part)))
        # The neighbours of a step show half of it, with the other sign.
        least = max(_UNUSUAL * usual, _LEAST * (high - low), 1e-9)
        impossible = max(_IMPOSSIBLE * usual, _LARGE * (high - low), 1e-9)
        for c, d in ranges(len(q)):
            first = max(c - 1, 0)
            excess = _excess(q[first : d + 4])
            for i in np.flatnonzero(np.abs(excess[: d - first]) > least).tolist():
                size = float(excess[i])
                inside = first + i >= c
                if inside and abs(size) >= np.abs(excess[max(0, i - 1) : i + 2]).max():
                    step = log.position_names[column], size, float(log.t[a + first + i + 2])
                    yield step, abs(size) > impossible


def _excess(q: Float[Array, "n"]) -> Float[Array, "k"]:
    """Increments less the mean of their two neighbours; entry i leads to sample i + 2."""
    moved = np.diff(np.ascontiguousarray(q, dtype=float))
    return np.asarray(moved[1:-1] - 0.5 * (moved[2:] + moved[:-2]))
