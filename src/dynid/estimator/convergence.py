"""When an iteration around a fit has arrived: its parameters move by far less than the data know them.

    step = max_j |chi_j - chi_j of the round before| / sigma_j

A round is the last one once its step is below a small `rtol`, so that a result does not depend on where the
iteration stopped. Where the rounds run out, a step below `ENOUGH` counts as arrived too: slow or swinging
iterations (residuals near rounding, medians that move by single samples) then change nothing that the data
could tell. A larger step is no result.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.estimator.solution import CONVERGED, NOT_CONVERGED

# Steps in sigma: at which a cheap iteration ends, one that reads the log again in each round, and any.
RTOL, RTOL_OF_PASSES, ENOUGH = 1e-6, 1e-4, 1e-3
_ROUNDING = 1e-13  # of a parameter: smaller changes are no steps, however small its sigma is


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
