"""Closure equations in lanes: values, Jacobian entries and accelerations of one tile of poses.

Only entries that can be non-zero are computed: coordinates that move both frames of a loop equally do not
change it and have no entry. Tables (see `closure.tables_of`):

    loops      link and placement of frames a, b (two a loop); per loop: first coordinate, first
               equation, first entry; per coordinate: link, axis, slides, sign (+1 moves b, -1 a)
    equations  kind, axis, length, first term; per term: weight, axis of a, axis of b; per equation:
               radius of the pulley, position of the coordinate that belongs to it alone (-1: none)
    linear     first entry; per entry: position, coefficient; offset of each equation
"""

from __future__ import annotations

from dynid.common.compiled import F1, F2, F3, inlined, inner, kernel, takes
from dynid.common.compiled_arrays import release, view, workspace
from dynid.kinematics.cable_kernels import angle_between, cable_acceleration, cable_length, swivel_rates
from dynid.kinematics.kernel_types import EQUATIONS, LINEAR, LOOPS, TREE, WHERE
from dynid.kinematics.kernels import LINK, carry, carry_pose, link_states, pose_states
from dynid.kinematics.tile import (
    ALONG,
    AX,
    AY,
    AZ,
    CABLE,
    DWX,
    DWY,
    DWZ,
    LANES,
    NORMAL,
    PX,
    PY,
    PZ,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    ROD,
    SWIVEL,
    VX,
    VY,
    VZ,
    WX,
    WY,
    WZ,
)

WORK = 2 * LINK + 3 + 18  # fields of workspace of a tile: two frames, a vector, and those of six equations


@inner
def closure_tile(state, loops, equations, linear, q, f, entries, work):
    """F (c * LANES) and Jacobian entries (e * LANES) of the poses in `state`; q is the tile of positions.

    A rotation of b relative to a about z through the link's origin moves the origin of b by u = z x r. Each
    equation changes by w . u or, where only axes matter, by w . z, with its own vector w.
    """
    links, places, c_first, e_first, n_first, c_link, c_axis, c_slides, c_sign = loops
    a, b = view(work, 0, LINK * LANES), view(work, LINK * LANES, LINK * LANES)
    u, w = view(work, 2 * LINK * LANES, 3 * LANES), view(work, (2 * LINK + 3) * LANES, 18 * LANES)
    for loop in range(c_first.size - 1):
        for end in range(2):
            link = view(state, (links[2 * loop + end] + 1) * LINK * LANES, LINK * LANES)  # -1 is the base
            carry_pose(link, view(work, end * LINK * LANES, LINK * LANES), places[2 * loop + end])
        first, count = e_first[loop], e_first[loop + 1] - e_first[loop]
        for c in range(count):
            _equation(
                equations,
                first + c,
                a,
                b,
                q,
                view(f, (first + c) * LANES, LANES),
                view(w, 3 * c * LANES, 3 * LANES),
            )
        at = n_first[loop]
        for j in range(c_first[loop], c_first[loop + 1]):
            link_state = view(state, (c_link[j] + 1) * LINK * LANES, LINK * LANES)
            _relative(link_state, b, c_axis[j], c_slides[j], c_sign[j], u)
            axis, sign = c_axis[j], 0.0 if c_slides[j] else c_sign[j]
            for c in range(count):
                entry = view(entries, at * LANES, LANES)
                vector = view(w, 3 * c * LANES, 3 * LANES)
                if equations[0][first + c] != NORMAL:
                    _dot(vector, u, entry)
                else:
                    for k in range(LANES):
                        entry[k] = sign * (
                            vector[k] * link_state[axis * LANES + k]
                            + vector[LANES + k] * link_state[(3 + axis) * LANES + k]
                            + vector[2 * LANES + k] * link_state[(6 + axis) * LANES + k]
                        )
                at += 1
        for c in range(count):
            if equations[8][first + c] >= 0:
                for k in range(LANES):
                    entries[at * LANES + k] = -1.0
                at += 1
    first, start = e_first[-1], linear[0]
    for c in range(start.size - 1):
        value = view(f, (first + c) * LANES, LANES)
        for k in range(LANES):
            value[k] = -linear[3][c]
        for j in range(start[c], start[c + 1]):
            position, factor = linear[1][j], linear[2][j]
            entry = view(entries, (n_first[-1] + j) * LANES, LANES)
            for k in range(LANES):
                entry[k] = factor
                value[k] += factor * q[position * LANES + k]


@inner
def _dot(x, y, out):
    for k in range(LANES):
        out[k] = x[k] * y[k] + x[LANES + k] * y[LANES + k] + x[2 * LANES + k] * y[2 * LANES + k]


@inner
def _relative(link, b, axis, slides, sign, u):
    """Motion of the origin of b relative to a for a unit rate of a coordinate."""
    for k in range(LANES):
        zx, zy = sign * link[axis * LANES + k], sign * link[(3 + axis) * LANES + k]
        zz = sign * link[(6 + axis) * LANES + k]
        if slides:
            u[k] = zx
            u[LANES + k] = zy
            u[2 * LANES + k] = zz
        else:
            x = b[PX * LANES + k] - link[PX * LANES + k]
            y = b[PY * LANES + k] - link[PY * LANES + k]
            z = b[PZ * LANES + k] - link[PZ * LANES + k]
            u[k] = zy * z - zz * y
            u[LANES + k] = zz * x - zx * z
            u[2 * LANES + k] = zx * y - zy * x


@inner
def _equation(equations, c, a, b, q, f, w):
    """Value of one equation and its vector w."""
    kind, axis, length, first, weight, axis_a, axis_b, radius, position = equations
    if kind[c] == ALONG:
        i = axis[c]
        for k in range(LANES):
            ex, ey, ez = a[i * LANES + k], a[(3 + i) * LANES + k], a[(6 + i) * LANES + k]
            dx, dy = b[PX * LANES + k] - a[PX * LANES + k], b[PY * LANES + k] - a[PY * LANES + k]
            dz = b[PZ * LANES + k] - a[PZ * LANES + k]
            f[k] = ex * dx + ey * dy + ez * dz
            w[k] = ex
            w[LANES + k] = ey
            w[2 * LANES + k] = ez
    elif kind[c] == ROD:
        inverse = 1.0 / length[c]
        for k in range(LANES):
            dx, dy = b[PX * LANES + k] - a[PX * LANES + k], b[PY * LANES + k] - a[PY * LANES + k]
            dz = b[PZ * LANES + k] - a[PZ * LANES + k]
            f[k] = 0.5 * ((dx * dx + dy * dy + dz * dz) * inverse - length[c])
            w[k] = dx * inverse
            w[LANES + k] = dy * inverse
            w[2 * LANES + k] = dz * inverse
    elif kind[c] == CABLE:
        for k in range(LANES):
            x, y, z = _in_frame(a, b, k)
            total, gx, gy, gz = cable_length(radius[c], x, y, z)
            f[k] = total - (q[position[c] * LANES + k] if position[c] >= 0 else length[c])
            _to_base(a, gx, gy, gz, w, k)
    elif kind[c] == SWIVEL:
        for k in range(LANES):
            x, y, _ = _in_frame(a, b, k)
            angle, square = q[position[c] * LANES + k], x * x + y * y
            f[k] = angle_between(x, y, angle)
            _to_base(a, -y / square, x / square, 0.0 * x, w, k)
    else:
        for k in range(LANES):
            f[k] = 0.0
            w[k] = 0.0
            w[LANES + k] = 0.0
            w[2 * LANES + k] = 0.0
        for t in range(first[c], first[c + 1]):
            i, j, factor = axis_a[t], axis_b[t], weight[t]
            for k in range(LANES):
                ex, ey, ez = a[i * LANES + k], a[(3 + i) * LANES + k], a[(6 + i) * LANES + k]
                gx, gy, gz = b[j * LANES + k], b[(3 + j) * LANES + k], b[(6 + j) * LANES + k]
                f[k] += factor * (ex * gx + ey * gy + ez * gz)
                w[k] += factor * (gy * ez - gz * ey)
                w[LANES + k] += factor * (gz * ex - gx * ez)
                w[2 * LANES + k] += factor * (gx * ey - gy * ex)


@inlined
def _in_frame(a, b, k):
    """Origin of b in the axes of a."""
    d, _, _ = _apart(a, b, k)
    return (
        a[R00 * LANES + k] * d[0] + a[R10 * LANES + k] * d[1] + a[R20 * LANES + k] * d[2],
        a[R01 * LANES + k] * d[0] + a[R11 * LANES + k] * d[1] + a[R21 * LANES + k] * d[2],
        a[R02 * LANES + k] * d[0] + a[R12 * LANES + k] * d[1] + a[R22 * LANES + k] * d[2],
    )


@inlined
def _to_base(a, x, y, z, w, k):
    """A vector in the axes of a, rotated into the base frame."""
    w[k] = a[R00 * LANES + k] * x + a[R01 * LANES + k] * y + a[R02 * LANES + k] * z
    w[LANES + k] = a[R10 * LANES + k] * x + a[R11 * LANES + k] * y + a[R12 * LANES + k] * z
    w[2 * LANES + k] = a[R20 * LANES + k] * x + a[R21 * LANES + k] * y + a[R22 * LANES + k] * z


@inner
def bias_tile(state, loops, equations, gamma, work):
    """Acceleration of f at ddq = 0 (c * LANES), from links that move with dq and without gravity."""
    links, places, e_first = loops[0], loops[1], loops[3]
    a, b = view(work, 0, LINK * LANES), view(work, LINK * LANES, LINK * LANES)
    for k in range(gamma.size):
        gamma[k] = 0.0
    for loop in range(e_first.size - 1):
        for end in range(2):
            link = view(state, (links[2 * loop + end] + 1) * LINK * LANES, LINK * LANES)
            carry(link, view(work, end * LINK * LANES, LINK * LANES), places[2 * loop + end])
        for c in range(e_first[loop], e_first[loop + 1]):
            _bias(equations, c, a, b, view(gamma, c * LANES, LANES))


@inner
def _bias(equations, c, a, b, gamma):
    """Second time derivative of one equation: products of positions, rates and accelerations.

    With axes e of a, g of b turning with w: e' = w x e, e'' = dw x e + w x e'.
    """
    kind, axis, length, first, weight, axis_a, axis_b, radius, _ = equations
    if kind[c] == ALONG:
        for k in range(LANES):
            e, e1, e2 = _axis_rates(a, axis[c] * LANES + k, k)
            d, d1, d2 = _apart(a, b, k)
            gamma[k] = _sum(e, d2) + 2.0 * _sum(e1, d1) + _sum(e2, d)
    elif kind[c] == ROD:
        for k in range(LANES):
            d, d1, d2 = _apart(a, b, k)
            gamma[k] = (_sum(d1, d1) + _sum(d, d2)) / length[c]
    elif kind[c] in (CABLE, SWIVEL):
        for k in range(LANES):
            x, y = _seen_rates(a, b, k, k), _seen_rates(a, b, LANES + k, k)
            z = _seen_rates(a, b, 2 * LANES + k, k)
            if kind[c] == CABLE:
                gamma[k] = cable_acceleration(radius[c], x, y, z)
            else:
                gamma[k] = swivel_rates(x, y)[1]
    else:
        for t in range(first[c], first[c + 1]):
            for k in range(LANES):
                e, e1, e2 = _axis_rates(a, axis_a[t] * LANES + k, k)
                g, g1, g2 = _axis_rates(b, axis_b[t] * LANES + k, k)
                gamma[k] += weight[t] * (_sum(e2, g) + 2.0 * _sum(e1, g1) + _sum(g2, e))


# Places of fields are passed as computed numbers: constants would be compiled once for each value.
@inlined
def _seen_rates(a, b, at, k):
    """A coordinate of the origin of b in the moving axes of a, with its first and second derivative."""
    e, e1, e2 = _axis_rates(a, at, k)
    d, d1, d2 = _apart(a, b, k)
    return _sum(e, d), _sum(e1, d) + _sum(e, d1), _sum(e2, d) + 2.0 * _sum(e1, d1) + _sum(e, d2)


@inlined
def _apart(a, b, k):
    """From the origin of a to that of b, with its first and second time derivative."""
    return (
        (
            b[PX * LANES + k] - a[PX * LANES + k],
            b[PY * LANES + k] - a[PY * LANES + k],
            b[PZ * LANES + k] - a[PZ * LANES + k],
        ),
        (
            b[VX * LANES + k] - a[VX * LANES + k],
            b[VY * LANES + k] - a[VY * LANES + k],
            b[VZ * LANES + k] - a[VZ * LANES + k],
        ),
        (
            b[AX * LANES + k] - a[AX * LANES + k],
            b[AY * LANES + k] - a[AY * LANES + k],
            b[AZ * LANES + k] - a[AZ * LANES + k],
        ),
    )


@inlined
def _sum(x, y):
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]


@inlined
def _axis_rates(link, at, k):
    """An axis of a frame, with its first and second time derivative; at: place of its first number."""
    x, y, z = link[at], link[3 * LANES + at], link[6 * LANES + at]
    wx, wy, wz = link[WX * LANES + k], link[WY * LANES + k], link[WZ * LANES + k]
    bx, by, bz = link[DWX * LANES + k], link[DWY * LANES + k], link[DWZ * LANES + k]
    vx, vy, vz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
    sx, sy = by * z - bz * y + wy * vz - wz * vy, bz * x - bx * z + wz * vx - wx * vz
    sz = bx * y - by * x + wx * vy - wy * vx
    return (x, y, z), (vx, vy, vz), (sx, sy, sz)


@inner
def gather(x, at, out):
    """Samples at .. at + LANES of x (n, columns) as a tile; a short tile repeats the last sample."""
    for lane in range(LANES):
        sample = min(at + lane, x.shape[0] - 1)
        for i in range(x.shape[1]):
            out[i * LANES + lane] = x[sample, i]


@takes(TREE, LOOPS, EQUATIONS, LINEAR, WHERE, F2, F2, F3)
@kernel
def closure_values(tree, loops, equations, linear, where, q, f, A):
    """F (n, c) and A (n, c, v) of poses q (n, n_q); A must be zero. where: row, column of each entry."""
    parent, kind, q_start, _, placement = tree
    state, work = workspace(q, (parent.size + 1) * LINK * LANES), workspace(q, WORK * LANES)
    tile, f_tile = workspace(q, q.shape[1] * LANES), workspace(q, f.shape[1] * LANES)
    entries = workspace(q, where[0].size * LANES)
    for at in range(0, q.shape[0], LANES):
        gather(q, at, tile)
        pose_states(parent, kind, q_start, placement, tile, state, work)
        closure_tile(state, loops, equations, linear, tile, f_tile, entries, work)
        for lane in range(min(LANES, q.shape[0] - at)):
            for c in range(f.shape[1]):
                f[at + lane, c] = f_tile[c * LANES + lane]
            for e in range(where[0].size):
                A[at + lane, where[0][e], where[1][e]] = entries[e * LANES + lane]
    for space in (state, work, tile, f_tile, entries):
        release(space)


@takes(TREE, LOOPS, EQUATIONS, F2, F2, F2, F1, F2)
@kernel
def closure_bias(tree, loops, equations, q, dq, still, none, gamma):
    """Acceleration (n, c) of f at ddq = 0 for positions q and velocities dq.

    still: zeros as dq. none: no gravity.
    """
    parent, kind, q_start, v_start, placement = tree
    state, work = workspace(q, (parent.size + 1) * LINK * LANES), workspace(q, WORK * LANES)
    tile = workspace(q, gamma.shape[1] * LANES)
    for at in range(0, q.shape[0], LANES):
        link_states(parent, kind, q_start, v_start, placement, none, q, dq, still, at, state, work)
        bias_tile(state, loops, equations, tile, work)
        for lane in range(min(LANES, q.shape[0] - at)):
            for c in range(gamma.shape[1]):
                gamma[at + lane, c] = tile[c * LANES + lane]
    for space in (state, work, tile):
        release(space)
