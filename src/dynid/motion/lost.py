"""Lost samples: NaN, spikes, and positions that repeat an old value or zero until the next one arrives.

What is lost for less than a quarter period of the motion follows from the samples around it: the clock of a
log goes on. A polynomial through the samples before and after, over three lengths of the hole, fills it; its
equations are not used. Where more is lost, the log is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.paged import empty, parts, ranges
from dynid.motion.clock import continuous
from dynid.motion.fault_scan import Facts, limits, runs
from dynid.motion.table import Record

_AROUND = 5  # samples on either side of a hole, from which it is filled; as many as it has, if it is longer
_DEGREE = 5
_FEWEST = 4  # samples that a hole is filled from


def held(record: Record, known: Sequence[Facts], least: float, longest: int) -> list[Int[Array, "k"]]:
    """Positions that repeat one value although the samples before and after say that the joint moves on.

    A joint may rest: then it stops and starts without a step, and its neighbours lead to where it stays.

    Args:
        record: In order of time.
        known: Of the coordinates to search.
        least: Smallest relevant error, relative to the range of a signal.
        longest: Samples in a row; more are a frozen sensor.
    """
    q, found = record.q, [list[Int[Array, "k"]]() for _ in known]
    if len(q) < 4 * _AROUND:
        return [np.zeros(0, int) for _ in known]
    for part in parts(q, longest + 2):
        for places, signal in zip(found, known, strict=True):
            limit = limits(signal, least)[0]
            for a, b in _stopped(part.rows[signal.column], limit, longest):
                first, stop = part.first + a, part.first + b
                if not part.start <= first < part.stop or record.breaks[first : stop + 1].any():
                    continue
                near = _near(record.breaks, first, stop)
                near = near[np.isfinite(q[near, signal.column])]
                if len(near) < _FEWEST or near[0] > first or near[-1] < stop:
                    continue
                at = record.t[first:stop]
                guess = _curve(record.t[near], q[near, signal.column, None], at)[:, 0]
                if np.max(np.abs(guess - q[first, signal.column])) > limit:
                    places.append(np.arange(first, stop))
    none = np.zeros(0, int)
    rows = np.unique(np.concatenate([none, *(at for places in found for at in places)]))
    # Rows are lost as a whole: what repeats its value there is old too, even if it moves slowly.
    old = [rows[q[rows, signal.column] == q[rows - 1, signal.column]] for signal in known]
    return [np.unique(np.concatenate([at, *places])) for at, places in zip(old, found, strict=True)]


def _stopped(x: Float[Array, "n"], limit: float, longest: int) -> list[tuple[int, int]]:
    """Ranges of less than `longest` equal samples that begin or end with a step larger than `limit`.

    A value that comes without a step is the true one, and is repeated then: it is not part of its range.
    """
    ends = np.array(runs(x[1:] == x[:-1]), dtype=int).reshape(-1, 2) + np.array([0, 1])
    ends = ends[(ends[:, 0] > 0) & (ends[:, 1] < len(x)) & (ends[:, 1] - ends[:, 0] < longest)]
    enters = np.abs(x[ends[:, 0]] - x[ends[:, 0] - 1]) > limit
    leaves = np.abs(x[ends[:, 1]] - x[ends[:, 1] - 1]) > limit
    inside = np.column_stack([ends[:, 0] + ~enters, ends[:, 1] - ~leaves])[enters | leaves]
    return [(int(a), int(b)) for a, b in inside]


def bridged(
    record: Record,
    good: Bool[Array, "n"],
    lost: Int[Array, "k"],
    limit: float,
    angles: Bool[Array, "m"],
    quaternions: Sequence[int],
) -> tuple[Record, Int[Array, "j"]]:
    """The record with values where samples are lost for at most `limit` [s], and these samples.

    Args:
        record: With NaN where a value is lost.
        good: Samples with all their values, that are not frozen, shape (n,).
        lost: Samples that lack a value, in order.
        limit: Longest time between the samples around a hole, in [s].
        angles: Which positions are angles that may jump by a full turn, shape (m,).
        quaternions: Columns of q at which a quaternion begins.
    """
    signals = {"q": record.q, "dq": record.dq, "ddq": record.ddq, "q_ref": record.q_ref, "tau": record.tau}
    known = {name: x for name, x in signals.items() if x is not None and x.shape[1]}
    copies: dict[str, Any] = {}
    filled = [np.zeros(0, int)]
    for a, b in _holes(record.breaks, lost):
        near = _near(record.breaks, a, b)
        near = near[good[near]]
        inside = len(near) >= _FEWEST and near[0] < a and near[-1] >= b
        if not inside or not good[a - 1] or not good[b] or record.t[b] - record.t[a - 1] > limit:
            continue
        t, around = record.t[near], {name: x[near] for name, x in known.items()}
        part = Record(t, around["q"], None, None, t[:, None], t < t[0], q_ref=around.get("q_ref"))
        part, _ = continuous(part, np.array([[0, len(t)]]), angles, quaternions)
        if np.any(np.abs(np.diff(part.q[:, angles], axis=0)) > np.pi):
            continue
        around |= {name: x for name, x in (("q", part.q), ("q_ref", part.q_ref)) if x is not None}
        for name, x in known.items():
            bad = ~np.isfinite(x[a:b]) & np.isfinite(x[b])
            if bad.any():
                if name not in copies:
                    copies[name] = _copy(x)
                new = (_line if name == "tau" else _curve)(t, around[name], record.t[a:b])
                copies[name][a:b] = np.where(bad, new, x[a:b])
        filled.append(np.arange(a, b))
    return replace(record, **copies), np.concatenate(filled)


def _copy(x: Float[Array, "n m"]) -> Float[Array, "n m"]:
    copied = empty(x.shape)
    for a, b in ranges(len(x)):
        copied[a:b] = x[a:b]
    return copied


def _holes(breaks: Bool[Array, "n"], lost: Int[Array, "k"]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive lost samples of one run."""
    if not len(lost):
        return
    apart = 1 + np.flatnonzero((np.diff(lost) > 1) | breaks[lost[1:]])
    for hole in np.split(lost, apart):
        yield int(hole[0]), int(hole[-1]) + 1


def _near(breaks: Bool[Array, "n"], a: int, b: int) -> Int[Array, "k"]:
    """Samples of the same run before and after samples a to b."""
    reach = max(_AROUND, b - a)
    first, stop = max(0, a - reach), min(len(breaks), b + reach)
    begins = first + 1 + np.flatnonzero(breaks[first + 1 : stop])
    first = max([first, *begins[begins <= a].tolist()])
    stop = min([stop, *begins[begins > a].tolist()])
    return np.concatenate([np.arange(first, a), np.arange(b, stop)])


def _curve(t: Float[Array, "n"], x: Float[Array, "n k"], at: Float[Array, "w"]) -> Float[Array, "w k"]:
    """Values of a polynomial through samples, at instants between them."""
    middle, size = 0.5 * (t[0] + t[-1]), 0.5 * (t[-1] - t[0])
    powers = np.arange(1 + min(_DEGREE, len(t) // 2))
    V, V_at = (((instants - middle) / size)[:, None] ** powers for instants in (t, at))
    known = np.isfinite(x).all(axis=0)  # absent columns have no values
    return np.asarray(V_at @ np.linalg.lstsq(V, np.where(known, x, 0.0), rcond=None)[0])


def _line(t: Float[Array, "n"], x: Float[Array, "n k"], at: Float[Array, "w"]) -> Float[Array, "w k"]:
    """Values between samples, linearly."""
    return np.column_stack([np.interp(at, t, column) for column in x.T])
