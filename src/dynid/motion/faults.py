"""Faults of sensors: spikes, flat tops, stuck readings, coarse steps.

Hampel's test: a sample is a spike where its distance from the median of its neighbours is too large for
their spread,

|x_i - med_i| > k max(1.4826 med |x_j - med_i|, s, step)

with s the usual size of |x_i - med_i| in this signal. A lasting jump is not a spike: the median follows it.
Efforts that are spikes, saturated or constant are masked sample by sample (their rows are not used).
Positions are filtered and differentiated, so the log is split where they jump or freeze.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.notices import Notice, notice
from dynid.common.paged import ranges, windows
from dynid.motion.table import Record, any_finite

_HALF = 5  # samples on either side
_SPIKE = 10.0  # Gaussian noise stays below this in a million samples; a contact lasts longer than one sample
_USUAL = 1.4826
# Smaller parts of the range are left to the noise model: encoder steps at rest, small kinks.
_POSITION_PART, _EFFORT_PART = 2e-3, 2e-2
# Samples in a row at the very largest value: no signal with noise stays there.
_FLAT_RUN, _FLAT_PART = 8, 0.002
_STUCK_SECONDS = 0.5
_ABRUPT = 0.1
_COARSE, _SILENT = 0.02, 0.25  # step of a signal relative to its standard deviation
_MOST_SPIKES = 0.1
_BESIDE = 0.4
_Extremes = tuple[float, float, int]
_Signal = tuple[str, Float[Array, "n"], _Extremes]


@dataclass(frozen=True, eq=False)
class SignalFaults:
    """Faults found in the signals of a record.

    Attributes:
        good: Samples that may stay in a segment, shape (n,).
        usable: Samples whose efforts are used, shape (n,).
    """

    good: Bool[Array, "n"]
    usable: Bool[Array, "n"]
    notices: tuple[Notice, ...]


def signal_faults(
    record: Record, positions: Sequence[str], efforts: Sequence[str], step: float
) -> SignalFaults:
    """Find faults in positions and efforts.

    Args:
        record: In order of time, with bad samples as NaN.
        positions: Names of the columns of q that are plain coordinates; others are empty.
        efforts: Names of the columns of tau.
        step: Median time step in [s].
    """
    n = len(record.t)
    good, usable = np.ones(n, bool), np.ones(n, bool)
    notices: list[Notice] = []
    jumped: dict[str, int] = {}
    spiked: dict[str, int] = {}
    flat: dict[str, float] = {}
    moving = _moving(record, positions)
    in_q, in_tau = ([_extremes(x) for x in values.T] for values in (record.q, record.tau))
    for i, name in enumerate(positions):
        if name:
            bad = spikes(record.q[:, i], record.breaks, _POSITION_PART, in_q[i])
            good[bad] = False
            jumped |= {name: int(bad.sum())} if bad.any() else {}
    present = any_finite(record.tau)
    for i, name in enumerate(efforts):
        x = record.tau[:, i]
        if not present[i]:
            continue
        # At standstill dry friction takes any value between its two: a jump there is not a fault.
        bad, top = spikes(x, record.breaks, _EFFORT_PART, in_tau[i]), flat_tops(x, in_tau[i])
        if any(positions):
            bad &= moving
        usable[bad] = usable[top] = False
        spiked |= {name: int(bad.sum())} if bad.any() else {}
        flat |= {name: float(np.max(np.abs(x[top])))} if top.any() else {}
    notices += _spike_notices(jumped, spiked, n)
    notices += _flat_notices(flat)
    signals = (
        [*zip(positions, record.q.T, in_q, strict=True)],
        [*zip(efforts, record.tau.T, in_tau, strict=True)],
    )
    hanging = _stuck(*signals, moving, step)
    good &= ~hanging.positions
    usable &= ~hanging.efforts
    notices += hanging.notices
    notices += _coarse_notices(record, efforts)
    return SignalFaults(good, usable, tuple(notices))


def spikes(
    x: Float[Array, "n"],
    breaks: Bool[Array, "n"] | None = None,
    least: float = 0.0,
    extremes: _Extremes | None = None,
) -> Bool[Array, "n"]:
    """Samples far from their neighbours, by Hampel's test; only candidates are tested.

    Args:
        x: One signal; NaN is not a spike.
        breaks: Where a new run begins.
        least: Smallest relevant spike, relative to the signal's range.
        extremes: Of the signal, where they are known.
    """
    found = np.zeros(len(x), bool)
    low, high, count = extremes or _extremes(x)
    if len(x) < 4 * _HALF or not count:
        return found
    start = _filled(x[: 1 << 15])
    usual = float(np.median(np.concatenate([_bend(part) for part in _known(x)])))
    level = _resolution(start)
    threshold = _SPIKE * max(_USUAL * usual * 0.5, 0.5 * level, 1e-12 * max(abs(low), abs(high)))
    limits = _SPIKE * max(_USUAL * usual, level), least * _range(x)
    for a, b in ranges(len(x)):
        first, last = max(0, a - _HALF - 1), min(len(x), b + _HALF + 1)
        marked = _spikes_of(_filled(x[first:last]), threshold, *limits)
        found[a:b] = marked[a - first : b - first] & np.isfinite(x[a:b])
    if breaks is not None and found.any():
        starts = np.flatnonzero(breaks)
        edge = np.clip(starts[:, None] + np.arange(-_HALF, _HALF + 1), 0, len(x) - 1)
        found[np.unique(edge)] = False  # samples across a break are not neighbours
    return found


def _spikes_of(
    filled: Float[Array, "n"], threshold: float, spread_least: float, least: float
) -> Bool[Array, "n"]:
    """Spikes of a range: bends beyond a threshold that pass Hampel's test."""
    found = np.zeros(len(filled), bool)
    bent = _bend(filled) > threshold
    marked = np.zeros(len(filled), bool)
    for d in range(3):  # a spike bends its neighbours too
        marked[d : d + len(bent)] |= bent
    candidates = np.flatnonzero(marked)
    # Neighbours of a single sample that is `away` are closer to the median than `_BESIDE` of that.
    least = max(spread_least, least)
    for d in (-3, -2, 2, 3):
        beside = filled[np.clip(candidates + d, 0, len(filled) - 1)]
        candidates = candidates[np.abs(filled[candidates] - beside) > 0.99 * (1.0 - _BESIDE) * least]
    around = np.clip(candidates[:, None] + np.arange(-_HALF, _HALF + 1), 0, len(filled) - 1)
    near = filled[around]
    middle = np.median(near, axis=1)
    spread = _USUAL * np.median(np.abs(near - middle[:, None]), axis=1)
    away = np.abs(filled[candidates] - middle)
    limit = np.maximum(_SPIKE * spread, least)
    # A spike is a single sample: lasting, decaying or vibrating deviations are motion, contact or noise.
    beside = np.abs(near[:, _HALF + np.array([-3, -2, 2, 3])] - middle[:, None])
    alone = np.all(beside < _BESIDE * away[:, None], axis=1)
    found[candidates[(away > limit) & alone]] = True
    return found


def _bend(x: Float[Array, "n"]) -> Float[Array, "k"]:
    """Distance of each inner sample from the middle of its neighbours."""
    return np.asarray(np.abs(x[1:-1] - 0.5 * (x[2:] + x[:-2])))


def _known(x: Float[Array, "n"]) -> list[Float[Array, "k"]]:
    """The signal, or windows of a long one, without NaN; windows of NaN are left out."""
    return [_filled(part) for part in windows(x) if np.isfinite(part).any()]


def _range(x: Float[Array, "n"]) -> float:
    """Between the 1 % and the 99 % quantile: a spike does not widen it."""
    every = max(1, len(x) >> 15)
    parts = [np.array(x[-(-a // every) * every : b : every]) for a, b in ranges(len(x))]
    low, high = np.quantile(_filled(np.concatenate(parts)), [0.01, 0.99])
    return float(high - low)


def flat_tops(x: Float[Array, "n"], extremes: _Extremes | None = None) -> Bool[Array, "n"]:
    """Samples at the largest or smallest value of a signal that repeatedly stays there."""
    found = np.zeros(len(x), bool)
    low, high, count = extremes or _extremes(x)
    if not count or low == high:
        return found
    if _resolution(_filled(x[: 1 << 15])) > 0.02 * _deviation(x):
        return found  # a coarse signal reaches its extremes by chance
    for limit in (high, low):
        near = 1e-9 * max(abs(limit), high - low)
        at = np.zeros(len(x), bool)
        for a, b in ranges(len(x)):
            at[a:b] = np.abs(x[a:b] - limit) <= near
        if at.sum() > _FLAT_PART * count and _run_lengths(at).max(initial=0) >= _FLAT_RUN:
            found |= at
    return found


def _extremes(x: Float[Array, "n"]) -> _Extremes:
    """Smallest and largest finite value, and how many finite ones there are."""
    low, high, count = np.inf, -np.inf, 0
    for a, b in ranges(len(x)):
        part = np.ascontiguousarray(x[a:b])
        finite = np.isfinite(part)
        part = part if finite.all() else part[finite]
        low, high = float(np.min(part, initial=low)), float(np.max(part, initial=high))
        count += len(part)
    return low, high, count


def _deviation(x: Float[Array, "n"]) -> float:
    """Standard deviation of the finite values."""
    some = np.concatenate(windows(x))
    return float(np.std(some[np.isfinite(some)]))


def stuck(x: Float[Array, "n"], moving: Bool[Array, "n"], least: int) -> Bool[Array, "n"]:
    """Samples of all runs in which a signal does not change while the robot moves for `least` or more."""
    found, still = np.zeros(len(x), bool), np.zeros(len(x), bool)
    for a, b in ranges(len(x)):
        filled = _filled(x[max(a - 1, 0) : b])
        still[max(a, 1) : b] = filled[1:] == filled[:-1]
    for start, stop in _runs(still):
        if stop - start >= least and np.sum(moving[start:stop]) >= least:
            found[start - 1 : stop] = True  # the sample before has the same value
    return found


def _runs(mask: Bool[Array, "n"]) -> list[tuple[int, int]]:
    """First index and one past the last of every run of True."""
    parts = [np.flatnonzero(mask[:1])]
    parts += [
        a + 1 + np.flatnonzero(mask[a + 1 : b + 1] != mask[a : b + 1][:-1]) for a, b in ranges(len(mask))
    ]
    edges = np.concatenate([*parts, [len(mask)] if len(mask) and mask[-1] else []]).astype(int)
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _run_lengths(mask: Bool[Array, "n"]) -> Array:
    """Length of every run of True."""
    return np.array([stop - start for start, stop in _runs(mask)], dtype=int)


def _filled(x: Float[Array, "n"]) -> Float[Array, "n"]:
    """NaN replaced by the value before (or the first one)."""
    x = np.ascontiguousarray(x, dtype=float)
    finite = np.isfinite(x)
    if finite.all():
        return x
    index = np.maximum.accumulate(np.where(finite, np.arange(len(x)), -1))
    return np.asarray(x[np.where(index >= 0, index, int(np.argmax(finite)))])


def _resolution(x: Float[Array, "n"]) -> float:
    """Smallest step between values where the signal takes few of them; 0 for a fine one."""
    part = x[: 1 << 15]
    values = np.unique(part)
    if len(values) < 2 or len(values) > 0.2 * len(part):
        return 0.0
    return float(np.median(np.diff(values)))


def _moving(record: Record, positions: Sequence[str]) -> Bool[Array, "n"]:
    """Samples at which some coordinate is faster than a hundredth of its usual top speed."""
    moving = np.zeros(len(record.t), bool)
    for i, name in enumerate(positions):
        if name:
            x = record.q[:, i]
            some = np.concatenate([np.zeros(0), *(_strides(part) for part in _known(x))])
            top = float(np.quantile(some, 0.95)) if len(some) else 0.0
            for a, b in ranges(len(x) if top > 0 else 0):
                steps = _strides(_filled(x[max(a - 1, 0) : b + 1]))
                moving[max(a, 1) : max(a, 1) + len(steps)] |= steps > 1e-2 * top
    return moving


def _strides(x: Float[Array, "n"]) -> Float[Array, "k"]:
    """Half the distance between the neighbours of each inner sample."""
    return np.asarray(0.5 * np.abs(x[2:] - x[:-2]))


def _spike_notices(jumped: dict[str, int], spiked: dict[str, int], n: int) -> list[Notice]:
    notices = []
    if jumped:
        notices.append(notice("position-spikes", counts=_counts(jumped)))
    if spiked:
        many = max(spiked.values()) > _MOST_SPIKES * n
        doubt = "; they are so many that the signal may be unreliable" if many else ""
        notices.append(notice("effort-spikes", counts=_counts(spiked), many=doubt))
    return notices


def _flat_notices(flat: dict[str, float]) -> list[Notice]:
    if not flat:
        return []
    shown = ", ".join(f"{name} (at {value:.4g})" for name, value in flat.items())
    return [notice("saturation", shown=shown)]


@dataclass(frozen=True, eq=False)
class _Hanging:
    """Samples at which positions or efforts are frozen, shape (n,) each."""

    positions: Bool[Array, "n"]
    efforts: Bool[Array, "n"]
    notices: list[Notice]


def _stuck(
    positions: Sequence[_Signal], efforts: Sequence[_Signal], moving: Bool[Array, "n"], step: float
) -> _Hanging:
    least = max(8, round(_STUCK_SECONDS / step))
    masks = [np.zeros(len(moving), bool) for _ in range(2)]
    masked: list[str] = []
    resting: list[str] = []
    for which, signals in enumerate((positions, efforts)):
        for name, x, (low, high, count) in signals:
            if not name or not count or low == high or _resolution(_filled(x[: 1 << 15])):
                continue
            found = stuck(x, moving, least)
            if not found.any():
                continue
            # A joint may rest while others move: its sensor is frozen if it stops abruptly or then jumps.
            bad = found if which else found & _abrupt(_filled(x), found)
            masks[which] |= bad
            longest = max((b - a for a, b in _runs(found)), default=0)
            if longest:
                (masked if bad.any() else resting).append(f"{name} ({longest * step:.2g} s)")
    notices = []
    if masked:
        notices.append(notice("stuck-signal", names=", ".join(masked)))
    if resting:
        notices.append(notice("stuck-signal", "resting", names=", ".join(resting)))
    return _Hanging(masks[0], masks[1], notices)


def _abrupt(x: Float[Array, "n"], still: Bool[Array, "n"]) -> Bool[Array, "n"]:
    """Runs that are entered or left by a step of a tenth of the signal's usual largest one."""
    steps = np.abs(np.diff(x, prepend=x[0], append=x[-1]))  # steps[i] leads to sample i
    top = float(np.quantile(steps, 0.95))
    found = np.zeros(len(x), bool)
    for start, stop in _runs(still):
        if max(steps[start], steps[stop]) > _ABRUPT * top:
            found[start:stop] = True
    return found


def _coarse_notices(record: Record, efforts: Sequence[str]) -> list[Notice]:
    coarse = []
    for i, name in enumerate(efforts):
        x = record.tau[:, i]
        start = _filled(x[: 1 << 15])
        step = _resolution(start)
        if not step or not any_finite(x[:, None])[0]:
            continue
        size = float(np.std(np.concatenate(_known(x))))
        if size > 0 and step > _COARSE * size and len(np.unique(start)) < 2.0 / _COARSE:
            silent = ": hardly any signal" if step > _SILENT * size else ""
            coarse.append(f"{name} ({step:.3g}, {100 * step / size:.0f} % of its standard deviation{silent})")
    if not coarse:
        return []
    return [notice("coarse-effort", shown=", ".join(coarse))]


def _counts(found: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in found.items())


def resolution(x: Float[Array, "n"]) -> float:
    """Smallest step between the values of a signal; 0: finer than can be seen. NaN is left out."""
    finite = x[np.isfinite(x)]
    return _resolution(np.asarray(finite, float)) if len(finite) else 0.0
