"""Resolution of printed numbers: the unit of the last digit of each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array

_MOST = 16  # figures of a float64
_RTOL = 4e-15  # rounding error of a power of ten and a product


def last_figures(x: Float[Array, "n"]) -> Float[Array, "n"]:
    """Unit of the last printed digit of every number of a column: 1e-6 for 1.234567 with seven digits.

    A column is printed with a fixed number of significant digits, or of decimals. The largest count that
    occurs is that of the format, since only single numbers lose trailing zeros. If both are possible, the
    coarser one is used. Numbers of full precision have the spacing of floats.
    """
    known = np.isfinite(x) & (x != 0.0)
    if not known.any():
        return np.zeros(len(x))
    size = np.zeros(len(x))
    size[known] = np.floor(np.log10(np.abs(x[known])))
    figures = _figures(x[known], size[known])
    decimals = np.max(figures - 1.0 - size[known])
    by_figures = 10.0 ** (size - figures.max() + 1.0)
    return np.asarray(np.where(known, np.maximum(by_figures, 10.0**-decimals), 10.0**-decimals))


def _figures(x: Float[Array, "n"], size: Float[Array, "n"]) -> Float[Array, "n"]:
    """Significant figures of each number: the fewest that give it back."""
    found = np.full(len(x), float(_MOST))
    for count in range(_MOST - 1, 0, -1):
        scaled = x * 10.0 ** (count - 1.0 - size)
        whole = np.rint(scaled)
        found = np.where(np.abs(scaled - whole) <= _RTOL * np.abs(scaled), float(count), found)
    return found
