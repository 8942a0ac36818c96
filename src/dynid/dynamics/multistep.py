"""Adams steps of high order: many smooth motions in parallel, two evaluations per step.

With slopes F at p equidistant times, y grows by h sum_j w_j F_j, w the integrals of the polynomial
through them: the predictor uses past points only, the corrector includes the new point. The first p
points come from the same polynomial, iterated over all of them until they converge (Picard).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

ORDER = 9  # of the predictor: for an oscillation with omega h = 0.2 the error is about 1e-9 per radian
_SWEEPS = 60
_STANDS = 1e-14
Slope = Callable[[Float[Array, "n s"]], Float[Array, "n s"]]
Repair = Callable[[Float[Array, "n s"]], Float[Array, "n s"]]


def adams(
    slope: Slope, repair: Repair, start: Float[Array, "n s"], h: float, steps: int, every: int
) -> Float[Array, "k n s"]:
    """States after every `every`-th of some steps, the start among them.

    Args:
        slope: Time derivatives of a batch of states.
        repair: Projects states (onto loops, quaternions to unit length); called at the returned states,
            which it may change by no more than the error of a step.
        start: States of n motions.
        h: Step in [s].
        steps: How many, a multiple of `every`.
    """
    first, slopes = _beginning(slope, start, h)
    ahead, new = _weights(ORDER)
    found = [start]
    state = start
    for k in range(1, steps + 1):
        if k < ORDER:
            state = first[k]
        else:
            tried = state + h * np.einsum("p,pns->ns", ahead, slopes)
            state = state + h * (new[-1] * slope(tried) + np.einsum("p,pns->ns", new[:-1], slopes[1:]))
        if k % every == 0:
            state = repair(state)
            found.append(state)
        if k >= ORDER:
            slopes = np.concatenate([slopes[1:], slope(state)[None]])
    return np.stack(found)


def _beginning(
    slope: Slope, start: Float[Array, "n s"], h: float
) -> tuple[Float[Array, "p n s"], Float[Array, "p n s"]]:
    """The first ORDER states and their slopes: a fixed point of the integrals of their polynomial."""
    S = _integrals(ORDER)
    n, s = start.shape
    slopes = np.repeat(slope(start)[None], ORDER, axis=0)
    states = start + h * np.einsum("ij,jns->ins", S, slopes)
    moving = np.ones(n, dtype=bool)
    for _ in range(_SWEEPS):
        slopes[1:] = slope(states[1:].reshape(-1, s)).reshape(ORDER - 1, n, s)
        before, states = states, start + h * np.einsum("ij,jns->ins", S, slopes)
        states[:, ~moving] = before[:, ~moving]
        change, size = np.abs(states - before).max(axis=(0, 2)), np.abs(states).max(axis=(0, 2))
        moving &= change > _STANDS * (1.0 + size)  # each motion separately; not if it is not finite
        if not moving.any():
            break
    return states, slopes


@cache
def _weights(order: int) -> tuple[Float[Array, "p"], Float[Array, "p"]]:
    """Integrals from 0 to 1 through slopes at -p + 1 .. 0 (predictor) and -p + 2 .. 1 (corrector)."""
    back = np.arange(1.0 - order, 1.0)
    return _integral(back, 0.0, 1.0), _integral(back + 1.0, 0.0, 1.0)


@cache
def _integrals(order: int) -> Float[Array, "p p"]:
    """Integrals from 0 to each of the points 0 .. p - 1 through slopes at all of them."""
    points = np.arange(float(order))
    return np.stack([_integral(points, 0.0, end) for end in points])


def _integral(points: Float[Array, "p"], a: float, b: float) -> Float[Array, "p"]:
    """Weights of the values at `points` in the integral of their polynomial from a to b."""
    from numpy.polynomial import Polynomial

    weights = []
    for i, own in enumerate(points):
        others = np.delete(points, i)
        primitive = (Polynomial.fromroots(others) / np.prod(own - others)).integ()
        weights.append(primitive(b) - primitive(a))
    return np.array(weights)
