"""The generalised total least-squares problem on triangles, and the covariance of its solution.

minimise  |A v|^2 / |D v|^2,     A = [W Y],  v = (chi, -1),     D^T D = noise covariance of the columns

by the generalised SVD of (A, D): with the QR [A; D] = [Q1; Q2] R the solution is v = R^-1 z, z the
right singular vector of Q1 for its smallest singular value. No normal equations, and D may be
singular (columns without noise).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import NoResultError
from dynid.estimator.ols import column_scale
from dynid.projection.factor import triangle

_NO_MEASURED_SIDE = 1e-10


@dataclass(frozen=True, eq=False)
class TotalLeastSquares:
    """Solution of one problem.

    Attributes:
        chi: Shape (p,), SI.
        ratio: |A v|^2 / |D v|^2: one where D is the noise as it is.
    """

    chi: Float[Array, "p"]
    ratio: float

    @property
    def v(self) -> Float[Array, "p1"]:
        """(chi, -1)."""
        return np.append(self.chi, -1.0)


def total_least_squares(A: Float[Array, "k p1"], D: Float[Array, "d p1"]) -> TotalLeastSquares:
    """Solve for the columns of A = [W Y] with noise D^T D; refuses a solution without Y.

    Args:
        A: Factor of the weighted rows.
        D: Any root of the covariance of the columns' noise, summed over the rows.
    """
    if not np.any(A[:, -1]):
        return TotalLeastSquares(np.zeros(A.shape[1] - 1), 0.0)
    scale = column_scale(A)
    A_s, D_s = A / scale, D / scale
    # The scale of D decides nothing but rounding: with |A v| = |D v| the SVD separates best.
    size = float(np.linalg.norm(A_s[:, -1]) / max(np.linalg.norm(D_s), np.finfo(float).tiny))
    fit = TotalLeastSquares(np.zeros(A.shape[1] - 1), 0.0)
    for _ in range(2):
        v = _smallest(A_s, size * D_s) / scale
        if abs(v[-1]) * scale[-1] <= _NO_MEASURED_SIDE * np.linalg.norm(v * scale):
            raise NoResultError(
                "total least squares has no solution: the smallest singular direction of [W Y] does not"
                " contain Y"
            )
        chi = -v[:-1] / v[-1]
        whole = np.append(chi, -1.0)
        noise = float(np.sum((D @ whole) ** 2))
        fit = TotalLeastSquares(chi, float(np.sum((A @ whole) ** 2)) / noise if noise > 0 else 0.0)
        if fit.ratio <= 0.0:
            break
        size = float(np.sqrt(fit.ratio))
    return fit


def _smallest(A: Float[Array, "k p1"], D: Float[Array, "d p1"]) -> Float[Array, "p1"]:
    """The v that makes |A v| / |D v| smallest."""
    import scipy.linalg

    Q, R = scipy.linalg.qr(np.vstack([triangle(A), D]), mode="economic", check_finite=False)
    k = min(A.shape)
    z = scipy.linalg.svd(Q[:k], check_finite=False)[2][-1]
    return np.asarray(scipy.linalg.solve_triangular(R, z, check_finite=False))


def corrected(chi: Float[Array, "p"], d: Float[Array, "p"]) -> Float[Array, "p1 p1"]:
    """Columns map [W Y] -> [W_hat Y*]: W_hat = W + rho d^T, Y* = W_hat chi + rho.

    With d = ratio (C v)_W / |rho|^2 the solution of least squares in these is chi: W_hat^T rho = 0.
    """
    p = len(chi)
    columns = np.eye(p + 1)
    columns[:p, :p] -= np.outer(chi, d)
    columns[p, :p] = d
    columns[:p, p] = columns[:p, :p] @ chi - chi
    columns[p, p] = 1.0 + float(d @ chi)
    return columns
