"""Accelerations of closed mechanisms in lanes: closures, body wrenches and the small solve in one pass.

With N the tangent directions in the independent coordinates and `drift` what the closures add:

    V_b^(a) twist of body b along N_a,   w_b its wrench at ddq = drift,
    M_ac = sum_b V_b^(a) . I_b V_b^(c),   M ddy = N^T side - sum_b V_b^(a) . w_b
"""

from __future__ import annotations

import numpy as np

from dynid.compiled import inner, kernel
from dynid.kinematics.closure_kernels import bias_tile, closure_tile, gather
from dynid.kinematics.kernels import LINK, body_state, link_states
from dynid.kinematics.lanes import LANES
from dynid.kinematics.step_kernels import cholesky_solve, clear, copy, factorise, substitute, tangents


@kernel
def closed_accelerations(closure, plan, bodies, gravity, inertia, q, dq, side, ddq, N, mass, condition):
    """Accelerations under generalised efforts `side` (n, v): ddq (n, v), N (n, v, d), mass (n, d, d).

    closure: tables of `closure.tables_of`. plan: tables of an `Elimination`. bodies: link and frame of
    each. inertia: the ten parameters of each (b, 10). condition: (n,), size of N: large where the
    independent coordinates fail.
    """
    tree, loops, equations, linear, where = closure
    parent, kind, q_start, v_start, placement = tree
    n, n_v, d, r, n_b = q.shape[0], dq.shape[1], plan[0].size, plan[1].size, bodies[0].size
    state = np.empty((parent.size + 1) * LINK * LANES)
    work, body = np.empty((2 * LINK + 21) * LANES), np.empty(LINK * LANES)
    count = (loops[3][-1] + linear[3].size) * LANES
    f, gamma, entries = np.empty(count), np.empty(count), np.empty(where[0].size * LANES)
    slots, sides = np.empty(plan[7].size * LANES), np.empty((d + 1) * r * LANES)
    basis, x = np.empty(n_v * d * LANES), np.empty(n_v * LANES)
    wrench, twist = np.empty(n_b * 6 * LANES), np.empty(d * n_b * 6 * LANES)
    M, y = np.empty(d * d * LANES), np.empty(d * LANES)
    tile, poses = np.empty(q.shape[1] * LANES), np.empty((LANES, q.shape[1]))
    rates, seconds = np.empty((LANES, n_v)), np.empty((LANES, n_v))
    none, still = np.zeros(3), np.zeros((LANES, n_v))
    for at in range(0, n, LANES):
        gather(q, at, tile)
        for lane in range(LANES):
            sample = min(at + lane, n - 1)
            for i in range(q.shape[1]):
                poses[lane, i] = q[sample, i]
            for i in range(n_v):
                rates[lane, i] = dq[sample, i]
        link_states(parent, kind, q_start, v_start, placement, none, poses, rates, still, 0, state)
        closure_tile(state, loops, equations, linear, tile, f, entries, work)
        bias_tile(state, loops, equations, gamma, work)
        factorise(plan, entries, slots)
        tangents(plan, entries, slots, sides[r * LANES :], basis)
        _drift(plan, slots, gamma, sides[: r * LANES], x)
        _scatter(x, 1, 0, seconds)
        link_states(parent, kind, q_start, v_start, placement, gravity, poses, rates, seconds, 0, state)
        for b in range(n_b):
            body_state(state, bodies[0][b], bodies[1][b], body)
            _wrench(body, inertia[b], wrench[6 * b * LANES : 6 * (b + 1) * LANES])
        for a in range(d):
            _scatter(basis, d, a, seconds)
            link_states(parent, kind, q_start, v_start, placement, none, poses, seconds, still, 0, state)
            for b in range(n_b):
                body_state(state, bodies[0][b], bodies[1][b], body)
                copy(body, 12 * LANES, twist, (a * n_b + b) * 6 * LANES, 6 * LANES)
        _reduced(basis, twist, wrench, inertia, side, at, M, y)
        for lane in range(min(LANES, n - at)):
            for a in range(d):
                for c in range(a + 1):
                    mass[at + lane, a, c] = M[(a * d + c) * LANES + lane]
                    mass[at + lane, c, a] = mass[at + lane, a, c]
        cholesky_solve(M, d, y)
        for lane in range(min(LANES, n - at)):
            size = 0.0
            for i in range(n_v):
                value = x[i * LANES + lane]
                for a in range(d):
                    part = basis[(i * d + a) * LANES + lane]
                    N[at + lane, i, a] = part
                    size += part * part
                    value += part * y[a * LANES + lane]
                ddq[at + lane, i] = value
            condition[at + lane] = np.sqrt(size)


@inner
def _drift(plan, slots, gamma, own, x):
    """Rates with A x = -gamma whose independent ones are zero."""
    for i in range(plan[1].size):
        for k in range(LANES):
            own[i * LANES + k] = -gamma[plan[2][i] * LANES + k]
    substitute(plan[5], slots, own)
    clear(x)
    for i in range(plan[1].size):
        copy(own, i * LANES, x, plan[1][i] * LANES, LANES)


@inner
def _scatter(fields, width, column, out):
    """One column of a tile of matrices (v, width) as rows of samples (LANES, v)."""
    for i in range(out.shape[1]):
        for lane in range(LANES):
            out[lane, i] = fields[(i * width + column) * LANES + lane]


@inner
def _wrench(body, chi, out):
    """Newton-Euler about the body origin, body axes: force, then moment."""
    for k in range(LANES):
        wx, wy, wz = body[15 * LANES + k], body[16 * LANES + k], body[17 * LANES + k]
        ax, ay, az = body[18 * LANES + k], body[19 * LANES + k], body[20 * LANES + k]
        bx, by, bz = body[21 * LANES + k], body[22 * LANES + k], body[23 * LANES + k]
        sx, sy, sz = wy * chi[8] - wz * chi[7], wz * chi[6] - wx * chi[8], wx * chi[7] - wy * chi[6]
        out[k] = chi[9] * ax + by * chi[8] - bz * chi[7] + wy * sz - wz * sy
        out[LANES + k] = chi[9] * ay + bz * chi[6] - bx * chi[8] + wz * sx - wx * sz
        out[2 * LANES + k] = chi[9] * az + bx * chi[7] - by * chi[6] + wx * sy - wy * sx
        hx = chi[0] * wx + chi[1] * wy + chi[2] * wz
        hy = chi[1] * wx + chi[3] * wy + chi[4] * wz
        hz = chi[2] * wx + chi[4] * wy + chi[5] * wz
        mx = chi[0] * bx + chi[1] * by + chi[2] * bz + wy * hz - wz * hy
        my = chi[1] * bx + chi[3] * by + chi[4] * bz + wz * hx - wx * hz
        mz = chi[2] * bx + chi[4] * by + chi[5] * bz + wx * hy - wy * hx
        out[3 * LANES + k] = mx + chi[7] * az - chi[8] * ay
        out[4 * LANES + k] = my + chi[8] * ax - chi[6] * az
        out[5 * LANES + k] = mz + chi[6] * ay - chi[7] * ax


@inner
def _reduced(basis, twist, wrench, inertia, side, at, M, y):
    """Mass matrix (lower half) and right side of the independent accelerations."""
    n, n_v = side.shape
    d, n_b = y.size // LANES, inertia.shape[0]
    clear(M)
    clear(y)
    for i in range(n_v):
        for a in range(d):
            for k in range(LANES):
                y[a * LANES + k] += basis[(i * d + a) * LANES + k] * side[min(at + k, n - 1), i]
    moving = np.empty(6 * LANES)
    for a in range(d):
        for b in range(n_b):
            own, chi = twist[(a * n_b + b) * 6 * LANES : (a * n_b + b + 1) * 6 * LANES], inertia[b]
            for i in range(6):
                for k in range(LANES):
                    y[a * LANES + k] -= own[i * LANES + k] * wrench[(6 * b + i) * LANES + k]
            for k in range(LANES):
                vx, vy, vz = own[k], own[LANES + k], own[2 * LANES + k]
                wx, wy, wz = own[3 * LANES + k], own[4 * LANES + k], own[5 * LANES + k]
                moving[k] = chi[9] * vx + wy * chi[8] - wz * chi[7]
                moving[LANES + k] = chi[9] * vy + wz * chi[6] - wx * chi[8]
                moving[2 * LANES + k] = chi[9] * vz + wx * chi[7] - wy * chi[6]
                hx = chi[0] * wx + chi[1] * wy + chi[2] * wz
                hy = chi[1] * wx + chi[3] * wy + chi[4] * wz
                hz = chi[2] * wx + chi[4] * wy + chi[5] * wz
                moving[3 * LANES + k] = hx + chi[7] * vz - chi[8] * vy
                moving[4 * LANES + k] = hy + chi[8] * vx - chi[6] * vz
                moving[5 * LANES + k] = hz + chi[6] * vy - chi[7] * vx
            for c in range(a + 1):
                other = twist[(c * n_b + b) * 6 * LANES : (c * n_b + b + 1) * 6 * LANES]
                for i in range(6):
                    for k in range(LANES):
                        M[(a * d + c) * LANES + k] += moving[i * LANES + k] * other[i * LANES + k]
