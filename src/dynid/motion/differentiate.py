"""Derivatives of uniformly sampled signals (central formulas, quintic spline) and of samples at any times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import solve
from dynid.common.errors import InputError, nearest
from dynid.motion.filters import extend_odd

Derivative = Literal["central3", "central5", "central7", "spline"]

STENCILS: dict[str, tuple[float, ...]] = {
    "central3": (1 / 2,),
    "central5": (8 / 12, -1 / 12),
    "central7": (45 / 60, -9 / 60, 1 / 60),
}
_SPLINE_REACH = 48  # the slowest root of the quintic spline is 0.431: 0.431^48 < 1e-17
_PART = 1 << 11  # samples of a few signals
POINTS = 7
_FEWER = 5
EDGE = POINTS // 2  # samples at either end without neighbours on both sides


def reach(kind: str) -> int:
    """Samples on either side that a second derivative depends on."""
    return _SPLINE_REACH if kind == "spline" else 2 * len(STENCILS[kind])


def differentiate(
    x: Float[Array, "n m"], dt: float, kind: str = "central7", *, order: int = 1
) -> Float[Array, "n m"]:
    """First or second derivative along the samples, same shape, per second (squared).

    The first and last samples use an odd continuation of the segment; they belong to the edge
    that is removed.
    """
    if kind not in get_args(Derivative):
        raise InputError(
            f"unknown derivative '{kind}'" + nearest(kind, get_args(Derivative)), place="filter.derivative"
        )
    if kind == "spline":
        return _spline(x, dt, order)
    width = order * len(STENCILS[kind])
    extended = extend_odd(x, width)
    for _ in range(order):
        extended = _central(extended, dt, STENCILS[kind])
    return extended


def _central(x: Float[Array, "n m"], dt: float, weights: tuple[float, ...]) -> Float[Array, "k m"]:
    """The formula at every sample that has all its neighbours, in parts that stay in the cache."""
    half = len(weights)
    slope = np.empty((len(x) - 2 * half, x.shape[1]))
    for start in range(0, len(slope), _PART):
        part = slope[start : start + _PART]
        near = x[start : start + len(part) + 2 * half]
        part[:] = 0.0
        for offset, weight in enumerate(weights, start=1):
            ahead, behind = near[half + offset :][: len(part)], near[half - offset :][: len(part)]
            part += (weight / dt) * (ahead - behind)
    return slope


def _spline(x: Float[Array, "n m"], dt: float, order: int) -> Float[Array, "n m"]:
    from scipy.interpolate import make_interp_spline

    samples = np.arange(len(x), dtype=float)
    spline = make_interp_spline(samples, x, k=5 if len(x) > 5 else 1)
    return np.asarray(spline(samples, nu=order)) / dt**order


# Derivatives of samples at any times: a polynomial through the nearest ones.
#
# For tables of instants, which need not be equidistant. A polynomial of degree 6 through the seven nearest
# samples; its difference from the one of degree 4 through the five nearest estimates the error.


@dataclass(frozen=True, eq=False)
class Derivatives:
    """First and second derivatives, and their estimated errors.

    Attributes:
        first, second: Shape (n, c), per s and per s^2.
        first_error, second_error: Difference from a shorter formula: RMS over all, per s and per s^2.
        inner: Samples with neighbours on both sides, shape (n,).
    """

    first: Float[Array, "n c"]
    second: Float[Array, "n c"]
    first_error: float
    second_error: float
    inner: Bool[Array, "n"]

    def roughness(self, order: int) -> tuple[float, float]:
        """Error and size (rms) of the first or second derivative."""
        value, error = (self.first, self.first_error) if order == 1 else (self.second, self.second_error)
        return error, _rms(value[self.inner])


def derivatives(t: Float[Array, "n"], x: Float[Array, "n c"]) -> Derivatives | None:
    """Derivatives of columns at increasing times; None where there are too few samples.

    Args:
        t: Times, increasing, shape (n,), in [s].
        x: Samples, shape (n, c), any unit.
    """
    if len(t) < POINTS:
        return None
    first, second = _fitted(t, x, POINTS)
    rough_first, rough_second = _fitted(t, x, _FEWER)
    inner = np.zeros(len(t), dtype=bool)
    inner[EDGE:-EDGE] = True
    return Derivatives(
        first,
        second,
        _rms((first - rough_first)[inner]),
        _rms((second - rough_second)[inner]),
        inner,
    )


def _fitted(
    t: Float[Array, "n"], x: Float[Array, "n c"], points: int
) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
    """Derivatives of the polynomial through the `points` nearest samples, at every sample."""
    n = len(t)
    start = np.clip(np.arange(n) - points // 2, 0, n - points)
    near = start[:, None] + np.arange(points)
    away = t[near] - t[:, None]
    scale = np.abs(away).max(axis=1)
    powers = (away / scale[:, None])[:, :, None] ** np.arange(points)
    coefficients = solve(powers, x[near])
    return coefficients[:, 1] / scale[:, None], 2.0 * coefficients[:, 2] / scale[:, None] ** 2


def _rms(x: Float[Array, "n c"]) -> float:
    return float(np.sqrt(np.mean(x**2))) if x.size else 0.0
