"""Tree recursion in lanes: `LANES` samples in parallel, so that the compiler can vectorise.

A tile is a flat array of fields, each `LANES` long: field f of sample l is at
f * LANES + l. The constant stride lets LLVM prove that fields do not overlap.
Works for float64 and complex128: derivatives by the complex step need no extra code.

`cos_sin`, cosine and sine of a tile, is written so that the compiler can vectorise. The library functions
are called one number at a time, which took a third of the whole regressor. Here x = n pi/2 + r with
|r| <= pi/4, and Taylor sums of sin r and cos r, whose first omitted terms (r^19/19!, r^18/18!) are below
rounding.
"""

from __future__ import annotations

from fractions import Fraction
from inspect import unwrap
from math import factorial

import numpy as np
from numba.core import types
from numba.extending import overload

from dynid.common.compiled import F1, F2, F3, I1, inlined, inner, kernel, takes
from dynid.common.compiled_arrays import view
from dynid.kinematics.kernel_types import TREE
from dynid.kinematics.tile import (
    AX,
    AY,
    AZ,
    DWX,
    DWY,
    DWZ,
    LANES,
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
    VX,
    VY,
    VZ,
    WX,
    WY,
    WZ,
)

# pi/2 in three parts of which the first two have 32 bits: n times each is exact up to n = 2^20.
_HALF_PI = Fraction("1.5707963267948966192313216916397514420985846996875529104874722961")
_FIRST = float(Fraction(int(_HALF_PI * 2**31), 2**31))
_SECOND = float(Fraction(int((_HALF_PI - Fraction(_FIRST)) * 2**63), 2**63))
_THIRD = float(_HALF_PI - Fraction(_FIRST) - Fraction(_SECOND))
_PER_QUARTER = float(1 / _HALF_PI)
_LARGEST = 1e6
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17 = (
    (-1.0) ** (k // 2) / factorial(k) for k in (3, 5, 7, 9, 11, 13, 15, 17)
)
_C4, _C6, _C8, _C10, _C12, _C14, _C16 = ((-1.0) ** (k // 2) / factorial(k) for k in (4, 6, 8, 10, 12, 14, 16))


def cos_sin(x: object) -> None:
    """Replace the first LANES numbers of x by their cosines, the next by their sines."""
    raise TypeError("cos_sin serves compiled kernels only")


@overload(cos_sin)
def _compiled(x):
    if isinstance(x.dtype, types.Complex):
        return unwrap(_library)
    return unwrap(_vector)


def _library(x):
    for k in range(LANES):
        c, s = np.cos(x[k]), np.sin(x[k])
        x[k] = c
        x[LANES + k] = s


def _vector(x):
    largest = 0.0
    for k in range(LANES):
        largest = max(largest, abs(x[k]))
    if not largest < _LARGEST:
        for k in range(LANES):
            c, s = np.cos(x[k]), np.sin(x[k])
            x[k] = c
            x[LANES + k] = s
        return
    for k in range(LANES):
        n = np.floor(x[k] * _PER_QUARTER + 0.5)
        r = ((x[k] - n * _FIRST) - n * _SECOND) - n * _THIRD
        z = r * r
        odd = _S9 + z * (_S11 + z * (_S13 + z * (_S15 + z * _S17)))
        s = r + r * z * (_S3 + z * (_S5 + z * (_S7 + z * odd)))
        even = _C10 + z * (_C12 + z * (_C14 + z * _C16))
        c = 1.0 - 0.5 * z + z * z * (_C4 + z * (_C6 + z * (_C8 + z * even)))
        quarter = n - 4.0 * np.floor(0.25 * n)
        turned = quarter == 1.0 or quarter == 3.0
        cosine = s if turned else c
        sine = c if turned else s
        x[k] = -cosine if quarter == 1.0 or quarter == 2.0 else cosine
        x[LANES + k] = -sine if quarter >= 2.0 else sine


# Fields of a link's state, base frame: R (9, by rows), p, v, w (angular), a (minus gravity), dw.
LINK = 24
_P, _V, _W, _A, _DW = PX, VX, WX, AX, DWX


@inner
def link_states(parent, kind, q_start, v_start, placement, gravity, q, dq, ddq, at, state, work):
    """State of every link for samples at .. at + LANES (short tiles repeat the last sample).

    q, dq, ddq: (samples, coordinates). state: flat (links + 1) * LINK * LANES, the base first. work: room for
    ten fields.
    """
    n, qs, vs = q.shape[0], view(work, 0, 4 * LANES), view(work, 4 * LANES, 6 * LANES)
    base = view(state, 0, LINK * LANES)
    for k in range(LINK * LANES):
        base[k] = 0.0
    for lane in range(LANES):
        base[R00 * LANES + lane] = 1.0
        base[R11 * LANES + lane] = 1.0
        base[R22 * LANES + lane] = 1.0
        for k in range(3):
            base[(_A + k) * LANES + lane] = -gravity[k]
    for i in range(parent.size):
        up = view(state, (parent[i] + 1) * LINK * LANES, LINK * LANES)
        child = view(state, (i + 1) * LINK * LANES, LINK * LANES)
        carry(up, child, placement[i])
        if kind[i] == 0:
            continue
        n_q, n_v = (4, 3) if kind[i] == 3 else (1, 1)
        for lane in range(LANES):
            sample = min(at + lane, n - 1)
            for k in range(n_q):
                qs[k * LANES + lane] = q[sample, q_start[i] + k]
            for k in range(n_v):
                vs[k * LANES + lane] = dq[sample, v_start[i] + k]
                vs[(3 + k) * LANES + lane] = ddq[sample, v_start[i] + k]
        if kind[i] == 1:
            _turn(child, qs, vs)
        elif kind[i] == 2:
            _slide(child, qs, vs)
        else:
            _orient(child, qs, vs)


@inner
def pose_states(parent, kind, q_start, placement, q, state, work):
    """R and p of every link for one tile of positions, flat n_q * LANES; rates are not changed.

    state: as of `link_states`. work: room for four fields.
    """
    base = view(state, 0, LINK * LANES)
    for k in range(_V * LANES):
        base[k] = 0.0
    for lane in range(LANES):
        base[R00 * LANES + lane] = 1.0
        base[R11 * LANES + lane] = 1.0
        base[R22 * LANES + lane] = 1.0
    qs = view(work, 0, 4 * LANES)
    for i in range(parent.size):
        up = view(state, (parent[i] + 1) * LINK * LANES, LINK * LANES)
        child = view(state, (i + 1) * LINK * LANES, LINK * LANES)
        carry_pose(up, child, placement[i])
        if kind[i] == 0:
            continue
        n_q = 4 if kind[i] == 3 else 1
        at = q_start[i] * LANES
        for k in range(n_q * LANES):
            qs[k] = q[at + k]
        if kind[i] == 1:
            _turn_pose(child, qs)
        elif kind[i] == 2:
            _slide_pose(child, qs)
        else:
            _orient_pose(child, qs)


@inner
def carry_pose(up, link, frame):
    """Pose of a frame fixed to the parent."""
    f0, f1, f2, f3, f4, f5 = frame[0], frame[1], frame[2], frame[3], frame[4], frame[5]
    f6, f7, f8, px, py, pz = frame[6], frame[7], frame[8], frame[9], frame[10], frame[11]
    for k in range(LANES):
        r0, r1, r2 = up[R00 * LANES + k], up[R01 * LANES + k], up[R02 * LANES + k]
        r3, r4, r5 = up[R10 * LANES + k], up[R11 * LANES + k], up[R12 * LANES + k]
        r6, r7, r8 = up[R20 * LANES + k], up[R21 * LANES + k], up[R22 * LANES + k]
        link[R00 * LANES + k] = r0 * f0 + r1 * f3 + r2 * f6
        link[R01 * LANES + k] = r0 * f1 + r1 * f4 + r2 * f7
        link[R02 * LANES + k] = r0 * f2 + r1 * f5 + r2 * f8
        link[R10 * LANES + k] = r3 * f0 + r4 * f3 + r5 * f6
        link[R11 * LANES + k] = r3 * f1 + r4 * f4 + r5 * f7
        link[R12 * LANES + k] = r3 * f2 + r4 * f5 + r5 * f8
        link[R20 * LANES + k] = r6 * f0 + r7 * f3 + r8 * f6
        link[R21 * LANES + k] = r6 * f1 + r7 * f4 + r8 * f7
        link[R22 * LANES + k] = r6 * f2 + r7 * f5 + r8 * f8
        link[PX * LANES + k] = up[PX * LANES + k] + r0 * px + r1 * py + r2 * pz
        link[PY * LANES + k] = up[PY * LANES + k] + r3 * px + r4 * py + r5 * pz
        link[PZ * LANES + k] = up[PZ * LANES + k] + r6 * px + r7 * py + r8 * pz


@inner
def carry(up, link, frame):
    """A frame fixed to the parent: same angular motion, origin moved by R_up p."""
    carry_pose(up, link, frame)
    for k in range(LANES):
        x = link[PX * LANES + k] - up[PX * LANES + k]
        y = link[PY * LANES + k] - up[PY * LANES + k]
        z = link[PZ * LANES + k] - up[PZ * LANES + k]
        wx, wy, wz = up[WX * LANES + k], up[WY * LANES + k], up[WZ * LANES + k]
        bx, by, bz = up[DWX * LANES + k], up[DWY * LANES + k], up[DWZ * LANES + k]
        cx, cy, cz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
        link[VX * LANES + k] = up[VX * LANES + k] + cx
        link[VY * LANES + k] = up[VY * LANES + k] + cy
        link[VZ * LANES + k] = up[VZ * LANES + k] + cz
        link[WX * LANES + k] = wx
        link[WY * LANES + k] = wy
        link[WZ * LANES + k] = wz
        link[AX * LANES + k] = up[AX * LANES + k] + by * z - bz * y + wy * cz - wz * cy
        link[AY * LANES + k] = up[AY * LANES + k] + bz * x - bx * z + wz * cx - wx * cz
        link[AZ * LANES + k] = up[AZ * LANES + k] + bx * y - by * x + wx * cy - wy * cx
        link[DWX * LANES + k] = bx
        link[DWY * LANES + k] = by
        link[DWZ * LANES + k] = bz


@inner
def _turn_pose(link, qs):
    """A revolute joint about the frame's z."""
    cos_sin(qs)
    for k in range(LANES):
        c, s = qs[k], qs[LANES + k]
        for row in range(3):
            x, y = link[3 * row * LANES + k], link[(3 * row + 1) * LANES + k]
            link[3 * row * LANES + k] = c * x + s * y
            link[(3 * row + 1) * LANES + k] = c * y - s * x


@inner
def _turn(link, qs, vs):
    """A revolute joint and its rates."""
    _turn_pose(link, qs)
    for k in range(LANES):
        rate, accel = vs[k], vs[3 * LANES + k]
        zx, zy, zz = link[R02 * LANES + k], link[R12 * LANES + k], link[R22 * LANES + k]
        wx, wy, wz = link[WX * LANES + k], link[WY * LANES + k], link[WZ * LANES + k]
        link[WX * LANES + k] = wx + zx * rate
        link[WY * LANES + k] = wy + zy * rate
        link[WZ * LANES + k] = wz + zz * rate
        link[DWX * LANES + k] += zx * accel + (wy * zz - wz * zy) * rate
        link[DWY * LANES + k] += zy * accel + (wz * zx - wx * zz) * rate
        link[DWZ * LANES + k] += zz * accel + (wx * zy - wy * zx) * rate


@inner
def _slide_pose(link, qs):
    """A prismatic joint along the frame's z."""
    for k in range(LANES):
        link[PX * LANES + k] += link[R02 * LANES + k] * qs[k]
        link[PY * LANES + k] += link[R12 * LANES + k] * qs[k]
        link[PZ * LANES + k] += link[R22 * LANES + k] * qs[k]


@inner
def _slide(link, qs, vs):
    """A prismatic joint and its rates."""
    _slide_pose(link, qs)
    for k in range(LANES):
        travel, rate, accel = qs[k], vs[k], vs[3 * LANES + k]
        zx, zy, zz = link[R02 * LANES + k], link[R12 * LANES + k], link[R22 * LANES + k]
        wx, wy, wz = link[WX * LANES + k], link[WY * LANES + k], link[WZ * LANES + k]
        bx, by, bz = link[DWX * LANES + k], link[DWY * LANES + k], link[DWZ * LANES + k]
        x, y, z = zx * travel, zy * travel, zz * travel
        cx, cy, cz = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x
        link[VX * LANES + k] += cx + zx * rate
        link[VY * LANES + k] += cy + zy * rate
        link[VZ * LANES + k] += cz + zz * rate
        link[AX * LANES + k] += (
            by * z - bz * y + wy * cz - wz * cy + zx * accel + 2.0 * rate * (wy * zz - wz * zy)
        )
        link[AY * LANES + k] += (
            bz * x - bx * z + wz * cx - wx * cz + zy * accel + 2.0 * rate * (wz * zx - wx * zz)
        )
        link[AZ * LANES + k] += (
            bx * y - by * x + wx * cy - wy * cx + zz * accel + 2.0 * rate * (wx * zy - wy * zx)
        )


@inner
def _orient_pose(out, qs):
    """A spherical joint: unit quaternion."""
    for k in range(LANES):
        w, x, y, z = qs[k], qs[LANES + k], qs[2 * LANES + k], qs[3 * LANES + k]
        f0, f1, f2 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
        f3, f4, f5 = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
        f6, f7, f8 = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
        for row in range(3):
            a, b, c = out[3 * row * LANES + k], out[(3 * row + 1) * LANES + k], out[(3 * row + 2) * LANES + k]
            out[3 * row * LANES + k] = a * f0 + b * f3 + c * f6
            out[(3 * row + 1) * LANES + k] = a * f1 + b * f4 + c * f7
            out[(3 * row + 2) * LANES + k] = a * f2 + b * f5 + c * f8


@inner
def _orient(link, qs, vs):
    """A spherical joint and its rates: angular velocity and acceleration in the moving frame."""
    _orient_pose(link, qs)
    for k in range(LANES):
        ox, oy, oz = rotate(link, k, vs[k], vs[LANES + k], vs[2 * LANES + k])
        ax, ay, az = rotate(link, k, vs[3 * LANES + k], vs[4 * LANES + k], vs[5 * LANES + k])
        wx, wy, wz = link[WX * LANES + k], link[WY * LANES + k], link[WZ * LANES + k]
        link[WX * LANES + k] = wx + ox
        link[WY * LANES + k] = wy + oy
        link[WZ * LANES + k] = wz + oz
        link[DWX * LANES + k] += ax + wy * oz - wz * oy
        link[DWY * LANES + k] += ay + wz * ox - wx * oz
        link[DWZ * LANES + k] += az + wx * oy - wy * ox


@inlined
def rotate(link, k, x, y, z):
    """R (x, y, z) of one lane."""
    return (
        link[R00 * LANES + k] * x + link[R01 * LANES + k] * y + link[R02 * LANES + k] * z,
        link[R10 * LANES + k] * x + link[R11 * LANES + k] * y + link[R12 * LANES + k] * z,
        link[R20 * LANES + k] * x + link[R21 * LANES + k] * y + link[R22 * LANES + k] * z,
    )


@inlined
def unrotate(link, k, x, y, z):
    """R^T (x, y, z) of one lane: base frame to the state's own axes."""
    return (
        link[R00 * LANES + k] * x + link[R10 * LANES + k] * y + link[R20 * LANES + k] * z,
        link[R01 * LANES + k] * x + link[R11 * LANES + k] * y + link[R21 * LANES + k] * z,
        link[R02 * LANES + k] * x + link[R12 * LANES + k] * y + link[R22 * LANES + k] * z,
    )


@inner
def body_state(state, link, frame, body):
    """State of a body fixed to `link` at `frame`, its v, w, a, dw rotated into body axes."""
    carry(view(state, (link + 1) * LINK * LANES, LINK * LANES), body, frame)
    for field in range(_V, LINK, 3):
        for k in range(LANES):
            x, y, z = unrotate(
                body, k, body[field * LANES + k], body[(field + 1) * LANES + k], body[(field + 2) * LANES + k]
            )
            body[field * LANES + k] = x
            body[(field + 1) * LANES + k] = y
            body[(field + 2) * LANES + k] = z


@takes(TREE, I1, F2, F1, F2, F2, F2, F1, F1, F3)
@kernel
def move_bodies(links, body_link, body_frame, gravity, q, dq, ddq, state, body, out):
    """Samples first: R, p (base frame), V and dV (body axes, linear first), into out, shape (n, b, 24).

    links: parent, kind, q_start, v_start, placement. state, body: room for the states of a tile. An array
    that compiled code makes needs a part of Numba that takes longer to import than the kernel takes to load.
    """
    n = q.shape[0]
    parent, kind, q_start, v_start, placement = links
    for at in range(0, n, LANES):
        link_states(parent, kind, q_start, v_start, placement, gravity, q, dq, ddq, at, state, body)
        for b in range(body_link.size):
            body_state(state, body_link[b], body_frame[b], body)
            for lane in range(min(LANES, n - at)):
                for field in range(LINK):
                    out[at + lane, b, field] = body[field * LANES + lane]
