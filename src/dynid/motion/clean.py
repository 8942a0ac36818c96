"""From a raw record to uniform segments: bad samples, gaps, jitter; everything is counted and reported.

Columns that are late or early, brought to the time of the others: x(t) = logged(t + delay).

Parts of a log that are used: a window of time, without excluded intervals, some of its runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.paged import flags, ranges
from dynid.motion.clock import (
    JUMP_STEPS,
    METHOD,
    Clock,
    continuous,
    cubic,
    in_order,
    in_seconds,
    median_step,
    resample,
    understand,
)
from dynid.motion.faults import signal_faults
from dynid.motion.log import Log
from dynid.motion.lost import bridged
from dynid.motion.settings import ColumnMap, LogEntry
from dynid.motion.slots import Slot
from dynid.motion.spectrum import cutoff_of, middles, spectrum_of_runs
from dynid.motion.table import Record, any_finite

MIN_SEGMENT = 16  # samples; less cannot be filtered or differentiated
_BLIND_STEPS = 5.0  # without a known cutoff, a gap longer than so many steps splits the log
_MOST_JITTER = 0.2
_ROUNDED = 0.005  # of a step: time stamps are rounded


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A record on a uniform clock, its segments, and the changes made to it."""

    record: Record
    segments: tuple[tuple[int, int], ...]
    dt: float
    valid: Bool[Array, "n"]
    notices: tuple[Notice, ...]
    choices: dict[str, str]


def clean(
    record: Record,
    *,
    angles: Bool[Array, "m"],
    quaternions: tuple[int, ...] = (),
    cutoff: float | None = None,
    time_unit_given: bool = False,
) -> Cleaned:
    """Order the clock, split at bad samples and gaps, and resample where the clock is irregular.

    Args:
        record: Samples in file order, SI but for t.
        angles: Which positions are angles that may jump by a full turn, shape (m,).
        quaternions: Columns of q at which a quaternion begins.
        cutoff: Low-pass the coordinates will get, in [Hz]: decides how long a gap may be.
        time_unit_given: Whether t is known to be in seconds.
    """
    notices: list[Notice] = []
    record = _timed(record, notices)
    record, step, choices = in_seconds(record, time_unit_given)
    record, added = in_order(record, step)
    notices += added
    step = median_step(record) if added else step
    faults = signal_faults(record, *_names(record, quaternions), step)
    notices += faults.notices
    good, usable = faults.good, faults.usable
    missing = _not_finite(record)
    record = faults.record
    lost = _not_finite(record)
    usable[missing] = False
    doubtful = record.t[_places(~usable[a:b] for a, b in ranges(len(good)))]
    limit = _hole_limit(record, good, lost, step, cutoff)
    if len(missing):
        first = float(record.t[missing[0]])
        notices.append(notice("not-finite", count=len(missing), first=first, limit=1e3 * limit))
    good[lost] = False
    record, filled = bridged(record, good, lost, limit + _ROUNDED * step, angles, quaternions)
    good[filled] = True
    segments = _split(record, good, step, max(min(limit, JUMP_STEPS * step), 1.5 * step), notices)
    record, added = continuous(record, segments, angles, quaternions)
    notices += added
    clock = understand(record.t, segments, step)
    choices["clock"] = _words(clock)
    notices += _clock_notices(clock)
    if not clock.uniform or clock.lost:
        record, segments = resample(record, segments, clock.dt)
    valid = flags(len(record.t), False)
    for start, stop in segments:
        valid[start:stop] = True
    for a, b in ranges(len(valid) if len(doubtful) else 0):
        valid[a:b] &= _away(record.t[a:b], doubtful, 0.75 * clock.dt)
    pieces = tuple((int(start), int(stop)) for start, stop in segments)
    return Cleaned(record, pieces, clock.dt, valid, tuple(notices), choices)


def _names(record: Record, quaternions: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Columns as a log names them; entries of quaternions, which are not coordinates, have no name."""
    turned = {start + i for start in quaternions for i in range(4)}
    positions = ["" if i in turned else f"q_{i + 1}" for i in range(record.q.shape[1])]
    return positions, [f"tau_{i + 1}" for i in range(record.tau.shape[1])]


def _away(t: Float[Array, "n"], doubtful: Float[Array, "d"], distance: float) -> Bool[Array, "n"]:
    """Samples further from every doubtful time than a distance in [s]."""
    after = np.clip(np.searchsorted(doubtful, t), 1, len(doubtful) - 1) if len(doubtful) > 1 else 0
    near = np.abs(t - doubtful[after])
    if len(doubtful) > 1:
        near = np.minimum(near, np.abs(t - doubtful[after - 1]))
    return np.asarray(near > distance)


def _timed(record: Record, notices: list[Notice]) -> Record:
    """Rows that have a time."""
    untimed = _places(~np.isfinite(record.t[a:b]) for a, b in ranges(len(record.t)))
    count = len(record.t) - len(untimed)
    if not len(untimed) and count >= MIN_SEGMENT:
        return record
    if count < MIN_SEGMENT:
        raise InputError(
            f"number of samples that have a time: {count}; at least {MIN_SEGMENT} are needed",
            file=record.file,
            place="column t",
            remedy="record a longer log: at least a few seconds with every joint moving",
        )
    notices.append(notice("time-missing", count=len(untimed)))
    return record.rows(np.delete(np.arange(len(record.t)), untimed))


def _places(parts: Iterable[Bool[Array, "k"]]) -> Int[Array, "j"]:
    """Where consecutive parts of a long array of flags are set: few places instead of many flags."""
    places, start = [np.zeros(0, dtype=int)], 0
    for part in parts:
        places.append(start + np.flatnonzero(part))
        start += len(part)
    return np.concatenate(places)


def _not_finite(record: Record) -> Int[Array, "k"]:
    """Samples with a recorded value that is not finite; columns that are absent do not count."""
    known = [(signal, any_finite(signal)) for signal in record.signals()]

    def part(a: int, b: int) -> Bool[Array, "k"]:
        bad = np.zeros(b - a, dtype=bool)
        for signal, present in known:
            with np.errstate(invalid="ignore"):  # of both infinities
                total = np.sum(signal[a:b])
            if not np.isfinite(total):  # it is finite if all values are
                bad |= ~np.all(np.isfinite(signal[a:b]) | ~present, axis=1)
        return bad

    return _places(part(a, b) for a, b in ranges(len(record.t)))


def _split(
    record: Record, good: Bool[Array, "n"], step: float, limit: float, notices: list[Notice]
) -> Int[Array, "s 2"]:
    """Ranges of good samples between runs, bad samples and gaps longer than `limit` [s]."""
    gaps = _longer(record, good, limit + _ROUNDED * step)
    if len(gaps):
        longest = float(np.max(record.t[gaps + 1] - record.t[gaps]))
        jump = "; steps longer than 10 median steps may be clock jumps" if longest > JUMP_STEPS * step else ""
        notices.append(notice("gap", count=len(gaps), limit=1e3 * limit, longest=1e3 * longest, jump=jump))
    segments = _runs(record.breaks, good, gaps)
    long_enough = segments[:, 1] - segments[:, 0] >= MIN_SEGMENT
    if not long_enough.any():
        raise InputError(
            f"no part of the log has {MIN_SEGMENT} consecutive valid samples",
            file=record.file,
            remedy="check for NaN, gaps, and a `segment` column that changes at every row",
        )
    if not long_enough.all():
        notices.append(notice("short-segments", count=int((~long_enough).sum()), least=MIN_SEGMENT))
    return segments[long_enough]


def _longer(record: Record, good: Bool[Array, "n"], limit: float) -> Int[Array, "j"]:
    """Samples from which the step to the next one is longer than `limit` [s], both good and in one run."""

    def part(a: int, b: int) -> Bool[Array, "k"]:
        ordinary = good[a + 1 : b + 1] & good[a:b] & ~record.breaks[a + 1 : b + 1]
        return np.asarray(ordinary & (np.diff(record.t[a : b + 1]) > limit))

    return _places(part(a, b) for a, b in ranges(len(good) - 1))


def _runs(breaks: Bool[Array, "n"], good: Bool[Array, "n"], gaps: Int[Array, "k"]) -> Int[Array, "s 2"]:
    """Ranges of good samples that breaks, bad samples and the steps after `gaps` leave."""
    changes = (breaks[a + 1 : b + 1] | (good[a + 1 : b + 1] != good[a:b]) for a, b in ranges(len(good) - 1))
    starts = np.unique(np.concatenate([[0], _places(changes) + 1, gaps + 1]))
    stops = np.append(starts[1:], len(breaks))
    return np.asarray(np.column_stack([starts, stops])[good[starts]])


def _hole_limit(
    record: Record, good: Bool[Array, "n"], lost: Int[Array, "k"], step: float, cutoff: float | None
) -> float:
    """Longest time without a sample that is interpolated, in [s]: a quarter period of the cutoff.

    Without a cutoff, and with 5 lost samples in a row, or steps between 5 and 10 medians, to decide on, the
    cutoff is the one the data would choose on the pieces between jumps, whose holes a spline closes.

    Args:
        record: In order of time.
        good: Samples whose positions are not frozen, shape (n,).
        lost: Samples that lack a value, in order.
        step: Median time step in [s].
        cutoff: Low-pass the coordinates will get, in [Hz].
    """
    jumps = _longer(record, good, JUMP_STEPS * step)
    most = round(_BLIND_STEPS)
    many = len(_longer(record, good, _BLIND_STEPS * step)) > len(jumps)
    many = many or bool(np.any(lost[most - 1 :] - lost[: len(lost) - most + 1] == most - 1))
    if cutoff is None and many:
        pieces = [(a, b) for a, b in _runs(record.breaks, good, jumps).tolist() if b - a >= 8 * MIN_SEGMENT]
        if pieces:
            used = (np.arange(part.start, part.stop) for part in middles(pieces, step))
            parts = [record.rows(np.setdiff1d(rows, lost, assume_unique=True)) for rows in used]
            parts = [part for part in parts if len(part.t) >= MIN_SEGMENT]
            grids = [resample(part, np.array([[0, len(part.t)]]), step)[0].q for part in parts]
            cutoff = cutoff_of([spectrum_of_runs(grids, step)], step) if grids else None
    return _BLIND_STEPS * step if cutoff is None else max(0.25 / cutoff, 1.5 * step)


def _words(clock: Clock) -> str:
    rate = f"{1.0 / clock.dt:.6g} Hz"
    if clock.uniform and not clock.lost:
        return f"uniform, {rate}"
    if clock.uniform:
        return f"uniform, {rate}, {clock.lost} lost samples filled ({METHOD})"
    spread = f"steps {1e3 * clock.shortest:.4g} to {1e3 * clock.longest:.4g} ms"
    return f"irregular ({spread}); resampled to the mean step {1e3 * clock.dt:.5g} ms, {rate}: {METHOD}"


def _clock_notices(clock: Clock) -> list[Notice]:
    if clock.uniform and not clock.lost:
        return []
    if clock.uniform:
        return [notice("samples-filled", count=clock.lost)]
    if clock.jitter <= _MOST_JITTER:
        return []
    return [notice("clock-jitter", percent=100 * clock.jitter)]


_SHIFTED = ("q", "dq", "ddq", "q_ref", "tau")
_WHOLE = 1e-6  # of a step: a delay this close to whole samples is whole


def aligned(
    cleaned: Cleaned, known: Sequence[Slot], chosen: Mapping[str, ColumnMap], quaternions: Sequence[int]
) -> Cleaned:
    """The recording with its delayed columns interpolated by a cubic spline; samples without a value are cut.

    Args:
        cleaned: On a uniform clock.
        known: Every quantity of the robot.
        chosen: Its columns by key, with their delays.
        quaternions: Columns of q at which a quaternion begins.
    """
    late = [slot for slot in known if slot.key in chosen and chosen[slot.key].delay != 0.0]
    if not late:
        return cleaned
    turned = {start + k for start in quaternions for k in range(4)}
    for slot in late:
        if slot.quantity not in _SHIFTED or (slot.quantity != "tau" and slot.index in turned):
            raise InputError(
                f"a delay of {slot.label} is not supported",
                place=f"columns.{slot.key}.delay",
                remedy="give delays of positions, rates, references and efforts of joints",
            )
    delays = {slot: chosen[slot.key].delay for slot in late}
    segments = _within(cleaned, delays.values())
    record = cleaned.record
    signals = {name: getattr(record, name) for name in dict.fromkeys(slot.quantity for slot in late)}
    signals = {name: x.copy() for name, x in signals.items() if x is not None}
    for slot, delay in delays.items():
        for start, stop in cleaned.segments if slot.quantity in signals else ():
            t, x = record.t[start:stop], signals[slot.quantity][start:stop]
            at = np.clip(t + delay, t[0], t[-1])
            x[:, slot.index] = cubic(t, x[:, slot.index, None], at)[:, 0]
    words = ", ".join(f"{slot.key} {1e3 * delay:.4g} ms" for slot, delay in delays.items())
    return replace(
        cleaned,
        record=replace(record, **signals),
        segments=segments,
        valid=_usable(cleaned, segments, {delay / cleaned.dt for delay in delays.values()}),
        choices={**cleaned.choices, "delays removed": f"{words} (cubic spline)"},
    )


def _within(cleaned: Cleaned, delays: Collection[float]) -> tuple[tuple[int, int], ...]:
    """Segments without the samples for which a delayed column has no value."""
    steps = np.array([*delays]) / cleaned.dt
    first = int(np.ceil(max(0.0, -steps.min()) - _WHOLE))
    last = int(np.ceil(max(0.0, steps.max()) - _WHOLE))
    cut = tuple((start + first, stop - last) for start, stop in cleaned.segments)
    kept = tuple((start, stop) for start, stop in cut if stop - start >= MIN_SEGMENT)
    if not kept:
        raise InputError(
            f"no run is longer than the delays ({1e3 * cleaned.dt * np.abs(steps).max():.4g} ms)",
            file=cleaned.record.file,
            place="columns",
            remedy="give delays in s",
        )
    return kept


def _usable(cleaned: Cleaned, segments: Sequence[tuple[int, int]], steps: set[float]) -> Bool[Array, "n"]:
    """Samples that may be used and whose delayed columns are made of such samples."""
    usable = np.zeros(len(cleaned.valid), dtype=bool)
    for start, stop in segments:
        usable[start:stop] = cleaned.valid[start:stop]
        for step in steps:
            for shift in {int(np.floor(step + _WHOLE)), int(np.ceil(step - _WHOLE))}:
                usable[start:stop] &= cleaned.valid[start + shift : stop + shift]
    return usable


def windowed(log: Log, entry: LogEntry) -> Log:
    """The log with only the samples that its entry asks for; its runs keep their order.

    Args:
        log: As read from the file.
        entry: `start`, `stop` and `exclude` in [s] of the log's own time; `runs` numbered from 1.
    """
    if not {"from", "to", "exclude", "runs"} & set(entry.tree()):
        return log
    inside = (log.t >= (-np.inf if entry.start is None else entry.start)) & (
        log.t <= (np.inf if entry.stop is None else entry.stop)
    )
    for start, stop in entry.exclude:
        inside &= (log.t < start) | (log.t > stop)
    segments = tuple(
        piece for segment in _chosen_runs(log, entry) for piece in _pieces(segment, inside[slice(*segment)])
    )
    if not segments:
        raise InputError(
            f"no sample is left: the log lasts from {log.t[0]:g} to {log.t[-1]:g} s",
            file=log.file,
            place="logs",
            remedy="check `from`, `to`, `exclude` and `runs`",
        )
    valid = np.zeros(len(log.t), dtype=bool)
    for start, stop in segments:
        valid[start:stop] = log.valid[start:stop]
    return replace(log, segments=segments, valid=valid)


def _chosen_runs(log: Log, entry: LogEntry) -> tuple[tuple[int, int], ...]:
    if entry.runs is None:
        return log.segments
    count = len(log.segments)
    for run in entry.runs:
        if not 1 <= run <= count:
            raise InputError(
                f"run {run} does not exist; the log has {count}",
                file=log.file,
                place="logs",
                remedy=f"use numbers from 1 to {count}",
            )
    return tuple(log.segments[run - 1] for run in sorted(set(entry.runs)))


def _pieces(segment: tuple[int, int], inside: Bool[Array, "n"]) -> list[tuple[int, int]]:
    """Contiguous ranges of a segment that are inside, at least two samples long."""
    changes = _places(inside[a + 1 : b + 1] != inside[a:b] for a, b in ranges(len(inside) - 1)) + 1
    ends = [0] * bool(inside[0]), [len(inside)] * bool(inside[-1])
    edges = np.concatenate([ends[0], changes, ends[1]]).astype(int).reshape(-1, 2) + segment[0]
    return [(start, stop) for start, stop in edges.tolist() if stop - start > 1]
