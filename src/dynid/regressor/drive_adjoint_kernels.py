"""Reverse pass of friction, rotor and offset entries, and of rows combined by N."""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import kernel
from dynid.regressor.kernels import (
    COULOMB,
    COULOMB_DOWN,
    COULOMB_UP,
    ROOT,
    ROTOR,
    STRIBECK,
    VISCOUS,
    VISCOUS_DOWN,
    VISCOUS_UP,
)


@kernel
def soften(drives, dq, widths, packed):
    """Replace the jumps of friction entries by tanh(dq / width), for gradient-based optimisation.

    widths: per source, in its speed; 0 keeps the jump.
    """
    entries, symbols, sources, factors, _ = drives
    for d in range(entries.size):
        symbol, source = symbols[d], sources[d]
        if symbol not in (COULOMB, COULOMB_UP, COULOMB_DOWN) or widths[source] == 0.0:
            continue
        for s in range(dq.shape[0]):
            step = np.tanh(dq[s, source] / widths[source])
            if symbol == COULOMB_UP:
                step = 0.5 * (1.0 + step)
            elif symbol == COULOMB_DOWN:
                step = 0.5 * (step - 1.0)
            packed[entries[d], s] = factors[d] * step


@kernel
def reverse_drives(drives, dq, widths, g, out_dq, out_ddq):
    """Adds derivatives of friction, rotor and offset entries with respect to their sources' rates.

    Jumps of friction are smoothed as in `soften`; jumps that are kept have no derivative.
    """
    entries, symbols, sources, factors, scales = drives
    n = dq.shape[0]
    for d in range(entries.size):
        row, symbol, source, factor = g[entries[d]], symbols[d], sources[d], factors[d]
        for s in range(n):
            rate = dq[s, source]
            weight = factor * row[s]
            if symbol == ROTOR:
                out_ddq[s, source] += weight
            elif symbol == VISCOUS:
                out_dq[s, source] += weight
            elif symbol == VISCOUS_UP:
                out_dq[s, source] += weight if rate > 0 else 0.0
            elif symbol == VISCOUS_DOWN:
                out_dq[s, source] += weight if rate < 0 else 0.0
            elif symbol == ROOT:
                if rate != 0.0:
                    out_dq[s, source] += 0.5 * weight / np.sqrt(abs(rate))
            elif symbol == STRIBECK:
                ratio = rate / scales[d]
                out_dq[s, source] -= weight * np.sign(rate) * 2.0 * ratio / scales[d] * np.exp(-ratio * ratio)
            elif symbol in (COULOMB, COULOMB_UP, COULOMB_DOWN) and widths[source] > 0.0:
                step = np.tanh(rate / widths[source])
                slope = (1.0 - step * step) / widths[source]
                out_dq[s, source] += weight * slope * (1.0 if symbol == COULOMB else 0.5)


@kernel
def combine_back(packed, combination, N, g, back, N_bar):
    """Adjoints of `combine_moving`: of the tree's entries (t, n) and of N (k, v, n)."""
    start, entries, coordinates, rows = combination
    n = packed.shape[1]
    for e in range(start.size - 1):
        weight = g[e]
        for j in range(start[e], start[e + 1]):
            source, factor = packed[entries[j]], N[rows[e], coordinates[j]]
            to, slope = back[entries[j]], N_bar[rows[e], coordinates[j]]
            for s in range(n):
                to[s] += factor[s] * weight[s]
                slope[s] += source[s] * weight[s]
