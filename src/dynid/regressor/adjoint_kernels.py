"""Reverse pass of the tree regressor: how a weighted sum of all entries changes with the motion.

S = sum_e g_e W_e(q, dq, ddq). Weights of one row and body act like inertial parameters (m, s, I) of
that body, multiplied by the virtual motion (u, w) of the row's joint:

    S_pair = w . (I dw + om x I om + s x a) + u . (m a + dw x s + om x (om x s))

so every derivative is a dynamics-like product. The recursion then runs from the bodies to the base
with adjoints of each link's small rotation, origin, angular velocity, angular acceleration and
acceleration, all in the base frame.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating, allocating_inner, inlined, inner
from dynid.common.compiled_arrays import view
from dynid.kinematics.kernels import LINK, body_state, link_states, rotate, unrotate
from dynid.kinematics.tile import (
    AX,
    AY,
    AZ,
    DWX,
    DWY,
    DWZ,
    LANES,
    MASS,
    MX,
    MY,
    MZ,
    PX,
    PY,
    PZ,
    R02,
    R12,
    R22,
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

# Fields of an adjoint: small rotation, origin, angular velocity, angular acceleration, acceleration.
ADJOINT = 15
_TURN, _P, _W, _DW, _A = 0, 3, 6, 9, 12


@inlined
def _cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@inlined
def _add(bar, field, k, x, y, z):
    bar[field * LANES + k] += x
    bar[(field + 1) * LANES + k] += y
    bar[(field + 2) * LANES + k] += z


@inner
def _pair(body, joint, slides, axis, g, bar, bar_joint):
    """Adjoints of one body-joint pair; those of rates are in body axes until `_to_base`.

    g: ten weights in the order XX XY XZ YY YZ ZZ MX MY MZ M, each LANES long.
    """
    for k in range(LANES):
        zx, zy, zz = joint[axis * LANES + k], joint[(axis + 3) * LANES + k], joint[(axis + 6) * LANES + k]
        ax, ay, az = body[AX * LANES + k], body[AY * LANES + k], body[AZ * LANES + k]
        ox, oy, oz = body[WX * LANES + k], body[WY * LANES + k], body[WZ * LANES + k]
        bx, by, bz = body[DWX * LANES + k], body[DWY * LANES + k], body[DWZ * LANES + k]
        dx = body[PX * LANES + k] - joint[PX * LANES + k]
        dy = body[PY * LANES + k] - joint[PY * LANES + k]
        dz = body[PZ * LANES + k] - joint[PZ * LANES + k]
        vx, vy, vz = _cross(zx, zy, zz, dx, dy, dz)
        if slides:
            vx, vy, vz = zx, zy, zz
        ux, uy, uz = unrotate(body, k, vx, vy, vz)
        wx, wy, wz = unrotate(body, k, zx, zy, zz)
        if slides:
            wx, wy, wz = 0.0 * wx, 0.0 * wy, 0.0 * wz
        ixx, ixy, ixz = g[XX * LANES + k], g[XY * LANES + k], g[XZ * LANES + k]
        iyy, iyz, izz = g[YY * LANES + k], g[YZ * LANES + k], g[ZZ * LANES + k]
        sx, sy, sz, m = g[MX * LANES + k], g[MY * LANES + k], g[MZ * LANES + k], g[MASS * LANES + k]
        # Angular momentum I om, and the contribution of its parts.
        hx, hy, hz = (
            ixx * ox + ixy * oy + ixz * oz,
            ixy * ox + iyy * oy + iyz * oz,
            ixz * ox + iyz * oy + izz * oz,
        )
        os = ox * sx + oy * sy + oz * sz
        oo = ox * ox + oy * oy + oz * oz
        # Adjoints of the virtual motion: the moment n and the force f of these parameters.
        px, py, pz = _cross(ox, oy, oz, hx, hy, hz)
        rx, ry, rz = _cross(sx, sy, sz, ax, ay, az)
        nx = ixx * bx + ixy * by + ixz * bz + px + rx
        ny = ixy * bx + iyy * by + iyz * bz + py + ry
        nz = ixz * bx + iyz * by + izz * bz + pz + rz
        px, py, pz = _cross(bx, by, bz, sx, sy, sz)
        fx = m * ax + px + ox * os - sx * oo
        fy = m * ay + py + oy * os - sy * oo
        fz = m * az + pz + oz * os - sz * oo
        # Adjoints of the body's own rates, in its axes.
        px, py, pz = _cross(wx, wy, wz, sx, sy, sz)
        _add(bar, _A, k, m * ux + px, m * uy + py, m * uz + pz)
        px, py, pz = _cross(sx, sy, sz, ux, uy, uz)
        _add(
            bar,
            _DW,
            k,
            ixx * wx + ixy * wy + ixz * wz + px,
            ixy * wx + iyy * wy + iyz * wz + py,
            ixz * wx + iyz * wy + izz * wz + pz,
        )
        px, py, pz = _cross(wx, wy, wz, ox, oy, oz)
        rx, ry, rz = _cross(hx, hy, hz, wx, wy, wz)
        uo, us = ux * ox + uy * oy + uz * oz, ux * sx + uy * sy + uz * sz
        _add(
            bar,
            _W,
            k,
            rx + ixx * px + ixy * py + ixz * pz + ux * os + sx * uo - 2.0 * ox * us,
            ry + ixy * px + iyy * py + iyz * pz + uy * os + sy * uo - 2.0 * oy * us,
            rz + ixz * px + iyz * py + izz * pz + uz * os + sz * uo - 2.0 * oz * us,
        )
        # Back to the base frame: rotation of the body, axis and origin of the joint.
        fx, fy, fz = rotate(body, k, fx, fy, fz)
        nx, ny, nz = rotate(body, k, nx, ny, nz)
        px, py, pz = _cross(fx, fy, fz, vx, vy, vz)
        if slides:
            _add(bar, _TURN, k, px, py, pz)
            rx, ry, rz = _cross(zx, zy, zz, fx, fy, fz)
            _add(bar_joint, _TURN, k, rx, ry, rz)
        else:
            rx, ry, rz = _cross(nx, ny, nz, zx, zy, zz)
            _add(bar, _TURN, k, px + rx, py + ry, pz + rz)
            px, py, pz = _cross(fx, fy, fz, zx, zy, zz)
            _add(bar, _P, k, px, py, pz)
            _add(bar_joint, _P, k, -px, -py, -pz)
            px, py, pz = _cross(dx, dy, dz, fx, fy, fz)
            rx, ry, rz = _cross(zx, zy, zz, nx + px, ny + py, nz + pz)
            _add(bar_joint, _TURN, k, rx, ry, rz)


@inner
def _to_base(body, bar):
    """Rotate adjoints of rates from body axes to the base frame, including the rotation of the axes."""
    for k in range(LANES):
        for rate, field in ((WX, _W), (DWX, _DW), (AX, _A)):
            x, y, z = bar[field * LANES + k], bar[(field + 1) * LANES + k], bar[(field + 2) * LANES + k]
            x, y, z = rotate(body, k, x, y, z)
            ox, oy, oz = body[rate * LANES + k], body[(rate + 1) * LANES + k], body[(rate + 2) * LANES + k]
            ox, oy, oz = rotate(body, k, ox, oy, oz)
            bar[field * LANES + k] = x
            bar[(field + 1) * LANES + k] = y
            bar[(field + 2) * LANES + k] = z
            x, y, z = _cross(x, y, z, ox, oy, oz)
            _add(bar, _TURN, k, x, y, z)


@inner
def _carry_back(up, child, bar, bar_up, slid):
    """Adjoints of a frame fixed to `up` passed on to it; `slid`: the frame is moved by a prismatic joint.

    The lever is the vector between the origins. For a prismatic link it also contains the travel, whose
    own rates are handled in `_slide_back`.
    """
    for k in range(LANES):
        x = child[PX * LANES + k] - up[PX * LANES + k]
        y = child[PY * LANES + k] - up[PY * LANES + k]
        z = child[PZ * LANES + k] - up[PZ * LANES + k]
        ox, oy, oz = up[WX * LANES + k], up[WY * LANES + k], up[WZ * LANES + k]
        bx, by, bz = up[DWX * LANES + k], up[DWY * LANES + k], up[DWZ * LANES + k]
        ax, ay, az = bar[_A * LANES + k], bar[(_A + 1) * LANES + k], bar[(_A + 2) * LANES + k]
        oa, ol = ox * ax + oy * ay + oz * az, ox * x + oy * y + oz * z
        oo, la = ox * ox + oy * oy + oz * oz, x * ax + y * ay + z * az
        px, py, pz = _cross(ax, ay, az, bx, by, bz)
        lx = bar[_P * LANES + k] + px + ox * oa - ax * oo
        ly = bar[(_P + 1) * LANES + k] + py + oy * oa - ay * oo
        lz = bar[(_P + 2) * LANES + k] + pz + oz * oa - az * oo
        slid[k], slid[LANES + k], slid[2 * LANES + k] = lx, ly, lz
        px, py, pz = _cross(x, y, z, lx, ly, lz)
        tx, ty, tz = bar[k], bar[LANES + k], bar[2 * LANES + k]
        _add(bar_up, _TURN, k, tx + px, ty + py, tz + pz)
        _add(
            bar_up,
            _P,
            k,
            bar[_P * LANES + k],
            bar[(_P + 1) * LANES + k],
            bar[(_P + 2) * LANES + k],
        )
        _add(
            bar_up,
            _W,
            k,
            bar[_W * LANES + k] + ax * ol + x * oa - 2.0 * ox * la,
            bar[(_W + 1) * LANES + k] + ay * ol + y * oa - 2.0 * oy * la,
            bar[(_W + 2) * LANES + k] + az * ol + z * oa - 2.0 * oz * la,
        )
        px, py, pz = _cross(x, y, z, ax, ay, az)
        _add(
            bar_up,
            _DW,
            k,
            bar[_DW * LANES + k] + px,
            bar[(_DW + 1) * LANES + k] + py,
            bar[(_DW + 2) * LANES + k] + pz,
        )
        _add(bar_up, _A, k, ax, ay, az)


@inner
def _turn_back(up, child, bar, rate, accel, out_q, out_dq, out_ddq):
    """A revolute link: derivatives for its coordinate, and the effect of its axis on the parent's adjoints.

    dw = dw_up + z ddq + (w_up x z) dq; afterwards `bar` is that of the frame before the rotation.
    """
    for k in range(LANES):
        zx, zy, zz = child[R02 * LANES + k], child[R12 * LANES + k], child[R22 * LANES + k]
        ox, oy, oz = up[WX * LANES + k], up[WY * LANES + k], up[WZ * LANES + k]
        tx, ty, tz = bar[k], bar[LANES + k], bar[2 * LANES + k]
        wx, wy, wz = bar[_W * LANES + k], bar[(_W + 1) * LANES + k], bar[(_W + 2) * LANES + k]
        bx, by, bz = bar[_DW * LANES + k], bar[(_DW + 1) * LANES + k], bar[(_DW + 2) * LANES + k]
        px, py, pz = _cross(bx, by, bz, ox, oy, oz)
        out_q[k] = zx * tx + zy * ty + zz * tz
        out_dq[k] = zx * (wx + px) + zy * (wy + py) + zz * (wz + pz)
        out_ddq[k] = zx * bx + zy * by + zz * bz
        cx = (wx + px) * rate[k] + bx * accel[k]
        cy = (wy + py) * rate[k] + by * accel[k]
        cz = (wz + pz) * rate[k] + bz * accel[k]
        cx, cy, cz = _cross(zx, zy, zz, cx, cy, cz)
        _add(bar, _TURN, k, cx, cy, cz)
        px, py, pz = _cross(zx, zy, zz, bx, by, bz)
        _add(bar, _W, k, rate[k] * px, rate[k] * py, rate[k] * pz)


@inner
def _slide_back(up, child, bar, lever, rate, accel, bar_up, out_q, out_dq, out_ddq):
    """A prismatic link: a = ... + z ddq + 2 dq w x z in addition to the lever's part; lever: its adjoint."""
    for k in range(LANES):
        zx, zy, zz = child[R02 * LANES + k], child[R12 * LANES + k], child[R22 * LANES + k]
        ox, oy, oz = up[WX * LANES + k], up[WY * LANES + k], up[WZ * LANES + k]
        ax, ay, az = bar[_A * LANES + k], bar[(_A + 1) * LANES + k], bar[(_A + 2) * LANES + k]
        px, py, pz = _cross(ax, ay, az, ox, oy, oz)
        out_q[k] = zx * lever[k] + zy * lever[LANES + k] + zz * lever[2 * LANES + k]
        out_dq[k] = 2.0 * (zx * px + zy * py + zz * pz)
        out_ddq[k] = zx * ax + zy * ay + zz * az
        cx = 2.0 * rate[k] * px + accel[k] * ax
        cy = 2.0 * rate[k] * py + accel[k] * ay
        cz = 2.0 * rate[k] * pz + accel[k] * az
        cx, cy, cz = _cross(zx, zy, zz, cx, cy, cz)
        _add(bar_up, _TURN, k, cx, cy, cz)
        cx, cy, cz = _cross(zx, zy, zz, ax, ay, az)
        _add(bar_up, _W, k, 2.0 * rate[k] * cx, 2.0 * rate[k] * cy, 2.0 * rate[k] * cz)


@inner
def _orient_back(up, child, bar, rates, accels, out_q, out_dq, out_ddq):
    """A spherical link: a rotation about three axes that move with the link itself.

    The small rotation of the link before the joint equals that of `bar`: its axes are those after it.
    """
    for k in range(LANES):
        ox, oy, oz = up[WX * LANES + k], up[WY * LANES + k], up[WZ * LANES + k]
        wx, wy, wz = bar[_W * LANES + k], bar[(_W + 1) * LANES + k], bar[(_W + 2) * LANES + k]
        bx, by, bz = bar[_DW * LANES + k], bar[(_DW + 1) * LANES + k], bar[(_DW + 2) * LANES + k]
        vx, vy, vz = rotate(child, k, rates[k], rates[LANES + k], rates[2 * LANES + k])
        cx, cy, cz = rotate(child, k, accels[k], accels[LANES + k], accels[2 * LANES + k])
        px, py, pz = _cross(bx, by, bz, ox, oy, oz)
        rx, ry, rz = wx + px, wy + py, wz + pz
        # Rotation of the axes of the rates.
        px, py, pz = _cross(vx, vy, vz, rx, ry, rz)
        _add(bar, _TURN, k, px, py, pz)
        px, py, pz = _cross(cx, cy, cz, bx, by, bz)
        _add(bar, _TURN, k, px, py, pz)
        x, y, z = unrotate(child, k, bar[k], bar[LANES + k], bar[2 * LANES + k])
        out_q[k], out_q[LANES + k], out_q[2 * LANES + k] = x, y, z
        x, y, z = unrotate(child, k, rx, ry, rz)
        out_dq[k], out_dq[LANES + k], out_dq[2 * LANES + k] = x, y, z
        x, y, z = unrotate(child, k, bx, by, bz)
        out_ddq[k], out_ddq[LANES + k], out_ddq[2 * LANES + k] = x, y, z
        px, py, pz = _cross(vx, vy, vz, bx, by, bz)
        _add(bar, _W, k, px, py, pz)


@allocating_inner
def _bodies_back(links, bodies, pairs, state, g, at, width, bars, body, bar, weights):
    """Adjoints of all links from the weights of a tile's inertial entries."""
    kind = links[1]
    body_link, body_frame = bodies
    start, pair_link, pair_axis, pair_entry = pairs
    lever = np.empty(3 * LANES)
    for b in range(body_link.size):
        if start[b] == start[b + 1]:
            continue
        body_state(state, body_link[b], body_frame[b], body)
        bar[:] = 0.0
        for pair in range(start[b], start[b + 1]):
            link, entry = pair_link[pair], pair_entry[pair]
            for e in range(10):
                row = g[entry + e]
                for k in range(width):
                    weights[e * LANES + k] = row[at + k]
            joint = view(state, (link + 1) * LINK * LANES, LINK * LANES)
            bar_joint = view(bars, (link + 1) * ADJOINT * LANES, ADJOINT * LANES)
            _pair(body, joint, kind[link] == 2, pair_axis[pair], weights, bar, bar_joint)
        _to_base(body, bar)
        up = view(state, (body_link[b] + 1) * LINK * LANES, LINK * LANES)
        bar_up = view(bars, (body_link[b] + 1) * ADJOINT * LANES, ADJOINT * LANES)
        _carry_back(up, body, bar, bar_up, lever)


@allocating_inner
def _links_back(links, state, dq, ddq, at, bars, out_q, out_dq, out_ddq):
    """From the outermost link to the base: derivatives for every coordinate of a tile."""
    parent, kind, _, v_start, _ = links
    n = dq.shape[0]
    rates, accels = np.empty(3 * LANES), np.empty(3 * LANES)
    lever = np.empty(3 * LANES)
    results = np.empty(9 * LANES)
    for i in range(parent.size - 1, -1, -1):
        up = view(state, (parent[i] + 1) * LINK * LANES, LINK * LANES)
        child = view(state, (i + 1) * LINK * LANES, LINK * LANES)
        bar = view(bars, (i + 1) * ADJOINT * LANES, ADJOINT * LANES)
        bar_up = view(bars, (parent[i] + 1) * ADJOINT * LANES, ADJOINT * LANES)
        if kind[i] == 0:
            _carry_back(up, child, bar, bar_up, lever)
            continue
        count = 3 if kind[i] == 3 else 1
        for c in range(count):
            for k in range(LANES):
                sample = min(at + k, n - 1)
                rates[c * LANES + k] = dq[sample, v_start[i] + c]
                accels[c * LANES + k] = ddq[sample, v_start[i] + c]
        r_q, r_dq, r_ddq = (
            view(results, 0, 3 * LANES),
            view(results, 3 * LANES, 3 * LANES),
            view(results, 6 * LANES, 3 * LANES),
        )
        if kind[i] == 1:
            _turn_back(up, child, bar, rates, accels, r_q, r_dq, r_ddq)
        elif kind[i] == 3:
            _orient_back(up, child, bar, rates, accels, r_q, r_dq, r_ddq)
        _carry_back(up, child, bar, bar_up, lever)
        if kind[i] == 2:
            _slide_back(up, child, bar, lever, rates, accels, bar_up, r_q, r_dq, r_ddq)
        for c in range(count):
            for k in range(min(LANES, n - at)):
                out_q[at + k, v_start[i] + c] = r_q[c * LANES + k]
                out_dq[at + k, v_start[i] + c] = r_dq[c * LANES + k]
                out_ddq[at + k, v_start[i] + c] = r_ddq[c * LANES + k]


@allocating
def reverse(links, bodies, gravity, pairs, q, dq, ddq, g, out_q, out_dq, out_ddq):
    """Derivatives of sum_e g_e W_e for every sample, inertial entries only.

    q, dq, ddq: (samples, coordinates). g: weights (entries, samples). out_q: for a small rotation or
    step along each velocity coordinate, (samples, velocities); out_dq, out_ddq alike.
    """
    parent, kind, q_start, v_start, placement = links
    n = q.shape[0]
    state = np.empty((parent.size + 1) * LINK * LANES)
    bars = np.empty((parent.size + 1) * ADJOINT * LANES)
    body, bar = np.empty(LINK * LANES), np.empty(ADJOINT * LANES)
    weights = np.zeros(10 * LANES)
    for at in range(0, n, LANES):
        link_states(parent, kind, q_start, v_start, placement, gravity, q, dq, ddq, at, state, body)
        bars[:] = 0.0
        width = min(LANES, n - at)
        _bodies_back(links, bodies, pairs, state, g, at, width, bars, body, bar, weights)
        _links_back(links, state, dq, ddq, at, bars, out_q, out_dq, out_ddq)
