"""Excerpts of very long logs: settings are compared on stretches spread over them, not on every sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dynid.motion.log import Log

MOST_SAMPLES = 100_000  # of all logs together: held-out errors of minutes of motion do not depend on more
_SPARED = 0.2  # of the samples: to leave out less is not worth other logs, whose loops must be closed too
_STRETCHES = 10


def excerpts(logs: Sequence[Log]) -> tuple[Log, ...]:
    """The logs, or stretches of them if they have clearly more than `MOST_SAMPLES` samples together.

    Stretches are segments of the same arrays, spread evenly: nothing is copied.
    """
    total = samples(logs)
    if (1.0 - _SPARED) * total <= MOST_SAMPLES:
        return tuple(logs)
    return tuple(_shortened(log, MOST_SAMPLES / total, total) for log in logs)


def words(logs: Sequence[Log]) -> dict[str, str]:
    """That settings were compared on a part of the logs, as a choice; empty if they were not."""
    total, used = samples(logs), samples(excerpts(logs))
    if used == total:
        return {}
    return {"held-out errors": f"on {used} of {total} samples, spread over the logs"}


def samples(logs: Sequence[Log]) -> int:
    """Samples of all segments."""
    return sum(stop - start for log in logs for start, stop in log.segments)


def _shortened(log: Log, share: float, total: int) -> Log:
    pieces = []
    for start, stop in log.segments:
        size = stop - start
        count = max(1, round(_STRETCHES * size / total))
        length, stride = max(1, int(share * size / count)), size / count
        for k in range(count):
            begin = start + int((k + 0.5) * stride - 0.5 * length)
            pieces.append((begin, begin + length))
    return replace(log, segments=tuple(pieces))
