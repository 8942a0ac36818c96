"""Interior-point steps for quadratic programs whose limits come in equal blocks.

    min 1/2 p'Bp + g'p + rho sum(e)   s.t.  lower_j <= C p_j <= upper_j,   A p - e <= b,  e >= 0

p consists of blocks p_j, one per coordinate, that share the matrix C: its products stay within a block.
Rows of A couple all blocks and may be violated (e) with a penalty rho each, so a solution always exists.
Mehrotra's predictor and corrector; bounds may be violated at the start.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel, summing

_BACK = 0.995  # of the way to the boundary


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
    scaled = np.empty(r)
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
def _shortened(step, s, ds, z, dz):
    """The largest part of a step that keeps s and z positive; divides only if the step gets shorter."""
    for i in range(s.size):
        if s[i] + step * ds[i] < 0.0:
            step = -s[i] / ds[i]
        if z[i] + step * dz[i] < 0.0:
            step = -z[i] / dz[i]
    return step


@summing
def _ahead(step, s, ds, z, dz):
    """Sum of slack times multiplier after a step."""
    total = 0.0
    for i in range(s.size):
        total += (s[i] + step * ds[i]) * (z[i] + step * dz[i])
    return total


@inner
def _slack_residuals(lower, upper, Cp, low_s, high_s, low_r, high_r):
    """Largest difference between slacks and the distances they represent."""
    most = 0.0
    for i in range(Cp.size):
        low_r[i] = Cp[i] - lower[i] - low_s[i]
        high_r[i] = upper[i] - Cp[i] - high_s[i]
        most = max(most, abs(low_r[i]), abs(high_r[i]))
    return most


@inner
def _aims(phase, centre, s, z, ds, dz, v):
    """Target of each product of slack and multiplier in a phase, over the slack, minus the multiplier."""
    if phase == 0:
        for i in range(s.size):
            v[i] = -z[i]
    else:
        for i in range(s.size):
            v[i] = (centre - ds[i] * dz[i]) / s[i] - z[i]


@kernel
def solve_blocks(B, g, C, lower, upper, A, b, rho, iterations, rtol, mean):
    """The solution p, multipliers of the blocks (upper less lower) and of A, gap, and iterations used.

    C: (m, r), one coefficient per row. lower, upper: (blocks, r), finite. A: (s, n), b: (s,). mean: width
    of a typical pair of bounds, the scale of the gap.
    """
    n, m, blocks, r = g.size, C.shape[0], lower.shape[0], C.shape[1]
    s_count = b.size
    p = np.zeros(n)
    size = 0.0
    for i in range(n):
        size = max(size, abs(g[i]))
    size = max(size, 1e-300)
    total = 2 * blocks * r + 2 * s_count
    # Slack of both sides, soft rows, and their penalties; slacks are at least a share of the width.
    low_s, high_s = np.empty((blocks, r)), np.empty((blocks, r))
    for j in range(blocks):
        for k in range(r):
            width = upper[j, k] - lower[j, k]
            low_s[j, k] = max(-lower[j, k], 1e-3 * width)
            high_s[j, k] = max(upper[j, k], 1e-3 * width)
    mu = 0.1 * size * mean
    low_z, high_z = mu / low_s, mu / high_s
    soft_s, soft_e = np.empty(s_count), np.empty(s_count)
    soft_z, soft_y = np.full(s_count, 0.5 * rho), np.full(s_count, 0.5 * rho)
    for i in range(s_count):
        soft_s[i] = max(b[i], 1e-2)
        soft_e[i] = max(soft_s[i] - b[i], 1e-2)
    Cp, Ap = np.zeros((blocks, r)), np.zeros(s_count)
    L, rd, dp = np.empty((n, n)), np.empty(n), np.empty(n)
    weights, push = np.empty((blocks, r)), np.empty((blocks, r))
    dCp = np.empty((blocks, r))
    low_w, high_w = np.empty((blocks, r)), np.empty((blocks, r))
    low_r, high_r = np.empty((blocks, r)), np.empty((blocks, r))
    low_v, high_v = np.empty((blocks, r)), np.empty((blocks, r))
    d_low_s, d_high_s = np.empty((blocks, r)), np.empty((blocks, r))
    d_low_z, d_high_z = np.zeros((blocks, r)), np.zeros((blocks, r))
    d_soft_s, d_soft_e, d_soft_z = np.zeros(s_count), np.zeros(s_count), np.zeros(s_count)
    d_soft_y = np.zeros(s_count)
    soft_w, soft_c = np.empty(s_count), np.empty(s_count)
    gap = 0.0
    used = 0
    for iteration in range(iterations):
        used = iteration
        gap = _dot(low_s.ravel(), low_z.ravel(), low_s.size) + _dot(
            high_s.ravel(), high_z.ravel(), high_s.size
        )
        gap += _dot(soft_s, soft_z, s_count) + _dot(soft_e, soft_y, s_count)
        mu = gap / max(1, total)
        # Residuals of optimality and of the slacks.
        for i in range(n):
            rd[i] = g[i] + _dot(B[i], p, n)
        push[:] = high_z - low_z
        _times_back(C, push, m, rd)
        for i in range(s_count):
            for k in range(n):
                rd[k] += A[i, k] * soft_z[i]
        worst = 0.0
        for i in range(n):
            worst = max(worst, abs(rd[i]))
        soft_r = b - Ap + soft_e - soft_s
        open_by = _slack_residuals(
            lower.ravel(),
            upper.ravel(),
            Cp.ravel(),
            low_s.ravel(),
            high_s.ravel(),
            low_r.ravel(),
            high_r.ravel(),
        )
        for i in range(s_count):
            open_by = max(open_by, abs(soft_r[i]))
        if worst < rtol * size and gap < rtol * size * mean * total and open_by < 1e-9 * mean:
            break
        for j in range(blocks):
            for k in range(r):
                low_w[j, k], high_w[j, k] = low_z[j, k] / low_s[j, k], high_z[j, k] / high_s[j, k]
                weights[j, k] = low_w[j, k] + high_w[j, k]
        for i in range(n):
            for k in range(i + 1):
                L[i, k] = B[i, k]
        for j in range(blocks):
            _gram(C, weights[j], m, L, j * m)
        for i in range(s_count):
            soft_w[i] = soft_z[i] / (soft_s[i] + soft_z[i] * soft_e[i] / soft_y[i])
            for a in range(n):
                value = soft_w[i] * A[i, a]
                if value != 0.0:
                    for c in range(a + 1):
                        L[a, c] += value * A[i, c]
        _factor(L)
        centre = 0.0
        for phase in range(2):
            # The first step aims at the boundary; it shows how much centring the second one needs.
            _aims(
                phase, centre, low_s.ravel(), low_z.ravel(), d_low_s.ravel(), d_low_z.ravel(), low_v.ravel()
            )
            _aims(
                phase,
                centre,
                high_s.ravel(),
                high_z.ravel(),
                d_high_s.ravel(),
                d_high_z.ravel(),
                high_v.ravel(),
            )
            for j in range(blocks):
                for k in range(r):
                    push[j, k] = low_v[j, k] - low_w[j, k] * low_r[j, k]
                    push[j, k] += high_w[j, k] * high_r[j, k] - high_v[j, k]
            for i in range(n):
                dp[i] = -rd[i]
            _times_back(C, push, m, dp)
            for i in range(s_count):
                es = d_soft_e[i] * d_soft_y[i] if phase else 0.0
                ss = d_soft_s[i] * d_soft_z[i] if phase else 0.0
                target = centre - es
                lean = target / soft_y[i] - soft_e[i]
                soft_c[i] = (centre - ss - soft_s[i] * soft_z[i] - soft_z[i] * (lean + soft_r[i])) / (
                    soft_s[i] + soft_z[i] * soft_e[i] / soft_y[i]
                )
                for k in range(n):
                    dp[k] -= A[i, k] * soft_c[i]
            _solve(L, dp)
            _times(C, dp, m, dCp)
            for j in range(blocks):
                for k in range(r):
                    d_low_s[j, k] = dCp[j, k] + low_r[j, k]
                    d_high_s[j, k] = high_r[j, k] - dCp[j, k]
                    d_low_z[j, k] = low_v[j, k] - low_w[j, k] * d_low_s[j, k]
                    d_high_z[j, k] = high_v[j, k] - high_w[j, k] * d_high_s[j, k]
            for i in range(s_count):
                es = d_soft_e[i] * d_soft_y[i] if phase else 0.0
                change = _dot(A[i], dp, n)
                d_soft_z[i] = soft_c[i] + soft_w[i] * change
                d_soft_y[i] = -d_soft_z[i]
                d_soft_e[i] = (centre - es + soft_e[i] * d_soft_z[i]) / soft_y[i] - soft_e[i]
                d_soft_s[i] = soft_r[i] - change + d_soft_e[i]
            step = _shortened(1.0, low_s.ravel(), d_low_s.ravel(), low_z.ravel(), d_low_z.ravel())
            step = _shortened(step, high_s.ravel(), d_high_s.ravel(), high_z.ravel(), d_high_z.ravel())
            step = _shortened(step, soft_s, d_soft_s, soft_z, d_soft_z)
            step = _shortened(step, soft_e, d_soft_e, soft_y, d_soft_y)
            if phase == 0:
                ahead = _ahead(step, low_s.ravel(), d_low_s.ravel(), low_z.ravel(), d_low_z.ravel())
                ahead += _ahead(step, high_s.ravel(), d_high_s.ravel(), high_z.ravel(), d_high_z.ravel())
                ahead += _ahead(step, soft_s, d_soft_s, soft_z, d_soft_z)
                ahead += _ahead(step, soft_e, d_soft_e, soft_y, d_soft_y)
                centre = (max(ahead, 0.0) / max(gap, 1e-300)) ** 3 * mu
        step = min(1.0, _BACK * step) if step < 1.0 else 1.0
        p += step * dp
        Cp += step * dCp
        for i in range(s_count):
            Ap[i] = _dot(A[i], p, n)
        low_s += step * d_low_s
        high_s += step * d_high_s
        low_z += step * d_low_z
        high_z += step * d_high_z
        soft_s += step * d_soft_s
        soft_e += step * d_soft_e
        soft_z += step * d_soft_z
        soft_y += step * d_soft_y
        used = iteration + 1
    return p, high_z - low_z, soft_z, gap, used
