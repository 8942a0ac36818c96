"""Are the logs of a fit doubtful before anything is computed? Units, steps of a position, logs used twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dynid.common.notices import Notice, notice
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.steps import position_steps

# Six turns of a joint without limits: a wheel may, an arm in degrees does.
_SWEEP = 12.0 * np.pi


def check_logs(logs: Sequence[Log], mechanism: Mechanism) -> tuple[Notice, ...]:
    """What makes the logs of a fit doubtful before anything is computed."""
    return (
        *_repeated(logs),
        *(one for log in logs for one in (*_degrees(log, mechanism), *position_steps(log))),
    )


def _degrees(log: Log, mechanism: Mechanism) -> Iterable[Notice]:
    """Angles that sweep far more than the joint can: most likely they are not in radians."""
    for i, name in enumerate(log.position_names):
        joint = mechanism.joint_of_coordinate.get(name)
        if joint is None or not joint.is_angle(name) or not log.valid.any():
            continue
        sweep = float(np.ptp(log.q[log.valid, i]))
        low, high = mechanism.limits.get(name, {}).get("q", (-np.inf, np.inf))
        room = high - low
        if sweep > (2.0 * np.pi * room if np.isfinite(room) else _SWEEP):
            limits = f", {sweep / room:.0f} times the range of its limits" if np.isfinite(room) else ""
            yield notice(
                "angles-large",
                name=name,
                log=log.name,
                sweep=sweep,
                turns=sweep / (2 * np.pi),
                limits=limits,
                number=i + 1,
            )


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
    return np.array_equal(a.q, b.q) and np.array_equal(a.tau, b.tau, equal_nan=True)
