"""States of a tile: rates of positions, and projection onto the closures.

Dependent coordinates take Newton steps until the loops are closed; independent ones are fixed, and
their velocities give the others, dq = N dy.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner
from dynid.kinematics.closure_kernels import closure_tile, gather
from dynid.kinematics.kernels import pose_states
from dynid.kinematics.newton_kernels import move_tile, normalise
from dynid.kinematics.step_kernels import add_along, clear, copy, factorise, substitute, tangents
from dynid.kinematics.tile import LANES

_ARRIVED = 3e-8  # the error after a step of this size is its square: below rounding
_PATIENCE = 8


@inner
def position_rates_tile(tree, q, dq, out):
    """Time derivatives (LANES, n_q): velocities, and for a quaternion q (0, omega) / 2."""
    kind, q_start, v_start = tree[1], tree[2], tree[3]
    for i in range(kind.size):
        p, v = q_start[i], v_start[i]
        for k in range(LANES):
            if kind[i] == 3:
                w, x, y, z = q[k, p], q[k, p + 1], q[k, p + 2], q[k, p + 3]
                a, b, c = 0.5 * dq[k, v], 0.5 * dq[k, v + 1], 0.5 * dq[k, v + 2]
                out[k, p] = -x * a - y * b - z * c
                out[k, p + 1] = w * a + y * c - z * b
                out[k, p + 2] = w * b + z * a - x * c
                out[k, p + 3] = w * c + x * b - y * a
            elif kind[i] != 0:
                out[k, p] = dq[k, v]


@inner
def unit_tile(tree, q, tile):
    """Normalise the quaternions of q (LANES, n_q)."""
    gather(q, 0, tile)
    normalise(tree, tile)
    _spread(tile, q)


@inner
def settle_tile(closure, plan, q, dq, space):
    """Project states q (LANES, n_q), dq (LANES, v) onto the closures; `space` as of `room_for`."""
    tree, loops, equations, linear, _ = closure
    state, work, f, entries, small = space.state, space.work, space.f, space.entries, space.small
    basis, step, along, tile = space.basis, space.drift, space.h, space.tile
    d, r, n_s = plan[0].size, plan[1].size, plan[7].size
    slots, rhs = small[: n_s * LANES], small[n_s * LANES : (n_s + r) * LANES]
    gather(q, 0, tile)
    largest = np.inf
    for _ in range(_PATIENCE):
        pose_states(tree[0], tree[1], tree[2], tree[4], tile, state)
        closure_tile(state, loops, equations, linear, tile, f, entries, work)
        factorise(plan, entries, slots)
        if largest < _ARRIVED:
            break
        for i in range(r):
            for k in range(LANES):
                rhs[i * LANES + k] = -f[plan[2][i] * LANES + k]
        substitute(plan[5], slots, rhs)
        clear(step)
        largest = 0.0
        for i in range(r):
            copy(rhs, i * LANES, step, plan[1][i] * LANES, LANES)
            for k in range(LANES):
                largest = max(largest, abs(rhs[i * LANES + k]))
        move_tile(tree, step, tile)
    _spread(tile, q)
    tangents(plan, entries, slots, small[(n_s + r) * LANES :], basis)
    for a in range(d):
        for k in range(LANES):
            along[a * LANES + k] = dq[k, plan[0][a]]
    clear(step)
    add_along(basis, d, along, step)
    _spread(step, dq)


@inner
def _spread(tile, out):
    for lane in range(LANES):
        for i in range(out.shape[1]):
            out[lane, i] = tile[i * LANES + lane]
