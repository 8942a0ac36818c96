"""Compiled columns of drive terms, smoothed and not, with their derivatives; the reverse pass of N^T W.

`term_column` of the table of drive terms is compiled as it is.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel
from dynid.mechanism.drive_terms import INERTIA, jump_signs, term_column

_STEP = 1e-30  # of the complex step: far below rounding, so that no digit is lost
compiled_column = inner(term_column)
compiled_signs = inner(jump_signs)


@inner
def smooth_signs(v, width):
    """The `signs` of `term_column`, jumps replaced by tanh(v / width); a width of 0 keeps them."""
    sign = np.sign(v.real)
    if width == 0.0:
        return sign, v * 0.0 + sign, v * 0.0 + max(sign, 0.0), v * 0.0 + min(sign, 0.0)
    whole = np.tanh(v.real / width)
    step = whole + (1.0 - whole * whole) / width * (v - v.real)  # with its derivative, if v is complex
    return sign, step, 0.5 * (1.0 + step), 0.5 * (step - 1.0)


@kernel
def soften(drives, dq, widths, packed):
    """Replace the jumps of friction entries by tanh(dq / width), for gradient-based optimisation.

    widths: per entry, in the speed of its source; 0 keeps the jump.
    """
    entries, numbers, sources, factors, speeds = drives
    for d in range(entries.size):
        if widths[d] == 0.0:
            continue
        for s in range(dq.shape[0]):
            v = dq[s, sources[d]]
            column = compiled_column(numbers[d], v, 0.0, smooth_signs(v, widths[d]), 0.0, speeds[d])
            packed[entries[d], s] = factors[d] * column


@kernel
def reverse_drives(drives, dq, widths, g, out_dq, out_ddq):
    """Adds derivatives of drive entries with respect to their sources' rates, by the complex step.

    Jumps of friction are smoothed as in `soften`; jumps that are kept, and loads, have no derivative.
    """
    entries, numbers, sources, factors, speeds = drives
    for d in range(entries.size):
        row, source = g[entries[d]], sources[d]
        inertial = numbers[d] == INERTIA
        out = out_ddq if inertial else out_dq
        rate, acceleration = (0.0, _STEP) if inertial else (_STEP, 0.0)
        for s in range(dq.shape[0]):
            v, a = complex(dq[s, source], rate), complex(0.0, acceleration)
            column = compiled_column(numbers[d], v, a, smooth_signs(v, widths[d]), 0.0, speeds[d])
            out[s, source] += factors[d] * row[s] * (column.imag / _STEP)


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
