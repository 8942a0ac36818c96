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
from dynid.common.lapack import cholesky_solve

_CLOSE = 1e-7  # Newton decrement of an answer: the objective is above its minimum by half its square
_ROUGHLY = 0.1  # the same on the way there
_STEPS = 100  # of one minimisation
_ON_THE_WAY = 15  # of one that only has to come near: where rounding hides the decrement, more are wasted
_QUADRATIC = 1e-2  # decrement below which it is squared by each step; then one that stays is rounding
_TO_EDGE = 0.999  # of the way to the nearest edge of a cone
_SHORTER = (1.0, 0.9, 0.5, 0.1)  # parts of a step, where rounding puts it outside
_LONGEST, _HALVINGS = 1e6, 40  # of a step that meets no edge; of the search along a step
_LENGTH = 1e-12  # relative change of a length that ends this search
_PUSH = 1e12  # largest weight of s, relative to that of the logarithms
_USELESS = 1e4  # times the start: bodies that are no answer
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


@dataclass(frozen=True, eq=False)
class _Stack:
    """Cones of one size, so that one call treats them all; unused columns have F = 0."""

    columns: Int[Array, "c k"]
    F: Float[Array, "c k m m"]
    g: Float[Array, "c m m"]
    near: Float[Array, "c m m"]
    weight: Float[Array, "c"]
    pull: Float[Array, "c"]

    @classmethod
    def of(cls, cones: Sequence[Cone]) -> list[_Stack]:
        """Cones by size."""
        return [
            cls._same_size([cone for cone in cones if len(cone.g) == m])
            for m in dict.fromkeys(len(cone.g) for cone in cones)
        ]

    @classmethod
    def _same_size(cls, cones: Sequence[Cone]) -> _Stack:
        k = max(len(cone.columns) for cone in cones)
        columns = np.zeros((len(cones), k), dtype=int)
        F = np.zeros((len(cones), k, *cones[0].g.shape))
        for i, cone in enumerate(cones):
            columns[i, : len(cone.columns)], F[i, : len(cone.columns)] = cone.columns, cone.F
        g, near = np.stack([cone.g for cone in cones]), np.stack([cone.near for cone in cones])
        weight, pull = np.array([(cone.weight, cone.pull) for cone in cones]).T
        return cls(columns, F, g, near, weight, pull)

    def lifted(self, n: int) -> _Stack:
        """With the variable n times P0 added to each."""
        columns = np.pad(self.columns, ((0, 0), (0, 1)), constant_values=n)
        return replace(self, columns=columns, F=np.concatenate([self.F, self.near[:, None]], axis=1))

    def rates(self, x: Float[Array, "n"]) -> Float[Array, "c m m"]:
        """The matrices without g."""
        return np.asarray(np.einsum("ck,ckab->cab", x[self.columns], self.F))

    def at(self, x: Float[Array, "n"]) -> Float[Array, "c m m"]:
        """The matrices."""
        return self.rates(x) + self.g

    @cached_property
    def slope(self) -> Float[Array, "c k"]:
        """Derivative of the trace with P0^-1, times its weight."""
        return np.asarray(self.pull[:, None] * np.einsum("cab,ckab->ck", np.linalg.inv(self.near), self.F))

    @cached_property
    def pairs(self) -> tuple[Int[Array, "c k k"], Int[Array, "c k k"]]:
        """Places of all products of two columns."""
        first, second = np.broadcast_arrays(self.columns[:, :, None], self.columns[:, None, :])
        return first, second

    def depth(self, x: Float[Array, "n"]) -> float:
        """Largest t with P - t P0 >= 0 for all: positive inside."""
        root = np.linalg.inv(np.linalg.cholesky(self.near))
        return float(np.linalg.eigvalsh(root @ self.at(x) @ root.mT)[:, 0].min())


@dataclass(frozen=True, eq=False)
class Objective:
    """q^T x + near (traces + square) - logarithms: what is minimised at one point of the path."""

    cones: Sequence[_Stack]
    R: Float[Array, "r n"]
    r: Float[Array, "r"]
    q: Float[Array, "n"]
    near: float

    def newton(self, x: Float[Array, "n"]) -> tuple[Float[Array, "n"], float, float]:
        """Step from a point inside, its decrement, and the length with the least objective along it."""
        residual = self.R @ x + self.r
        gradient, H = self.q + self.near * (self.R.T @ residual), self.near * (self.R.T @ self.R)
        roots = []
        for cones in self.cones:
            roots.append(np.linalg.inv(np.linalg.cholesky(cones.at(x))))
            F = roots[-1][:, None] @ cones.F @ roots[-1].mT[:, None]
            weight = cones.weight[:, None]
            traces = np.trace(F, axis1=2, axis2=3)
            np.add.at(gradient, cones.columns, self.near * cones.slope - weight * traces)
            flat = F.reshape(*F.shape[:2], -1)
            np.add.at(H, cones.pairs, weight[:, None] * (flat @ flat.mT))
        step = -_solved(H, gradient)
        decrement = float(np.sqrt(max(0.0, -(gradient @ step))))
        rates = [
            np.linalg.eigvalsh(root @ cones.rates(step) @ root.mT)
            for cones, root in zip(self.cones, roots, strict=True)
        ]
        weights = [
            np.broadcast_to(cones.weight[:, None], rate.shape).ravel()
            for cones, rate in zip(self.cones, rates, strict=True)
        ]
        rate = np.concatenate([np.zeros(0), *(rate.ravel() for rate in rates)])
        weight = np.concatenate([np.zeros(0), *weights])
        slope = float(gradient @ step) + float(weight @ rate)
        return (
            step,
            decrement,
            _best_length(rate, weight, slope, self.near * float(np.sum((self.R @ step) ** 2))),
        )


def _best_length(rate: Float[Array, "k"], weight: Float[Array, "k"], slope: float, curvature: float) -> float:
    """The t > 0 with least slope t + 1/2 curvature t^2 - sum weight log(1 + t rate).

    Newton's method on the derivative, which rises; a step out of the range where its root lies halves it.
    """
    fastest = -float(rate.min(initial=0.0))
    low, high = 0.0, _TO_EDGE / fastest if fastest > 0.0 else _LONGEST
    t = min(1.0, 0.5 * high)
    for _ in range(_HALVINGS):
        share = rate / (1.0 + t * rate)
        derivative = slope + curvature * t - float(weight @ share)
        low, high = (t, high) if derivative < 0.0 else (low, t)
        bend = curvature + float(weight @ share**2)
        near = t - derivative / bend if bend > 0.0 else high
        if abs(near - t) <= _LENGTH * t:
            return near
        t = near if low < near < high else 0.5 * (low + high)
    return low if low > 0.0 else high


def nearest_inside(
    cones: Sequence[Cone], R: Float[Array, "r n"], r: Float[Array, "r"], n: int
) -> Float[Array, "n"]:
    """The minimum inside all cones; if there is no point inside, the one that is least far outside."""
    x, stacks = np.zeros(n), _Stack.of(cones)
    outside = max([1.0, *(-2.0 * stack.depth(x) for stack in stacks)])
    x, inside = _start(stacks, R, r, outside, n)
    if inside:
        for near in _decades(1.0 / outside, 1.0):
            close = _CLOSE if near == 1.0 else _ROUGHLY
            steps = _STEPS if near == 1.0 else _ON_THE_WAY
            x = _minimum(Objective(stacks, R, r, np.zeros(n), near), x, close, steps)
    return x


def _decades(first: float, last: float) -> Float[Array, "k"]:
    """From one number to another in steps of at most ten."""
    count = 1 + int(np.ceil(np.log10(last / first) - 1e-9))
    return np.asarray(np.geomspace(first, last, count) if count > 1 else np.array([last]))


def _start(
    cones: Sequence[_Stack], R: Float[Array, "r n"], r: Float[Array, "r"], outside: float, n: int
) -> tuple[Float[Array, "n"], bool]:
    """A point inside, and whether there is one.

    Of m rows of cones, one point of the path shows that each point inside has a trace or a square of at least
    (q s - m) / near, with q the weight of s: if that is far beyond the start, nothing inside is of use.

    Args:
        outside: s of a point inside, here with x = 0.
    """
    x, near = np.append(np.zeros(n), outside), 1.0 / outside

    def inside(x: Float[Array, "n"]) -> bool:
        return _inside(cones, x)

    lifted = [stack.lifted(n) for stack in cones]
    R, q = np.hstack([R, np.zeros((len(R), 1))]), np.zeros(n + 1)
    rows = sum(stack.g.shape[0] * stack.g.shape[1] for stack in cones)
    for push in _decades(near, _PUSH):
        if inside(x):
            return x[:n], True
        if q[n] * x[n] > _USELESS * rows:
            break
        q[n] = push * rows
        x = _minimum(Objective(lifted, R, r, q, near), x, _ROUGHLY, done=inside)
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


def _inside(cones: Sequence[_Stack], x: Float[Array, "n"]) -> bool:
    try:
        for stack in cones:
            np.linalg.cholesky(stack.at(x))
    except np.linalg.LinAlgError:
        return False
    return True


def _solved(H: Float[Array, "n n"], right: Float[Array, "n"]) -> Float[Array, "n"]:
    """H^-1 right of a matrix that is positive definite but for rounding."""
    size = np.sqrt(np.diag(H))
    size = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
    scaled, right = H * size[:, None] * size, size * right
    scaled[np.diag_indices(len(H))] = 1.0 + _RIDGE * len(H)
    solved = cholesky_solve(scaled, right)
    return np.asarray(size * (np.linalg.lstsq(scaled, right, rcond=None)[0] if solved is None else solved))
