"""Generalised total least squares: the noise of W is propagated from the noise of the positions.

minimise  sum_g w_g^2 |A_g v|^2  /  sum_g w_g^2 |D_g v|^2,    D_g^T D_g = n_g cov([dW dY])

D_g is computed by processing the log again with noise added to its positions. The rest of the residual is
the noise of the efforts, estimated per group by iteration. In rows without effort, 0 = W_g chi, the rest is
an error of the equations (of the geometry, for instance) proportional to chi, scaled to fit the efforts, so
that no factor of chi is preferred. D_g is a random sample, and so is the residual: an excess that is not
significant (`excess`) scales D_g to the residual instead. Otherwise each random excess would bias the
solution towards least squares. Where efforts are in columns, because their gains are unknown, their noise
is in these columns (`measured`).
Its covariance is that of errors in variables [Fuller 1987, (2.2.25)],

C_chi = sigma_rho^2 M^-1 G M^-1,     M = W^T W - C_WW,   G = W_hat^T W_hat
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.rework import Reworked, SecondPass, needed
from dynid.estimator.solution import CONVERGED, RTOL, status_after, step_in_sigma
from dynid.estimator.total import TotalLeastSquares, corrected, total_least_squares
from dynid.estimator.wls import (
    Fitted,
    Solver,
    Weighting,
    fitted,
    judged_residuals,
    residual_norms,
    smallest_sigmas,
    weighted,
)
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.projection import System

_EXACT = 1e-5  # of the measured norm: a residual below is that of a simulation without noise
_SECONDS = 1.0  # of blocks whose residuals count as independent
_HARDLY_LESS, _LEAST_SHARE = 0.8, 0.3
_MOST_SCALED = 2.0  # of |D v|^2: a residual beyond is not that of the positions' noise
_TOO_MUCH = 1.5  # of the residual variance: significant even for the few slow rows of a short log


@dataclass(frozen=True, eq=False)
class GeneralisedTotal:
    """Rework of `gtls`.

    Attributes:
        position: Deviation of the measured positions in [rad] or [m]; None: from their spectrum.
        effort: Deviation of a row's measured side beyond what positions explain; None: from the
            residuals, per group.
        covariance: Of the noise of one row [W Y], shape (p + 1, p + 1), instead of positions.
        centred: Take out of the rows what noise adds to them on average: products of noisy columns have a
            mean.
        excess: Deviations by which the residual must exceed the noise of the positions before the rest counts
            as an error of the equations: of rows without effort where there are some, else of all rows.
        draws: How often noise is drawn for D and for the mean of the rows. The error of either adds at most
            1 / draws of the variance that products of noise make in the parameters. Each draw costs two
            passes over the log.
        measured: Variance that noise of the efforts brings to a row of each group through each column of
            [W Y], shape (p + 1,), any scale, zero in rows without effort; None: the efforts are Y.
        rtol: Largest change of a parameter at the end, in its sigma.
    """

    position: float | tuple[float, ...] | None = None
    effort: float | None = None
    covariance: Float[Array, "p1 p1"] | None = None
    centred: bool = False
    draws: int = 1
    excess: float = 0.0
    measured: tuple[Float[Array, "p1"], ...] | None = None
    rtol: float = RTOL
    max_iterations: int = 100

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate effort noise, weights and solution until the parameters converge."""
        rows = system if again is None else again.blocked()
        if self.centred:
            rows = needed(again, "gtls", "centres rows by their noise").centred(self._position, self.draws)
            system = rows
        state = fitted(system, weighting, solver)
        noise = self._noise(state.factors, again)
        floors = smallest_sigmas(state.factors, np.arange(len(state.factors)))
        chance = self._chances(rows, state.chi)
        paid = state.shares() / np.array([factor.n_rows for factor in state.factors])
        weights, chi = state.weights, state.chi
        share, before = 1.0, np.inf
        for iteration in range(1, self.max_iterations + 1):  # noqa: B007
            beyond = _beyond(system, state.factors, weights, chi, self.measured)
            whole = self._with_efforts(system, state.factors, noise, chi, paid, floors, chance, beyond)
            fit = total_least_squares(weighted(state.factors, weights).R, weighted(whole, weights).R)
            step, used = step_in_sigma(fit.chi, chi, state.sigma), weights
            if step <= self.rtol:
                break
            # On little data noise and parameters can chase each other: then only part of the way is gone.
            share = max(0.5 * share, _LEAST_SHARE) if step > _HARDLY_LESS * before else share
            before = step
            chi = chi + share * (fit.chi - chi)
            weights = self._weights(system, state, weights, chi, paid, floors)
        status = status_after(step)
        notices = state.notices + _excess(state.factors, noise, fit.chi, system)
        return Reworked(
            _equations(rows, state.factors, whole, used, fit),
            used,
            iteration,
            status,
            notices + (() if status == CONVERGED else (notice("weights-not-converged", "gtls"),)),
            fit.chi,
        )

    def _noise(self, factors: list[Factor], again: SecondPass | None) -> list[Factor]:
        """D_g of the positions, over [W Y]."""
        if self.covariance is not None:
            return [_given(np.asarray(self.covariance, float), factor) for factor in factors]
        return list(needed(again, "gtls", "needs the noise of its columns").noise(self._position, self.draws))

    def _chances(self, rows: System, chi: Float[Array, "p"]) -> Float[Array, "g"]:
        """Random scatter of |A v|^2 - |D v|^2 of each group, relative to |A v|^2.

        From the scatter of the group's blocks; those of less than a second share noise through the row
        filter, so that sums over a second are taken.
        """
        scatters = []
        for group in rows.groups:
            chi_group = chi[group.columns]
            sums = np.array([float(np.sum((block.Y - block.W @ chi_group) ** 2)) for block in group.blocks])
            width = max(1, round(_SECONDS / max(group.seconds, np.finfo(float).tiny)))
            parts = np.add.reduceat(sums, np.arange(0, len(sums), width))
            total = float(sums.sum())
            spread = np.sqrt(len(parts)) * float(np.std(parts, ddof=1)) if len(parts) > 1 else total
            scatters.append(spread / total if total > 0.0 else 0.0)
        # Measured efforts have noise, so that all of their excess counts.
        silent = np.array([group.homogeneous for group in rows.groups])
        judged = np.where(silent | ~silent.any(), scatters, 0.0)
        return np.asarray(judged * float(self.excess * np.sqrt(1.0 + 1.0 / self.draws)))

    def _weights(
        self,
        system: System,
        state: Fitted,
        weights: Float[Array, "g"],
        chi: Float[Array, "p"],
        paid: Float[Array, "g"],
        floors: Float[Array, "g"],
    ) -> Float[Array, "g"]:
        """One over the deviation of each group, effort and position noise together."""
        rows = np.array([factor.n_rows for factor in state.factors]) * (1.0 - np.minimum(paid, 0.5))
        # Gains scale with chi, so that no factor of chi would fit the efforts better.
        if self.measured is None:
            norms = judged_residuals(system, state.factors, weights, chi)
        else:
            norms = residual_norms(state.factors, chi)
        sigma = norms / np.sqrt(rows)
        return np.asarray(1.0 / np.maximum(sigma, floors))

    @property
    def _position(self) -> Float[Array, "m"] | float | None:
        return np.asarray(self.position, float) if isinstance(self.position, tuple) else self.position

    def _with_efforts(
        self,
        system: System,
        factors: list[Factor],
        noise: list[Factor],
        chi: Float[Array, "p"],
        paid: Float[Array, "g"],
        floors: Float[Array, "g"],
        chance: Float[Array, "g"],
        beyond: list[Float[Array, "m p1"]],
    ) -> list[Factor]:
        """D_g with rows for the noise of the efforts, or of the equations where there is no effort."""
        v = np.append(chi, -1.0)
        whole = []
        parts = zip(system.groups, factors, noise, paid, floors, chance, beyond, strict=True)
        for group, A, D, share, floor, by_chance, unit in parts:
            if self.covariance is not None:
                whole.append(D)
                continue
            scale, size = 1.0, A.n_rows * (self.effort or 0.0) ** 2
            if self.effort is None or group.homogeneous:
                left = float(np.sum((A.R @ v) ** 2)) / (1.0 - min(share, 0.5))
                scale, size = _divided(left, float(np.sum((D.R @ v) ** 2)), by_chance * left)
                size = max(size, A.n_rows * floor**2)
            whole.append(Factor(np.vstack([np.sqrt(scale) * D.R, np.sqrt(size) * unit]), D.n_rows))
        return whole


def _beyond(
    system: System,
    factors: list[Factor],
    weights: Float[Array, "g"],
    chi: Float[Array, "p"],
    measured: tuple[Float[Array, "p1"], ...] | None,
) -> list[Float[Array, "m p1"]]:
    """Rows u of each group with |u v| = 1: what noise beyond that of the positions is proportional to.

    With efforts it is the measured side. In rows without any it is the size of chi: a^T v / a^T v_now,
    a the gradient of the squared efforts W chi.
    """
    side, v = np.zeros(len(chi) + 1), np.append(chi, -1.0)
    side[-1] = 1.0
    columns = [0.0 * side if group.homogeneous else side for group in system.groups]
    columns = columns if measured is None else list(measured)
    a = np.zeros(len(v))
    for factor, w, noise in zip(factors, weights, columns, strict=True):
        model = factor.R * (noise == 0.0)
        a += w**2 * (model.T @ (model @ v)) if np.any(noise) else 0.0
    whole = float(a @ v)
    # Beside efforts on the same side, a known mass gives such rows a size of their own.
    sized = [measured is None and bool(np.any(factor.Y)) for factor in factors]
    outside = []
    for noise, known in zip(columns, sized, strict=True):
        if np.any(noise):
            outside.append(np.diag(np.sqrt(noise / (noise @ v**2)))[noise > 0.0])
        else:
            outside.append((side if known or whole <= 0.0 else a / whole)[None])
    return outside


def _divided(left: float, noise: float, limit: float) -> tuple[float, float]:
    """Factor on |D v|^2 and the part of the residual that is noise of efforts; together the residual.

    Of the excess over the positions' noise nothing counts below the limit, all of it beyond twice the
    limit, and between them it grows steadily, so that the iteration settles.

    Args:
        left: |A v|^2 of a group.
        noise: |D v|^2 of the same group.
        limit: Of their random difference.
    """
    if noise <= 0.0 or left <= 0.0:
        return 1.0, left
    excess = left - noise
    effort = max(0.0, min(excess, 2.0 * (excess - limit)))
    effort = max(effort, left - _MOST_SCALED * noise)
    return (left - effort) / noise, effort


def _given(covariance: Float[Array, "p1 p1"], factor: Factor) -> Factor:
    """A root of n times the covariance of a row."""
    p1 = factor.R.shape[1]
    if covariance.shape != (p1, p1) or not np.allclose(covariance, covariance.T):
        raise InputError(
            f"a noise covariance of shape {covariance.shape} for {p1} columns",
            remedy="give a symmetric matrix over the columns [W Y] of a row",
        )
    values, vectors = np.linalg.eigh(covariance)
    if values.min() < -1e-12 * values.max():
        raise InputError("the noise covariance is not positive semidefinite")
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return Factor(np.sqrt(factor.n_rows) * root, factor.n_rows)


def _equations(
    rows: System,
    factors: list[Factor],
    noise: list[Factor],
    weights: Float[Array, "g"],
    fit: TotalLeastSquares,
) -> System:
    """Equations whose least squares give the solution and its covariance, classical or by clusters."""
    chi, v = fit.chi, fit.v
    maps = []
    for A, D in zip(factors, noise, strict=True):
        rho = float(np.sum((A.R @ v) ** 2))
        d = fit.ratio * (D.R.T @ (D.R @ v))[:-1] / rho if rho > 0 else np.zeros(len(chi))
        maps.append(corrected(chi, d))
    T = _bread(factors, noise, weights, fit, maps)
    groups = []
    for group, columns in zip(rows.groups, maps, strict=True):
        W_hat = columns[:, :-1] @ T
        part = np.column_stack([W_hat, W_hat @ chi - v])[[*group.columns, -1]]
        groups.append(replace(group, columns=np.arange(len(chi)), blocks=group.multiplied(part)))
    return replace(rows, groups=tuple(groups))


def _bread(
    factors: list[Factor],
    noise: list[Factor],
    weights: Float[Array, "g"],
    fit: TotalLeastSquares,
    maps: list[Float[Array, "p1 p1"]],
) -> Float[Array, "p p"]:
    """T = G^-1 M: least squares in W_hat T have the covariance sigma^2 M^-1 G M^-1."""
    import scipy.linalg

    R_W = triangle(weighted(factors, weights).W)
    R_D = weighted(noise, weights).W
    corrected_rows = [
        Factor(w * (factor.R @ columns[:, :-1]), factor.n_rows)
        for factor, w, columns in zip(factors, weights, maps, strict=True)
    ]
    R_G = triangle(merge(corrected_rows).R)
    P, Q = (scipy.linalg.solve_triangular(R_G, root.T, trans="T", check_finite=False) for root in (R_W, R_D))
    middle = P @ P.T - fit.ratio * (Q @ Q.T)
    return np.asarray(scipy.linalg.solve_triangular(R_G, middle @ R_G, check_finite=False))


def _excess(
    factors: list[Factor], noise: list[Factor], chi: Float[Array, "p"], system: System
) -> tuple[Notice, ...]:
    """Where the positions' noise alone would leave larger residuals than there are."""
    v = np.append(chi, -1.0)
    wrong = [
        group.name
        for group, A, D in zip(system.groups, factors, noise, strict=True)
        if np.sum((D.R @ v) ** 2) > _TOO_MUCH * np.sum((A.R @ v) ** 2) > (_EXACT * _largest(A, chi)) ** 2
    ]
    if not wrong:
        return ()
    return (notice("position-noise-too-large", names=", ".join(wrong[:6])),)


def _largest(A: Factor, chi: Float[Array, "p"]) -> float:
    """Norm of the measured side; without one, of the largest term of W chi."""
    return float(np.linalg.norm(A.Y) or np.linalg.norm(A.W * chi, axis=0).max(initial=0.0))
