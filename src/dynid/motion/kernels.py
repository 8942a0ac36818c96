"""Compiled loop of the recursive low-pass."""

from __future__ import annotations

from numba import boolean

from dynid.common.arrays import Array, Float
from dynid.common.compiled import F2, F3, kernel, takes


@takes(F2, F2, F3, boolean)
@kernel
def sweep(
    x: Float[Array, "n m"], sections: Float[Array, "k 6"], state: Float[Array, "k 2 m"], backwards: bool
) -> None:
    """Second-order sections along the samples of every column, in place (direct form II transposed).

    y = b0 u + z0,  z0 = b1 u - a1 y + z1,  z1 = b2 u - a2 y

    Args:
        x: Signals, which become the filtered ones, shape (n, m).
        sections: b0, b1, b2, 1, a1, a2 of every section, shape (k, 6).
        state: z0 and z1 of every section and column before the first sample, overwritten, shape (k, 2, m).
        backwards: From the last sample to the first.
    """
    n, m = x.shape
    for i in range(n):
        at = n - 1 - i if backwards else i
        for s in range(len(sections)):
            b0, b1, b2 = sections[s, 0], sections[s, 1], sections[s, 2]
            a1, a2 = sections[s, 4], sections[s, 5]
            for j in range(m):
                u = x[at, j]
                y = b0 * u + state[s, 0, j]
                state[s, 0, j] = b1 * u - a1 * y + state[s, 1, j]
                state[s, 1, j] = b2 * u - a2 * y
                x[at, j] = y
