"""Nearest points of the axes of capsules: segments p1 p2 and q1 q2, pair by pair and sample by sample.

With p(u) = p1 + u (p2 - p1) and q(v) = q1 + v (q2 - q1), the unbounded solution if it is inside both
segments, else the best end point with its projection on the other.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner

_TINY = 1e-12  # m^2, and of the product of squared lengths: points and parallel segments
_BETTER = 1.0 - 1e-14  # of equally near pairs, as on parallel segments, the first: rounding does not choose


@inner
def _dot(x, y):
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


@inner
def _clip(x):
    return min(max(x, 0.0), 1.0)


@inner
def _candidates(a, b, c, e, f, out):
    """Six pairs (u, v), one of which is the nearest."""
    bottom = a * e - b * b
    u = _clip((b * f - c * e) / max(bottom, 1e-300)) if bottom > _TINY * a * e else 0.0
    v = _clip((b * u + f) / e)
    out[0, 0], out[0, 1] = u, v
    out[1, 0], out[1, 1] = _clip((b * v - c) / a), v
    for k in range(2):
        out[2 + k, 0], out[2 + k, 1] = k, _clip((b * k + f) / e)
        out[4 + k, 0], out[4 + k, 1] = _clip((b * k - c) / a), k


@kernel
def nearest(ends, first, second, on_a, on_b):
    """Nearest points (s, n, 3) of segments `first` and `second` (s,) of `ends` (c, 2, n, 3)."""
    d1, d2, r, x, y = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    pairs = np.empty((6, 2))
    for s in range(len(first)):
        p, q = ends[first[s]], ends[second[s]]
        for n in range(ends.shape[2]):
            for i in range(3):
                d1[i], d2[i] = p[1, n, i] - p[0, n, i], q[1, n, i] - q[0, n, i]
                r[i] = p[0, n, i] - q[0, n, i]
            a, e = max(_dot(d1, d1), _TINY), max(_dot(d2, d2), _TINY)
            _candidates(a, _dot(d1, d2), _dot(d1, r), e, _dot(d2, r), pairs)
            best = np.inf
            for k in range(6):
                for i in range(3):
                    x[i], y[i] = p[0, n, i] + pairs[k, 0] * d1[i], q[0, n, i] + pairs[k, 1] * d2[i]
                    r[i] = x[i] - y[i]
                size = _dot(r, r)
                if k == 0 or size < best * _BETTER:  # not finite: the first, so that it stays so
                    best = size
                    on_a[s, n, :], on_b[s, n, :] = x, y
