"""Integration in time: many runs in parallel, with the exact derivatives of their end states.

Runge-Kutta of fourth order in the tree's coordinates; after every step the state is projected onto the
loops, so that their closure error does not grow. Derivatives follow from the differentiated equations
of motion, integrated by the same stages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.dynamics.forward import ForwardDynamics
from dynid.dynamics.freedoms import position_rates
from dynid.kinematics.tree import SPHERICAL, tree_of
from dynid.mechanism.mechanism import Mechanism

Efforts = Callable[[float, Float[Array, "n q"], Float[Array, "n v"]], Float[Array, "n a"]]
Projection = Callable[[Float[Array, "n q"], Float[Array, "n v"]], tuple[Array, Array]]
ORDER = 9  # of the predictor: for an oscillation with omega h = 0.2 the error is about 1e-9 per radian
_SWEEPS = 60
_STANDS = 1e-14
Slope = Callable[[Float[Array, "n s"]], Float[Array, "n s"]]
Repair = Callable[[Float[Array, "n s"]], Float[Array, "n s"]]


@dataclass(frozen=True, eq=False)
class Runs:
    """States of n runs after each of k steps.

    Attributes:
        q, dq: All tree coordinates, shapes (k + 1, n, n_q) and (k + 1, n, v).
        by_start: Derivatives of the independent positions by independent positions and velocities at
            the start, shape (k + 1, n, d, 2 d); None unless requested.
        by_parameter: By standard parameters (or what `directions` spans), shape (k + 1, n, d, s).
        by_closure: By constants of closure equations, shape (k + 1, n, d, r); None unless requested.
    """

    q: Float[Array, "k n q"]
    dq: Float[Array, "k n v"]
    by_start: Float[Array, "k n d s"] | None = None
    by_parameter: Float[Array, "k n d p"] | None = None
    by_closure: Float[Array, "k n d r"] | None = None

    @property
    def slopes(self) -> tuple[Float[Array, "k n d s"], Float[Array, "k n d p"]]:
        """Derivatives by the start and by parameters, of runs for which they were requested."""
        if self.by_start is None or self.by_parameter is None:
            raise TypeError("runs without derivatives")
        return self.by_start, self.by_parameter


@dataclass(frozen=True, eq=False)
class _State:
    """Positions, velocities, and derivatives of independent positions and velocities (n, d, s)."""

    q: Array
    dq: Array
    y: Array | None = None
    v: Array | None = None


@dataclass(frozen=True, eq=False)
class _Changes:
    """What may change besides the start: standard parameters along directions, constants of closures."""

    directions: Array
    closures: Array

    @property
    def count(self) -> int:
        return int(self.directions.shape[1] + len(self.closures))


def integrate(
    dynamics: ForwardDynamics,
    q: Float[Array, "n q"],
    dq: Float[Array, "n v"],
    efforts: Efforts,
    step: float,
    steps: int,
    directions: Float[Array, "p s"] | None = None,
    closures: Int[Array, "r"] | None = None,
    projected: Projection | None = None,
) -> Runs:
    """Runs from feasible states under given efforts.

    Args:
        q, dq: States at t = 0.
        efforts: Of all runs at a time [s] after the start, with positions and velocities there.
        step: In [s].
        steps: How many.
        directions: Changes of the standard parameters to differentiate with respect to; None: no derivatives.
        closures: Closure equations whose constants (a cable's length) may change, with derivatives only.
        projected: Projects states onto the loops; default with the mechanism's own constants.
    """
    n, d = len(q), dynamics.freedoms.dof
    state = _State(np.array(q), np.array(dq))
    changes = (
        None if directions is None else _Changes(directions, np.arange(0) if closures is None else closures)
    )
    if changes is not None:
        y, v = np.zeros((2, n, d, 2 * d + changes.count))
        y[:, :, :d] = v[:, :, d : 2 * d] = np.eye(d)
        state = _State(state.q, state.dq, y, v)
    path = [state]
    for k in range(steps):
        state = _step(dynamics, state, efforts, k * step, step, changes, projected)
        path.append(state)
    poses, rates = np.stack([point.q for point in path]), np.stack([point.dq for point in path])
    if directions is None:
        return Runs(poses, rates)
    slopes = np.stack([np.asarray(point.y) for point in path])
    last = 2 * d + directions.shape[1]
    by_closure = None if closures is None else slopes[..., last:]
    return Runs(poses, rates, slopes[..., : 2 * d], slopes[..., 2 * d : last], by_closure)


def _step(
    dynamics: ForwardDynamics,
    state: _State,
    efforts: Efforts,
    t: float,
    h: float,
    changes: _Changes | None,
    projected: Projection | None = None,
) -> _State:
    """One classical Runge-Kutta step, then projection onto the loops."""
    slopes: list[_State] = []
    for part in (0.0, 0.5, 0.5, 1.0):
        at = _moved(state, slopes[-1], part * h) if slopes else state
        slopes.append(_slope(dynamics, at, efforts, t + part * h, changes))
    mean = _State(*(_mean([getattr(slope, name) for slope in slopes]) for name in ("q", "dq", "y", "v")))
    end = _moved(state, mean, h)
    back = dynamics.freedoms.projected if projected is None else projected
    q, dq = back(unit_quaternions(dynamics.mechanism, end.q), end.dq)
    return _State(q, dq, end.y, end.v)


def _mean(slopes: list[Array | None]) -> Array:
    a, b, c, e = slopes
    if a is None or b is None or c is None or e is None:
        return np.zeros(0)
    return np.asarray((a + 2.0 * b + 2.0 * c + e) / 6.0)


def _moved(state: _State, slope: _State, h: float) -> _State:
    q, dq = state.q + h * slope.q, state.dq + h * slope.dq
    if state.y is None or state.v is None or slope.y is None or slope.v is None:
        return _State(q, dq)
    return _State(q, dq, state.y + h * slope.y, state.v + h * slope.v)


def _slope(
    dynamics: ForwardDynamics, state: _State, efforts: Efforts, t: float, changes: _Changes | None
) -> _State:
    """Time derivatives of a state."""
    q = unit_quaternions(dynamics.mechanism, state.q)
    tau = efforts(t, q, state.dq)
    motion = dynamics.accelerations(q, state.dq, tau)
    moving = position_rates(dynamics.mechanism, q, state.dq)
    if changes is None or state.y is None or state.v is None:
        return _State(moving, motion.ddq)
    closures = changes.closures if len(changes.closures) else None
    slopes = dynamics.slopes(q, state.dq, tau, motion, closures)
    d, s = dynamics.freedoms.dof, changes.directions.shape[1]
    change = slopes.by_position @ state.y + slopes.by_velocity @ state.v
    change[:, :, 2 * d : 2 * d + s] += slopes.by_parameter @ changes.directions
    shift = motion.N @ state.y
    if closures is not None and slopes.by_closure is not None:
        change[:, :, 2 * d + s :] += slopes.by_closure
        shift[:, :, 2 * d + s :] += dynamics.responses(q, closures)
    return _State(moving, motion.ddq, state.v - _turning(dynamics, state.dq, shift), change)


def _turning(dynamics: ForwardDynamics, dq: Float[Array, "n v"], shift: Float[Array, "n v s"]) -> Array:
    """Omega x theta where independent coordinates are a quaternion: their rates are not derivatives.

    theta: shifts of all coordinates; those of one quaternion rotate each other.
    """
    tree, chosen = tree_of(dynamics.mechanism), dynamics.freedoms.independent.tolist()
    out = np.zeros((len(dq), len(chosen), shift.shape[2]))
    for start in tree.v_start[tree.kind == SPHERICAL].tolist():
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            if start + i in chosen:
                turned = dq[:, start + j, None] * shift[:, start + k]
                out[:, chosen.index(start + i)] = turned - dq[:, start + k, None] * shift[:, start + j]
    return out


def unit_quaternions(mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n q"]:
    """Poses with normalised quaternions."""
    tree = tree_of(mechanism)
    starts = tree.q_start[tree.kind == SPHERICAL].tolist()
    if not starts:
        return q
    q = np.array(q)
    for p in starts:
        q[:, p : p + 4] /= np.linalg.norm(q[:, p : p + 4], axis=1, keepdims=True)
    return q


# Adams steps of high order: many smooth motions in parallel, two evaluations per step.
#
# With slopes F at p equidistant times, y grows by h sum_j w_j F_j, w the integrals of the polynomial
# through them: the predictor uses past points only, the corrector includes the new point. The first p
# points come from the same polynomial, iterated over all of them until they converge (Picard).


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
    path = [start]
    state = start
    for k in range(1, steps + 1):
        if k < ORDER:
            state = first[k]
        else:
            tried = state + h * np.einsum("p,pns->ns", ahead, slopes)
            state = state + h * (new[-1] * slope(tried) + np.einsum("p,pns->ns", new[:-1], slopes[1:]))
        if k % every == 0:
            state = repair(state)
            path.append(state)
        if k >= ORDER:
            slopes = np.concatenate([slopes[1:], slope(state)[None]])
    return np.stack(path)


def _beginning(
    slope: Slope, start: Float[Array, "n s"], h: float
) -> tuple[Float[Array, "p n s"], Float[Array, "p n s"]]:
    """The first ORDER states and their slopes: a fixed point of the integrals of their polynomial."""
    S = _integrals()
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
    return _integral(back, 1.0), _integral(back + 1.0, 1.0)


@cache
def _integrals() -> Float[Array, "p p"]:
    """Integrals from 0 to each of the points 0 .. p - 1 through slopes at all of them."""
    points = np.arange(float(ORDER))
    return np.stack([_integral(points, end) for end in points])


def _integral(points: Float[Array, "p"], end: float) -> Float[Array, "p"]:
    """Weights of the values at `points` in the integral of their polynomial from 0 to an end."""
    from numpy.polynomial import Polynomial

    weights = []
    for i, node in enumerate(points):
        others = np.delete(points, i)
        primitive = (Polynomial.fromroots(others) / np.prod(node - others)).integ()
        weights.append(primitive(end) - primitive(0.0))
    return np.array(weights)
