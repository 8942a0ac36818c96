"""Comparing motions and reading limits, for trees and closed robots."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

# Few rows are enough to compare motions, and keep the linear algebra below the size at which BLAS starts
# threads (which on a busy machine cost more than they save).
SAMPLES = 64


def scaled_condition(W: Float[Array, "r p"]) -> float:
    """Condition number of W with columns of length one; infinite beyond 1e7.

    Computed from the eigenvalues of W^T W. This halves the number of accurate digits: not acceptable
    for solving, but sufficient to compare motions, and much cheaper than singular values.
    """
    norms = np.linalg.norm(W, axis=0)
    if not norms.all():
        return float("inf")
    unit = W / norms
    squares = np.linalg.eigvalsh(unit.T @ unit)
    return float(np.sqrt(squares[-1] / squares[0])) if squares[0] > 1e-14 * squares[-1] else float("inf")


def symmetric_range(bound: float | tuple[float, float]) -> tuple[float, float]:
    """[low, high]; a single bound applies to both sides."""
    return bound if isinstance(bound, tuple) else (-bound, bound)


def speed_bound(bound: float | tuple[float, float]) -> float:
    """The largest symmetric bound inside an asymmetric one."""
    return min(-bound[0], bound[1]) if isinstance(bound, tuple) else bound
