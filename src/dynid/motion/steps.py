"""Steps of an encoder: a lost count, or a zero that is reset during the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
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
_REMEDY = (
    "check for lost encoder counts or a zero set during the log; split the log there with a `segment` column"
)


def refuse_steps(log: Log) -> tuple[Notice, ...]:
    """Refuse a log with a step far beyond its noise: all positions after it, or before it, are wrong."""
    found = [one for i in range(log.q.shape[1]) for one in _steps(log, i, _IMPOSSIBLE, _LARGE)]
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
    found = [one for i in range(log.q.shape[1]) for one in _steps(log, i)]
    if not found:
        return ()
    return (notice("position-step", log=log.name, shown=_shown(found)),)


def _shown(found: Sequence[tuple[str, float, float]]) -> str:
    shown = ", ".join(f"'{name}' by {size:+.3g} at t = {t:.4g} s" for name, size, t in found[:4])
    return shown + (f" and {len(found) - 4} more" if len(found) > 4 else "")


def _steps(
    log: Log, column: int, unusual: float = _UNUSUAL, large: float = _LEAST
) -> Iterable[tuple[str, float, float]]:
    """Name, size [rad] or [m] and time [s] of each step of one coordinate.

    An increment of a smooth motion is close to the mean of its two neighbours.
    """
    for a, b in log.segments:
        if b - a < _FEWEST:
            continue
        q = log.q[a:b, column]
        some = np.concatenate([np.abs(_excess(part)) for part in windows(q)])
        usual = unusual * float(np.quantile(some, 0.99))
        low = min(float(np.min(q[c:d])) for c, d in ranges(len(q)))
        high = max(float(np.max(q[c:d])) for c, d in ranges(len(q)))
        # The neighbours of a step show half of it, with the other sign.
        least = max(usual, large * (high - low), 1e-9)
        for c, d in ranges(len(q)):
            first = max(c - 1, 0)
            excess = _excess(q[first : d + 4])
            for i in np.flatnonzero(np.abs(excess[: d - first]) > least).tolist():
                inside = first + i >= c
                if inside and np.abs(excess[i]) >= np.abs(excess[max(0, i - 1) : i + 2]).max():
                    yield log.position_names[column], float(excess[i]), float(log.t[a + first + i + 2])


def _excess(q: Float[Array, "n"]) -> Float[Array, "k"]:
    """Increments less the mean of their two neighbours; entry i leads to sample i + 2."""
    moved = np.diff(np.asarray(q, dtype=float))
    return np.asarray(moved[1:-1] - 0.5 * (moved[2:] + moved[:-2]))
