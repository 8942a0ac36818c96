"""How likely a corrected description makes the logs, beside the description as it is: see `ranking.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.linear_fit import LinearFit
from dynid.motion.plan import MotionPlan
from dynid.projection.factor import orthonormal_map, triangle
from dynid.projection.projection import System
from dynid.statistics.clusters import equal_parts

if TYPE_CHECKING:
    from dynid.validation.hypotheses import Hypothesis

# More of the residual left: not the cause. One more payload, 10 parameters, leaves 0.9 on a clean log.
EXPLAINS = 0.5
PARTS = 32  # or as many as there are blocks of a quarter of a second: noise is independent beyond that
_RANK = 1e-9  # of the largest singular value: less is rounding
_Place = tuple[str, int, int]


def scaled_plan(plan: MotionPlan, scale: Sequence[float]) -> MotionPlan:
    """The plan for positions in another unit: speeds that masks compare with change alike.

    Args:
        plan: For the positions as logged.
        scale: Factor of each measured position; empty: none.
    """
    if not scale:
        return plan
    rest, reversal = (
        tuple(speed * factor for speed, factor in zip(speeds, scale, strict=True))
        for speeds in (plan.rest_speed, plan.reversal_speed)
    )
    return replace(plan, rest_speed=rest, reversal_speed=reversal)


def comparison_with(before: LinearFit) -> Callable[[Hypothesis, LinearFit], Hypothesis]:
    """A function that gives a correction its fit and compares it with the description as it is.

    Args:
        before: The fit of the description as it is. The blocks of its rows are the parts of the test.
    """
    groups = before.data.source.groups
    parts = equal_parts(groups, PARTS)
    described, norm, _ = residuals_of(before.data.source, before.chi)
    rows: dict[str, int] = {}
    for group in groups:
        rows[group.name] = rows.get(group.name, 0) + group.n_rows
    v = before.data.S.shape[1]

    def compared(hypothesis: Hypothesis, fit: LinearFit) -> Hypothesis:
        rms, _, percent = residuals_of(fit.data.source, fit.chi)
        corrected = {log.name for log in hypothesis.logs}
        # As logged: efforts that are made smaller leave smaller residuals, which explains nothing.
        for name, gain in hypothesis.gains.items():
            scaled = sum(group.n_rows for group in groups if group.name == name and group.log in corrected)
            rms[name] = rms.get(name, 0.0) / gain ** (scaled / max(rows.get(name, 0), 1))
        shared = [name for name in described if name in rms and norm[name] > 0.0]
        now, then = (sum((x[name] / norm[name]) ** 2 for name in shared) for x in (rms, described))
        left = float(np.sqrt(now / then)) if then > 0.0 else 1.0
        ratios = {name: max(described[name], 1e-300) / max(rms[name], 1e-300) for name in shared}
        likely = sum(rows[name] * float(np.log(ratio)) for name, ratio in ratios.items())
        return replace(
            hypothesis,
            fit=fit,
            left=left,
            rms=rms,
            rms_described=described,
            percent=percent,
            likely=likely,
            dependence=_dependence(fit, rms, parts) if likely > 0.0 else 1.0,  # else there is no evidence
            added=max(fit.data.S.shape[1] - v + hypothesis.fitted, 0),
        )

    return compared


def residual_percent(fit: LinearFit) -> float:
    """100 |Y - W chi| / |Y| over all rows."""
    return residuals_of(fit.data.source, fit.chi)[2]


def residuals_of(system: System, chi: Float[Array, "p"]) -> tuple[dict[str, float], dict[str, float], float]:
    """Rms of the residual and of the measured side of each effort, in its unit, and their ratio [%].

    Args:
        system: Over the standard parameters.
        chi: These, shape (p,), SI.
    """
    sums: dict[str, tuple[float, float, int]] = {}
    for group in system.groups:
        left, whole = group.squares(chi)
        before = sums.get(group.name, (0.0, 0.0, 0))
        sums[group.name] = (before[0] + left, before[1] + whole, before[2] + group.n_rows)
    total = sum(whole for _, whole, _ in sums.values())
    percent = (
        100.0 * float(np.sqrt(sum(left for left, _, _ in sums.values()) / total)) if total > 0.0 else 0.0
    )
    rms = {name: float(np.sqrt(left / max(n, 1))) for name, (left, _, n) in sums.items()}
    return rms, {name: float(np.sqrt(whole / max(n, 1))) for name, (_, whole, n) in sums.items()}, percent


def _dependence(fit: LinearFit, rms: Mapping[str, float], parts: Mapping[_Place, int]) -> float:
    """How many rows count as one, from the scores of the parts of the log."""
    rows: list[list[Array]] = [[] for _ in range(PARTS)]
    counts = np.zeros(PARTS)
    for group in fit.data.source.groups:
        scale = 1.0 / max(rms.get(group.name, 0.0), 1e-300)
        R, stretches = group.stretches(defaultdict(lambda: -1, parts))
        W, Y = R[:, :-1], R[:, -1]
        whole_group = scale * np.column_stack([W @ fit.data.S[group.columns], Y - W @ fit.chi[group.columns]])
        for part, at, count in stretches:
            if part >= 0:
                rows[part].append(whole_group[at])
                counts[part] += count
    pieces = [triangle(np.concatenate(part)) for part in rows if part]
    whole = triangle(np.concatenate(pieces))
    root = orthonormal_map(whole[:, :-1], _RANK)
    seen = expected = 0.0
    for piece, n in zip(pieces, counts[counts > 0], strict=True):
        U, rho = piece[:, :-1] @ root, piece[:, -1]
        M = U.T @ U
        seen += float(np.sum((U.T @ rho) ** 2))
        expected += float(rho @ rho) / n * float(np.trace(M) - np.sum(M**2))
    return max(1.0, seen / expected) if expected > 0.0 else 1.0
