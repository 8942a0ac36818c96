"""One Newton step of a tile: the fixed elimination, tangent directions, and measured coordinates.

Flat arrays of fields, each `LANES` long, as everywhere in the kernels; `plan` are the tables of an
`Elimination`, `sensors` those of `Sensors`.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner
from dynid.common.compiled_arrays import view
from dynid.kinematics.tile import INVERT, LANES, SCALE


@inner
def copy(source, start, target, at, count):
    """Copy numbers of flat arrays; slices would do the same, but take ten times as long to compile."""
    for k in range(count):
        target[at + k] = source[start + k]


@inner
def clear(target):
    """Set all numbers to zero."""
    for k in range(target.size):
        target[k] = 0.0


@inner
def newton_step(plan, sensors, q, target, f, entries, step, slots, sides, miss, small, basis):
    """The Newton step of every lane: loops closed, measured coordinates met (in least squares).

    Workspace: slots of the plan; sides (1 + d) r, the right sides: own, then one per column of N; miss m;
    small d d + d; basis v d, which becomes N.
    """
    independent, dependent, rows, _, _, solve, given, _ = plan
    d, r, m = independent.size, dependent.size, sensors[0].size
    factorise(plan, entries, slots)
    _miss(sensors, q, target, miss)
    rhs = view(sides, 0, r * LANES)
    for i in range(r):
        for k in range(LANES):
            rhs[i * LANES + k] = -f[rows[i] * LANES + k]
    if sensors[5][0] == 0:  # as many measured as degrees of freedom: the independent coordinates
        for j in range(m):
            copy(miss, j * LANES, step, sensors[0][j] * LANES, LANES)
        for g in range(given.shape[0]):
            i, e, x = given[g, 0], given[g, 2], independent[given[g, 1]]
            for k in range(LANES):
                rhs[i * LANES + k] -= entries[e * LANES + k] * step[x * LANES + k]
        substitute(solve, slots, rhs)
        for i in range(r):
            copy(rhs, i * LANES, step, dependent[i] * LANES, LANES)
        return
    substitute(solve, slots, rhs)
    tangents(plan, entries, slots, view(sides, r * LANES, d * r * LANES), basis)
    clear(step)
    for i in range(r):
        copy(rhs, i * LANES, step, dependent[i] * LANES, LANES)
    for j in range(m):
        at = sensors[0][j]
        for k in range(LANES):
            miss[j * LANES + k] -= step[at * LANES + k]
    nearest(sensors, basis, d, miss, small)
    add_along(basis, d, view(small, d * d * LANES, d * LANES), step)


@inner
def factorise(plan, entries, slots):
    """Fill the slots and execute the elimination."""
    load, factor = plan[3], plan[4]
    clear(slots)
    for j in range(load.shape[0]):
        copy(entries, load[j, 1] * LANES, slots, load[j, 0] * LANES, LANES)
    for o in range(factor.shape[0]):
        code, i, j, k = factor[o, 0], factor[o, 1], factor[o, 2], factor[o, 3]
        target = view(slots, i * LANES, LANES)
        if code == INVERT:
            for lane in range(LANES):
                target[lane] = 1.0 / target[lane]
        elif code == SCALE:
            by = view(slots, j * LANES, LANES)
            for lane in range(LANES):
                target[lane] *= by[lane]
        else:
            x, y = view(slots, j * LANES, LANES), view(slots, k * LANES, LANES)
            for lane in range(LANES):
                target[lane] -= x[lane] * y[lane]


@inner
def substitute(solve, slots, side):
    """Forward and backward substitution of one right side."""
    for o in range(solve.shape[0]):
        code, i, s, j = solve[o, 0], solve[o, 1], solve[o, 2], solve[o, 3]
        target, number = view(side, i * LANES, LANES), view(slots, s * LANES, LANES)
        if code == SCALE:
            for lane in range(LANES):
                target[lane] *= number[lane]
        else:
            x = view(side, j * LANES, LANES)
            for lane in range(LANES):
                target[lane] -= number[lane] * x[lane]


@inner
def tangents(plan, entries, slots, sides, basis):
    """N (v d, LANES) in the independent coordinates: their own unit, the others -A_p^-1 A_i."""
    independent, dependent, _, _, _, solve, given, _ = plan
    d, r = independent.size, dependent.size
    clear(basis)
    clear(sides)
    for g in range(given.shape[0]):
        i, at, e = given[g, 0], given[g, 1], given[g, 2]
        for k in range(LANES):
            sides[(at * r + i) * LANES + k] = -entries[e * LANES + k]
    for at in range(d):
        column = view(sides, at * r * LANES, r * LANES)
        substitute(solve, slots, column)
        for k in range(LANES):
            basis[(independent[at] * d + at) * LANES + k] = 1.0
        for i in range(r):
            copy(column, i * LANES, basis, (dependent[i] * d + at) * LANES, LANES)


@inner
def nearest(sensors, basis, d, miss, small):
    """The x (d) with N x nearest to `miss` at the measured coordinates, by Cholesky of d x d.

    Leaves the triangle in the first d * d fields of `small`, x in the last d. Where the measured coordinates
    are the independent ones, in any order, N has their units in its rows: x is `miss`, the triangle diagonal.
    """
    at, weight = sensors[0], sensors[3]
    M, x = view(small, 0, d * d * LANES), view(small, d * d * LANES, d * LANES)
    clear(small)
    if sensors[5][0] == 0:
        for j in range(d):
            for a in range(d):
                if basis[(at[j] * d + a) * LANES] != 0.0:
                    for k in range(LANES):
                        M[(a * d + a) * LANES + k] = weight[j]
                    copy(miss, j * LANES, x, a * LANES, LANES)
        return
    for j in range(at.size):
        w = weight[j] * weight[j]
        for a in range(d):
            row = view(basis, (at[j] * d + a) * LANES, LANES)
            for k in range(LANES):
                x[a * LANES + k] += w * row[k] * miss[j * LANES + k]
            for b in range(a + 1):
                other = view(basis, (at[j] * d + b) * LANES, LANES)
                for k in range(LANES):
                    M[(a * d + b) * LANES + k] += w * row[k] * other[k]
    cholesky_solve(M, d, x)


@inner
def cholesky_solve(M, d, x):
    """Solve M x = x in place; only the lower half of M (d d, LANES) is used, and becomes its factor."""
    for a in range(d):
        for b in range(a + 1):
            for c in range(b):
                for k in range(LANES):
                    M[(a * d + b) * LANES + k] -= M[(a * d + c) * LANES + k] * M[(b * d + c) * LANES + k]
            for k in range(LANES):
                if a == b:
                    M[(a * d + a) * LANES + k] = np.sqrt(M[(a * d + a) * LANES + k])
                else:
                    M[(a * d + b) * LANES + k] /= M[(b * d + b) * LANES + k]
    for a in range(d):
        for b in range(a):
            for k in range(LANES):
                x[a * LANES + k] -= M[(a * d + b) * LANES + k] * x[b * LANES + k]
        for k in range(LANES):
            x[a * LANES + k] /= M[(a * d + a) * LANES + k]
    for a in range(d - 1, -1, -1):
        for b in range(a + 1, d):
            for k in range(LANES):
                x[a * LANES + k] -= M[(b * d + a) * LANES + k] * x[b * LANES + k]
        for k in range(LANES):
            x[a * LANES + k] /= M[(a * d + a) * LANES + k]


@inner
def add_along(basis, d, x, step):
    """Step += N x."""
    for v in range(step.size // LANES):
        for a in range(d):
            for k in range(LANES):
                step[v * LANES + k] += basis[(v * d + a) * LANES + k] * x[a * LANES + k]


@inner
def _miss(sensors, q, target, miss):
    """Differences of the measured coordinates from their wanted values, in velocity coordinates.

    sensors: velocity index, position index, wanted column and weight of each measured coordinate;
    quaternions (position, wanted column, first coordinate); [1] where there are more of them
    than degrees of freedom. The parts of a quaternion are overwritten by its rotation vector.
    """
    at_v, at_q, column, _, quaternions, _ = sensors
    for j in range(at_v.size):
        for k in range(LANES):
            miss[j * LANES + k] = target[column[j] * LANES + k] - q[at_q[j] * LANES + k]
    for b in range(quaternions.shape[0]):
        p, c, j = quaternions[b, 0], quaternions[b, 1], quaternions[b, 2]
        for k in range(LANES):
            w, x, y, z = (
                q[p * LANES + k],
                q[(p + 1) * LANES + k],
                q[(p + 2) * LANES + k],
                q[(p + 3) * LANES + k],
            )
            tw, tx = target[c * LANES + k], target[(c + 1) * LANES + k]
            ty, tz = target[(c + 2) * LANES + k], target[(c + 3) * LANES + k]
            real = w * tw + x * tx + y * ty + z * tz
            i0 = w * tx - x * tw - y * tz + z * ty
            i1 = w * ty - y * tw - z * tx + x * tz
            i2 = w * tz - z * tw - x * ty + y * tx
            length = np.sqrt(i0 * i0 + i1 * i1 + i2 * i2)
            side = -1.0 if real < 0.0 else 1.0
            angle = 2.0 * np.arctan2(length, side * real)
            part = side * (angle / length if length > 1e-12 else 2.0)
            miss[j * LANES + k] = part * i0
            miss[(j + 1) * LANES + k] = part * i1
            miss[(j + 2) * LANES + k] = part * i2
