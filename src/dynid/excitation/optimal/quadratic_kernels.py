"""Interior-point steps for quadratic programs whose limits come in equal blocks.

    min 1/2 p'Bp + g'p + rho sum(e)   s.t.  lower_j <= C p_j <= upper_j,   A p - e <= b,  e >= 0

p consists of blocks p_j, one per coordinate, that share the matrix C: its products stay within a block.
Rows of A couple all blocks and may be violated (e) with a penalty rho each, so a solution always exists.
Mehrotra's predictor and corrector; bounds may be violated at the start.

Each inequality has a slack s and a multiplier z. Arrays over inequalities have four sections: lower bounds
and upper bounds of all blocks (`cells` each), rows of A, and e >= 0 (one each per row of A).
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.common.compiled import summing
from dynid.common.compiled_arrays import release, workspace

_BACK = 0.995  # of the way to the boundary
_ZERO = 1e-8  # of gradient times width: a minimum that is zero
_S, _Z, _DS, _DZ = range(4)  # rows of `pairs`: slack, multiplier, and the steps of both
_W, _R, _V = range(3)  # rows of `terms`: weight z / s, residual of the slack, step of z at a slack that stays


@summing
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@summing
def _gram(C, weights, m, H, at):
    """H += C' diag(weights) C in the lower triangle of the block at `at`."""
    r = C.shape[1]
    scaled = workspace(C, r)
    for i in range(m):
        row = C[i]
        for k in range(r):
            scaled[k] = row[k] * weights[k]
        for j in range(i + 1):
            other = C[j]
            total = 0.0
            for k in range(r):
                total += scaled[k] * other[k]
            H[at + i, at + j] += total
    release(scaled)


@summing
def _factor(H):
    """Lower Cholesky factor in place; a pivot that is not positive is replaced by a large one."""
    n = H.shape[0]
    for i in range(n):
        row = H[i]
        for j in range(i + 1):
            other = H[j]
            total = 0.0
            for k in range(j):
                total += row[k] * other[k]
            if j < i:
                row[j] = (row[j] - total) / other[j]
            else:
                pivot = row[i] - total
                row[i] = np.sqrt(pivot) if pivot > 1e-300 else 1e150


@inner
def _solve(L, x):
    """Replace x by (L L')^-1 x."""
    n = L.shape[0]
    for i in range(n):
        x[i] = (x[i] - _dot(L[i], x, i)) / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        value, row = x[i], L[i]
        for k in range(i):
            x[k] -= value * row[k]


@inner
def _times(C, p, m, out):
    """out[j] = C' p_j for all blocks; C has one coefficient per row."""
    for j in range(out.shape[0]):
        row = out[j]
        row[:] = 0.0
        for i in range(m):
            value, column = p[j * m + i], C[i]
            for k in range(row.size):
                row[k] += value * column[k]


@inner
def _times_back(C, v, m, out):
    """Add C v_j to out, block by block."""
    for j in range(v.shape[0]):
        for i in range(m):
            out[j * m + i] += _dot(C[i], v[j], v.shape[1])


@inner
def _largest(x):
    """Largest absolute value, 0 if there is none."""
    most = 0.0
    for i in range(x.size):
        most = max(most, abs(x[i]))
    return most


@inner
def _started(lower, upper, b, mu, rho):
    """Slacks and multipliers at p = 0, steps zero; slacks are at least a share of the width."""
    cells, rows = lower.size, b.size
    pairs = np.zeros((4, 2 * (cells + rows)))
    s, z = pairs[_S], pairs[_Z]
    low, high = lower.ravel(), upper.ravel()
    for i in range(cells):
        width = high[i] - low[i]
        s[i] = max(-low[i], 1e-3 * width)
        s[cells + i] = max(high[i], 1e-3 * width)
    for i in range(2 * cells):
        z[i] = mu / s[i]
    soft_s, soft_e = s[2 * cells : 2 * cells + rows], s[2 * cells + rows :]
    for i in range(rows):
        soft_s[i] = max(b[i], 1e-2)
        soft_e[i] = max(soft_s[i] - b[i], 1e-2)
    z[2 * cells :] = 0.5 * rho
    return pairs


@inner
def _gap(s, z, cells):
    """Sum of slack times multiplier."""
    rows = (s.size - 2 * cells) // 2
    bounds = _dot(s, z, cells) + _dot(s[cells:], z[cells:], cells)
    soft = 2 * cells
    return bounds + (_dot(s[soft:], z[soft:], rows) + _dot(s[soft + rows :], z[soft + rows :], rows))


@inner
def _cost(B, g, p, rho, e):
    """The minimised value at p, with the excess e of the rows of A."""
    total = 0.0
    for i in range(g.size):
        total += p[i] * (g[i] + 0.5 * _dot(B[i], p, g.size))
    for i in range(e.size):
        total += rho * e[i]
    return total


@inner
def _gradient(B, g, C, A, p, z, push, out):
    """Residual of optimality: gradient of the cost plus multipliers times limits; returns the largest."""
    cells, n = push.size, g.size
    for i in range(n):
        out[i] = g[i] + _dot(B[i], p, n)
    flat = push.ravel()
    for i in range(cells):
        flat[i] = z[cells + i] - z[i]
    _times_back(C, push, C.shape[0], out)
    for i in range(A.shape[0]):
        for k in range(n):
            out[k] += A[i, k] * z[2 * cells + i]
    return _largest(out)


@inner
def _bound_residuals(lower, upper, Cp, s, out):
    """Distances to the bounds minus the slacks that represent them; returns the largest."""
    cells, most = Cp.size, 0.0
    low_s, high_s, low_r, high_r = s[:cells], s[cells:], out[:cells], out[cells:]
    for i in range(cells):
        low_r[i] = Cp[i] - lower[i] - low_s[i]
        high_r[i] = upper[i] - Cp[i] - high_s[i]
        most = max(most, abs(low_r[i]), abs(high_r[i]))
    return most


@inner
def _soft_residuals(b, Ap, s, out):
    """The same of the rows of A, which may be violated; s, out: from their section on."""
    rows, most = b.size, 0.0
    for i in range(rows):
        out[i] = b[i] - Ap[i] + s[rows + i] - s[i]
        most = max(most, abs(out[i]))
    return most


@inner
def _weigh(s, z, cells, w):
    """Weight of each bound and of each row of A in the Newton matrix."""
    rows = (s.size - 2 * cells) // 2
    for i in range(2 * cells):
        w[i] = z[i] / s[i]
    for i in range(2 * cells, 2 * cells + rows):
        w[i] = z[i] / _softened(s, z, i, rows)


@inner
def _softened(s, z, i, rows):
    """Slack of row i of A, plus the part that its excess gives way."""
    return s[i] + z[i] * s[rows + i] / z[rows + i]


@inner
def _newton_matrix(B, C, A, w, weights, H):
    """H = B + C' diag(w) C + A' diag(w) A, lower triangle; weights: (blocks, r), overwritten."""
    n, m, cells = B.shape[0], C.shape[0], weights.size
    flat = weights.ravel()
    for i in range(cells):
        flat[i] = w[i] + w[cells + i]
    for i in range(n):
        for k in range(i + 1):
            H[i, k] = B[i, k]
    for j in range(weights.shape[0]):
        _gram(C, weights[j], m, H, j * m)
    for i in range(A.shape[0]):
        for a in range(n):
            value = w[2 * cells + i] * A[i, a]
            if value != 0.0:
                for c in range(a + 1):
                    H[a, c] += value * A[i, c]


@inner
def _aims(corrects, centre, pairs, n, v):
    """Target of each product of slack and multiplier over the slack, minus the multiplier; n: bounds.

    The predictor aims at zero; the corrector at `centre`, less the product of the predicted steps.
    """
    s, z, ds, dz = pairs[_S], pairs[_Z], pairs[_DS], pairs[_DZ]
    if corrects:
        for i in range(n):
            v[i] = (centre - ds[i] * dz[i]) / s[i] - z[i]
    else:
        for i in range(n):
            v[i] = -z[i]


@inner
def _right_side(C, rd, terms, push, out):
    """Right side of the Newton equations for p; push: (blocks, r), overwritten."""
    w, r, v, cells = terms[_W], terms[_R], terms[_V], push.size
    flat = push.ravel()
    for i in range(cells):
        high = cells + i
        flat[i] = v[i] - w[i] * r[i]
        flat[i] += w[high] * r[high] - v[high]
    for i in range(rd.size):
        out[i] = -rd[i]
    _times_back(C, push, C.shape[0], out)


@inner
def _soft_right_side(corrects, centre, A, pairs, cells, terms, out):
    """Aims of the rows of A, after elimination of their excess; subtracts A' aims from the right side."""
    s, z, ds, dz = pairs[_S], pairs[_Z], pairs[_DS], pairs[_DZ]
    rows, r, v = A.shape[0], terms[_R], terms[_V]
    for row in range(rows):
        i = 2 * cells + row
        e = rows + i
        es = ds[e] * dz[e] if corrects else 0.0
        ss = ds[i] * dz[i] if corrects else 0.0
        target = centre - es
        lean = target / z[e] - s[e]
        v[i] = (centre - ss - s[i] * z[i] - z[i] * (lean + r[i])) / _softened(s, z, i, rows)
        for k in range(out.size):
            out[k] -= A[row, k] * v[i]


@inner
def _bound_steps(dCp, terms, pairs):
    """Steps of slacks and multipliers of the bounds that follow from the step of p."""
    w, r, v, ds, dz = terms[_W], terms[_R], terms[_V], pairs[_DS], pairs[_DZ]
    cells = dCp.size
    for i in range(cells):
        high = cells + i
        ds[i] = dCp[i] + r[i]
        ds[high] = r[high] - dCp[i]
        dz[i] = v[i] - w[i] * ds[i]
        dz[high] = v[high] - w[high] * ds[high]


@inner
def _soft_steps(corrects, centre, A, dp, cells, terms, pairs):
    """The same of the rows of A and of their excess."""
    w, r, v = terms[_W], terms[_R], terms[_V]
    s, z, ds, dz = pairs[_S], pairs[_Z], pairs[_DS], pairs[_DZ]
    rows = A.shape[0]
    for row in range(rows):
        i = 2 * cells + row
        e = rows + i
        es = ds[e] * dz[e] if corrects else 0.0
        change = _dot(A[row], dp, dp.size)
        dz[i] = v[i] + w[i] * change
        dz[e] = -dz[i]
        ds[e] = (centre - es + s[e] * dz[i]) / z[e] - s[e]
        ds[i] = r[i] - change + ds[e]


@inner
def _longest(pairs):
    """The largest part of a step that keeps s and z positive; divides only if the step gets shorter."""
    s, z, ds, dz = pairs[_S], pairs[_Z], pairs[_DS], pairs[_DZ]
    step = 1.0
    for i in range(s.size):
        if s[i] + step * ds[i] < 0.0:
            step = -s[i] / ds[i]
        if z[i] + step * dz[i] < 0.0:
            step = -z[i] / dz[i]
    return step


@summing
def _ahead(step, pairs, start, stop):
    """Sum of slack times multiplier after a step, of the inequalities start .. stop."""
    s, z = pairs[_S][start:stop], pairs[_Z][start:stop]
    ds, dz = pairs[_DS][start:stop], pairs[_DZ][start:stop]
    total = 0.0
    for i in range(s.size):
        total += (s[i] + step * ds[i]) * (z[i] + step * dz[i])
    return total


@inner
def _centring(step, pairs, cells, gap):
    """Mehrotra's rule: aim nearer to the boundary, the more of the gap the predictor closes."""
    count = pairs.shape[1]
    soft, excess = 2 * cells, cells + count // 2
    ahead = _ahead(step, pairs, 0, cells) + _ahead(step, pairs, cells, soft)
    ahead += _ahead(step, pairs, soft, excess)
    ahead += _ahead(step, pairs, excess, count)
    mu = gap / max(1, count)
    return (max(ahead, 0.0) / max(gap, 1e-300)) ** 3 * mu


@kernel
def solve_blocks(B, g, C, lower, upper, A, b, rho, iterations, rtol, mean):
    """The solution p, multipliers of the blocks (upper less lower) and of A, gap, and iterations used.

    C: (m, r), one coefficient per row. lower, upper: (blocks, r), finite. A: (s, n), b: (s,). mean: width
    of a typical pair of bounds. The gap bounds the error of the minimum: it ends as a share of the minimum.
    """
    n, m, cells = g.size, C.shape[0], lower.size
    size = max(_largest(g), 1e-300)
    pairs = _started(lower, upper, b, 0.1 * size * mean, rho)
    s, z, count = pairs[_S], pairs[_Z], pairs.shape[1]
    terms = np.empty((3, count))
    p, rd, dp, L = np.zeros(n), np.empty(n), np.empty(n), np.empty((n, n))
    Cp, dCp, push, Ap = np.zeros(lower.shape), np.empty(lower.shape), np.empty(lower.shape), np.zeros(b.size)
    gap, used = 0.0, 0
    for iteration in range(iterations):
        used = iteration
        gap = _gap(s, z, cells)
        worst = _gradient(B, g, C, A, p, z, push, rd)
        open_by = _bound_residuals(lower.ravel(), upper.ravel(), Cp.ravel(), s, terms[_R])
        open_by = max(open_by, _soft_residuals(b, Ap, s[2 * cells :], terms[_R][2 * cells :]))
        least = max(abs(_cost(B, g, p, rho, s[2 * cells + b.size :])), _ZERO * size * mean * count)
        if worst < rtol * size and gap < rtol * least and open_by < 1e-9 * mean:
            break
        _weigh(s, z, cells, terms[_W])
        _newton_matrix(B, C, A, terms[_W], push, L)
        _factor(L)
        centre, step = 0.0, 1.0
        for corrects in (False, True):
            # The first step aims at the boundary; it shows how much centring the second one needs.
            _aims(corrects, centre, pairs, 2 * cells, terms[_V])
            _right_side(C, rd, terms, push, dp)
            _soft_right_side(corrects, centre, A, pairs, cells, terms, dp)
            _solve(L, dp)
            _times(C, dp, m, dCp)
            _bound_steps(dCp.ravel(), terms, pairs)
            _soft_steps(corrects, centre, A, dp, cells, terms, pairs)
            step = _longest(pairs)
            if not corrects:
                centre = _centring(step, pairs, cells, gap)
        step = min(1.0, _BACK * step) if step < 1.0 else 1.0
        p += step * dp
        Cp += step * dCp
        for i in range(b.size):
            Ap[i] = _dot(A[i], p, n)
        s += step * pairs[_DS]
        z += step * pairs[_DZ]
        used = iteration + 1
    multipliers = (z[cells : 2 * cells] - z[:cells]).reshape(lower.shape)
    return p, multipliers, z[2 * cells : 2 * cells + b.size].copy(), gap, used
