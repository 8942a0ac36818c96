"""Dry friction that sticks and slips: set-valued, not smoothed.

An owner with dry friction slips with f = L sign(s), or it sticks: s = 0 and |f| <= L. With J = D N of the
owners at rest, and their accelerations b without friction of their own,

    a = b - G f,      G = J M^-1 J^T,      |f| <= L,      f = L sign(a) where a is not 0

f minimises f^T G f / 2 - b^T f within these limits, so the motion is unique even where f is not (motors that
act against each other). Owners with a != 0 start to slip. The others are held at rest through all stages of
a step; velocities that rounding leaves to them decay within a few steps.

A step in which an owner reverses is divided where it comes to rest.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating_inner as inner
from dynid.simulation.plant.small_kernels import add_back, dot, largest, solve

_SWEEPS = 2000
_ALIKE = 1e-10  # of the diagonal of G: friction of redundant owners
_STARTS = 1e-9  # of the largest acceleration: an owner that starts to slip
_REST = 1e-9  # of the velocity before, or gained in a step: an owner at rest


@inner
def signs(friction, slip, s):
    """Signs of the owners' velocities s (o,); 0 for those that stick."""
    out = np.empty(s.size)
    for o in range(s.size):
        out[o] = slip[o] if friction.jumps[o] else np.sign(s[o])
    return out


@inner
def at_rest(friction, slip):
    """Owners that stick."""
    owners, count = np.empty(slip.size, np.int64), 0
    for o in range(slip.size):
        if friction.jumps[o] and slip[o] == 0:
            owners[count] = o
            count += 1
    return owners[:count]


@inner
def mobility(D, N, M, moved, G):
    """M^-1 J^T (d, o) and G = J M^-1 J^T (o, o) of all owners, J = D N."""
    along, A = np.zeros((D.shape[0], M.shape[0])), M.copy()
    for o in range(D.shape[0]):
        add_back(1.0, N, D[o], along[o])
        for i in range(M.shape[0]):
            moved[i, o] = along[o, i]
    solve(A, moved)
    for o in range(D.shape[0]):
        add_back(1.0, moved, along[o], G[o])


@inner
def holding(resting, mobile, accelerations, limits, start, slip, f):
    """Friction f (o,) of the owners `resting`; returns its largest change, relative to the largest.

    mobile: G of all owners. accelerations: b of all, from their f = 0. start: owners that cannot be held
    within their limits start to slip, into slip (o,).
    """
    k = resting.size
    G, b, limit, force = np.empty((k, k)), np.empty(k), np.empty(k), np.zeros(k)
    ways = np.zeros(k, np.int64)
    for i in range(k):
        b[i], limit[i] = accelerations[resting[i]], limits[resting[i]]
        for j in range(k):
            G[i, j] = mobile[resting[i], resting[j]]
    _held(G, b, ways, force)
    exceeded = False
    for i in range(k):
        exceeded = exceeded or abs(force[i]) > limit[i]
    if start and exceeded:
        _boxed(G, b, limit, force)
        for i in range(k):
            a = b[i] - dot(G[i], force)
            if abs(a) > _STARTS * largest(b) and abs(force[i]) >= limit[i]:
                ways[i] = 1 if a > 0.0 else -1
        _held(G, b, ways, force)
    change = 0.0
    for i in range(k):
        change = max(change, abs(force[i] - f[resting[i]]))
        f[resting[i]], slip[resting[i]] = force[i], ways[i]
    most = largest(force)
    return change / most if most > 0.0 else 0.0


@inner
def _held(G, b, slip, f):
    """Solve a = 0 for the owners that stick; f of the others is given."""
    k = f.size
    A, force = np.zeros((k, k)), np.empty((k, 1))
    for i in range(k):
        A[i, i] = 1.0
        force[i, 0] = f[i]
        if slip[i] == 0:
            force[i, 0] = b[i]
            for j in range(k):
                A[i, j] = G[i, j]
            A[i, i] *= 1.0 + _ALIKE
    solve(A, force)
    for i in range(k):
        f[i] = force[i, 0]


@inner
def _boxed(G, b, limit, f):
    """Minimum within the limits, one owner after the other."""
    k = f.size
    for i in range(k):
        f[i] = min(max(f[i], -limit[i]), limit[i])
    for _ in range(_SWEEPS):
        change = 0.0
        for i in range(k):
            value = f[i] + (b[i] - dot(G[i], f)) / G[i, i]
            value = min(max(value, -limit[i]), limit[i])
            change = max(change, abs(value - f[i]) * G[i, i])
            f[i] = value
        if change <= 1e-3 * _STARTS * largest(b):
            break


@inner
def part_to_rest(friction, slip, s, a, s_end, h, whole):
    """Share of a part h of a step `whole` after which the first owner comes to rest: 1 if none does.

    s, a: velocities and accelerations at its start. Owners that just began to slip, but end with the other
    sign, stick (`slip`): then 0, and the part must be computed again.
    """
    share = 1.0
    for o in range(s.size):
        if slip[o] == 0 or not friction.jumps[o]:
            continue
        x, gained, end = slip[o] * s[o], slip[o] * a[o] * h, slip[o] * s_end[o]
        if end >= -_small(s[o], a[o], whole):
            continue
        if x <= _small(s[o], a[o], whole):
            slip[o] = 0
            share = 0.0
        elif share > 0.0:
            # The parabola with this start, slope and end has one root between them.
            root = np.sqrt(gained * gained - 4.0 * (end - x - gained) * x)
            share = min(share, 2.0 * x / (root - gained))
    return share


@inner
def come_to_rest(friction, slip, s, a, s_end, whole, by_force):
    """Let owners stick that are at rest at the end of a part; `by_force`: also those that reversed."""
    for o in range(s.size):
        if slip[o] == 0 or not friction.jumps[o]:
            continue
        small = _small(s[o], a[o], whole)
        if slip[o] * s_end[o] <= small and (by_force or slip[o] * s[o] > small):
            slip[o] = 0


@inner
def _small(s, a, whole):
    return _REST * max(abs(s), abs(a) * whole)
