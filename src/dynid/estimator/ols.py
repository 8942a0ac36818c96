"""Ordinary least squares by column-scaled, pivoted QR; all rows have equal weight.

W D^-1 P = Q R_s:   chi = D^-1 P R_s^-1 Q^T Y        never through W^T W
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.common.errors import NoResultError
from dynid.projection.factor import Factor

# Below this part of the largest pivot a unit column holds no digit at all.
_RANK_RTOL = 1e-14


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Solution of one factor.

    Attributes:
        chi: Shape (p,), SI.
        root: chi's covariance is sigma_rho^2 root @ root.T, shape (p, p).
        residual_norm: ||Y - W chi||.
    """

    chi: Float[Array, "p"]
    root: Float[Array, "p p"]
    residual_norm: float


def least_squares(factor: Factor) -> LeastSquares:
    """The chi that minimises ||Y - W chi||; refuses columns that are not independent."""
    import scipy.linalg
    import scipy.linalg.blas

    p = factor.W.shape[1]
    scale = column_scale(factor.W)
    Q, R, pivot = scipy.linalg.qr(factor.W / scale, mode="economic", pivoting=True, check_finite=False)
    _check_rank(np.abs(np.diag(R)), pivot, p)
    # BLAS' own triangular solve: LAPACK's starts threads for a 5 x 5 triangle too.
    right = np.column_stack([np.eye(p), Q.T @ factor.Y])
    solved = np.empty((p, p + 1))
    solved[pivot] = scipy.linalg.blas.dtrsm(1.0, R, right)
    solved /= scale[:, None]
    return LeastSquares(
        chi=solved[:, -1].copy(),
        root=solved[:, :-1],
        residual_norm=float(np.linalg.norm(factor.Y - Q @ (Q.T @ factor.Y))),
    )


def conditions(W: Float[Array, "k p"]) -> tuple[float, float]:
    """Condition number of W as it is, and with unit columns."""
    import scipy.linalg

    found = []
    for one in (W, W / np.linalg.norm(W, axis=0)):
        singular = scipy.linalg.svdvals(one, check_finite=False)
        found.append(float(singular[0] / max(singular[-1], np.finfo(float).tiny)))
    return found[0], found[1]


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
