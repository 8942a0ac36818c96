"""From a linear solution to a physically consistent one: the data in their deviations, and what changes.

Y = W chi + rho is condensed to |U (chi_base - chi_hat)|^2 by the triangle U of the weighted rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.estimator.consistent import Consistent, nearest_consistent
from dynid.estimator.rework import mapped_columns
from dynid.estimator.rigid_bodies import plain_bodies
from dynid.estimator.semidefinite import SOLVED
from dynid.estimator.settings import Consistency
from dynid.estimator.solution import CONVERGED, Solution
from dynid.estimator.standard_space import StandardSpace
from dynid.estimator.wls import group_factors, residual_norms
from dynid.mechanism.inertia import is_physical
from dynid.projection.factor import triangle
from dynid.projection.projection import System

# Exact data have no standard deviation; a billionth of the measured size is used.
_SMALLEST_PART = 1e-9
_UNMOVED = 1e-6  # deviations: the solver's own accuracy
_COSTLY_PERCENT = 8.0


def information_root(system: System, solution: Solution) -> Float[Array, "v v"]:
    """Triangle U with U^T U the inverse covariance of a linear solution, one over the parameters' units.

    Args:
        system: Over the base parameters.
        solution: Its linear solution, whose weights and deviation count.
    """
    inflation = np.array([group.inflation for group in system.groups])
    factor = system.factor(solution.weights / np.sqrt(inflation))
    smallest = _SMALLEST_PART * solution.measured_norm / np.sqrt(factor.n_rows)
    sigma = max(solution.sigma_rho, smallest) or 1.0
    return np.asarray(triangle(factor.W) / sigma)


def consistent_solution(
    system: System, linear: Solution, consistent_set: Consistent, chi: Float[Array, "v"]
) -> Solution:
    """The solution with consistent base parameters `chi` in place of the linear ones.

    The covariance is that of the linear estimate: bounds and prior are not counted. Without a
    consistent set the linear parameters stay, and the status shows it.

    Args:
        system: Over the base parameters, with its blocks.
    """
    if consistent_set.status != SOLVED:
        failed = notice("not-consistent", status=consistent_set.status, reason=consistent_set.reason)
        return replace(
            linear,
            iterations=consistent_set.iterations,
            status=consistent_set.status,
            notices=(*linear.notices, failed),
        )
    moved = with_parameters(system, linear, chi)
    return replace(
        moved, iterations=consistent_set.iterations, notices=(*linear.notices, *_costly(linear, moved))
    )


def with_parameters(system: System, linear: Solution, chi: Float[Array, "v"]) -> Solution:
    """The same solution with other parameters.

    Its equations are shifted, Y + W (chi - chi_linear), so that chi solves them with the
    residuals of the linear fit: everything computed from rows keeps the linear uncertainty.
    """
    p = len(chi)
    factor = system.factor(linear.weights)
    rho = factor.Y - factor.W @ chi
    norm = float(np.linalg.norm(rho))
    shift = np.eye(p + 1)
    shift[:p, p] = chi - linear.chi
    size = np.linalg.norm(factor.W, axis=0) * np.linalg.norm(factor.Y)
    return replace(
        linear,
        chi=chi,
        sigma_rho=norm / float(np.sqrt(factor.n_rows - p)),
        residual_norms=residual_norms(group_factors(system), chi),
        residual_norm=norm,
        normal_residual=float(np.max(np.abs(factor.W.T @ rho) / np.where(size > 0, size, 1.0), initial=0.0)),
        equations=mapped_columns(linear.equations or system, shift),
    )


def constrain(system: System, linear: Solution, options: Consistency) -> Solution:
    """Consistent parameters of a system alone: bodies and signs follow from the parameter names.

    Grouped parameters (`_R`) are not entries of one body and stay free. Without a prior the linear
    solution is kept if it is consistent.
    """
    parameters = system.parameters
    bodies = plain_bodies(parameters, linear.chi)
    signed = [p.positive for p in parameters]
    if np.all(linear.chi[signed] >= 0) and all(
        -1 not in body.columns and is_physical(linear.chi[list(body.columns)]) for body in bodies
    ):
        return linear
    p = len(parameters)
    U = information_root(system, linear)
    space = StandardSpace(parameters, np.eye(p), np.zeros(p), bodies, U, np.eye(p), linear.chi)
    nearest = nearest_consistent(space, options)
    if nearest.status == SOLVED and nearest.distance < _UNMOVED:
        return linear
    return consistent_solution(system, linear, nearest, nearest.chi)


def _costly(linear: Solution, moved: Solution) -> tuple[Notice, ...]:
    before, after = (float(np.linalg.norm(solution.residual_norms)) for solution in (linear, moved))
    growth = 100.0 * (after / before - 1.0) if before > 1e-6 * linear.measured_norm else 0.0
    if linear.status != CONVERGED or growth <= _COSTLY_PERCENT:
        return ()
    return (notice("consistency-costs", percent=growth),)
