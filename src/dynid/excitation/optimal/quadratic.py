"""Quadratic programs of the optimiser: equal blocks of limits, and rows with a penalty for violation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

_ITERATIONS = 60
_WIDEST = 1e6  # of a row's own size: means no bound


@dataclass(frozen=True, eq=False)
class QuadraticSolution:
    """The solution of a quadratic program.

    Attributes:
        p: The minimiser, shape (n,).
        multipliers: Of the blocks' rows, positive at the upper bound, shape (blocks, r).
        soft_multipliers: Of the rows of A, between 0 and rho, shape (s,).
        gap: Sum of slack times multiplier.
        iterations: Newton steps taken.
    """

    p: Float[Array, "n"]
    multipliers: Float[Array, "blocks r"]
    soft_multipliers: Float[Array, "s"]
    gap: float
    iterations: int


def solve_quadratic(
    B: Float[Array, "n n"],
    g: Float[Array, "n"],
    C: Float[Array, "r m"],
    lower: Float[Array, "blocks r"],
    upper: Float[Array, "blocks r"],
    A: Float[Array, "s n"] | None = None,
    b: Float[Array, "s"] | None = None,
    rho: float = 1.0,
    rtol: float = 1e-8,
) -> QuadraticSolution:
    """Minimise p'Bp/2 + g'p + rho sum(max(A p - b, 0)) with lower_j <= C p_j <= upper_j.

    Args:
        B: Symmetric, positive definite, n = blocks times m.
        C: Rows shared by all blocks.
        lower, upper: Infinite if there is no bound.
        A, b: Rows that may be violated with the penalty rho each.
        rtol: Of the gradient, and of the gap relative to gradient times width.
    """
    from dynid.excitation.optimal.quadratic_kernels import solve_blocks

    n = len(g)
    sizes = np.linalg.norm(C, axis=1)
    wide = _WIDEST * np.where(sizes > 0.0, sizes, 1.0)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    mean = float((upper - lower)[bounded].mean()) if bounded.any() else 1.0
    lower, upper = np.maximum(lower, -wide), np.minimum(upper, wide)
    A = np.zeros((0, n)) if A is None else np.ascontiguousarray(A)
    b = np.zeros(0) if b is None else np.ascontiguousarray(b)
    found = solve_blocks(
        np.ascontiguousarray(B),
        np.ascontiguousarray(g),
        np.ascontiguousarray(C.T),
        np.ascontiguousarray(lower),
        np.ascontiguousarray(upper),
        A,
        b,
        float(rho),
        _ITERATIONS,
        float(rtol),
        mean,
    )
    return QuadraticSolution(found[0], found[1], found[2], float(found[3]), int(found[4]))
