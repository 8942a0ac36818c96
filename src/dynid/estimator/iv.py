"""Instrumental variables: noise of W that is not in Z causes no bias.

Z^T (Y - W chi) = 0        [Z W Y] = Q R:   chi = R_ZW^-1 R_ZY      (R_ZZ cancels; no products Z^T W)

Z is the regressor of another trajectory: the reference trajectory, or the measured one through a
low-pass with lower cutoff. Least squares in W_hat = Z R_ZZ^-1 R_ZW, the part of W that Z explains, and
Y* = Y - W chi + W_hat chi have the same solution and the residuals Y - W chi.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import chi2_tail
from dynid.common.errors import InputError, NoResultError
from dynid.common.notices import Notice, notice
from dynid.estimator.ols import column_scale, least_squares
from dynid.estimator.rework import Reworked, SecondPass, mapped_columns, needed
from dynid.estimator.solution import RTOL, status_after, step_in_sigma
from dynid.estimator.wls import Fitted, Solver, Weighting, fitted, group_factors, weighted
from dynid.projection.factor import Factor, triangle
from dynid.projection.projection import System

_SIGNIFICANT = 1e-3
_WEAKEST = 1e-6  # of a direction of W: with less of it in Z it is not determined
_TOLD_APART = 1e-3  # of a variance: directions in which both estimates are the same


@dataclass(frozen=True)
class Instruments:
    """Rework of `iv`.

    Attributes:
        kind: `smoothed` or `reference`.
        cutoff: Of the heavier low-pass, as a part of the one in use.
        rtol: Largest change of a parameter at the end, in its sigma.
    """

    kind: str = "smoothed"
    cutoff: float = 0.5
    rtol: float = RTOL
    max_iterations: int = 30

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate weights and solution; warn if it differs from weighted least squares."""
        rows = needed(again, "iv", "needs the rows of its instruments")
        joined = rows.instruments(self.kind, self.cutoff)
        if len(joined.groups) != len(system.groups):
            raise InputError(
                "some efforts have no samples at which the instruments are known",
                remedy="use longer runs, or a larger cutoff of the instruments",
            )
        plain = fitted(system, weighting, solver)
        factors, used, before = group_factors(joined), plain, None
        for iteration in range(1, self.max_iterations + 1):  # noqa: B007
            chi, columns = solve_instruments(weighted(factors, used.weights))
            equations = mapped_columns(joined, columns, system.parameters)
            new = fitted(equations, weighting, solver)
            step = step_in_sigma(chi, before, new.sigma)
            if step <= self.rtol:
                break
            used, before = new, chi
        notices = used.notices + _differs(system, plain, new, chi)
        return Reworked(equations, used.weights, iteration, status_after(step), notices, chi)


def solve_instruments(joined: Factor) -> tuple[Float[Array, "p"], Float[Array, "q1 p1"]]:
    """Solution from the factor of [Z W Y], and the map of its columns to [W_hat Y*].

    Raises:
        NoResultError: The instruments do not determine some combination of parameters.
    """
    import scipy.linalg

    p = joined.W.shape[1] // 2
    scale = column_scale(joined.R)
    R = triangle(joined.R / scale)
    if R.shape[0] < 2 * p or np.abs(np.diag(R)[:p]).min() <= 1e-14 * np.abs(np.diag(R)[:p]).max():
        raise NoResultError("the instruments are linearly dependent: their trajectory excites too little")
    R_ZZ, R_ZW, R_ZY = R[:p, :p], R[:p, p : 2 * p], R[:p, -1]
    least_squares(Factor(joined.W[:, p:], joined.n_rows))  # refuses dependent columns of W
    _check_strength(R_ZW, triangle(R[:, p : 2 * p]))
    chi = least_squares(Factor(np.column_stack([R_ZW, R_ZY]), joined.n_rows))[0]
    first = scipy.linalg.solve_triangular(R_ZZ, R_ZW, check_finite=False)
    # Back to the units of the columns.
    chi = chi / scale[p : 2 * p] * scale[-1]
    first = first / scale[:p, None] * scale[None, p : 2 * p]
    columns = np.zeros((2 * p + 1, p + 1))
    columns[:p, :p] = first
    columns[:p, p], columns[p : 2 * p, p], columns[-1, p] = first @ chi, -chi, 1.0
    return chi, columns


def _check_strength(R_ZW: Float[Array, "p p"], R_W: Float[Array, "p p"]) -> None:
    """Every direction of W must be seen by Z."""
    import scipy.linalg

    part = scipy.linalg.solve_triangular(R_W, R_ZW.T, trans="T", check_finite=False)
    if scipy.linalg.svdvals(part, check_finite=False)[-1] < _WEAKEST:
        raise NoResultError("the instruments do not determine some combination of the parameters")


def _differs(system: System, plain: Fitted, new: Fitted, chi: Float[Array, "p"]) -> tuple[Notice, ...]:
    """Hausman's test: without noise in W both estimate the same, and wls with the smaller variance."""
    inflation = max(group.inflation for group in system.groups)
    size = np.where(new.sigma > 0, new.sigma, 1.0)
    covariances = []
    for fit in (plain, new):
        n = sum(factor.n_rows for factor in fit.factors)
        root = fit.root / size[:, None]
        covariances.append(inflation * fit.residual_norm**2 / max(1, n - len(chi)) * (root @ root.T))
    values, vectors = np.linalg.eigh(covariances[1] - covariances[0])
    use = values > _TOLD_APART * inflation
    if not use.any() or not np.all(new.sigma > 0):
        return ()
    d = (chi - plain.chi) / size
    H = float(np.sum((vectors[:, use].T @ d) ** 2 / values[use]))
    far = np.abs(chi - plain.chi) / plain.sigma
    if chi2_tail(float(use.sum()), H) > _SIGNIFICANT or far.max() < 1.0:
        return ()
    name = system.parameters[int(np.argmax(far))].name
    return (notice("iv-differs", name=name, sigmas=far.max()),)
