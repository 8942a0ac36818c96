"""Weights by the full covariance between joints: errors of one instant are decorrelated.

Sigma = mean rho_i rho_i^T over instants i,        rows of an instant times chol(Sigma)^-1

Friction of one joint, a wrong payload or a shared power supply disturb several efforts at once. Rows
with the same information then count once. Iterated: Sigma needs residuals, residuals need a fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.notices import Notice, notice
from dynid.estimator.rework import Reworked, SecondPass, needed
from dynid.estimator.solution import CONVERGED, RTOL_OF_PASSES, status_after, step_in_sigma
from dynid.estimator.wls import (
    Solver,
    Weighting,
    fitted,
    residual_sizes,
    smallest_sigmas,
    unit_weights,
)
from dynid.projection.projection import System

_SMALLEST_CORRELATION = 1e-6  # eigenvalue of the correlations: smaller ones are rounding


@dataclass(frozen=True)
class Whitened:
    """Rework of `wls` with `weights: covariance`.

    Attributes:
        rtol: Largest change of a parameter at the end, in its sigma.
        max_iterations: Passes over the log.
    """

    rtol: float = RTOL_OF_PASSES
    max_iterations: int = 20

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate covariance and fit until the parameters converge."""
        rows = needed(again, "wls", "with weights: covariance needs the rows of each instant together")
        state = fitted(system, weighting, solver)
        floors = smallest_sigmas(state.factors, np.arange(len(state.factors)))
        paid = state.shares() / np.array([factor.n_rows for factor in state.factors])
        factors, weights = state.factors, state.weights
        step, iteration = np.inf, 0
        while iteration < self.max_iterations and step > self.rtol:
            sizes = residual_sizes(system, factors, weights, state.chi)
            changed = rows.whitened(_covariance(rows, state.chi, floors, paid, sizes))
            before, state = state.chi, fitted(changed, unit_weights, solver)
            step, iteration = step_in_sigma(state.chi, before, state.sigma), iteration + 1
        status = status_after(step)
        notices = () if status == CONVERGED else (_not_converged(iteration),)
        return Reworked(changed, state.weights, iteration, status, notices)


def _covariance(
    rows: SecondPass,
    chi: Float[Array, "p"],
    floors: Float[Array, "g"],
    paid: Float[Array, "g"],
    sizes: Float[Array, "g"],
) -> Float[Array, "k k"]:
    """Covariance of the errors of one instant, over all instants at which two rows are valid."""

    def reduce(
        rho: Float[Array, "k n"], valid: Bool[Array, "k n"], groups: Int[Array, "k"]
    ) -> tuple[Array, Array, Array]:
        known = groups >= 0
        # What the parameters took from each group is given back, as in the weights by group.
        back = np.where(known, sizes[groups] / np.sqrt(1.0 - np.minimum(paid[groups], 0.5)), 0.0)
        used = valid & known[:, None]
        part = np.where(used, rho, 0.0) * back[:, None]
        count = used.astype(float)
        return part @ part.T, count @ count.T, np.where(known, floors[groups], 0.0)

    parts = [np.zeros(()), np.zeros(()), np.zeros(())]
    for squares, counts, floor in rows.residuals(chi, reduce, filtered=True):
        parts = [parts[0] + squares, parts[1] + counts, np.maximum(parts[2], floor)]
    mean = parts[0] / np.maximum(parts[1], 1.0)
    sigma = np.maximum(np.sqrt(np.diag(mean)), np.where(parts[2] > 0, parts[2], 1.0))
    return np.asarray(_positive(mean / np.outer(sigma, sigma)) * np.outer(sigma, sigma))


def _positive(correlation: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The nearest matrix that is one of correlations: pairs counted at different instants may clash."""
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.maximum(values, _SMALLEST_CORRELATION)) @ vectors.T)


def _not_converged(passes: int) -> Notice:
    return notice("weights-not-converged", "joints", passes=passes)
