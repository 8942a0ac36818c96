"""Ordinary least squares by column-scaled, pivoted QR; every row counts alike.

W D^-1 P = Q R_s:   chi = D^-1 P R_s^-1 Q^T Y        never through W^T W
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dynid.arrays import Array
from dynid.conditioning.factor import Factor
from dynid.errors import NoResultError

# Below this part of the largest pivot a unit column holds no digit at all.
_RANK_RTOL = 1e-14


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Solution of one factor.

    Attributes:
        chi: Shape (p,), SI.
        root: chi's covariance is sigma_rho^2 root @ root.T, shape (p, p).
        residual_norm: ||Y - W chi||.
        condition, condition_scaled: Of W, as it is and with unit columns.
    """

    chi: Float[Array, "p"]
    root: Float[Array, "p p"]
    residual_norm: float
    condition: float
    condition_scaled: float


def least_squares(factor: Factor) -> LeastSquares:
    """The chi that minimises ||Y - W chi||; refuses columns that are not independent."""
    import scipy.linalg

    p = factor.W.shape[1]
    scale = column_scale(factor.W)
    Q, R, pivot = scipy.linalg.qr(factor.W / scale, mode="economic", pivoting=True, check_finite=False)
    _check_rank(np.abs(np.diag(R)), pivot, p)
    inverse = scipy.linalg.solve_triangular(R, np.eye(p), check_finite=False)
    chi, root = np.empty(p), np.empty((p, p))
    chi[pivot] = scipy.linalg.solve_triangular(R, Q.T @ factor.Y, check_finite=False)
    root[pivot] = inverse
    chi, root = chi / scale, root / scale[:, None]
    singular = scipy.linalg.svdvals(R / np.linalg.norm(R, axis=0), check_finite=False)
    raw = scipy.linalg.svdvals(factor.W, check_finite=False)
    return LeastSquares(
        chi=chi,
        root=root,
        residual_norm=float(np.linalg.norm(factor.Y - Q @ (Q.T @ factor.Y))),
        condition=float(raw[0] / max(raw[-1], np.finfo(float).tiny)),
        condition_scaled=float(singular[0] / singular[-1]),
    )


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
