"""Generalised total least squares: the noise of W is what the noise of the positions makes of it.

minimise  sum_g w_g^2 |A_g v|^2  /  sum_g w_g^2 |D_g v|^2,    D_g^T D_g = n_g cov([dW dY])

D_g is found by sending the log through the same rows once more with noise added to its positions;
what the residual holds beyond it is the noise of the efforts, found per group by iteration. In rows
without effort, 0 = W_g chi, it is an error of the equations (of the geometry, for instance) that grows with
chi: noise of the size of chi, as the efforts see it, so that no factor of chi is preferred.
Its covariance is that of errors in variables [Fuller 1987, (2.2.25)],

C_chi = sigma_rho^2 M^-1 G M^-1,     M = W^T W - C_WW,   G = W_hat^T W_hat
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.estimator.convergence import RTOL, status_after, step_in_sigma
from dynid.estimator.rework import Reworked
from dynid.estimator.row_access import SecondPass, needed
from dynid.estimator.solution import CONVERGED
from dynid.estimator.total import TotalLeastSquares, corrected, total_least_squares
from dynid.estimator.wls import (
    Fitted,
    Solver,
    Weighting,
    Weights,
    fitted,
    group_factors,
    judged_residuals,
    smallest_sigmas,
    weighted,
)
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.projection import Group, System

_EXACT = 1e-5  # of the measured norm: a residual below is that of a simulation without noise
_HARDLY_LESS, _LEAST_SHARE = 0.8, 0.3
_LEAST_RESIDUAL = 0.25  # of the mean square of a group, in each of its blocks
_TOO_MUCH = 1.5  # of the residual variance: beyond chance even for the few slow rows of a short log


@dataclass(frozen=True, eq=False)
class GeneralisedTotal:
    """Rework of `gtls`.

    Attributes:
        position: Deviation of the measured positions in [rad] or [m]; None: from their spectrum.
        effort: Deviation of a row's measured side beyond what positions explain; None: from the
            residuals, per group.
        covariance: Of the noise of one row [W Y], shape (p + 1, p + 1), instead of positions.
        centred: Take out of the rows what noise adds to them on average: products of noisy columns have a
            mean. Costs two more passes over the log.
        rtol: Largest change of a parameter at the end, in its sigma.
    """

    position: float | tuple[float, ...] | None = None
    effort: float | None = None
    covariance: Float[Array, "p1 p1"] | None = None
    centred: bool = False
    rtol: float = RTOL
    max_iterations: int = 100

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate effort noise, weights and solution until the parameters stand still."""
        rows = system if again is None else again.blocked()
        if self.centred:
            rows = needed(again, "gtls", "centres rows by their noise").centred(self._position)
            system = rows
        state = fitted(system, weighting, solver)
        parts = self._noise(rows, again)
        noise = [merge(own) for own in parts]
        floors = smallest_sigmas(state.factors, np.arange(len(state.factors)))
        paid = state.shares() / np.array([one.n_rows for one in state.factors])
        weights, chi = state.weights.values, state.chi
        share, before = 1.0, np.inf
        for iteration in range(1, self.max_iterations + 1):  # noqa: B007
            beyond = _beyond(system, state.factors, weights, chi)
            whole = self._with_efforts(state.factors, noise, chi, paid, floors, beyond)
            found = total_least_squares(weighted(state.factors, weights).R, weighted(whole, weights).R)
            step, used = step_in_sigma(found.chi, chi, state.sigma), weights
            if step <= self.rtol:
                break
            # On little data noise and parameters can chase each other: then only part of the way is gone.
            share = max(0.5 * share, _LEAST_SHARE) if step > _HARDLY_LESS * before else share
            before = step
            chi = chi + share * (found.chi - chi)
            weights = _weights(system, state, weights, chi, paid, floors)
        status = status_after(step)
        notices = state.weights.notices + _excess(state.factors, noise, found.chi, system)
        return Reworked(
            _equations(rows, parts, whole, used, found),
            Weights(used, iteration, status, notices + (() if status == CONVERGED else (_unsettled(),))),
            found.chi,
        )

    def _noise(self, rows: System, again: SecondPass | None) -> list[list[Factor]]:
        """D of the positions over [W Y], of each block of each group."""
        if self.covariance is not None:
            covariance = np.asarray(self.covariance, float)
            p1 = len(rows.parameters) + 1
            return [[_given(covariance, p1, one.n_rows) for one in group.blocks] for group in rows.groups]
        found = needed(again, "gtls", "needs the noise of its columns").noise(self._position)
        return [
            whole_blocks(group, like, len(rows.parameters))
            for group, like in zip(found.groups, rows.groups, strict=True)
        ]

    @property
    def _position(self) -> Float[Array, "m"] | float | None:
        return np.asarray(self.position, float) if isinstance(self.position, tuple) else self.position

    def _with_efforts(
        self,
        factors: list[Factor],
        noise: list[Factor],
        chi: Float[Array, "p"],
        paid: Float[Array, "g"],
        floors: Float[Array, "g"],
        beyond: list[Float[Array, "p1"]],
    ) -> list[Factor]:
        """D_g with a row for the noise of the efforts, or of the equations where there is no effort."""
        v = np.append(chi, -1.0)
        whole = []
        for A, D, share, floor, unit in zip(factors, noise, paid, floors, beyond, strict=True):
            if self.covariance is not None:
                whole.append(D)
                continue
            if self.effort is None or not unit[-1]:
                left = np.sum((A.R @ v) ** 2) / (1.0 - min(share, 0.5)) - np.sum((D.R @ v) ** 2)
                size = np.sqrt(max(float(left), A.n_rows * floor**2))
            else:
                size = np.sqrt(A.n_rows) * self.effort
            whole.append(Factor(np.vstack([D.R, size * unit]), D.n_rows))
        return whole


def _beyond(
    system: System, factors: list[Factor], weights: Float[Array, "g"], chi: Float[Array, "p"]
) -> list[Float[Array, "p1"]]:
    """Row u of each group with |u v| = 1: what noise beyond that of the positions is proportional to.

    With efforts it is the measured side. In rows without any it is the size of chi: a^T chi / a^T chi_now,
    a the gradient of the squared efforts W chi.
    """
    side = np.zeros(len(chi) + 1)
    side[-1] = 1.0
    a = np.zeros(len(chi))
    for group, one, w in zip(system.groups, factors, weights, strict=True):
        a += 0.0 if group.homogeneous else w**2 * (one.W.T @ (one.W @ chi))
    whole = float(a @ chi)
    size = np.append(a / whole, 0.0) if whole > 0.0 else side
    # A known mass gives such rows a measured side, and with it a size of their own.
    return [
        size if group.homogeneous and not np.any(one.Y) else side
        for group, one in zip(system.groups, factors, strict=True)
    ]


def _weights(
    system: System,
    state: Fitted,
    weights: Float[Array, "g"],
    chi: Float[Array, "p"],
    paid: Float[Array, "g"],
    floors: Float[Array, "g"],
) -> Float[Array, "g"]:
    """One over the deviation of each group, effort and position noise together."""
    rows = np.array([one.n_rows for one in state.factors]) * (1.0 - np.minimum(paid, 0.5))
    sigma = judged_residuals(system, state.factors, weights, chi) / np.sqrt(rows)
    return np.asarray(1.0 / np.maximum(sigma, floors))


def whole_blocks(group: Group, like: Group, p: int) -> list[Factor]:
    """Blocks over all p parameters and the measured side, at the places of another group's blocks."""
    own = dict(zip(group.places, group.blocks, strict=True))
    found = []
    for place, block in zip(like.places, like.blocks, strict=True):
        R = np.zeros((len(own[place].R) if place in own else 0, p + 1))
        if place in own:
            R[:, [*group.columns, -1]] = own[place].R
        found.append(Factor(R, block.n_rows))
    return found


def _given(covariance: Float[Array, "p1 p1"], p1: int, n_rows: int) -> Factor:
    """A root of n times the covariance of a row."""
    if covariance.shape != (p1, p1) or not np.allclose(covariance, covariance.T):
        raise InputError(
            f"a noise covariance of shape {covariance.shape} for {p1} columns",
            remedy="give a symmetric matrix over the columns [W Y] of a row",
        )
    values, vectors = np.linalg.eigh(covariance)
    if values.min() < -1e-12 * values.max():
        raise InputError("the noise covariance is not positive semidefinite")
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return Factor(np.sqrt(n_rows) * root, n_rows)


def _equations(
    rows: System,
    noise: list[list[Factor]],
    whole: list[Factor],
    weights: Float[Array, "g"],
    found: TotalLeastSquares,
) -> System:
    """Equations whose least squares give the solution and its covariance, classical or by clusters.

    Args:
        rows: With their blocks.
        noise: D of the positions, of each block of each group.
        whole: D of each group with what lies beyond the positions.
    """
    chi, v = found.chi, found.v
    maps = [
        [corrected(chi, d) for d in _shifts(group, own, D, found)]
        for group, own, D in zip(rows.groups, noise, whole, strict=True)
    ]
    T = _bread(rows, whole, weights, found, maps)
    groups = []
    for group, own in zip(rows.groups, maps, strict=True):
        at = [*group.columns, -1]
        hats = [columns[at, :-1] @ T for columns in own]
        blocks = tuple(
            Factor(block.R @ np.column_stack([W_hat, W_hat @ chi - v[at]]), block.n_rows)
            for block, W_hat in zip(group.blocks, hats, strict=True)
        )
        groups.append(replace(group, columns=np.arange(len(chi)), blocks=blocks))
    return replace(rows, groups=tuple(groups))


def _shifts(
    group: Group, noise: list[Factor], whole: Factor, found: TotalLeastSquares
) -> Float[Array, "b p"]:
    """Vector d of each block (see `corrected`): W_b^T rho_b + |rho_b|^2 d_b has mean zero in every run.

    Noise takes W_b^T rho_b away from zero by ratio (D_b^T D_b v)_W. This differs from run to run as the poses
    do; jackknives over blocks would take what cancels between runs for chance. Inside a run D is averaged:
    one draw of the noise tells it badly for a single block.
    """
    v, own = found.v, found.v[[*group.columns, -1]]
    rho = np.array([float(np.sum((block.R @ own) ** 2)) for block in group.blocks])
    rows = np.array([block.n_rows for block in group.blocks], dtype=float)
    total = found.ratio * (whole.R.T @ (whole.R @ v))[:-1]
    if not rho.sum() > 0.0:
        return np.zeros((len(rho), len(total)))
    each = found.ratio * np.array([one.R.T @ (one.R @ v) for one in noise])[:, :-1]
    runs = np.array([run for run, _ in group.places])
    for run in np.unique(runs):
        inside = runs == run
        each[inside] = np.outer(rows[inside] / rows[inside].sum(), each[inside].sum(axis=0))
    each += np.outer(rows / rows.sum(), total - each.sum(axis=0))
    # By chance a short block fits well, and what it would be divided by is small.
    least = _LEAST_RESIDUAL * rho.sum() * rows / rows.sum()
    d = each / np.maximum(rho, least)[:, None]
    return np.asarray(d + (total - rho @ d) / rho.sum())


def _bread(
    rows: System,
    whole: list[Factor],
    weights: Float[Array, "g"],
    found: TotalLeastSquares,
    maps: list[list[Float[Array, "p1 p1"]]],
) -> Float[Array, "p p"]:
    """T = G^-1 M: least squares in W_hat T have the covariance sigma^2 M^-1 G M^-1."""
    import scipy.linalg

    R_W = triangle(weighted(group_factors(rows), weights).W)
    R_D = weighted(whole, weights).W
    corrected_rows = [
        Factor(w * (block.R @ columns[[*group.columns, -1], :-1]), block.n_rows)
        for group, w, own in zip(rows.groups, weights, maps, strict=True)
        for block, columns in zip(group.blocks, own, strict=True)
    ]
    R_G = triangle(merge(corrected_rows).R)
    P, Q = (scipy.linalg.solve_triangular(R_G, one.T, trans="T", check_finite=False) for one in (R_W, R_D))
    middle = P @ P.T - found.ratio * (Q @ Q.T)
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
    return (
        Notice(
            "position-noise-too-large",
            f"the noise assumed in the positions exceeds the residual of {', '.join(wrong[:6])}",
            "give the deviation of the encoders: estimator: {name: gtls, position: ...}",
        ),
    )


def _largest(A: Factor, chi: Float[Array, "p"]) -> float:
    """Norm of the measured side; without one, of the largest term of W chi."""
    return float(np.linalg.norm(A.Y) or np.linalg.norm(A.W * chi, axis=0).max(initial=0.0))


def _unsettled() -> Notice:
    return Notice(
        "weights-not-converged",
        "noise of the efforts and solution do not settle",
        "give the deviation of the efforts: estimator: {name: gtls, effort: ...}",
    )
