"""Derivatives of uniformly sampled signals: central formulas and a quintic spline.

| kind     | dq, with h the step                                   | error of dq | error of ddq |
|----------|-------------------------------------------------------|-------------|--------------|
| central3 | (x1 - x-1) / 2h                                       | h^2         | h^2          |
| central5 | (8 (x1 - x-1) - (x2 - x-2)) / 12h                     | h^4         | h^4          |
| central7 | (45 (x1 - x-1) - 9 (x2 - x-2) + (x3 - x-3)) / 60h     | h^6         | h^6          |
| spline   | slope of the quintic spline through the samples       | h^6         | h^4          |

A second derivative by a central formula is the formula applied twice, so that the acceleration
is the derivative of the same velocity that friction and energy use.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError, nearest
from dynid.motion.filters import extend_odd
from dynid.motion.settings import Derivative

STENCILS: dict[str, tuple[float, ...]] = {
    "central3": (1 / 2,),
    "central5": (8 / 12, -1 / 12),
    "central7": (45 / 60, -9 / 60, 1 / 60),
}
_SPLINE_REACH = 48  # the slowest root of the quintic spline is 0.431: 0.431^48 < 1e-17


def check_derivative(kind: str) -> None:
    """Refuse an unknown derivative formula."""
    if kind not in get_args(Derivative):
        raise InputError(
            f"unknown derivative '{kind}'" + nearest(kind, get_args(Derivative)), place="filter.derivative"
        )


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
    check_derivative(kind)
    if kind == "spline":
        return _spline(x, dt, order)
    width = order * len(STENCILS[kind])
    extended = extend_odd(x, width)
    for _ in range(order):
        extended = _central(extended, dt, STENCILS[kind])
    return extended


def _central(x: Float[Array, "n m"], dt: float, weights: tuple[float, ...]) -> Float[Array, "k m"]:
    """The formula at every sample that has all its neighbours."""
    half = len(weights)
    count = len(x) - 2 * half
    slope = np.zeros((count, x.shape[1]))
    for offset, weight in enumerate(weights, start=1):
        ahead, behind = x[half + offset :][:count], x[half - offset :][:count]
        slope += (weight / dt) * (ahead - behind)
    return slope


def _spline(x: Float[Array, "n m"], dt: float, order: int) -> Float[Array, "n m"]:
    from scipy.interpolate import make_interp_spline

    samples = np.arange(len(x), dtype=float)
    spline = make_interp_spline(samples, x, k=5 if len(x) > 5 else 1)
    return np.asarray(spline(samples, nu=order)) / dt**order
