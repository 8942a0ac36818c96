"""Folds: parts of logs that are held out, so that a fit can be judged on samples it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.log import Log, runs_by_content

LAST_SHARE = 0.25
FOLDS = 4

# Number of a log, and the range of its samples.
_Piece = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Fold:
    """Logs to fit and logs to predict; together they are all logs given.

    Attributes:
        fitted_of, held_out_of: Number of the log that each of them is a part of.
    """

    name: str
    fitted: tuple[Log, ...]
    held_out: tuple[Log, ...]
    fitted_of: tuple[int, ...]
    held_out_of: tuple[int, ...]


def last_part(logs: Sequence[Log], share: float = LAST_SHARE) -> tuple[Fold, ...]:
    """One fold: the last part of every log is held out.

    Args:
        logs: To be cut.
        share: Of the time of each log, between 0 and 1.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"a share of {share:g} cannot be held out", remedy="e.g. 0.25")
    held = []
    for i, log in enumerate(logs):
        total = sum(stop - start for start, stop in log.segments)
        left = round(total * share)
        for start, stop in reversed(log.segments):
            begin = max(start, stop - left)
            if begin < stop:
                held.append((i, begin, stop))
                left -= stop - begin
    return (fold_of(f"last {100 * share:.3g} %", logs, held),)


def split_hold_out(
    logs: Sequence[Log], unseen: Sequence[Log], share: float | None
) -> tuple[list[Log], list[Log]]:
    """Logs to fit and logs to validate on, the last share of every log moved to the latter; None: nothing."""
    if share is None:
        return list(logs), list(unseen)
    (fold,) = last_part(logs, share)
    named = f"last {100 * share:.3g} %"
    parts = [replace(log, name=f"{log.name}, {named}") for log in fold.held_out]
    return list(fold.fitted), [*parts, *unseen]


def folds(logs: Sequence[Log], count: int = FOLDS) -> tuple[Fold, ...]:
    """Cross-validation: every piece of the logs is held out once.

    Pieces are runs (logs, or segments of logs), dealt out in turn, the longest first; runs of one payload
    that are fewer than the folds are cut into as many contiguous parts. So every fold is fitted on each
    payload.

    Args:
        logs: To be cut.
        count: Folds, at least two.
    """
    if count < 2:
        raise InputError(f"{count} folds leave nothing to fit", remedy="use 2 or more")
    parts: list[list[_Piece]] = [[] for _ in range(count)]
    loads = dict.fromkeys(log.payloads for log in logs)
    for load in loads:
        runs = [run for run in runs_by_content(logs) if logs[run[0]].payloads == load]
        if len(runs) >= count:
            for k, run in enumerate(runs):
                parts[k % count].append(run)
            continue
        for i, start, stop in runs:
            bounds = np.linspace(start, stop, count + 1).astype(int).tolist()
            for k in range(count):
                parts[k].append((i, bounds[k], bounds[k + 1]))
    return tuple(fold_of(f"fold {k + 1} of {count}", logs, held) for k, held in enumerate(parts))


def joined_folds(logs: Sequence[Log], count: int) -> tuple[Fold, ...]:
    """As `folds`, for few runs: those of one payload are laid end to end, and cut into equal parts.

    Parts are as long as the logs allow, also where one of the runs is too short to be cut.
    """
    parts: list[list[_Piece]] = [[] for _ in range(count)]
    for load in dict.fromkeys(log.payloads for log in logs):
        runs = [run for run in runs_by_content(logs) if logs[run[0]].payloads == load]
        seconds = [(stop - start) * logs[i].dt for i, start, stop in runs]
        ends = np.cumsum(seconds)
        for k in range(count):
            for (i, start, _), begin, end in zip(runs, ends - seconds, ends, strict=True):
                a, b = (np.clip(m * ends[-1] / count, begin, end) - begin for m in (k, k + 1))
                first, last = (start + round(x / logs[i].dt) for x in (a, b))
                if first < last:
                    parts[k].append((i, first, last))
    return tuple(fold_of(f"fold {k + 1} of {count}", logs, held) for k, held in enumerate(parts))


def fold_of(name: str, logs: Sequence[Log], held: Sequence[_Piece]) -> Fold:
    """Some pieces of logs held out, and all other samples."""
    fitted, unseen = {}, {}
    for i, log in enumerate(logs):
        out = sorted((start, stop) for k, start, stop in held if k == i)
        kept = _others(log.segments, out)
        if kept:
            fitted[i] = replace(log, segments=tuple(kept))
        if out:
            unseen[i] = replace(log, segments=tuple(out))
    return Fold(name, tuple(fitted.values()), tuple(unseen.values()), tuple(fitted), tuple(unseen))


def _others(segments: Sequence[tuple[int, int]], held: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of the segments without the ranges held out."""
    left = []
    for start, stop in segments:
        for a, b in held:
            if start <= a and b <= stop:
                if start < a:
                    left.append((start, a))
                start = b
        if start < stop:
            left.append((start, stop))
    return left
