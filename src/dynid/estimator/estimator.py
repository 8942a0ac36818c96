"""The contract of estimators and their registry.

An estimator joins weights and a solver (later: constraints); adding one is a file and a line
in `ESTIMATORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError, nearest
from dynid.estimator.ols import LeastSquares, conditions, least_squares
from dynid.estimator.solution import Solution, check_system
from dynid.estimator.wls import GroupWeights, Solver, Weights, weighted
from dynid.notices import Notice
from dynid.projection.factor import Factor
from dynid.projection.projection import System

Weighting = Callable[[System, list[Factor], Solver], Weights]

# Unit columns this near to dependent cost half of the sixteen digits.
_ILL_CONDITIONED = 1e8


@dataclass(frozen=True)
class Estimator:
    """One way to solve a system of full column rank (see `base.system.base_system`).

    Attributes:
        weighting: Chooses the weight of each group of rows.
        solver: Solves one weighted factor.
    """

    name: str
    title: str
    weighting: Weighting
    solver: Solver = least_squares

    def __call__(self, system: System) -> Solution:
        """Weights first, then the solution with these weights."""
        check_system(system)
        factors = group_factors(system)
        return solve_weighted(system, self.weighting(system, factors, self.solver), self.solver)


def solve_weighted(system: System, weights: Weights, solver: Solver = least_squares) -> Solution:
    """The solution for given weights, with everything needed to judge it."""
    factors = group_factors(system)
    factor = weighted(factors, weights.values)
    fit = solver(factor)
    condition, condition_scaled = conditions(factor.W)
    dof = factor.n_rows - len(fit.chi)
    sigma_rho = fit.residual_norm / float(np.sqrt(dof))
    return Solution(
        names=tuple(parameter.name for parameter in system.parameters),
        chi=fit.chi,
        covariance=sigma_rho**2 * _inflated(system, factors, weights, fit),
        weights=weights.values,
        sigma_rho=sigma_rho,
        dof=_effective_dof(system, dof),
        rank=len(fit.chi),
        condition=condition,
        condition_scaled=condition_scaled,
        residual_norms=np.array([np.linalg.norm(one.Y - one.W @ fit.chi) for one in factors]),
        residual_norm=fit.residual_norm,
        measured_norm=float(np.linalg.norm(factor.Y)),
        normal_residual=_normal_residual(factor, fit.chi),
        iterations=weights.iterations,
        status=weights.status,
        notices=weights.notices + _conditioning(condition_scaled),
    )


def _inflated(
    system: System, factors: list[Factor], weights: Weights, fit: LeastSquares
) -> Float[Array, "p p"]:
    """(W^T W)^-1, each group counted with the correlation its row filter brought."""
    spread = np.zeros_like(fit.root)
    for group, one, weight in zip(system.groups, factors, weights.values, strict=True):
        seen = weight * (one.W @ fit.root)
        spread += group.inflation * (seen.T @ seen)
    return np.asarray(fit.root @ spread @ fit.root.T)


def _effective_dof(system: System, dof: int) -> int:
    """Degrees of freedom of as many independent rows as the correlated ones are worth."""
    lost = sum(group.n_rows * (1.0 - 1.0 / group.inflation) for group in system.groups)
    return max(1, dof - int(lost))


def group_factors(system: System) -> list[Factor]:
    """One factor a group, over all parameters."""
    return [group.factor(len(system.parameters)) for group in system.groups]


def estimator_named(name: str) -> Estimator:
    """The registered estimator, or an error that names those there are."""
    if name not in ESTIMATORS:
        raise InputError(
            f"estimator '{name}' is not in this version" + nearest(name, ESTIMATORS),
            remedy=f"use one of {', '.join(ESTIMATORS)}",
        )
    return ESTIMATORS[name]


def unit_weights(system: System, factors: list[Factor], solver: Solver) -> Weights:
    """Every row counts alike."""
    return Weights(np.ones(len(factors)))


def _normal_residual(factor: Factor, chi: Float[Array, "p"]) -> float:
    rho = factor.Y - factor.W @ chi
    size = np.linalg.norm(factor.W, axis=0) * np.linalg.norm(factor.Y)
    return float(np.max(np.abs(factor.W.T @ rho) / np.where(size > 0, size, 1.0), initial=0.0))


def _conditioning(condition_scaled: float) -> tuple[Notice, ...]:
    if condition_scaled < _ILL_CONDITIONED:
        return ()
    return (
        Notice(
            "ill-conditioned",
            f"the condition number of the scaled regressor is {condition_scaled:.1e}: about"
            f" {np.log10(condition_scaled):.0f} of 16 digits are lost",
            "excite the robot more, or fix parameters that are known",
        ),
    )


ESTIMATORS: dict[str, Estimator] = {
    "ols": Estimator("ols", "ordinary least squares", unit_weights),
    "wls": Estimator("wls", "least squares weighted by row groups, iterated", GroupWeights()),
}
