"""Newton on closures in lanes: poses along trajectories, and rates at poses.

`march` processes LANES parts of a motion in parallel: every lane extrapolates its own past and
corrects it, so that usually one step per sample is enough. `motion_rates` takes consecutive samples.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, int64

from dynid.common.compiled import B1, F1, F2, F3, I1, inner, kernel, takes
from dynid.common.compiled_arrays import release, view, workspace
from dynid.kinematics.closure_kernels import WORK, bias_tile, closure_tile, gather
from dynid.kinematics.kernel_types import CLOSURE, PLAN, SENSORS
from dynid.kinematics.kernels import LINK, link_states, pose_states
from dynid.kinematics.step_kernels import (
    add_along,
    clear,
    copy,
    factorise,
    nearest,
    newton_step,
    substitute,
    tangents,
)
from dynid.kinematics.tile import LANES

_MOST_STEP = 0.5
_ARRIVED = 3e-8  # the error after a step of this size is its square: below rounding
_PAST = 4  # poses kept for extrapolation


@takes(CLOSURE, PLAN, SENSORS, F2, I1, I1, boolean, F2, int64, F2, B1)
@kernel
def march(closure, plan, sensors, wanted, first, count, keep_last, q0, limit, out, done):
    """Poses of LANES parts of a motion, one sample after the other.

    closure: tables of `closure.tables_of`. plan: tables of an `Elimination`. sensors: see
    `step_kernels`. wanted: measured positions (n, m). first, count: of each lane (LANES,). q0: poses to
    begin with (LANES, n_q). limit: maximum number of Newton steps per sample. out: poses (n, n_q), or with
    keep_last (LANES, n_q) the last pose of each lane. done: whether each sample (lane) converged.
    """
    tree, loops, equations, linear, where = closure
    parent, kind, q_start, _, placement = tree
    n_q, n_v, d, r, m = q0.shape[1], plan[0].size + plan[1].size, plan[0].size, plan[1].size, sensors[0].size
    state, work = workspace(q0, (parent.size + 1) * LINK * LANES), workspace(q0, WORK * LANES)
    f = workspace(q0, (loops[3][-1] + linear[3].size) * LANES)
    entries, slots = workspace(q0, where[0].size * LANES), workspace(q0, plan[7].size * LANES)
    q, good, past = workspace(q0, n_q * LANES), workspace(q0, n_q * LANES), workspace(q0, _PAST * n_q * LANES)
    target, miss = workspace(q0, wanted.shape[1] * LANES), workspace(q0, m * LANES)
    sides, small = workspace(q0, (1 + d) * r * LANES), workspace(q0, (1 + d) * d * LANES)
    basis, move = workspace(q0, n_v * d * LANES), workspace(q0, n_v * LANES)
    size = workspace(q0, LANES)
    clear(move)
    gather(q0, 0, good)
    longest = 0
    for lane in range(LANES):
        longest = max(longest, count[lane])
    for step in range(longest):
        for lane in range(LANES):
            sample = first[lane] + max(min(step, count[lane] - 1), 0)
            for i in range(wanted.shape[1]):
                target[i * LANES + lane] = wanted[sample, i]
        _predict(past, step, good, q)
        normalise(tree, q)
        for _ in range(limit):
            pose_states(parent, kind, q_start, placement, q, state, work)
            closure_tile(state, loops, equations, linear, q, f, entries, work)
            newton_step(plan, sensors, q, target, f, entries, move, slots, sides, miss, small, basis)
            _limit(move, n_v, size)
            move_tile(tree, move, q)
            largest = 0.0
            for lane in range(LANES):
                if step < count[lane]:
                    largest = max(largest, size[lane])
            if largest < _ARRIVED:
                break
        for lane in range(LANES):
            fine = size[lane] < _ARRIVED  # false for NaN too
            if not fine:  # begin again from the last good pose, without a past
                for i in range(n_q):
                    q[i * LANES + lane] = good[i * LANES + lane]
                    for p in range(_PAST):
                        past[(p * n_q + i) * LANES + lane] = good[i * LANES + lane]
            if step < count[lane]:
                at = lane if keep_last else first[lane] + step
                done[at] = fine
                for i in range(n_q):
                    out[at, i] = q[i * LANES + lane]
        copy(q, 0, good, 0, q.size)
        copy(q, 0, past, (step % _PAST) * q.size, q.size)
    for space in (
        state,
        work,
        f,
        entries,
        slots,
        q,
        good,
        past,
        target,
        miss,
        sides,
        small,
        basis,
        move,
        size,
    ):
        release(space)


@inner
def _predict(past, step, good, q):
    """The next pose by the polynomial through the last ones."""
    n, have = good.size, min(step, _PAST)
    first, second = ((step - 1) % _PAST) * n, ((step - 2) % _PAST) * n
    third, fourth = ((step - 3) % _PAST) * n, ((step - 4) % _PAST) * n
    if have < 2:
        copy(good, 0, q, 0, n)
    elif have == 2:
        for i in range(n):
            q[i] = 2.0 * past[first + i] - past[second + i]
    elif have == 3:
        for i in range(n):
            q[i] = 3.0 * (past[first + i] - past[second + i]) + past[third + i]
    else:
        for i in range(n):
            near = 4.0 * (past[first + i] + past[third + i])
            q[i] = near - 6.0 * past[second + i] - past[fourth + i]


@inner
def normalise(tree, q):
    """Normalise extrapolated quaternions."""
    kind, q_start = tree[1], tree[2]
    for i in range(kind.size):
        if kind[i] == 3:
            quat = view(q, q_start[i] * LANES, 4 * LANES)
            for k in range(LANES):
                w, x, y, z = quat[k], quat[LANES + k], quat[2 * LANES + k], quat[3 * LANES + k]
                length = 1.0 / np.sqrt(w * w + x * x + y * y + z * z)
                quat[k], quat[LANES + k] = w * length, x * length
                quat[2 * LANES + k], quat[3 * LANES + k] = y * length, z * length


@inner
def _limit(step, n_v, size):
    """Limit the length of steps; size is their length before that."""
    clear(size)
    for v in range(n_v):
        for k in range(LANES):
            size[k] += step[v * LANES + k] * step[v * LANES + k]
    for k in range(LANES):
        size[k] = np.sqrt(size[k])
    for v in range(n_v):
        for k in range(LANES):
            step[v * LANES + k] *= min(1.0, _MOST_STEP / max(size[k], _MOST_STEP))


@inner
def move_tile(tree, step, q):
    """Positions after the step; quaternions rotate and keep unit length."""
    kind, q_start, v_start = tree[1], tree[2], tree[3]
    for i in range(kind.size):
        p, v = q_start[i], v_start[i]
        if kind[i] == 3:
            _turn(view(q, p * LANES, 4 * LANES), view(step, v * LANES, 3 * LANES))
        elif kind[i] != 0:
            for k in range(LANES):
                q[p * LANES + k] += step[v * LANES + k]


@inner
def _turn(q, turn):
    """Quaternion times that of a rotation vector in the moving frame."""
    for k in range(LANES):
        x, y, z = 0.5 * turn[k], 0.5 * turn[LANES + k], 0.5 * turn[2 * LANES + k]
        half = np.sqrt(x * x + y * y + z * z)
        c = np.cos(half)
        s = np.sin(half) / half if half > 1e-12 else 1.0
        x, y, z = s * x, s * y, s * z
        w0, x0, y0, z0 = q[k], q[LANES + k], q[2 * LANES + k], q[3 * LANES + k]
        w1 = w0 * c - x0 * x - y0 * y - z0 * z
        x1 = w0 * x + c * x0 + y0 * z - z0 * y
        y1 = w0 * y + c * y0 + z0 * x - x0 * z
        z1 = w0 * z + c * z0 + x0 * y - y0 * x
        length = 1.0 / np.sqrt(w1 * w1 + x1 * x1 + y1 * y1 + z1 * z1)
        q[k], q[LANES + k] = w1 * length, x1 * length
        q[2 * LANES + k], q[3 * LANES + k] = y1 * length, z1 * length


@takes(CLOSURE, PLAN, SENSORS, F2, F2, F2, F2, boolean, F2, F2, F3, F1, F1, F2, F1)
@kernel
def motion_rates(
    closure, plan, sensors, q, gamma, first, second, known, dq, ddq, N, condition, left, still, none
):
    """Rates x with A x = -gamma that are nearest to those measured; then accelerations at these velocities.

    q: closed poses (n, n_q). gamma: the bias of the equations for the first rates (n, c); without rows it is
    zero, as for velocities. first, second: rates of the measured coordinates and theirs (n, m); without rows
    of `second` there are no accelerations. known: dq is given; only N and `left` are computed.

    dq, ddq: (n, v). N: (n, v, d) in the independent coordinates. condition: (n,), about the condition number
    of the measured rows of an orthonormal N. left: (n,), |A x + gamma| over the largest |A_ij x_j|, the
    larger one of dq and ddq: the error of the fixed pivots. still: zeros as dq. none: no gravity.
    """
    tree, loops, equations, linear, where = closure
    parent, kind, q_start, v_start, placement = tree
    n, n_v, d, r, m = q.shape[0], dq.shape[1], plan[0].size, plan[1].size, sensors[0].size
    state, work = workspace(q, (parent.size + 1) * LINK * LANES), workspace(q, WORK * LANES)
    f = workspace(q, (loops[3][-1] + linear[3].size) * LANES)
    entries, slots = workspace(q, where[0].size * LANES), workspace(q, plan[7].size * LANES)
    tile, wanted = workspace(q, q.shape[1] * LANES), workspace(q, max(m, d) * LANES)
    sides, small = workspace(q, (1 + d) * r * LANES), workspace(q, (1 + d) * d * LANES)
    basis, x = workspace(q, n_v * d * LANES), workspace(q, n_v * LANES)
    judged, size = workspace(q, 2 * LANES), workspace(q, LANES)
    for at in range(0, n, LANES):
        width = min(LANES, n - at)
        gather(q, at, tile)
        pose_states(parent, kind, q_start, placement, tile, state, work)
        closure_tile(state, loops, equations, linear, tile, f, entries, work)
        factorise(plan, entries, slots)
        tangents(plan, entries, slots, view(sides, r * LANES, d * r * LANES), basis)
        clear(f)
        if gamma.shape[0]:
            gather(gamma, at, f)
        if known:
            _gather_columns(dq, at, plan[0], wanted)
            clear(x)
            add_along(basis, d, wanted, x)
        else:
            gather(first, at, wanted)
            _solve_rates(plan, sensors, slots, f, wanted, sides, small, basis, x)
            _stiffness(sensors, basis, n_v, d, small, judged)
        _residual(entries, where, x, f, judged, size)
        for lane in range(width):
            left[at + lane] = judged[LANES + lane]
            for i in range(n_v):
                for a in range(d):
                    N[at + lane, i, a] = basis[(i * d + a) * LANES + lane]
        if known:
            continue
        for lane in range(width):
            condition[at + lane] = judged[lane]
            for i in range(n_v):
                dq[at + lane, i] = x[i * LANES + lane]
        if second.shape[0] == 0:
            continue
        link_states(parent, kind, q_start, v_start, placement, none, q, dq, still, at, state, work)
        bias_tile(state, loops, equations, f, work)
        gather(second, at, wanted)
        _solve_rates(plan, sensors, slots, f, wanted, sides, small, basis, x)
        _residual(entries, where, x, f, judged, size)
        for lane in range(width):
            if not judged[LANES + lane] <= left[at + lane]:  # true for NaN too
                left[at + lane] = judged[LANES + lane]
            for i in range(n_v):
                ddq[at + lane, i] = x[i * LANES + lane]
    for space in (state, work, f, entries, slots, tile, wanted, sides, small, basis, x, judged, size):
        release(space)


@inner
def _gather_columns(x, at, columns, out):
    """Some columns of samples at .. at + LANES of x (n, v) as a tile; a short tile repeats the last one."""
    for lane in range(LANES):
        sample = min(at + lane, x.shape[0] - 1)
        for i in range(columns.size):
            out[i * LANES + lane] = x[sample, columns[i]]


@inner
def _solve_rates(plan, sensors, slots, gamma, wanted, sides, small, basis, x):
    """Rates x of a tile with A x = -gamma that are nearest to those wanted, which are overwritten.

    slots: factors of A. basis: N. sides, small: workspace, see `room`.
    """
    d, r = plan[0].size, plan[1].size
    rhs = view(sides, 0, r * LANES)
    for i in range(r):
        for k in range(LANES):
            rhs[i * LANES + k] = -gamma[plan[2][i] * LANES + k]
    substitute(plan[5], slots, rhs)
    clear(x)
    for i in range(r):
        copy(rhs, i * LANES, x, plan[1][i] * LANES, LANES)
    for j in range(sensors[0].size):
        for k in range(LANES):
            wanted[j * LANES + k] -= x[sensors[0][j] * LANES + k]
    nearest(sensors, basis, d, wanted, small)
    add_along(basis, d, view(small, d * d * LANES, d * LANES), x)


@inner
def _stiffness(sensors, basis, n_v, d, small, judged):
    """Condition of a tile, into the first lanes of judged; uses the triangle left by `nearest`.

    With M = N_m^T N_m = L L^T: trace(M^-1 N^T N) = sum of 1 / sigma^2, sigma the singular values of
    the measured rows of an orthonormal N.
    """
    M, x = view(small, 0, d * d * LANES), view(small, d * d * LANES, d * LANES)
    stiff = view(judged, 0, LANES)
    clear(stiff)
    for v in range(n_v):
        copy(basis, v * d * LANES, x, 0, d * LANES)
        for a in range(d):
            for b in range(a if sensors[5][0] != 0 else 0):  # else the triangle is diagonal
                for k in range(LANES):
                    x[a * LANES + k] -= M[(a * d + b) * LANES + k] * x[b * LANES + k]
            for k in range(LANES):
                x[a * LANES + k] /= M[(a * d + a) * LANES + k]
                stiff[k] += x[a * LANES + k] * x[a * LANES + k]
    for k in range(LANES):
        stiff[k] = np.sqrt(stiff[k])


@inner
def _residual(entries, where, velocity, total, judged, size):
    """Closure residual of a tile relative to its parts, into the second lanes of judged.

    total: the bias of the equations; A x is added to it. size: room for a number.
    """
    largest = view(judged, LANES, LANES)
    clear(size)
    clear(largest)
    for e in range(where[0].size):
        row, column = where[0][e], where[1][e]
        for k in range(LANES):
            part = entries[e * LANES + k] * velocity[column * LANES + k]
            total[row * LANES + k] += part
            size[k] = max(size[k], abs(part))
    for row in range(total.size // LANES):
        for k in range(LANES):
            largest[k] = max(largest[k], abs(total[row * LANES + k]))
    for k in range(LANES):
        largest[k] /= max(size[k], 1e-300)
