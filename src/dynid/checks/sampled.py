"""Columns of rows that are known at some of n samples, with straight lines between."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.projection.quadrature import Quadrature

_TOGETHER = 256  # samples whose lines are computed by one product

# The samples (s,), 0 and n - 1 among them, and the columns there (k, c, s).
Sampled = tuple[Array, Array]


def fill(columns: Sampled, part: slice, out: Float[Array, "k c m"]) -> None:
    """Write the columns at some consecutive samples to `out`.

    v(x) = v_0 + sum_j slope_j r_j,     r_j = x - a_j   within 0 .. a_(j+1) - a_j
    """
    at, values = columns
    if len(at) == at[-1] + 1:
        out[:] = values[:, :, part]
        return
    for start in range(part.start, part.stop, _TOGETHER):
        x = np.arange(start, min(start + _TOGETHER, part.stop))
        _lines(at, values, x, out[:, :, start - part.start : start - part.start + len(x)])


def _lines(at: Array, values: Float[Array, "k c s"], x: Int[Array, "m"], out: Float[Array, "k c m"]) -> None:
    """The same at some samples that follow each other; work and memory grow with their square."""
    first = int(np.searchsorted(at, x[0], side="right")) - 1
    last = int(np.searchsorted(at, x[-1])) + 1
    knots, values = at[first:last], values[:, :, first:last]
    past, steps = x - knots[:-1, None], np.diff(knots)
    past = np.minimum(np.maximum(past, 0.0), steps[:, None])
    np.matmul((values[:, :, 1:] - values[:, :, :-1]) / steps, past, out=out)
    out += values[:, :, :1]


def everywhere(values: Float[Array, "k c n"]) -> Sampled:
    """Columns that are known at each sample."""
    return np.arange(values.shape[2]), values


def means(rule: Quadrature, columns: Sampled) -> Sampled:
    """Means over the spans of the rows."""
    k, c, _ = columns[1].shape
    whole = np.empty((k, c, int(columns[0][-1]) + 1))
    fill(columns, slice(0, whole.shape[2]), whole)
    averaged = rule.means(whole.reshape(k * c, -1).T)
    return everywhere(np.asarray(averaged.T.reshape(k, c, len(averaged))))
