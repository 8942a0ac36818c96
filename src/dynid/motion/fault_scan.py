"""Search signals for spikes, flat tops and frozen readings.

Hampel's test: a sample is a spike where its distance from the median of its neighbours is too large for
their spread,

|x_i - med_i| > k max(1.4826 med |x_j - med_i|, s, step)

with s the usual size of |x_i - med_i| in this signal. A lasting jump is not a spike: the median follows it.
Positions are smooth: their neighbours are taken without the common slope, and a few of them may be spikes
too. Efforts vibrate and chatter: only a sample that stands alone is a spike.
All signals of a range of samples are searched together, while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.paged import extremes, flags, parts, ranges, windows

_HALF = 5  # samples on either side
_REACH = _HALF + 1
_SPIKE = 10.0  # Gaussian noise stays below this in a million samples; a contact lasts longer than one sample
_USUAL = 1.4826
_BESIDE = 0.4
# Of 2 _HALF + 1 positions: more that are so far are motion. The median of the slopes bears no more.
_MOST_FAR = 3
# Samples in a row at the very largest value: no signal with noise stays there.
_FLAT_RUN, _FLAT_PART = 8, 0.002
_START = 1 << 15  # samples that show the resolution of a signal
_TOP = 0.95  # quantile


class Facts(NamedTuple):
    """What the search must know of one signal.

    Attributes:
        name: For messages.
        column: Of the signal among those searched together.
        low: Smallest finite value.
        high: Largest finite value.
        size: Number of finite values.
        level: Smallest step between values where the signal takes few of them; 0 for a fine one.
        usual: Usual distance of a sample from the middle of its neighbours.
        stride: Half the distance between the neighbours of a sample where the signal changes fast.
        spread: Between the 1 % and the 99 % quantile: a spike does not widen it.
    """

    name: str
    column: int
    low: float
    high: float
    size: int
    level: float
    usual: float
    stride: float
    spread: float


def facts(values: Float[Array, "n m"], names: Sequence[str]) -> list[Facts]:
    """Of all signals with a name and a finite value; of long ones, windows give the typical sizes."""
    low, high, count = extremes(values)
    pieces = [np.ascontiguousarray(part.T) for part in windows(values)]
    facts_of = []
    for i, name in enumerate(names):
        if name and count[i]:
            known = [filled(part[i]) for part in pieces if np.isfinite(part[i]).any()]
            usual = np.median(np.concatenate([_bend(part) for part in known])) if len(values) > 2 else 0.0
            strides = np.concatenate([_strides(part) for part in known])
            stride = np.quantile(strides, _TOP) if len(strides) else 0.0
            level = resolution(filled(values[:_START, i]))
            every = np.concatenate(known)
            ends = np.quantile(every[:: max(1, len(every) // _START)], [0.01, 0.99])
            sizes = level, float(usual), float(stride), float(ends[1] - ends[0])
            facts_of.append(Facts(name, i, low[i], high[i], int(count[i]), *sizes))
    return facts_of


def spikes(
    values: Float[Array, "n m"],
    known: Sequence[Facts],
    least: float,
    breaks: Bool[Array, "n"] | None = None,
    *,
    smooth: bool = False,
) -> list[Int[Array, "k"]]:
    """Samples far from their neighbours, by Hampel's test, of each signal.

    Args:
        values: Signals; NaN is not a spike.
        known: Of the signals to search.
        least: Smallest relevant spike, relative to the range of a signal.
        breaks: Where a new run begins.
        smooth: Whether the signals are smooth, as positions are.
    """
    n = len(values)
    places: list[list[Int[Array, "k"]]] = [[np.zeros(0, int)] for _ in known]
    if n >= 4 * _HALF:
        least_of = [limits(known_facts, least) for known_facts in known]
        for part in parts(values, _REACH):
            for hits, known_facts, limit in zip(places, known, least_of, strict=True):
                at = part.first + _spikes_of(filled(part.rows[known_facts.column]), *limit, smooth)
                at = at[(at >= part.start) & (at < part.stop)]
                hits.append(at[np.isfinite(values[at, known_facts.column])])
    begins = (
        np.zeros(0, int) if breaks is None else 1 + np.flatnonzero(breaks[1:])
    )  # nothing before the first
    return [_inside(np.concatenate(hits), begins) for hits in places]


def limits(signal: Facts, least: float) -> tuple[float, float]:
    """Smallest distance of a spike from the median, and of a candidate from the middle of its neighbours."""
    away = _SPIKE * max(_USUAL * signal.usual, signal.level)
    bend = (
        0.5
        * _SPIKE
        * max(_USUAL * signal.usual, signal.level, 2e-12 * max(abs(signal.low), abs(signal.high)))
    )
    return max(away, least * signal.spread), bend


def _spikes_of(x: Float[Array, "n"], least: float, bend: float, smooth: bool) -> Int[Array, "s"]:
    """Samples of a signal without NaN that pass Hampel's test.

    Args:
        x: A signal without NaN.
        least: Smallest distance from the median.
        bend: Smallest distance of the sample, or of one beside it, from the middle of its neighbours.
        smooth: Whether the signal is smooth, as a position is.
    """
    # Neighbours of a single sample that is `away` are closer to the median than `_BESIDE` of that.
    apart = 0.99 * (1.0 - _BESIDE) * least
    candidates = np.union1d(_peaks(x, 1, apart), _peaks(x, 2, apart))
    if len(candidates):
        bent = np.pad(_bend(x) > bend, 2)
        candidates = candidates[bent[candidates] | bent[candidates + 1] | bent[candidates + 2]]
    if not len(candidates):
        return candidates
    around = np.clip(candidates[:, None] + np.arange(-_HALF, _HALF + 1), 0, len(x) - 1)
    near = x[around]
    if smooth:
        slope = np.median(near[:, _REACH:] - near[:, :_HALF], axis=1) / _REACH
        near = near - slope[:, None] * (around - candidates[:, None])
    away = np.abs(near - np.median(near, axis=1)[:, None])
    limit = np.maximum(_SPIKE * _USUAL * np.median(away, axis=1), least)
    far = away > _BESIDE * away[:, _HALF, None]
    if not smooth:
        alone = ~np.any(far[:, _HALF + np.array([-3, -2, 2, 3])], axis=1)
        return np.asarray(candidates[(away[:, _HALF] > limit) & alone])
    found = (away[:, _HALF] > limit) & (np.sum(far, axis=1) <= _MOST_FAR)
    return np.unique(around[found[:, None] & (away > limit[:, None])])


def _peaks(x: Float[Array, "n"], reach: int, apart: float) -> Int[Array, "k"]:
    """Samples above, or below, both samples `reach` steps away; two at either end have too few neighbours."""
    rise = x[reach:] - x[:-reach]
    up, down = rise > apart, rise < -apart
    at = reach + np.flatnonzero((up[:-reach] & down[reach:]) | (down[:-reach] & up[reach:]))
    return np.asarray(at[(at > 1) & (at < len(x) - 2)])


def _inside(at: Int[Array, "k"], begins: Int[Array, "b"]) -> Int[Array, "l"]:
    """Samples that are not near the beginning of a run: samples across a break are not neighbours."""
    if not len(at) or not len(begins):
        return at
    after = np.searchsorted(begins, at - _HALF)
    nearest = begins[np.minimum(after, len(begins) - 1)]
    return np.asarray(at[np.abs(nearest - at) > _HALF])


def _bend(x: Float[Array, "n"]) -> Float[Array, "k"]:
    """Distance of each inner sample from the middle of its neighbours."""
    return np.asarray(np.abs(x[1:-1] - 0.5 * (x[2:] + x[:-2])))


def _strides(x: Float[Array, "n"]) -> Float[Array, "k"]:
    """Half the distance between the neighbours of each inner sample."""
    return np.asarray(0.5 * np.abs(x[2:] - x[:-2]))


def moving(values: Float[Array, "n m"], known: Sequence[Facts]) -> Bool[Array, "n"]:
    """Samples at which some signal changes faster than a hundredth of its usual top speed."""
    marks = flags(len(values), False)
    for part in parts(values if known else values[:0], 1):
        inner = marks[part.first + 1 : part.first + part.rows.shape[1] - 1]
        for known_facts in known:
            if known_facts.stride > 0.0:
                inner |= _strides(filled(part.rows[known_facts.column])) > 1e-2 * known_facts.stride
    return marks


def flat_tops(values: Float[Array, "n m"], known: Sequence[Facts]) -> list[Bool[Array, "n"] | None]:
    """Samples at the largest or smallest value of each signal that repeatedly stays there; None: nowhere.

    A coarse signal reaches its extremes by chance.
    """
    fine = [
        known_facts
        for known_facts in known
        if known_facts.low < known_facts.high
        and not (known_facts.level and known_facts.level > 0.02 * deviation(values[:, known_facts.column]))
    ]
    ends = [(known_facts, limit) for known_facts in fine for limit in (known_facts.high, known_facts.low)]
    reached = np.zeros(len(ends), int)
    for part in parts(values if fine else values[:0]):
        for k, (known_facts, limit) in enumerate(ends):
            x = part.rows[known_facts.column]
            nearest = np.max(x) if limit == known_facts.high else np.min(x)
            if not abs(nearest - limit) > _rounding(known_facts, limit):  # or NaN is among them
                reached[k] += np.count_nonzero(np.abs(x - limit) <= _rounding(known_facts, limit))
    tops: dict[str, Bool[Array, "n"]] = {}
    for count, (known_facts, limit) in zip(reached, ends, strict=True):
        if count > _FLAT_PART * known_facts.size:
            x = values[:, known_facts.column]
            at = flags(len(x), False)
            for a, b in ranges(len(x)):
                at[a:b] = np.abs(x[a:b] - limit) <= _rounding(known_facts, limit)
            if max((b - a for a, b in runs(at)), default=0) >= _FLAT_RUN:
                other = tops.setdefault(known_facts.name, at)
                for a, b in ranges(len(at)):
                    other[a:b] |= at[a:b]
    return [tops.get(known_facts.name) for known_facts in known]


def _rounding(known_facts: Facts, limit: float) -> float:
    """Distance at which a sample is at a limit of its signal."""
    return 1e-9 * max(abs(limit), known_facts.high - known_facts.low)


def stuck(x: Float[Array, "n"], moves: Bool[Array, "n"], least: int) -> list[tuple[int, int]]:
    """All runs in which a signal does not change while the robot moves for `least` samples or more."""
    # A run of that length covers two neighbours among every so many samples.
    every = max(1, least // 2)
    thinned = (x[max(0, a - every) : b][::every] for a, b in ranges(len(x)))
    if not any(
        np.any((part[1:] == part[:-1]) | ~np.isfinite(part[1:]) | ~np.isfinite(part[:-1])) for part in thinned
    ):
        return []
    still = flags(len(x), False)
    for a, b in ranges(len(x)):
        part = filled(x[max(a - 1, 0) : b])
        still[max(a, 1) : b] = part[1:] == part[:-1]
    # The sample before has the same value. Missing ones are not constant.
    long = ((a, b) for a, b in runs(still) if b - a >= least and np.isfinite(x[a:b]).sum() >= least)
    return [(a - 1, b) for a, b in long if np.sum(moves[a:b]) >= least]


def usual_repeats(x: Float[Array, "n"]) -> int:
    """How often each value of a signal is logged in a row, of all but a hundredth of its values: mostly once.

    An effort that is updated more slowly than the log repeats all its values.
    """
    changes = (np.diff(filled(part), prepend=np.nan, append=np.nan) for part in windows(x))
    every = np.concatenate([np.diff(np.flatnonzero(change)) for change in changes])
    return int(np.quantile(every, 0.99)) if len(every) else 1


def runs(mask: Bool[Array, "n"]) -> list[tuple[int, int]]:
    """First index and one past the last of every run of True."""
    edges = [np.flatnonzero(mask[:1])]
    edges += [
        a + 1 + np.flatnonzero(mask[a + 1 : b + 1] != mask[a : b + 1][:-1]) for a, b in ranges(len(mask))
    ]
    ends = np.concatenate([*edges, [len(mask)] if len(mask) and mask[-1] else []]).astype(int)
    return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))


def filled(x: Float[Array, "n"]) -> Float[Array, "n"]:
    """NaN replaced by the value before (or the first one)."""
    x = np.ascontiguousarray(x, dtype=float)
    if np.isfinite(np.sum(x)):
        return x
    finite = np.isfinite(x)
    if finite.all():
        return x
    index = np.maximum.accumulate(np.where(finite, np.arange(len(x)), -1))
    return np.asarray(x[np.where(index >= 0, index, int(np.argmax(finite)))])


def deviation(x: Float[Array, "n"]) -> float:
    """Standard deviation of the finite values."""
    samples = np.concatenate(windows(x))
    return float(np.std(samples[np.isfinite(samples)]))


def resolution(x: Float[Array, "n"]) -> float:
    """Smallest step between values where the signal takes few of them; 0 for a fine one. NaN is left out."""
    part = x[:_START]
    part = part if np.isfinite(np.sum(part)) else part[np.isfinite(part)]
    most = 0.2 * len(part)
    if len(np.unique(part[: len(part) // 4])) > most:  # most signals: the others need not be sorted
        return 0.0
    values = np.unique(part)
    if len(values) < 2 or len(values) > most:
        return 0.0
    return float(np.median(np.diff(values)))
