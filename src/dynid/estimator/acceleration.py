"""Anderson acceleration: a fixed point x = g(x) from the last few steps [Anderson 1965, Walker and Ni 2011].

f_k = g(x_k) - x_k,      x_(k+1) = g(x_k) - sum_i gamma_i (g(x_(i+1)) - g(x_i))

with the gamma that minimise the same combination of the f: a secant method. If plain steps shrink by
only a few percent each (poorly excited columns), it needs a tenth of them. If the step grows, the
history is cleared and plain steps start again.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float

_DEPTH = 8
_GROWTH = 3.0  # a step so much larger than the smallest so far is no progress
_RTOL = 1e-8  # of the largest singular value: differences of differences are rounding


class Acceleration:
    """Proposes the next point of a fixed-point iteration."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._steps: list[Array] = []

    def next(self, x: Float[Array, "p"], g: Float[Array, "p"], scale: Float[Array, "p"]) -> Float[Array, "p"]:
        """The point to try after x, which the iteration maps to g.

        Args:
            scale: What counts as one of each entry (its deviation), shape (p,).
        """
        step = (g - x) / scale
        size = float(np.linalg.norm(step))
        if self._steps and size > _GROWTH * min(float(np.linalg.norm(earlier)) for earlier in self._steps):
            self._points, self._steps = [], []
        self._points = [*self._points[-_DEPTH:], g]
        self._steps = [*self._steps[-_DEPTH:], step]
        if len(self._steps) < 2:
            return g
        F = np.diff(np.array(self._steps), axis=0).T
        G = np.diff(np.array(self._points), axis=0).T
        gamma = np.linalg.lstsq(F, step, rcond=_RTOL)[0]
        return np.asarray(g - G @ gamma)
