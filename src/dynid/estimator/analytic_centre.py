"""The point of an affine space whose bodies are nearest to given ones, by Newton's method.

    minimise over x   sum_b [tr(P0_b^-1 P_b) - log det P_b] + 1/2 |R x + r|^2 - w sum_i log p_i

P_b and p_i are affine in x: the pseudo-inertias of bodies, and numbers that are not negative. Newton's steps
do not depend on the units of x, so bodies may differ from P0 by any factor, and from each other. A start is
found by the same steps with one more variable s, where P_b + s P0_b and p_i + s replace P_b and p_i: s is
lowered until it is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float, Int

_CLOSE = 1e-7  # Newton decrement of an answer: the objective is above its minimum by half its square
_ROUGHLY = 0.1  # the same on the way there
_STEPS = 100  # of one minimisation
_ON_THE_WAY = 15  # of one that only has to come near: where rounding hides the decrement, more are wasted
_QUADRATIC = 1e-2  # decrement below which it is squared by each step; then one that stays is rounding
_TO_EDGE = 0.999  # of the way to the nearest edge of a cone
_SHORTER = (1.0, 0.9, 0.5, 0.1)  # parts of a step, where rounding puts it outside
_LONGEST, _HALVINGS = 1e6, 40  # of a step that meets no edge; of the search along a step
_PUSH = 1e12  # largest weight of s, relative to that of the logarithms
_RIDGE = 1e-16  # of a unit diagonal: directions that only rounding sees


@dataclass(frozen=True, eq=False)
class Cone:
    """sum_k x[columns_k] F_k + g is positive definite.

    Attributes:
        near: P0, shape (m, m).
        weight: Of the logarithm of its determinant.
        pull: Of the trace with P0^-1: one for bodies, zero for what only may not be negative.
    """

    columns: Int[Array, "k"]
    F: Float[Array, "k m m"]
    g: Float[Array, "m m"]
    near: Float[Array, "m m"]
    weight: float = 1.0
    pull: float = 1.0

    def at(self, x: Float[Array, "n"]) -> Float[Array, "m m"]:
        """The matrix."""
        return np.asarray(np.tensordot(x[self.columns], self.F, 1) + self.g)

    @cached_property
    def slope(self) -> Float[Array, "k"]:
        """Derivative of the trace with P0^-1, times its weight."""
        return np.asarray(self.pull * np.einsum("ab,kab->k", np.linalg.inv(self.near), self.F))

    def depth(self, x: Float[Array, "n"]) -> float:
        """Largest t with P - t P0 >= 0: positive inside."""
        root = np.linalg.inv(np.linalg.cholesky(self.near))
        return float(np.linalg.eigvalsh(root @ self.at(x) @ root.T)[0])


@dataclass(frozen=True, eq=False)
class Objective:
    """q^T x + near (traces + square) - logarithms: what is minimised at one point of the path."""

    cones: Sequence[Cone]
    R: Float[Array, "r n"]
    r: Float[Array, "r"]
    q: Float[Array, "n"]
    near: float

    def newton(self, x: Float[Array, "n"]) -> tuple[Float[Array, "n"], float, float]:
        """Step from a point inside, its decrement, and the length with the least objective along it."""
        residual = self.R @ x + self.r
        gradient, H = self.q + self.near * (self.R.T @ residual), self.near * (self.R.T @ self.R)
        roots = []
        for cone in self.cones:
            roots.append(np.linalg.inv(np.linalg.cholesky(cone.at(x))))
            F = roots[-1] @ cone.F @ roots[-1].T
            gradient[cone.columns] += self.near * cone.slope - cone.weight * np.trace(F, axis1=1, axis2=2)
            flat = F.reshape(len(F), -1)
            H[np.ix_(cone.columns, cone.columns)] += cone.weight * (flat @ flat.T)
        step = -_solved(H, gradient)
        decrement = float(np.sqrt(max(0.0, -(gradient @ step))))
        rates = [
            np.linalg.eigvalsh(root @ np.tensordot(step[cone.columns], cone.F, 1) @ root.T)
            for cone, root in zip(self.cones, roots, strict=True)
        ]
        weights = [np.full(len(rate), cone.weight) for cone, rate in zip(self.cones, rates, strict=True)]
        rate, weight = np.concatenate([np.zeros(0), *rates]), np.concatenate([np.zeros(0), *weights])
        slope = float(gradient @ step) + float(weight @ rate)
        return (
            step,
            decrement,
            _best_length(rate, weight, slope, self.near * float(np.sum((self.R @ step) ** 2))),
        )


def _best_length(rate: Float[Array, "k"], weight: Float[Array, "k"], slope: float, curvature: float) -> float:
    """The t > 0 with least slope t + 1/2 curvature t^2 - sum weight log(1 + t rate), by halving."""

    def derivative(t: float) -> float:
        return slope + curvature * t - float(np.sum(weight * rate / (1.0 + t * rate)))

    fastest = -float(rate.min(initial=0.0))
    low, high = 0.0, _TO_EDGE / fastest if fastest > 0.0 else _LONGEST
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high) if low > 0.0 or high <= 1.0 else min(1.0, 0.5 * high)
        low, high = (middle, high) if derivative(middle) < 0.0 else (low, middle)
    return low if low > 0.0 else high


def nearest_inside(
    cones: Sequence[Cone], R: Float[Array, "r n"], r: Float[Array, "r"], n: int
) -> tuple[Float[Array, "n"], bool]:
    """The minimum, and whether it is inside all cones; else the point that is least far outside."""
    x = np.zeros(n)
    outside = max([1.0, *(-2.0 * cone.depth(x) for cone in cones)])
    x, inside = _start(cones, R, r, outside, n)
    if inside:
        for near in _decades(1.0 / outside, 1.0):
            close = _CLOSE if near == 1.0 else _ROUGHLY
            steps = _STEPS if near == 1.0 else _ON_THE_WAY
            x = _minimum(Objective(cones, R, r, np.zeros(n), near), x, close, steps)
    return x, inside


def _decades(first: float, last: float) -> Float[Array, "k"]:
    """From one number to another in steps of at most ten."""
    count = 1 + int(np.ceil(np.log10(last / first) - 1e-9))
    return np.asarray(np.geomspace(first, last, count) if count > 1 else np.array([last]))


def _start(
    cones: Sequence[Cone], R: Float[Array, "r n"], r: Float[Array, "r"], outside: float, n: int
) -> tuple[Float[Array, "n"], bool]:
    """A point inside, and whether there is one.

    Args:
        outside: s of a point inside, here with x = 0.
    """
    x = np.append(np.zeros(n), outside)

    def inside(x: Float[Array, "n"]) -> bool:
        return _inside(cones, x)

    lifted = [
        replace(cone, columns=np.append(cone.columns, n), F=np.concatenate([cone.F, cone.near[None]]))
        for cone in cones
    ]
    R, q = np.hstack([R, np.zeros((len(R), 1))]), np.zeros(n + 1)
    for push in _decades(1.0 / outside, _PUSH):
        if inside(x):
            return x[:n], True
        q[n] = push * sum(len(cone.g) for cone in cones)
        x = _minimum(Objective(lifted, R, r, q, 1.0 / outside), x, _ROUGHLY, done=inside)
    return x[:n], inside(x)


def _minimum(
    objective: Objective,
    x: Float[Array, "n"],
    close: float,
    steps: int = _STEPS,
    done: Callable[[Float[Array, "n"]], bool] = lambda _: False,
) -> Float[Array, "n"]:
    """Newton's method with the best length of each step, from a point inside."""
    before = np.inf
    for _ in range(steps):
        step, decrement, length = objective.newton(x)
        if not decrement > close or done(x) or 0.5 * before < decrement < _QUADRATIC:
            break
        before = decrement
        tries = (x + part * length * step for part in _SHORTER)
        further = next((tried for tried in tries if _inside(objective.cones, tried)), None)
        if further is None:  # so near to an edge that rounding decides
            break
        x = further
    return x


def _inside(cones: Sequence[Cone], x: Float[Array, "n"]) -> bool:
    try:
        for cone in cones:
            np.linalg.cholesky(cone.at(x))
    except np.linalg.LinAlgError:
        return False
    return True


def _solved(H: Float[Array, "n n"], right: Float[Array, "n"]) -> Float[Array, "n"]:
    """H^-1 right of a matrix that is positive definite but for rounding."""
    import scipy.linalg

    size = np.sqrt(np.diag(H))
    size = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
    scaled, right = H * size[:, None] * size, size * right
    scaled[np.diag_indices(len(H))] = 1.0 + _RIDGE * len(H)
    try:
        return np.asarray(size * scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled), right))
    except np.linalg.LinAlgError:
        return np.asarray(size * np.linalg.lstsq(scaled, right, rcond=None)[0])
