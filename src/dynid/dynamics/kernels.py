"""Accelerations of mechanisms in lanes: closures, body wrenches and the small solve in one pass.

With N the tangent directions in the independent coordinates and `drift` the bias of the closures:

    V_b^(a) twist of body b along N_a,   w_b its wrench at ddq = drift,   R_k rotors of inertia Ia_k
    M_ac = sum_b V_b^(a) . I_b V_b^(c) + sum_k Ia_k (R_k N_a) (R_k N_c)
    h_a  = sum_b V_b^(a) . w_b         + sum_k Ia_k (R_k N_a) (R_k drift),     M ddy = N^T side - h

A tree is a mechanism without closures (or with couplings for closures).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynid.common.arrays import Array
from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner
from dynid.common.compiled_arrays import view
from dynid.kinematics.closure_kernels import bias_tile, closure_tile, gather
from dynid.kinematics.kernels import LINK, body_state, link_states, unrotate
from dynid.kinematics.step_kernels import cholesky_solve, clear, copy, factorise, substitute, tangents
from dynid.kinematics.tile import (
    ANGULAR_X,
    ANGULAR_Y,
    ANGULAR_Z,
    AX,
    AY,
    AZ,
    DWX,
    DWY,
    DWZ,
    LANES,
    LINEAR_X,
    LINEAR_Y,
    LINEAR_Z,
    MASS,
    MX,
    MY,
    MZ,
    PX,
    PY,
    PZ,
    TWIST,
    WX,
    WY,
    WZ,
    XX,
    XY,
    XZ,
    YY,
    YZ,
    ZZ,
)


class Space(NamedTuple):
    """Workspace of one tile, flat unless a shape is given.

    Attributes:
        state: Of all links, the base first.
        work: Of single bodies and closures.
        f, gamma, entries: Gaps, bias and Jacobian entries of the closures.
        small: Slots of the elimination and right sides.
        basis, drift: N (v, d) and the accelerations (v,) at which the independent ones are zero.
        M, h: Mass matrix (d, d), lower half, and bias (d,).
        motion: Twists of links, wrenches and twists of bodies.
        tile: Positions.
        seconds, still: Accelerations, and zeros, (LANES, v).
        none: No gravity, (3,).
    """

    state: Array
    work: Array
    f: Array
    gamma: Array
    entries: Array
    small: Array
    basis: Array
    drift: Array
    M: Array
    h: Array
    motion: Array
    tile: Array
    seconds: Array
    still: Array
    none: Array


@inner
def room_for(closure, plan, n_b, n_q, n_v):
    """Workspace of one tile and n_b bodies."""
    links, d, r = closure[0][0].size + 1, plan[0].size, plan[1].size
    count = (closure[1][3][-1] + closure[3][3].size) * LANES
    return Space(
        np.empty(links * LINK * LANES),
        np.empty((3 * LINK + 21) * LANES),
        np.empty(count),
        np.empty(count),
        np.empty(closure[4][0].size * LANES),
        np.empty((plan[7].size + (d + 1) * r) * LANES),
        np.empty(n_v * d * LANES),
        np.empty(n_v * LANES),
        np.empty(d * d * LANES),
        np.empty(d * LANES),
        np.empty((d * links + n_b * (d + 1)) * TWIST * LANES),
        np.empty(n_q * LANES),
        np.empty((LANES, n_v)),
        np.zeros((LANES, n_v)),
        np.zeros(3),
    )


@inner
def reduced_tile(closure, plan, masses, q, dq, space):
    """N, drift, M (lower half) and h of the states q (LANES, n_q), dq (LANES, v)."""
    tree, loops, equations, linear, _ = closure
    parent, kind, q_start, v_start, placement = tree
    state, work, f, gamma, entries, small, basis, drift, M, h, motion, tile, seconds, still, none = space
    body_link, body_frame = masses.bodies
    d, r, n_b, n_s = plan[0].size, plan[1].size, body_link.size, plan[7].size
    slots, rhs = view(small, 0, n_s * LANES), view(small, n_s * LANES, r * LANES)
    gather(q, 0, tile)
    link_states(parent, kind, q_start, v_start, placement, none, q, dq, still, 0, state, work)
    closure_tile(state, loops, equations, linear, tile, f, entries, work)
    bias_tile(state, loops, equations, gamma, work)
    factorise(plan, entries, slots)
    tangents(plan, entries, slots, view(small, (n_s + r) * LANES, d * r * LANES), basis)
    _drift(plan, slots, gamma, rhs, drift)
    for i in range(seconds.shape[1]):
        for lane in range(LANES):
            seconds[lane, i] = drift[i * LANES + lane]
    link_states(parent, kind, q_start, v_start, placement, masses.gravity, q, dq, seconds, 0, state, work)
    size = TWIST * LANES
    first, links = d * (parent.size + 1) * size, (parent.size + 1) * size
    for a in range(d):
        _link_twists(parent, kind, v_start, state, basis, d, a, view(motion, a * links, links))
    wrench, twist = view(motion, first, n_b * size), view(motion, first + n_b * size, d * n_b * size)
    body = view(work, 0, LINK * LANES)
    for b in range(n_b):
        link = body_link[b]
        body_state(state, link, body_frame[b], body)
        _wrench(body, masses.inertia[b], view(wrench, b * size, size))
        link_state = view(state, (link + 1) * LINK * LANES, LINK * LANES)
        for a in range(d):
            of_link = view(motion, a * links + (link + 1) * size, size)
            _body_twist(link_state, body, of_link, view(twist, (a * n_b + b) * size, size))
    _sums(twist, wrench, masses.inertia, M, h)
    _rotors(masses.rotors, basis, drift, M, h)


@kernel
def accelerations(closure, plan, masses, q, dq, side, ddq, N, mass, condition):
    """Accelerations under generalised efforts `side` (n, v): ddq (n, v), N (n, v, d), mass (n, d, d).

    closure: tables of `closure.tables_of`. plan: tables of an `Elimination`. masses: see `Masses`.
    condition: (n,), size of N: large where the independent coordinates fail.
    """
    n, n_v, d = q.shape[0], dq.shape[1], plan[0].size
    space = room_for(closure, plan, masses.inertia.shape[0], q.shape[1], n_v)
    basis, drift, M, h = space.basis, space.drift, space.M, space.h
    poses, rates = np.empty((LANES, q.shape[1])), np.empty((LANES, n_v))
    for at in range(0, n, LANES):
        for lane in range(LANES):
            sample = min(at + lane, n - 1)
            for i in range(q.shape[1]):
                poses[lane, i] = q[sample, i]
            for i in range(n_v):
                rates[lane, i] = dq[sample, i]
        reduced_tile(closure, plan, masses, poses, rates, space)
        for a in range(d):
            for k in range(LANES):
                h[a * LANES + k] = -h[a * LANES + k]
        for i in range(n_v):
            for a in range(d):
                for k in range(LANES):
                    h[a * LANES + k] += basis[(i * d + a) * LANES + k] * side[min(at + k, n - 1), i]
        for lane in range(min(LANES, n - at)):
            for a in range(d):
                for c in range(a + 1):
                    mass[at + lane, a, c] = M[(a * d + c) * LANES + lane]
                    mass[at + lane, c, a] = mass[at + lane, a, c]
        cholesky_solve(M, d, h)
        for lane in range(min(LANES, n - at)):
            size = 0.0
            for i in range(n_v):
                value = drift[i * LANES + lane]
                for a in range(d):
                    part = basis[(i * d + a) * LANES + lane]
                    N[at + lane, i, a] = part
                    size += part * part
                    value += part * h[a * LANES + lane]
                ddq[at + lane, i] = value
            condition[at + lane] = np.sqrt(size)


@inner
def _drift(plan, slots, gamma, rhs, x):
    """Rates with A x = -gamma whose independent ones are zero."""
    for i in range(plan[1].size):
        for k in range(LANES):
            rhs[i * LANES + k] = -gamma[plan[2][i] * LANES + k]
    substitute(plan[5], slots, rhs)
    clear(x)
    for i in range(plan[1].size):
        copy(rhs, i * LANES, x, plan[1][i] * LANES, LANES)


@inner
def _link_twists(parent, kind, v_start, state, basis, d, a, twists):
    """Base frame: velocity and angular velocity of every link at unit rate along N_a, the base first."""
    for k in range(TWIST * LANES):
        twists[k] = 0.0
    for i in range(parent.size):
        up = view(twists, (parent[i] + 1) * TWIST * LANES, TWIST * LANES)
        twist = view(twists, (i + 1) * TWIST * LANES, TWIST * LANES)
        parent_state = view(state, (parent[i] + 1) * LINK * LANES, LINK * LANES)
        link_state = view(state, (i + 1) * LINK * LANES, LINK * LANES)
        _carried(parent_state, link_state, up, twist)
        n_v = 0 if kind[i] == 0 else 3 if kind[i] == 3 else 1
        for axis in range(n_v):
            rate = view(basis, ((v_start[i] + axis) * d + a) * LANES, LANES)
            column = axis if kind[i] == 3 else 2
            first = 0 if kind[i] == 2 else 3
            for row in range(3):
                for k in range(LANES):
                    twist[(first + row) * LANES + k] += link_state[(3 * row + column) * LANES + k] * rate[k]


@inner
def _carried(from_state, to_state, up, carried):
    """The twist of a point fixed to a link: base frame, from the origin of one state to that of another."""
    for k in range(LANES):
        x = to_state[PX * LANES + k] - from_state[PX * LANES + k]
        y = to_state[PY * LANES + k] - from_state[PY * LANES + k]
        z = to_state[PZ * LANES + k] - from_state[PZ * LANES + k]
        wx, wy, wz = up[ANGULAR_X * LANES + k], up[ANGULAR_Y * LANES + k], up[ANGULAR_Z * LANES + k]
        carried[LINEAR_X * LANES + k] = up[LINEAR_X * LANES + k] + wy * z - wz * y
        carried[LINEAR_Y * LANES + k] = up[LINEAR_Y * LANES + k] + wz * x - wx * z
        carried[LINEAR_Z * LANES + k] = up[LINEAR_Z * LANES + k] + wx * y - wy * x
        carried[ANGULAR_X * LANES + k] = wx
        carried[ANGULAR_Y * LANES + k] = wy
        carried[ANGULAR_Z * LANES + k] = wz


@inner
def _body_twist(link_state, body, of_link, twist):
    """Twist of a body in its own axes, from that of its link in the base frame."""
    _carried(link_state, body, of_link, twist)
    for field in range(0, 6, 3):
        for k in range(LANES):
            x, y, z = unrotate(
                body,
                k,
                twist[field * LANES + k],
                twist[(field + 1) * LANES + k],
                twist[(field + 2) * LANES + k],
            )
            twist[field * LANES + k] = x
            twist[(field + 1) * LANES + k] = y
            twist[(field + 2) * LANES + k] = z


@inner
def _wrench(body, chi, out):
    """Newton-Euler about the body origin, body axes: force, then moment."""
    for k in range(LANES):
        wx, wy, wz = body[WX * LANES + k], body[WY * LANES + k], body[WZ * LANES + k]
        ax, ay, az = body[AX * LANES + k], body[AY * LANES + k], body[AZ * LANES + k]
        bx, by, bz = body[DWX * LANES + k], body[DWY * LANES + k], body[DWZ * LANES + k]
        sx, sy, sz = wy * chi[MZ] - wz * chi[MY], wz * chi[MX] - wx * chi[MZ], wx * chi[MY] - wy * chi[MX]
        out[LINEAR_X * LANES + k] = chi[MASS] * ax + by * chi[MZ] - bz * chi[MY] + wy * sz - wz * sy
        out[LINEAR_Y * LANES + k] = chi[MASS] * ay + bz * chi[MX] - bx * chi[MZ] + wz * sx - wx * sz
        out[LINEAR_Z * LANES + k] = chi[MASS] * az + bx * chi[MY] - by * chi[MX] + wx * sy - wy * sx
        hx = chi[XX] * wx + chi[XY] * wy + chi[XZ] * wz
        hy = chi[XY] * wx + chi[YY] * wy + chi[YZ] * wz
        hz = chi[XZ] * wx + chi[YZ] * wy + chi[ZZ] * wz
        mx = chi[XX] * bx + chi[XY] * by + chi[XZ] * bz + wy * hz - wz * hy
        my = chi[XY] * bx + chi[YY] * by + chi[YZ] * bz + wz * hx - wx * hz
        mz = chi[XZ] * bx + chi[YZ] * by + chi[ZZ] * bz + wx * hy - wy * hx
        out[ANGULAR_X * LANES + k] = mx + chi[MY] * az - chi[MZ] * ay
        out[ANGULAR_Y * LANES + k] = my + chi[MZ] * ax - chi[MX] * az
        out[ANGULAR_Z * LANES + k] = mz + chi[MX] * ay - chi[MY] * ax


@inner
def _sums(twist, wrench, inertia, M, h):
    """Mass matrix (lower half) of the bodies, and their bias at ddq = drift."""
    d, n_b = h.size // LANES, inertia.shape[0]
    clear(M)
    clear(h)
    moving = np.empty(TWIST * LANES)
    for a in range(d):
        for b in range(n_b):
            twist_a, chi = (
                view(twist, (a * n_b + b) * TWIST * LANES, TWIST * LANES),
                inertia[b],
            )
            for i in range(TWIST):
                for k in range(LANES):
                    h[a * LANES + k] += twist_a[i * LANES + k] * wrench[(TWIST * b + i) * LANES + k]
            for k in range(LANES):
                vx, vy, vz = (
                    twist_a[LINEAR_X * LANES + k],
                    twist_a[LINEAR_Y * LANES + k],
                    twist_a[LINEAR_Z * LANES + k],
                )
                wx, wy, wz = (
                    twist_a[ANGULAR_X * LANES + k],
                    twist_a[ANGULAR_Y * LANES + k],
                    twist_a[ANGULAR_Z * LANES + k],
                )
                moving[LINEAR_X * LANES + k] = chi[MASS] * vx + wy * chi[MZ] - wz * chi[MY]
                moving[LINEAR_Y * LANES + k] = chi[MASS] * vy + wz * chi[MX] - wx * chi[MZ]
                moving[LINEAR_Z * LANES + k] = chi[MASS] * vz + wx * chi[MY] - wy * chi[MX]
                hx = chi[XX] * wx + chi[XY] * wy + chi[XZ] * wz
                hy = chi[XY] * wx + chi[YY] * wy + chi[YZ] * wz
                hz = chi[XZ] * wx + chi[YZ] * wy + chi[ZZ] * wz
                moving[ANGULAR_X * LANES + k] = hx + chi[MY] * vz - chi[MZ] * vy
                moving[ANGULAR_Y * LANES + k] = hy + chi[MZ] * vx - chi[MX] * vz
                moving[ANGULAR_Z * LANES + k] = hz + chi[MX] * vy - chi[MY] * vx
            for c in range(a + 1):
                other = view(twist, (c * n_b + b) * TWIST * LANES, TWIST * LANES)
                for i in range(TWIST):
                    for k in range(LANES):
                        M[(a * d + c) * LANES + k] += moving[i * LANES + k] * other[i * LANES + k]


@inner
def _rotors(rotors, basis, drift, M, h):
    """The same of inertias along rows of the velocities."""
    rows, inertia = rotors
    d = h.size // LANES
    along = np.empty((d + 1) * LANES)
    for o in range(inertia.size):
        clear(along)
        for i in range(rows.shape[1]):
            if rows[o, i] == 0.0:
                continue
            for a in range(d):
                for k in range(LANES):
                    along[a * LANES + k] += rows[o, i] * basis[(i * d + a) * LANES + k]
            for k in range(LANES):
                along[d * LANES + k] += rows[o, i] * drift[i * LANES + k]
        for a in range(d):
            for k in range(LANES):
                momentum = inertia[o] * along[a * LANES + k]
                h[a * LANES + k] += momentum * along[d * LANES + k]
                for c in range(a + 1):
                    M[(a * d + c) * LANES + k] += momentum * along[c * LANES + k]
