"""The clock of a recording: unit, order, doubles, resets; and irregular samples onto a uniform clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int, Shaped
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.paged import LONG, empty, extremes, ranges
from dynid.motion.table import Record

JUMP_STEPS = 10.0  # a step so many times the median is a clock jump, for any cutoff
_SLOWEST, _FASTEST = 1.0, 1e5  # Hz
# Largest median step in the file's unit for which the unit is assumed: each range covers 20 Hz to 20 kHz,
# seconds down to 2 Hz, nanoseconds down to 1 Hz.
_UNIT_SPANS = (("s", 0.5, 1.0), ("ms", 50.0, 1e-3), ("us", 5e4, 1e-6), ("ns", 1e9, 1e-9))
_EPOCH = 1e8  # s; later than this is a date, not a duration
# Stamps per second of a date, by unit. Dates are those of the years 2001 to 2103, counted from 1970.
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DATES = (10**9, 4.2 * 10**9)  # s
_MOST_UNSORTED = 0.01
_NEAR_TURN = 0.3  # rad
METHOD = "positions and velocities by cubic spline, efforts linearly"


@dataclass(frozen=True)
class Clock:
    """Properties of the time steps inside the segments.

    Attributes:
        dt: Step of the uniform clock, in [s].
        uniform: Whether the samples are already on that clock (except rounding of t).
        lost: Samples missing on the uniform clock.
        shortest, longest: Steps found, in [s].
        jitter: 95 % of the steps differ from dt by less than this, in steps.
    """

    dt: float
    uniform: bool
    lost: int
    shortest: float
    longest: float
    jitter: float


def median_step(record: Record) -> float:
    """Median of the forward steps inside the runs, in the unit of t."""
    # Of a long log some ranges are enough.
    n, forward = len(record.t), list[Array]()
    every = max(1, n // (4 * LONG))
    for k, (a, b) in enumerate(ranges(n - 1)):
        if k % every == 0 or not forward:
            steps = np.diff(record.t[a : b + 1])
            ahead = steps[(steps > 0.0) & ~record.breaks[a + 1 : b + 1]]
            forward += [ahead] if len(ahead) else []
    if not forward:
        raise InputError(
            "time never increases", file=record.file, place="column t", remedy="check the time column"
        )
    return float(np.median(np.concatenate(forward), overwrite_input=True))


def in_seconds(record: Record, unit_given: bool) -> tuple[Record, float, dict[str, str]]:
    """Time in seconds, its median step, and what was decided.

    The unit is inferred from the median step unless it was given.
    """
    step = median_step(record)
    unit, factor = "s", 1.0
    if not unit_given:
        unit, _, factor = next((span for span in _UNIT_SPANS if step <= span[1]), _UNIT_SPANS[-1])
    rate = 1.0 / (step * factor)
    if not _SLOWEST <= rate <= _FASTEST:
        raise InputError(
            f"the median step {step:g} means {rate:g} samples per second, outside {_SLOWEST:g} Hz to 100 kHz",
            file=record.file,
            place="column t",
            remedy="give the unit of time: columns: {t: {name: t, unit: ms}}",
        )
    choices = {}
    if unit != "s":
        choices["time unit"] = f"{unit}, inferred from the median step {step:g} ({rate:g} Hz)"
        record = replace(record, t=record.t * factor)
    if abs(record.t[0]) > _EPOCH:
        choices["time origin"] = f"{record.t[0]:.6f} s subtracted"
        record = replace(record, t=record.t - record.t[0])
    return record, median_step(record) if choices else step, choices


def dates_in_seconds(t: Shaped[Array, "n"]) -> tuple[Float[Array, "n"], dict[str, str]] | None:
    """Stamps counted from 1970 in seconds from the first one, and what was decided; None: no such stamps.

    The size of the first stamp gives the unit, if the rate is possible with it: counters of a controller may
    have such a size, too. Integers are subtracted before they become floats.
    """
    finite = np.isfinite(t) if t.dtype.kind == "f" else np.ones(len(t), dtype=bool)
    if not finite.any():
        return None
    first = t[np.flatnonzero(finite)[0]]
    for unit, count in _PER_SECOND.items():
        if not _DATES[0] <= first / count <= _DATES[1]:
            continue
        seconds = np.asarray((t - first) / count, dtype=float)
        steps = np.diff(seconds[finite])
        forward = steps[steps > 0.0]
        if len(forward) and _SLOWEST <= 1.0 / float(np.median(forward)) <= _FASTEST:
            words = f"{unit} since 1970, by the size of the first stamp {first}"
            return seconds, {"time unit": words, "time origin": f"{first / count:.6f} s subtracted"}
    return None


def may_be_dates(t: Shaped[Array, "n"] | None) -> bool:
    """Whether the first stamp has the size of a date, or there is none among these."""
    finite = np.zeros(0) if t is None else t[np.isfinite(t)]
    if not len(finite):
        return t is not None
    return any(_DATES[0] <= finite[0] / count <= _DATES[1] for count in _PER_SECOND.values())


def in_order(record: Record, step: float) -> tuple[Record, list[Notice]]:
    """Resets and jumps back become breaks; a few samples out of order are sorted; duplicates are removed."""
    notices: list[Notice] = []
    resets = _where(record, lambda steps: steps < -JUMP_STEPS * step)
    if len(resets):
        breaks = record.breaks.copy()
        breaks[resets + 1] = True
        record = replace(record, breaks=breaks)
        notices.append(notice("clock-reset", count=len(resets), first=float(record.t[resets[0]])))
    unsorted = _where(record, lambda steps: steps < 0.0)
    if len(unsorted):
        record = _sorted(record, unsorted)
        notices.append(notice("time-unsorted", count=len(unsorted)))
    return _without_doubles(record, notices), notices


def _where(record: Record, test: Callable[[Float[Array, "k"]], Bool[Array, "k"]]) -> Int[Array, "j"]:
    """Samples from which the step to the next one, inside a run, passes a test."""
    places = [np.zeros(0, dtype=int)]
    for a, b in ranges(len(record.t) - 1):
        steps = np.diff(record.t[a : b + 1])
        places.append(a + np.flatnonzero(test(steps) & ~record.breaks[a + 1 : b + 1]))
    return np.concatenate(places)


def _sorted(record: Record, unsorted: Int[Array, "k"]) -> Record:
    share = len(unsorted) / (len(record.t) - 1)
    if share >= _MOST_UNSORTED:
        raise InputError(
            f"{100 * share:.2g} % of the time stamps are out of order (at most 1 % are sorted)",
            file=record.file,
            place=f"column t, first after sample {int(unsorted[0]) + 1}",
            remedy="sort the log by time, or check that t is the correct column",
        )
    order = np.lexsort((np.arange(len(record.t)), record.t, np.cumsum(record.breaks)))
    return record.rows(order)


def _without_doubles(record: Record, notices: list[Notice]) -> Record:
    """Drop samples that repeat the previous one; refuse two different samples at the same time."""
    double = _where(record, lambda steps: steps == 0.0) + 1
    if len(double) == 0:
        return record
    equal = np.ones(len(double), dtype=bool)
    for signal in record.signals():
        now, before = signal[double], signal[double - 1]
        equal &= np.all((now == before) | (np.isnan(now) & np.isnan(before)), axis=1)
    if not equal.all():
        at = int(double[~equal][0])
        raise InputError(
            f"{int((~equal).sum())} times occur twice with different values (first t = {record.t[at]:g})",
            file=record.file,
            place=f"samples {at} and {at + 1}",
            remedy="write time with more digits, or remove the wrong rows",
        )
    notices.append(notice("time-doubled", count=len(double)))
    keep = np.ones(len(record.t), dtype=bool)
    keep[double] = False
    return record.rows(np.flatnonzero(keep))


def understand(t: Float[Array, "n"], segments: Int[Array, "s 2"], step: float) -> Clock:
    """Fit one uniform clock to the steps inside the segments.

    The clock is uniform when every step is a whole number of dt within 1 % of dt or the
    resolution with which t was written, whichever is larger.
    """
    inside = empty(len(t) - 1, bool)
    inside[:] = False
    for start, stop in segments:
        inside[start : stop - 1] = True
    total = whole = 0.0
    shortest, longest, number = np.inf, -np.inf, 0
    for steps, counts in _steps(t, inside, step):
        total, whole, number = total + float(steps.sum()), whole + float(counts.sum()), number + len(steps)
        shortest = float(np.min(steps, initial=shortest))
        longest = float(np.max(steps, initial=longest))
    dt = total / whole
    off = max(float(np.max(np.abs(s - k * dt), initial=0.0)) for s, k in _steps(t, inside, step))
    uniform = off <= max(0.01 * dt, _resolution(t, dt))
    if not uniform:
        dt = total / number
    thin = max(1, number // (4 * LONG))
    # Thinned before they are computed: a part of an array would keep the whole one in memory.
    thinned = ((s[::thin], k[::thin]) for s, k in _steps(t, inside, step))
    apart = [np.abs(s - (k if uniform else 1.0) * dt) for s, k in thinned]
    jitter = float(np.quantile(np.concatenate(apart), 0.95)) / dt
    return Clock(dt, uniform, int(whole - number) if uniform else 0, shortest, longest, jitter)


def _steps(
    t: Float[Array, "n"], inside: Bool[Array, "k"], step: float
) -> Iterator[tuple[Float[Array, "j"], Float[Array, "j"]]]:
    """Steps inside the segments, and how many of the length `step` each is, range by range."""
    for a, b in ranges(len(t) - 1):
        steps = np.diff(t[a : b + 1])[inside[a:b]]
        yield steps, np.maximum(np.rint(steps / step), 1.0)


def _resolution(t: Float[Array, "n"], dt: float) -> float:
    """Last decimal with which t was written, or the spacing of float32; at most a fifth of a step."""
    sample = t[: 2000 if len(t) > 2000 else len(t)]
    resolution = 0.0
    with np.errstate(over="ignore"):
        single = sample.astype(np.float32).astype(float)
    if np.array_equal(sample, single):
        resolution = float(np.spacing(np.float32(max(abs(float(t.min())), abs(float(t.max()))))))
    for decimals in range(1, 9):
        scaled = sample * 10.0**decimals
        if np.max(np.abs(scaled - np.rint(scaled))) < 1e-9 * max(1.0, float(np.max(np.abs(scaled)))):
            resolution = max(resolution, 10.0**-decimals)
            break
    return resolution if resolution <= 0.2 * dt else 0.0


def resample(record: Record, segments: Int[Array, "s 2"], dt: float) -> tuple[Record, Int[Array, "s 2"]]:
    """The segments on uniform clocks of step `dt` [s], each beginning at its first sample.

    Positions and velocities are smooth, so a cubic spline loses nothing below a fifth of the
    sampling rate; efforts have noise that a spline would amplify, so they are interpolated linearly.
    """
    pieces = []
    bounds = []
    begin = 0
    for start, stop in segments:
        t = record.t[start:stop]
        count = int(np.floor((t[-1] - t[0]) / dt + 1e-6)) + 1
        grid = np.minimum(t[0] + dt * np.arange(count), t[-1])
        pieces.append(_piece(record, int(start), int(stop), grid))
        bounds.append((begin, begin + count))
        begin += count
    joined = pieces[0] if len(pieces) == 1 else _joined(pieces)
    breaks = np.zeros(begin, dtype=bool)
    breaks[[start for start, _ in bounds]] = True
    return replace(joined, breaks=breaks), np.array(bounds)


def continuous(
    record: Record, segments: Int[Array, "s 2"], angles: Bool[Array, "m"], quaternions: Sequence[int]
) -> tuple[Record, list[Notice]]:
    """Angles without jumps of a full turn, quaternions without changes of sign.

    A quaternion and its negative are the same attitude, and an angle is the same after a full turn.
    But a filter across such a jump would create false motion.
    """
    if record.q_ref is not None:
        asked, _ = continuous(replace(record, q=record.q_ref, q_ref=None), segments, angles, quaternions)
        record = replace(record, q_ref=asked.q)
    q = record.q
    low, high, _ = extremes(q)
    # Only angles that cover a full turn can jump by it.
    angles = angles & (high - low > 2 * np.pi - _NEAR_TURN)
    turned, flips = np.zeros(len(angles), dtype=bool), False
    for a, b in ranges(len(q) - 1 if angles.any() or quaternions else 0):
        part = q[a : b + 1]
        turned |= angles & _turns(part).any(axis=0)
        for w in quaternions:
            flips |= bool(np.any(np.sum(part[1:, w : w + 4] * part[:-1, w : w + 4], axis=1) < 0.0))
    if not turned.any() and not flips:
        return record, []
    q = q.copy()
    for start, stop in segments:
        q[start:stop, turned] = _unwrap(q[start:stop, turned])
        for w in quaternions:
            part = q[start:stop, w : w + 4]
            signs = np.where(np.sum(part[1:] * part[:-1], axis=1) < 0.0, -1.0, 1.0)
            part[1:] *= np.cumprod(signs)[:, None]
    notices = []
    if turned.any():
        notices.append(notice("angle-wrapped", count=int(turned.sum())))
    return replace(record, q=q), notices


def _unwrap(q: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Remove steps that are nearly a full turn; no joint moves so far in one sample."""
    q[1:] -= 2 * np.pi * np.cumsum(np.where(_turns(q), np.sign(np.diff(q, axis=0)), 0.0), axis=0)
    return q


def _turns(q: Float[Array, "n k"]) -> Bool[Array, "n1 k"]:
    """Steps that are a full turn."""
    return np.asarray(np.abs(np.abs(np.diff(q, axis=0)) - 2 * np.pi) < _NEAR_TURN)


def _piece(record: Record, start: int, stop: int, grid: Float[Array, "k"]) -> Record:
    t = record.t[start:stop]

    def smooth(x: Float[Array, "n m"] | None) -> Float[Array, "k m"] | None:
        return None if x is None else cubic(t, x[start:stop], grid)

    q = smooth(record.q)
    if q is None:  # never: a record has positions
        raise AssertionError
    tau = np.column_stack(
        [np.interp(grid, t, record.tau[start:stop, i]) for i in range(record.tau.shape[1])]
        or [np.zeros((len(grid), 0))]
    )
    breaks = np.zeros(len(grid), dtype=bool)
    dq, ddq, q_ref = smooth(record.dq), smooth(record.ddq), smooth(record.q_ref)
    return replace(record, t=grid, q=q, dq=dq, ddq=ddq, tau=tau, breaks=breaks, q_ref=q_ref)


def cubic(t: Float[Array, "n"], x: Float[Array, "n m"], at: Float[Array, "k"]) -> Float[Array, "k m"]:
    """Cubic spline through samples, one cubic over the first and the last three of them.

    The same as that of SciPy's `interpolate`, which takes a second to import. From continuous slopes follow
    the second derivatives M at the samples, with the steps h and the slopes d between them:

        h_i-1 M_i-1 + 2 (h_i-1 + h_i) M_i + h_i M_i+1 = 6 (d_i - d_i-1)

    Args:
        t: Instants, shape (n,), at least four, in [s].
        x: Samples, shape (n, m).
        at: Instants between the first and the last, shape (k,), in [s].
    """
    from scipy.linalg import solve_banded

    h = np.diff(t)
    d = np.diff(x, axis=0) / h[:, None]
    bands = np.zeros((3, len(t) - 2))
    bands[0, 1:], bands[1], bands[2, :-1] = h[1:-1], 2.0 * (h[1:] + h[:-1]), h[1:-1]
    # M_0 and M_n-1 follow from equal third derivatives on both sides of the second and the last but one.
    bands[1, 0] += h[0] * (h[0] + h[1]) / h[1]
    bands[0, 1] -= h[0] ** 2 / h[1]
    bands[1, -1] += h[-1] * (h[-1] + h[-2]) / h[-2]
    bands[2, -2] -= h[-1] ** 2 / h[-2]
    M = np.zeros_like(x, dtype=float)
    M[1:-1] = solve_banded((1, 1), bands, 6.0 * np.diff(d, axis=0))
    M[0] = M[1] + (M[1] - M[2]) * (h[0] / h[1])
    M[-1] = M[-2] + (M[-2] - M[-3]) * (h[-1] / h[-2])
    i = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    s, step = (at - t[i])[:, None], h[i, None]
    slope = d[i] - step * (2.0 * M[i] + M[i + 1]) / 6.0
    return np.asarray(x[i] + s * (slope + s * (0.5 * M[i] + s * (M[i + 1] - M[i]) / (6.0 * step))))


def _joined(pieces: list[Record]) -> Record:
    first = pieces[0]
    return replace(
        first,
        t=np.concatenate([piece.t for piece in pieces]),
        q=np.concatenate([piece.q for piece in pieces]),
        dq=None if first.dq is None else np.concatenate([p.dq for p in pieces if p.dq is not None]),
        ddq=None if first.ddq is None else np.concatenate([p.ddq for p in pieces if p.ddq is not None]),
        q_ref=None
        if first.q_ref is None
        else np.concatenate([p.q_ref for p in pieces if p.q_ref is not None]),
        tau=np.concatenate([piece.tau for piece in pieces]),
        breaks=np.concatenate([piece.breaks for piece in pieces]),
    )
