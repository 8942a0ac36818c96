"""Ordinary least squares by column-scaled, pivoted QR; all rows have equal weight.

W D^-1 P = Q R_s:   chi = D^-1 P R_s^-1 Q^T Y        never through W^T W
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import NoResultError
from dynid.common.lapack import pivoted_qr, solve_upper
from dynid.projection.factor import Factor

# Below this part of the largest pivot a unit column holds no digit at all.
_RANK_RTOL = 1e-14


# chi; a root of its covariance, sigma_rho^2 root @ root.T; and ||Y - W chi||.
Solved = tuple[Float[Array, "p"], Float[Array, "p p"], float]


def least_squares(factor: Factor) -> Solved:
    """The chi that minimises ||Y - W chi||; refuses columns that are not independent.

    Returns:
        chi, shape (p,), SI; the root of (W^T W)^-1, shape (p, p); and the norm of the residual.
    """
    p = factor.W.shape[1]
    scale = column_scale(factor.W)
    Q, R, pivot = pivoted_qr(factor.W / scale)
    _check_rank(np.abs(np.diag(R)), pivot, p)
    right = np.column_stack([np.eye(p), Q.T @ factor.Y])
    solved = np.empty((p, p + 1))
    solved[pivot] = solve_upper(R, right)
    solved /= scale[:, None]
    residual = factor.Y - Q @ (Q.T @ factor.Y)
    return solved[:, -1].copy(), solved[:, :-1], float(np.linalg.norm(residual))


def conditions(W: Float[Array, "k p"]) -> tuple[float, float]:
    """Condition number of W as it is, and with unit columns."""
    numbers = []
    for matrix in (W, W / np.linalg.norm(W, axis=0)):
        singular = np.linalg.svd(matrix, compute_uv=False)
        numbers.append(float(singular[0] / max(singular[-1], np.finfo(float).tiny)))
    return numbers[0], numbers[1]


def column_scale(W: Float[Array, "k p"]) -> Float[Array, "p"]:
    """Column norms as powers of two (no rounding enters by scaling); one for a zero column."""
    norms = np.linalg.norm(W, axis=0)
    exponents = np.frexp(np.where(norms > 0, norms, 1.0))[1]
    return np.asarray(np.ldexp(1.0, exponents))


def _check_rank(pivots: Float[Array, "k"], pivot: Int[Array, "p"], p: int) -> None:
    rank = int(np.sum(pivots > _RANK_RTOL * pivots.max(initial=0.0)))
    if rank < p:
        columns = ", ".join(str(i) for i in sorted(pivot[rank:].tolist())[:8])
        raise NoResultError(
            f"W has rank {rank} for {p} parameters: columns {columns} are zero or depend on others;"
            " reduce the system to its base parameters first"
        )
