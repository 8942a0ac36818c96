"""What the sensors of a robot contradict its description by, and how that changes with the description.

Along parts of the logs: the difference of redundant sensors (encoders beyond the degrees of freedom, measured
poses) from the closed pose nearest to all of them; of locked cables what their lengths change within a run.
Both are zero for a right description, apart from noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.problem import Problem
from dynid.projection.factor import scaled_lstsq
from dynid.projection.kinematics import ClosedKinematics, kinematics_along

_PARTS = 24  # of all logs: each is a block whose errors may be alike
_SAMPLES = 40  # of each part
_LEAST = 1e-9  # rad or m: rounding of the closure solver


@dataclass(frozen=True, eq=False)
class SensorRows:
    """Sums over all parts, weighted by the noise that is left.

    Attributes:
        information: S^T S / s^2 of each part, shape (n, k, k).
        scores: S^T rho / s^2 of each part, rho the residual that no value of the quantities explains,
            shape (n, k).
        gradient: -S^T r / s^2, shape (k,).
    """

    information: Float[Array, "n k k"]
    scores: Float[Array, "n k"]
    gradient: Float[Array, "k"]


def sensor_rows(problem: Problem, changed: Sequence[Problem], step: float) -> SensorRows | None:
    """Rows of the sensors about the values at hand; None where nothing is redundant.

    Args:
        problem: At the values at hand.
        changed: The same with each quantity larger.
        step: By which it is larger, in [m] or [rad].
    """
    parts = []
    for i, places in _parts(problem).items():
        misses = _contradictions(problem, i, places)
        if misses is None:
            return None
        slopes = []
        for other in changed:
            above = _contradictions(other, i, places) or []
            slopes.append([(a - b) / step for a, b in zip(above, misses, strict=True)])
        for k, miss in enumerate(misses):
            S = np.stack([slope[k] for slope in slopes], axis=2).reshape(-1, len(changed))
            r = miss.reshape(-1)
            fine = np.isfinite(r) & np.all(np.isfinite(S), axis=1)
            parts.append((S[fine], r[fine]))
    S, r = np.concatenate([block for block, _ in parts]), np.concatenate([side for _, side in parts])
    if not len(r) or not np.any(S):
        return None
    left = r - S @ scaled_lstsq(S, r, 1e-10)
    rms = max(float(np.sqrt(np.mean(left**2))), _LEAST)
    at = np.cumsum([0, *(len(side) for _, side in parts)])
    ranges = list(pairwise(at))
    return SensorRows(
        np.array([S[a:b].T @ S[a:b] for a, b in ranges]) / rms**2,
        np.array([S[a:b].T @ left[a:b] for a, b in ranges]) / rms**2,
        -S.T @ r / rms**2,
    )


def _contradictions(
    problem: Problem, i: int, parts: Sequence[tuple[int, int]]
) -> list[Float[Array, "n m"]] | None:
    """What redundant sensors, or else what the case knows, miss at parts of log i; None: nothing does.

    Weighted, in [rad] or [m], one array for each part (first sample, one after the last).
    """
    source = problem.sources[i]
    # Rows of a changed robot have poses of their own along the same motion.
    kinematics = getattr(source, "kinematics", None) or kinematics_along(problem.mechanism, source.motion)
    if not isinstance(kinematics, ClosedKinematics) or not kinematics.redundant:
        return problem.case.contradictions(problem, i, parts)
    misses = []
    for start, stop in parts:
        measured = source.motion.states(start, stop)
        states = kinematics.states(start, measured)
        miss = kinematics.sensors.miss(states.q, measured[0]) * kinematics.sensors.weight
        misses.append(np.asarray(np.where(states.fine[:, None], miss, np.nan)))
    return misses


def _parts(problem: Problem) -> dict[int, list[tuple[int, int]]]:
    """First sample and one after the last of the parts of each source, spread over all logs."""
    pieces = [(i, a, b) for i, source in enumerate(problem.sources) for a, b in source.pieces()]
    total = sum(b - a for _, a, b in pieces)
    by_source: dict[int, list[tuple[int, int]]] = {}
    for i, a, b in pieces:
        count = max(1, round(_PARTS * (b - a) / max(total, 1)))
        starts = np.linspace(a, max(a, b - _SAMPLES), count).astype(int).tolist()
        by_source.setdefault(i, []).extend((start, min(start + _SAMPLES, b)) for start in starts)
    return by_source
