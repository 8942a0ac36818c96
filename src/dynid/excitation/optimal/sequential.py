"""Sequential quadratic programming with damped BFGS: a few milliseconds per step.

Linear limits hold at every iterate, because every step stays inside them. Soft limits are linearised
and may be violated with a penalty, which the merit function includes too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.problem import Point, Problem
from dynid.excitation.optimal.quadratic import solve_quadratic

_FIRST = 0.01  # of the largest gradient: initial curvature, small, so that the first steps are large
_DAMPING = 0.2  # Powell: curvature along a step is at least this share of the assumed one
_ARMIJO = 1e-4
_SHORTEST = 1e-4
_NEAR = 0.3  # soft limits closer than this (in shares) enter the quadratic program
# Share of every limit's width that one step may use with nonlinear limits (trust region).
_REACH, _LEAST_REACH = 0.15, 1e-3


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a descent.

    Attributes:
        point: The last motion.
        iterations: Steps taken.
        converged: Whether no step predicted a gain above the tolerance.
    """

    point: Point
    iterations: int
    converged: bool


def descend(
    problem: Problem,
    z: Float[Array, "v"],
    *,
    iterations: int = 200,
    tolerance: float = 1e-3,
    price: float = 100.0,
    watch: Callable[[Point], bool] | None = None,
) -> Descent:
    """Optimise a motion within its limits.

    Args:
        problem: Minimised problem.
        z: Initial variables, inside the linear limits.
        iterations: Maximum number.
        tolerance: Ends when a step predicts a smaller gain than this (values are logarithms).
        price: Penalty of soft limits, per share and sample exceeded.
        watch: Called with every motion; True ends the descent.
    """
    here = problem.evaluate(problem.blocks.inside(z))
    if here.tape is None or not np.isfinite(here.value):
        return Descent(here, 0, False)
    slope = problem.gradient(here)
    B, fresh = _FIRST * np.abs(slope).max() * np.eye(len(z)), True
    blocks = problem.blocks
    width = np.where(np.isfinite(blocks.upper), blocks.upper - blocks.lower, np.inf)
    reach = np.inf if problem.linear else _REACH
    for iteration in range(iterations):
        if watch is not None and watch(here):
            return Descent(here, iteration, False)
        value = here.z.reshape(len(blocks.size), -1) @ blocks.C.T
        A, b = problem.soft_rows(here, _NEAR)
        lower = np.maximum(blocks.lower - value, -reach * width)
        upper = np.minimum(blocks.upper - value, reach * width)
        found = solve_quadratic(B, slope, blocks.C, lower, upper, A, b, price, rtol=1e-4)
        p = found.p
        promised = -(slope @ p + 0.5 * p @ B @ p)
        left = price * np.maximum(A @ p - b, 0.0).sum() if len(b) else 0.0
        promised += price * here.violation - left
        if not promised >= tolerance:
            return Descent(here, iteration, bool(promised < tolerance))
        tried, step = _search(problem, here, p, promised, price)
        reach = min(2.0 * reach, 1.0) if step == 1.0 and np.isfinite(reach) else reach * max(step, 0.25)
        if tried is None:
            if reach > _LEAST_REACH and not problem.linear:
                continue
            if fresh:
                return Descent(here, iteration, False)
            B, fresh = 10.0 * _FIRST * np.abs(slope).max() * np.eye(len(z)), True
            continue
        fresh = False
        new_slope = problem.gradient(tried)
        B = _updated(B, tried.z - here.z, new_slope - slope)
        here, slope = tried, new_slope
    return Descent(here, iterations, False)


def _search(
    problem: Problem, here: Point, p: Float[Array, "v"], promised: float, price: float
) -> tuple[Point | None, float]:
    """Halve the step until it achieves a share of its predicted gain; the motion and the step taken."""
    merit = here.value + price * here.violation
    step = 1.0
    shortest = _SHORTEST if problem.linear else 0.2
    while step > shortest:
        tried = problem.evaluate(here.z + step * p)
        if tried.value + price * tried.violation < merit - _ARMIJO * step * promised:
            return tried, step
        step *= 0.5
    return None, step


def _updated(B: Float[Array, "v v"], s: Float[Array, "v"], y: Float[Array, "v"]) -> Float[Array, "v v"]:
    """BFGS with Powell's damping: B always stays positive definite."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if not sBs > 1e-300:
        return B
    if sy < _DAMPING * sBs:
        share = (1.0 - _DAMPING) * sBs / (sBs - sy)
        y = share * y + (1.0 - share) * Bs
        sy = float(s @ y)
    return B - np.outer(Bs, Bs) / sBs + np.outer(y, y) / sy
