"""Convergence of an iteration around a fit: the parameters change by much less than their sigma.

    step = max_j |chi_j - chi_j of the previous iteration| / sigma_j

The iteration stops when its step is below a small `rtol`, so that the result does not depend on where it
stopped. At the maximum number of iterations a step below `ENOUGH` also counts as converged: slow or
oscillating iterations (residuals near rounding, medians that change by single samples) then have no
significant effect. With a larger step there is no result.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.estimator.solution import CONVERGED, NOT_CONVERGED

# Steps in sigma: at which a cheap iteration ends, one that reads the log again in each round, and any.
RTOL, RTOL_OF_PASSES, ENOUGH = 1e-6, 1e-4, 1e-3
_ROUNDING = 1e-13  # of a parameter: smaller changes do not count, even if its sigma is smaller


def step_in_sigma(
    new: Float[Array, "p"], before: Float[Array, "p"] | None, sigma: Float[Array, "p"]
) -> float:
    """Largest change of a parameter in its sigma; infinite in the first round.

    Args:
        new: Parameters, shape (p,), SI.
        before: Those of the round before, shape (p,), SI; None: there was none.
        sigma: Deviations of the parameters, shape (p,), SI.
    """
    if before is None:
        return float("inf")
    change = np.maximum(np.abs(new - before) - _ROUNDING * np.abs(new), 0.0)
    return float(np.max(np.divide(change, sigma, out=np.where(change > 0, np.inf, 0.0), where=sigma > 0)))


def status_after(step: float) -> str:
    """Whether an iteration whose last step was so large has converged."""
    return CONVERGED if step <= ENOUGH else NOT_CONVERGED
