"""Weighted least squares: each group of rows is weighted by 1 over its standard deviation.

sigma_g^2 = |Y_g - W_g chi|^2 / (n_g - h_g),   h_g = tr(W_g C W_g^T) / sigma_g^2

h_g is the number of parameters determined by group g (the h_g add up to p), so the accuracy of groups
with few rows is not overestimated. Iterated until the parameters converge.

Rows without effort, 0 = W_g chi, would favour chi -> 0: their residual decreases with chi, and their weight
increases. Their standard deviation is therefore computed with chi scaled to fit the efforts,

sigma_g^2 = s^2 |Y_g - W_g chi|^2 / (n_g - h_g),   s = argmin_s sum_e |Y_e - s W_e chi|^2 / sigma_e^2

over the groups e with efforts. A common factor of chi does not change it. Every weighting that judges rows by
their residuals uses s (`residual_sizes`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.notices import Notice, notice
from dynid.estimator.ols import Solved
from dynid.estimator.solution import CONVERGED, RTOL, status_after, step_in_sigma
from dynid.projection.factor import Factor, merge
from dynid.projection.projection import System

# Residuals smaller than this part of the measured norm are rounding or a perfect simulation;
# larger weights would only worsen the conditioning of the other groups.
_SMALLEST_PART = 1e-6
# Tables are exact but for the figures they are printed with, and those are the noise to be weighed.
_SMALLEST_OF_TABLES = 1e-10
# Change of the ratio of two weights up to which normal equations lose at most six digits of sixteen.
_NEAR = 1e3


Solver = Callable[[Factor], Solved]


# Weights of the groups, shape (g,); iterations; and the last step of the parameters, in their sigma.
Weighting = Callable[[System, list[Factor], Solver], tuple[Float[Array, "g"], int, float]]


def group_weights(
    system: System,
    factors: list[Factor],
    solver: Solver,
    *,
    per_log: bool = False,
    rtol: float = RTOL,
    max_iterations: int = 100,
) -> tuple[Float[Array, "g"], int, float]:
    """Iterated weights by row groups (a `Weighting`).

    Args:
        system: Its groups are weighted.
        factors: One a group, over all parameters.
        solver: Least squares of the weighted rows.
        per_log: A weight for each group; otherwise groups of one name share it in all logs.
        rtol: Largest change of a parameter at the end, in its sigma.
        max_iterations: Limit.
    """
    keys = [(group.name, group.log if per_log else "") for group in system.groups]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    shared = np.array([number[key] for key in keys])
    smallest = smallest_sigmas(factors, shared, smallest_part(system))
    weights, chi, step, iteration = np.ones(len(factors)), None, np.inf, 0
    near: _Near | None = None
    while iteration < max_iterations and step > rtol:
        if near is None or not near.reaches(weights):
            near = _Near(factors, weights, solver)
        new, root, paid = near.solved(weights)
        # Rows over their own deviation have a deviation of one.
        step = step_in_sigma(new, chi, np.linalg.norm(root, axis=1))
        weights = 1.0 / np.maximum(_sigmas(system, factors, weights, new, paid, shared), smallest)
        chi, iteration = new, iteration + 1
    return weights, iteration, float(step)


class _Near:
    """Least squares with weights w not far from w_0, at which the rows were factorised.

    With chi_0 and root_0 of that factorisation,

        chi = chi_0 + root_0 z,    V_g = W_g root_0,    sum_g w_0g^2 V_g^T V_g = 1

    so the normal equations of z have at most the condition number of (w / w_0)^2: they lose few digits, and
    take a small part of the time of a factorisation.
    """

    def __init__(self, factors: list[Factor], weights: Float[Array, "g"], solver: Solver) -> None:
        self.weights = weights
        self.chi, self.root, _ = solver(weighted(factors, weights))
        V = [factor.W @ self.root for factor in factors]
        left = [factor.Y - factor.W @ self.chi for factor in factors]
        self._products = np.stack([v.T @ v for v in V])
        self._right = np.stack([v.T @ rho for v, rho in zip(V, left, strict=True)])

    def reaches(self, weights: Float[Array, "g"]) -> bool:
        """Whether few digits are lost with these weights."""
        ratios = weights / self.weights
        return bool(ratios.max() < _NEAR * ratios.min())

    def solved(
        self, weights: Float[Array, "g"]
    ) -> tuple[Float[Array, "p"], Float[Array, "p p"], Float[Array, "g"]]:
        """chi, the root of its covariance (see `Solved`), and h_g."""
        squares = weights**2
        L = np.linalg.inv(np.linalg.cholesky(np.tensordot(squares, self._products, 1)))
        inverse = L.T @ L
        paid = squares * np.tensordot(self._products, inverse, 2)
        return self.chi + self.root @ (inverse @ (squares @ self._right)), self.root @ L.T, paid


def unsettled(iterations: int, step: float) -> tuple[Notice, ...]:
    """A warning if the parameters have not converged with the weights."""
    if status_after(step) == CONVERGED:
        return ()
    return (notice("weights-not-converged", passes=iterations, step=step),)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A system solved with its own weights.

    Attributes:
        factors: One a group, over all parameters.
        weights, iterations, step: As of a `Weighting`.
        chi, root, residual_norm: The solution (see `Solved`).
        sigma: Deviation of each parameter by white noise, shape (p,), SI.
    """

    factors: list[Factor]
    weights: Float[Array, "g"]
    iterations: int
    step: float
    chi: Float[Array, "p"]
    root: Float[Array, "p p"]
    residual_norm: float
    sigma: Float[Array, "p"]

    @property
    def status(self) -> str:
        """Whether the weights have converged."""
        return status_after(self.step)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """A warning if the weights have not converged."""
        return unsettled(self.iterations, self.step)

    def shares(self) -> Float[Array, "g"]:
        """h_g, the number of parameters determined by each group, shape (g,)."""
        pairs = zip(self.factors, self.weights, strict=True)
        return np.array([np.sum((w * (factor.W @ self.root)) ** 2) for factor, w in pairs])


def fitted(system: System, weighting: Weighting, solver: Solver) -> Fitted:
    """Weights first, then the solution with these weights."""
    factors = group_factors(system)
    weights, iterations, step = weighting(system, factors, solver)
    whole = weighted(factors, weights)
    chi, root, residual_norm = solver(whole)
    sigma_rho = residual_norm / np.sqrt(max(1, whole.n_rows - len(chi)))
    sigma = sigma_rho * np.linalg.norm(root, axis=1)
    return Fitted(factors, weights, iterations, step, chi, root, residual_norm, sigma)


def group_factors(system: System) -> list[Factor]:
    """One factor a group, over all parameters."""
    return [group.factor(len(system.parameters)) for group in system.groups]


def unit_weights(
    system: System, factors: list[Factor], solver: Solver
) -> tuple[Float[Array, "g"], int, float]:
    """Every row counts alike (a `Weighting`)."""
    return np.ones(len(factors)), 1, 0.0


def weighted(factors: list[Factor], weights: Float[Array, "g"]) -> Factor:
    """All rows as one factor, each group scaled by its weight."""
    return merge([Factor(part.R * w, part.n_rows) for part, w in zip(factors, weights, strict=True)])


def residual_norms(factors: list[Factor], chi: Float[Array, "p"]) -> Float[Array, "g"]:
    """|Y - W chi| of each group, its unit."""
    return np.array([np.linalg.norm(factor.Y - factor.W @ chi) for factor in factors])


def judged_residuals(
    system: System, factors: list[Factor], weights: Float[Array, "g"], chi: Float[Array, "p"]
) -> Float[Array, "g"]:
    """|Y - W chi| of each group; for rows without effort as if chi were scaled to fit the efforts."""
    norms = [np.linalg.norm(factor.Y - factor.W @ chi) for factor in factors]
    return np.asarray(residual_sizes(system, factors, weights, chi) * norms)


def residual_sizes(
    system: System, factors: list[Factor], weights: Float[Array, "g"], chi: Float[Array, "p"]
) -> Float[Array, "g"]:
    """Factor on the residuals of each group before its deviation is judged: s for rows without effort."""
    silent = np.array([group.homogeneous for group in system.groups])
    return np.where(silent, _effort_size(system, factors, weights, chi) if silent.any() else 1.0, 1.0)


def _effort_size(
    system: System, factors: list[Factor], weights: Float[Array, "g"], chi: Float[Array, "p"]
) -> float:
    """Factor that brings W chi nearest to the measured efforts; one where there are none."""
    felt = [
        (w * (factor.W @ chi), w * factor.Y)
        for group, factor, w in zip(system.groups, factors, weights, strict=True)
        if not group.homogeneous
    ]
    whole = sum(float(a @ a) for a, _ in felt)
    return abs(sum(float(a @ y) for a, y in felt)) / whole if whole > 0.0 else 1.0


def _sigmas(
    system: System,
    factors: list[Factor],
    weights: Float[Array, "g"],
    chi: Float[Array, "p"],
    paid: Float[Array, "g"],
    shared: Int[Array, "g"],
) -> Float[Array, "g"]:
    """Deviation of each group, pooled over groups that share it, corrected for the parameters paid."""
    squares = judged_residuals(system, factors, weights, chi) ** 2
    rows = np.array([factor.n_rows for factor in factors])
    dof = np.bincount(shared, rows - paid)
    pooled = np.sqrt(np.bincount(shared, squares) / np.maximum(dof, 1.0))
    return np.asarray(pooled[shared])


def smallest_part(system: System) -> float:
    """Part of the measured rms below which no deviation is taken."""
    return _SMALLEST_OF_TABLES if all(group.instants for group in system.groups) else _SMALLEST_PART


def smallest_sigmas(
    factors: list[Factor], shared: Int[Array, "g"], part: float = _SMALLEST_PART
) -> Float[Array, "g"]:
    """A floor for the deviations: a small part of the measured rms, never zero."""
    squares = np.bincount(shared, [float(factor.Y @ factor.Y) for factor in factors])
    rows = np.bincount(shared, [factor.n_rows for factor in factors])
    rms = np.sqrt(squares / rows)
    whole = np.sqrt(squares.sum() / rows.sum()) or 1.0
    return np.asarray(part * np.where(rms > 0, rms, whole)[shared])
