"""Are the logs of a fit doubtful before anything is computed? Units, steps of a position, logs used twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dynid.common.notices import Notice, eased, notice
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.ranges import wide_ranges
from dynid.motion.steps import position_steps
from dynid.motion.window import disjoint


def check_logs(logs: Sequence[Log], mechanism: Mechanism) -> tuple[Notice, ...]:
    """What makes the logs of a fit doubtful before anything is computed."""
    return (
        *_repeated(logs),
        *(one for log in logs for one in (*_units(log, mechanism), *position_steps(log))),
    )


def _units(log: Log, mechanism: Mechanism) -> Iterable[Notice]:
    """Positions that sweep far more than the joint can: most likely they are not in radians or metres."""
    for one in wide_ranges(log, mechanism):
        times, number = one.sweep / one.room, one.column + 1
        if not one.angle:
            yield notice(
                "lengths-large", name=one.name, log=log.name, sweep=one.sweep, times=times, number=number
            )
            continue
        bounded = bool(np.isfinite(one.room))
        limits = f", {times:.0f} times the range of its limits" if bounded else ""
        found = notice(
            "angles-large",
            name=one.name,
            log=log.name,
            sweep=one.sweep,
            turns=one.sweep / (2 * np.pi),
            limits=limits,
            number=number,
        )
        yield found if bounded else eased(found)  # a wheel may turn so far


def _repeated(logs: Sequence[Log]) -> tuple[Notice, ...]:
    """Logs that hold the same samples: counted twice, they make every sigma too small."""
    repeated = [
        f"{log.name} repeats {first.name}"
        for i, log in enumerate(logs)
        if (first := next((other for other in logs[:i] if same_samples(log, other)), None)) is not None
    ]
    if not repeated:
        return ()
    return (notice("log-repeated", shown=", ".join(repeated)),)


def same_samples(a: Log, b: Log) -> bool:
    """Whether two logs contain the same recording, also from different files."""
    if a.q.shape != b.q.shape or a.payloads != b.payloads:
        return False
    if disjoint(a, b):
        return False
    return np.array_equal(a.q, b.q) and np.array_equal(a.tau, b.tau, equal_nan=True)
