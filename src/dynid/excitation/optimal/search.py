"""Basin hopping: there are many local minima, so a good motion is perturbed and optimised repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.optimal.problem import Point, Problem
from dynid.excitation.optimal.sequential import descend

_SHAKES = (0.15, 0.3, 0.5)  # shares of a random motion that are mixed in, in turn


@dataclass(frozen=True, eq=False)
class Found:
    """The best motion of one start.

    Attributes:
        point: The motion.
        first: The motion after the first descent, before any hop.
        hops: Hops tried.
        iterations: Steps of all descents.
    """

    point: Point
    first: Point
    hops: int
    iterations: int


def hop(
    problem: Problem,
    z: Float[Array, "v"],
    rng: np.random.Generator,
    *,
    hops: int = 8,
    iterations: int = 120,
    tolerance: float = 1e-3,
    watch: Callable[[Point], bool] | None = None,
    keep: Callable[[Point], Point] | None = None,
) -> Found:
    """Optimise a motion, then perturb it and optimise it again, keeping the best.

    Args:
        problem: Minimised problem.
        z: Initial variables.
        rng: Of the perturbations.
        hops: Number of perturbations.
        iterations: Of each descent, at most.
        tolerance: Of each descent.
        watch: Called with every motion; True ends the search.
        keep: Makes a motion satisfy its limits also between samples, before it is compared.
    """
    done = False

    def told(point: Point) -> bool:
        nonlocal done
        done = done or (watch is not None and watch(point))
        return done

    first = descend(problem, z, iterations=iterations, tolerance=tolerance, watch=told)
    best, steps, count = first.point if keep is None else keep(first.point), first.iterations, 0
    for count in range(1, hops + 1):
        if done:
            break
        share = _SHAKES[count % len(_SHAKES)]
        shaken = (1.0 - share) * best.z + share * problem.blocks.random(rng, 0.95)
        found = descend(problem, shaken, iterations=iterations, tolerance=tolerance, watch=told)
        steps += found.iterations
        # A motion that is already worse need not be repaired.
        if better(found.point, best):
            kept = found.point if keep is None else keep(found.point)
            best = kept if better(kept, best) else best
    return Found(best, first.point, count, steps)


def better(one: Point, other: Point, kept: float = 1e-6) -> bool:
    """Whether a motion is better: limits first, then the value."""
    if (one.violation > kept) != (other.violation > kept):
        return one.violation <= kept
    if one.violation > kept:
        return one.violation < other.violation
    return one.value < other.value
