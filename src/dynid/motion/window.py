"""Parts of a log that are used: a window of time, without excluded intervals, some of its runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool
from dynid.common.errors import InputError
from dynid.motion.log import Log
from dynid.motion.settings import LogEntry


def windowed(log: Log, entry: LogEntry) -> Log:
    """The log with only the samples that its entry asks for; its runs keep their order.

    Args:
        log: As read from the file.
        entry: `start`, `stop` and `exclude` in [s] of the log's own time; `runs` numbered from 1.
    """
    asked = window_document(entry)
    if not asked:
        return log
    inside = (log.t >= (-np.inf if entry.start is None else entry.start)) & (
        log.t <= (np.inf if entry.stop is None else entry.stop)
    )
    for start, stop in entry.exclude:
        inside &= (log.t < start) | (log.t > stop)
    segments = tuple(
        piece for segment in _runs(log, entry) for piece in _pieces(segment, inside[slice(*segment)])
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
    return replace(log, segments=segments, valid=valid, window=asked)


def window_document(entry: LogEntry) -> dict[str, Any]:
    """What an entry asks for, as a file gives it; empty: the whole log."""
    asked: dict[str, Any] = {
        "from": entry.start,
        "to": entry.stop,
        "exclude": [list(span) for span in entry.exclude],
    }
    asked["runs"] = None if entry.runs is None else list(entry.runs)
    return {name: value for name, value in asked.items() if value not in (None, [])}


def disjoint(a: Log, b: Log) -> bool:
    """Whether two parts of one recording have no sample in common."""
    return all(stop <= first or last <= start for start, stop in a.segments for first, last in b.segments)


def _runs(log: Log, entry: LogEntry) -> tuple[tuple[int, int], ...]:
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
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    ranges = (edges.reshape(-1, 2) + segment[0]).tolist()
    return [(start, stop) for start, stop in ranges if stop - start > 1]
