"""Warnings about standard deviations estimated from few blocks of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice, notice
from dynid.estimator.solution import Solution

# Below this number of degrees of freedom the 95 % quantile is more than twice the normal one.
_FEW_FREEDOMS = 2.0
# The warning is given for relative sigmas between these limits, in percent.
_SURE_PERCENT, _WEAK_PERCENT = 3.0, 100.0


def _named(names: Sequence[str], chosen: Bool[Array, "p"]) -> str:
    found = [name for name, one in zip(names, chosen, strict=True) if one]
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def from_one_block(names: Sequence[str], alone: Bool[Array, "p"], part: str) -> tuple[Notice, ...]:
    """Parameters that one block or run alone determines."""
    if not np.any(alone):
        return ()
    return (notice("from-one-block", part=part, names=_named(names, alone)),)


def few_blocks(
    solution: Solution, covariance: Float[Array, "p p"], dof: Float[Array, "p"], parts: str
) -> tuple[Notice, ...]:
    """Standard deviations that are themselves uncertain, where that matters.

    Well-determined parameters are left out, and so are those indistinguishable from zero (see
    `weak-parameters`): an error of their sigma does not matter.

    Args:
        solution: The estimate.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of each standard deviation, shape (p,).
        parts: The blocks or runs used, in words.
    """
    sigma = np.sqrt(np.diag(covariance))
    size = np.abs(solution.chi)
    relative = 100.0 * np.divide(sigma, size, out=np.full(len(size), np.inf), where=size > 1e-200)
    few = (dof < _FEW_FREEDOMS) & (relative > _SURE_PERCENT) & (relative < _WEAK_PERCENT)
    if not np.any(few):
        return ()
    return (notice("few-blocks", names=_named(solution.names, few), parts=parts),)
