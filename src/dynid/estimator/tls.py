"""Total least squares: noise of the same standard deviation in all columns and Y [paper 003, (25)-(34)].

W_hat = W - s U V^T,  chi = V / V_Y,   C_chi = s^2 / (n - p - 1) (1 + |chi|^2) (W_hat^T W_hat)^-1

The solution depends on the units of the columns, as the assumption does. A homogeneous system
W chi = 0 is the same problem with the column of the parameter set to one as -Y (`normalised`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.estimator.rework import Reworked, SecondPass, mapped_columns
from dynid.estimator.total import corrected, total_least_squares
from dynid.estimator.wls import Solver, Weighting, fitted, weighted
from dynid.projection.projection import System


@dataclass(frozen=True)
class PlainTotal:
    """Rework of `tls`.

    Attributes:
        unit_columns: Noise in proportion to each column's norm instead of equal in all.
    """

    unit_columns: bool = False

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Solve by SVD; the equations of least squares with the same solution are those of (32)."""
        state = fitted(system, weighting, solver)
        A = weighted(state.factors, state.weights).R
        D = np.diag(np.linalg.norm(A, axis=0)) if self.unit_columns else np.eye(A.shape[1])
        fit = total_least_squares(A, D)
        noise = D.T @ (D @ fit.v)
        rho = float(np.sum((A @ fit.v) ** 2))
        d = fit.ratio * noise[:-1] / rho if rho > 0 else np.zeros(len(fit.chi))
        rows = system if again is None else again.blocked()
        equations = mapped_columns(rows, corrected(fit.chi, d))
        return Reworked(
            equations,
            state.weights,
            state.iterations,
            state.status,
            state.notices,
            chi=fit.chi,
            spent=1,  # (31): Y is one of the columns
        )


@dataclass(frozen=True)
class HomogeneousFit:
    """Figures of a homogeneous system W chi = 0.

    Attributes:
        cost_C: (s_1 + 1) / s_(p-1) of (40): condition and size of the singular values, SI.
        sigma_W: s_p / sqrt(n - p) of (31): deviation of an entry of W.
    """

    cost_C: float
    sigma_W: float


def homogeneous_fit(system: System) -> HomogeneousFit:
    """Figures of a system made by `normalised`, from the singular values of all its columns."""
    import scipy.linalg

    factor = system.factor()
    s = scipy.linalg.svdvals(factor.R, check_finite=False)
    cost = (s[0] + 1.0) / max(float(s[-2]), np.finfo(float).tiny)
    return HomogeneousFit(float(cost), float(s[-1] / np.sqrt(max(1, factor.n_rows - factor.R.shape[1]))))
