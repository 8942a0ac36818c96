"""Search for the best motion: basin hopping around sequential quadratic programming."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float

if TYPE_CHECKING:
    from dynid.excitation.optimal.problem import Point, Problem

_SHAKES = (0.15, 0.3, 0.5)  # shares of a random motion that are mixed in, in turn
_FIRST = 0.01  # of the largest gradient: initial curvature, small, so that the first steps are large
_DAMPING = 0.2  # Powell: curvature along a step is at least this share of the assumed one
_ARMIJO = 1e-4
_SHORTEST = 1e-4
_NEAR = 0.3  # soft limits closer than this (in shares) enter the quadratic program
# Share of every limit's width that one step may use with nonlinear limits (trust region).
_REACH, _LEAST_REACH = 0.15, 1e-3
_ITERATIONS = 60
_STEPS = 120  # of each descent of a search, at most
_PRICE = 100.0  # penalty of soft limits, per share and sample exceeded
_SOME, _MANY = 12, 30  # steps before a descent may be given up, and steps that would have to reach the target
COARSE = 0.03  # tolerance of descents that are compared: a change of all sigmas by parts in 1000
_WIDEST = 1e6  # of a row's own size: means no bound


@dataclass(frozen=True, eq=False)
class Found:
    """The best motion of several descents.

    Attributes:
        point: The motion.
        hops: Hops tried.
        iterations: Steps of all descents.
    """

    point: Point
    hops: int
    iterations: int


def hop(
    problem: Problem,
    first: Point,
    rng: np.random.Generator,
    *,
    hops: int = 8,
    watch: Callable[[Point], bool] | None = None,
    keep: Callable[[Point], Point | None] | None = None,
) -> Found:
    """Perturb an optimised motion and optimise it again, several times, keeping the best.

    Descents of hops end early; only the last motion is optimised to the end.

    Args:
        problem: Minimised problem.
        first: The motion to begin with.
        rng: Of the perturbations.
        hops: Number of perturbations.
        watch: Called with every motion; True ends the search.
        keep: Makes a motion satisfy its limits also between samples before it is compared; None: impossible.
    """
    done = False

    def watched(point: Point) -> bool:
        nonlocal done
        done = done or (watch is not None and watch(point))
        return done

    def best_of(point: Point, best: Point | None) -> Point | None:
        # A motion that is already worse need not be repaired.
        if best is not None and point.value >= best.value:
            return best
        kept = point if keep is None else keep(point)
        return best if kept is None or (best is not None and kept.value >= best.value) else kept

    best, steps, count = best_of(first, None), 0, 0
    for count in range(1, hops + 1):
        if done:
            break
        share, origin = _SHAKES[count % len(_SHAKES)], best or first
        shaken = (1.0 - share) * origin.z + share * problem.blocks.random(rng, 0.95)
        target = np.inf if best is None else best.value
        descent = descend(problem, shaken, iterations=_STEPS, tolerance=COARSE, target=target, watch=watched)
        steps += descent.iterations
        best = best_of(descent.point, best)
    if best is not None and not done:
        last = descend(problem, best.z, iterations=_STEPS, watch=watched)
        steps += last.iterations
        best = best_of(last.point, best)
    return Found(best or first, count, steps)


# Sequential quadratic programming with damped BFGS: a few milliseconds per step.
#
# Linear limits hold at every iterate, because every step stays inside them. Soft limits are linearised
# and may be violated with a penalty, which the merit function includes too.


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a descent.

    Attributes:
        point: The last motion.
        iterations: Steps taken.
    """

    point: Point
    iterations: int


def descend(
    problem: Problem,
    z: Float[Array, "v"],
    *,
    iterations: int = 200,
    tolerance: float = 1e-3,
    target: float = np.inf,
    watch: Callable[[Point], bool] | None = None,
) -> Descent:
    """Optimise a motion within its limits.

    Args:
        problem: Minimised problem.
        z: Initial variables, inside the linear limits.
        iterations: Maximum number.
        tolerance: Ends when a step predicts a smaller gain than this (values are logarithms).
        target: Value to be reached: after some steps, the descent ends if many like the next one would not
            reach it.
        watch: Called with every motion; True ends the descent.
    """
    current = problem.evaluate(problem.blocks.inside(z))
    if current.tape is None or not np.isfinite(current.value):
        return Descent(current, 0)
    slope = problem.gradient(current)
    B, fresh = _FIRST * np.abs(slope).max() * np.eye(len(z)), True
    blocks = problem.blocks
    width = np.where(np.isfinite(blocks.upper), blocks.upper - blocks.lower, np.inf)
    reach = np.inf if problem.linear else _REACH
    for iteration in range(iterations):
        if watch is not None and watch(current):
            return Descent(current, iteration)
        value = current.z.reshape(len(blocks.size), -1) @ blocks.C.T
        A, b = problem.soft_rows(current, _NEAR)
        lower = np.maximum(blocks.lower - value, -reach * width)
        upper = np.minimum(blocks.upper - value, reach * width)
        solution = solve_quadratic(B, slope, blocks.C, lower, upper, A, b, _PRICE, rtol=1e-4)
        p = solution.p
        promised = -(slope @ p + 0.5 * p @ B @ p)
        left = _PRICE * np.maximum(A @ p - b, 0.0).sum() if len(b) else 0.0
        promised += _PRICE * current.violation - left
        hopeless = iteration >= _SOME and promised < (current.value - target) / _MANY
        if hopeless or not promised >= tolerance:
            return Descent(current, iteration)
        tried, step = _search(problem, current, p, promised)
        reach = min(2.0 * reach, 1.0) if step == 1.0 and np.isfinite(reach) else reach * max(step, 0.25)
        if tried is None:
            if reach > _LEAST_REACH and not problem.linear:
                continue
            if fresh:
                return Descent(current, iteration)
            B, fresh = 10.0 * _FIRST * np.abs(slope).max() * np.eye(len(z)), True
            continue
        fresh = False
        new_slope = problem.gradient(tried)
        B = _updated(B, tried.z - current.z, new_slope - slope)
        current, slope = tried, new_slope
    return Descent(current, iterations)


def _search(
    problem: Problem, current: Point, p: Float[Array, "v"], promised: float
) -> tuple[Point | None, float]:
    """Halve the step until it achieves a share of its predicted gain; the motion and the step taken."""
    merit = current.value + _PRICE * current.violation
    step = 1.0
    shortest = _SHORTEST if problem.linear else 0.2
    while step > shortest:
        tried = problem.evaluate(current.z + step * p, current)
        if tried.value + _PRICE * tried.violation < merit - _ARMIJO * step * promised:
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


@dataclass(frozen=True, eq=False)
class QuadraticSolution:
    """The solution of a quadratic program.

    Attributes:
        p: The minimiser, shape (n,).
        multipliers: Of the blocks' rows, positive at the upper bound, shape (blocks, r).
        soft_multipliers: Of the rows of A, between 0 and rho, shape (s,).
        gap: Sum of slack times multiplier.
        iterations: Newton steps taken.
    """

    p: Float[Array, "n"]
    multipliers: Float[Array, "blocks r"]
    soft_multipliers: Float[Array, "s"]
    gap: float
    iterations: int


def solve_quadratic(
    B: Float[Array, "n n"],
    g: Float[Array, "n"],
    C: Float[Array, "r m"],
    lower: Float[Array, "blocks r"],
    upper: Float[Array, "blocks r"],
    A: Float[Array, "s n"] | None = None,
    b: Float[Array, "s"] | None = None,
    rho: float = 1.0,
    rtol: float = 1e-8,
) -> QuadraticSolution:
    """Minimise p'Bp/2 + g'p + rho sum(max(A p - b, 0)) with lower_j <= C p_j <= upper_j.

    Args:
        B: Symmetric, positive definite, n = blocks times m.
        C: Rows shared by all blocks.
        lower, upper: Infinite if there is no bound.
        A, b: Rows that may be violated with the penalty rho each.
        rtol: Of the gradient, and of the gap relative to the minimum.
    """
    from dynid.excitation.optimal.quadratic_kernels import solve_blocks

    n = len(g)
    sizes = np.linalg.norm(C, axis=1)
    wide = _WIDEST * np.where(sizes > 0.0, sizes, 1.0)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    mean = float((upper - lower)[bounded].mean()) if bounded.any() else 1.0
    lower, upper = np.maximum(lower, -wide), np.minimum(upper, wide)
    A = np.zeros((0, n)) if A is None else np.ascontiguousarray(A)
    b = np.zeros(0) if b is None else np.ascontiguousarray(b)
    solved = solve_blocks(
        np.ascontiguousarray(B),
        np.ascontiguousarray(g),
        np.ascontiguousarray(C.T),
        np.ascontiguousarray(lower),
        np.ascontiguousarray(upper),
        A,
        b,
        float(rho),
        _ITERATIONS,
        float(rtol),
        mean,
    )
    return QuadraticSolution(solved[0], solved[1], solved[2], float(solved[3]), int(solved[4]))
