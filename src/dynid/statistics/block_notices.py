"""Warnings about deviations that rest on few blocks of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.estimator.solution import Solution

# Below so many degrees of freedom the 95 % quantile is more than twice that of many.
_FEW_FREEDOMS = 2.0
# Relative sigmas between which it matters how well they are known, in percent.
_SURE_PERCENT, _WEAK_PERCENT = 3.0, 100.0


def _named(names: Sequence[str], chosen: Bool[Array, "p"]) -> str:
    found = [name for name, one in zip(names, chosen, strict=True) if one]
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def told_once(
    names: Sequence[str], alone: Bool[Array, "p"], part: str = "block of time"
) -> tuple[Notice, ...]:
    """Parameters that one block or run alone determines."""
    if not np.any(alone):
        return ()
    return (
        Notice(
            "told-once",
            f"one {part} alone tells {_named(names, alone)}: nothing in these data can say how"
            " far its errors reach, and the intervals of these parameters are a lower bound",
            "repeat the motion that excites them, or use a longer log",
        ),
    )


def few_blocks(
    solution: Solution, covariance: Float[Array, "p p"], dof: Float[Array, "p"], parts: str
) -> tuple[Notice, ...]:
    """Deviations that are hardly known themselves, where that matters.

    Not of parameters that stay well known, or are told apart from zero by nothing (`weak-parameters`
    names those), whatever their sigma is wrong by.

    Args:
        solution: Whose parameters they are.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of each deviation, shape (p,).
        parts: What they rest on, in words.
    """
    sigma = np.sqrt(np.diag(covariance))
    size = np.abs(solution.chi)
    relative = 100.0 * np.divide(sigma, size, out=np.full(len(size), np.inf), where=size > 1e-200)
    few = (dof < _FEW_FREEDOMS) & (relative > _SURE_PERCENT) & (relative < _WEAK_PERCENT)
    if not np.any(few):
        return ()
    return (
        Notice(
            "few-blocks",
            f"sigma of {_named(solution.names, few)} rests on fewer than two of the {parts}: the"
            " intervals are wide and yet not sure",
            "use longer logs, or more of them",
        ),
    )
