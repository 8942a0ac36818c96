"""Hot kernels of the regressor: body wrenches projected on joint axes, tile by tile.

Only entries of W that can be non-zero are computed: a body acts on the joints between it and
the base. They are packed row by row (see `layout.py`); a tile contains `LANES` samples of each.
"""

from __future__ import annotations

from numba import int64
from numba.core.types import Tuple, UniTuple

from dynid.common.compiled import F1, F2, I1, inner, kernel, takes
from dynid.common.compiled_arrays import view
from dynid.kinematics.kernel_types import BODIES, TREE
from dynid.kinematics.kernels import LINK, body_state, link_states, unrotate
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
    VX,
    VY,
    VZ,
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
from dynid.regressor.drive_kernels import compiled_column, compiled_signs


@inner
def wrench_row(body, joint, slides, axis, out):
    """Ten entries of the row of one joint axis: virtual power of the body's wrench.

    body: state with rates in body axes (base-frame R, p). joint: link state (base frame).
    out: ten fields; the order is XX XY XZ YY YZ ZZ MX MY MZ M.
    """
    for k in range(LANES):
        zx, zy, zz = joint[axis * LANES + k], joint[(axis + 3) * LANES + k], joint[(axis + 6) * LANES + k]
        ax, ay, az = body[AX * LANES + k], body[AY * LANES + k], body[AZ * LANES + k]
        x, y, z = body[WX * LANES + k], body[WY * LANES + k], body[WZ * LANES + k]
        bx, by, bz = body[DWX * LANES + k], body[DWY * LANES + k], body[DWZ * LANES + k]
        if slides:
            ux, uy, uz = unrotate(body, k, zx, zy, zz)
            wx = wy = wz = 0.0 * ux
        else:
            dx = body[PX * LANES + k] - joint[PX * LANES + k]
            dy = body[PY * LANES + k] - joint[PY * LANES + k]
            dz = body[PZ * LANES + k] - joint[PZ * LANES + k]
            ux, uy, uz = unrotate(body, k, zy * dz - zz * dy, zz * dx - zx * dz, zx * dy - zy * dx)
            wx, wy, wz = unrotate(body, k, zx, zy, zz)
        xx, yy, zz2, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        out[XX * LANES + k] = wx * bx + wy * xz - wz * xy
        out[XY * LANES + k] = wx * (by - xz) + wy * (bx + yz) + wz * (xx - yy)
        out[XZ * LANES + k] = wx * (bz + xy) + wy * (zz2 - xx) + wz * (bx - yz)
        out[YY * LANES + k] = wy * by + wz * xy - wx * yz
        out[YZ * LANES + k] = wx * (yy - zz2) + wy * (bz - xy) + wz * (by + xz)
        out[ZZ * LANES + k] = wx * yz - wy * xz + wz * bz
        out[MX * LANES + k] = uy * (xy + bz) - ux * (yy + zz2) + uz * (xz - by) + ay * wz - az * wy
        out[MY * LANES + k] = ux * (xy - bz) - uy * (xx + zz2) + uz * (yz + bx) + az * wx - ax * wz
        out[MZ * LANES + k] = ux * (xz + by) + uy * (yz - bx) - uz * (xx + yy) + ax * wy - ay * wx
        out[MASS * LANES + k] = ux * ax + uy * ay + uz * az


@inner
def _inertial_entries(links, bodies, pairs, state, body, tile):
    """All inertial entries of a tile, from link states already computed."""
    kind = links[1]
    body_link, body_frame = bodies
    start, pair_link, pair_axis, pair_entry = pairs
    for b in range(body_link.size):
        if start[b] == start[b + 1]:
            continue
        body_state(state, body_link[b], body_frame[b], body)
        for pair in range(start[b], start[b + 1]):
            link, entry = pair_link[pair], pair_entry[pair]
            joint = view(state, (link + 1) * LINK * LANES, LINK * LANES)
            out = view(tile, entry * LANES, 10 * LANES)
            wrench_row(body, joint, kind[link] == 2, pair_axis[pair], out)


@inner
def _energy_row(body, gravity, out):
    """Ten entries of a body's kinetic plus potential energy; see `regressor.energy_regressor`."""
    for k in range(LANES):
        u, v, w = body[VX * LANES + k], body[VY * LANES + k], body[VZ * LANES + k]
        x, y, z = body[WX * LANES + k], body[WY * LANES + k], body[WZ * LANES + k]
        gx, gy, gz = unrotate(body, k, gravity[0], gravity[1], gravity[2])
        out[XX * LANES + k] = 0.5 * x * x
        out[XY * LANES + k] = x * y
        out[XZ * LANES + k] = x * z
        out[YY * LANES + k] = 0.5 * y * y
        out[YZ * LANES + k] = y * z
        out[ZZ * LANES + k] = 0.5 * z * z
        out[MX * LANES + k] = v * z - w * y - gx
        out[MY * LANES + k] = w * x - u * z - gy
        out[MZ * LANES + k] = u * y - v * x - gz
        px, py, pz = body[PX * LANES + k], body[PY * LANES + k], body[PZ * LANES + k]
        height = px * gravity[0] + py * gravity[1] + pz * gravity[2]
        out[MASS * LANES + k] = 0.5 * (u * u + v * v + w * w) - height


@takes(TREE, BODIES, F1, F2, F2, F2, I1, UniTuple(F1, 3), F2)
@kernel
def energy_rows(links, bodies, gravity, q, dq, still, places, room, out):
    """Energies per inertial parameter at samples q, dq (n, ...), into out (entries, n).

    still: zero accelerations, as dq. places: entry of each of the ten parameters of every body, -1 for none.
    room: states of all links, of a body, and ten entries of a tile.
    """
    parent, kind, q_start, v_start, placement = links
    body_link, body_frame = bodies
    state, body, row = room
    n = q.shape[0]
    for at in range(0, n, LANES):
        link_states(parent, kind, q_start, v_start, placement, gravity, q, dq, still, at, state, body)
        for b in range(body_link.size):
            body_state(state, body_link[b], body_frame[b], body)
            _energy_row(body, gravity, row)
            for i in range(10):
                entry = places[10 * b + i]
                for lane in range(min(LANES, n - at) if entry >= 0 else 0):
                    out[entry, at + lane] = row[i * LANES + lane]


@inner
def _drive_entries(drives, dq, ddq, load, at, tile):
    """Friction, rotor inertia and offset entries of a tile; `load` is for load-dependent friction only."""
    entries, numbers, sources, factors, speeds = drives
    n = dq.shape[0]
    for d in range(entries.size):
        out = view(tile, entries[d] * LANES, LANES)
        factor, number = factors[d], numbers[d]
        for lane in range(LANES):
            sample = min(at + lane, n - 1)
            v, a = dq[sample, sources[d]], ddq[sample, sources[d]]
            size = load[sample, sources[d]] if load.size > 0 else 0.0
            out[lane] = factor * compiled_column(number, v, a, compiled_signs(v), size, speeds[d])


@inner
def fill_tile(links, bodies, gravity, pairs, drives, given, motion, at, state, body, tile):
    """Entries of W (and given columns, such as Y) for samples at .. at + LANES.

    links: parent, kind, q_start, v_start, placement. motion: q, dq, ddq of the tree, then dq,
    ddq and load of the drive sources, all (samples, coordinates). given: entries, values (samples, g).
    """
    parent, kind, q_start, v_start, placement = links
    q, dq, ddq, source_dq, source_ddq, source_load = motion
    link_states(parent, kind, q_start, v_start, placement, gravity, q, dq, ddq, at, state, body)
    _inertial_entries(links, bodies, pairs, state, body, tile)
    _drive_entries(drives, source_dq, source_ddq, source_load, at, tile)
    entries, values = given
    n = values.shape[0]
    for g in range(entries.size):
        for lane in range(LANES):
            tile[entries[g] * LANES + lane] = values[min(at + lane, n - 1), g]


@inner
def combine(tile, combination, out):
    """Entries of projected rows, N^T W: sparse sums of entries of the tree's rows."""
    start, entries, factors = combination
    for e in range(start.size - 1):
        row = view(out, e * LANES, LANES)
        for lane in range(LANES):
            row[lane] = 0.0
        for k in range(start[e], start[e + 1]):
            source = view(tile, entries[k] * LANES, LANES)
            factor = factors[k]
            for lane in range(LANES):
                row[lane] += factor * source[lane]


@kernel
def combine_moving(packed, combination, N, moves, out):
    """Entries of N^T W where N changes from sample to sample.

    packed: entries of the tree's rows (t, n). N: (k, v, n). combination: starts per output entry, then for
    each part the tree entry and its coordinate; row of each output entry. moves: whether a direction moves a
    coordinate at any of the samples, (k, v): parts of others are skipped.
    """
    start, entries, coordinates, rows = combination
    n = packed.shape[1]
    for e in range(start.size - 1):
        for s in range(n):
            out[e, s] = 0.0
        for j in range(start[e], start[e + 1]):
            if not moves[rows[e], coordinates[j]]:
                continue
            source, factor = packed[entries[j]], N[rows[e], coordinates[j]]
            for s in range(n):
                out[e, s] += factor[s] * source[s]


@takes(
    TREE,
    BODIES,
    F1,
    UniTuple(I1, 4),  # pairs
    Tuple((I1, I1, I1, F1, F1)),  # drives
    Tuple((I1, F2)),  # given
    UniTuple(F2, 6),  # motion
    Tuple((I1, I1, F1)),  # combination
    UniTuple(F1, 4),  # room
    int64,
    F2,
    F1,
    I1,
    F1,
)
@kernel
def fill_rows(
    links, bodies, gravity, pairs, drives, given, motion, combination, room, start, out, flat, starts, factors
):
    """Entries of all rows for samples start .. start + n, written to out (entries, n).

    With the factor of each entry, its parameter, W chi of all rows is added to out (rows, n) instead; starts:
    first entry of each row. The entries of a tile are summed at once and not kept.

    room: states of all links, of a body, entries of a tile and of its projection (`TreeRegressor.batch`).
    flat: `out` as one row. An array that compiled code makes or reshapes needs a part of Numba that takes
    longer to import than the kernel takes to load.
    """
    n, n_out = out.shape[1], combination[0].size - 1
    state, body, tile, projected = room
    if n == LANES and n_out == 0 and factors.size == 0:
        # A tile and no projection: the entries are computed in place.
        fill_tile(links, bodies, gravity, pairs, drives, given, motion, start, state, body, flat)
        return
    for at in range(0, n, LANES):
        fill_tile(links, bodies, gravity, pairs, drives, given, motion, start + at, state, body, tile)
        source = tile
        if n_out > 0:
            combine(tile, combination, projected)
            source = projected
        width = min(LANES, n - at)
        if factors.size == 0:
            for e in range(out.shape[0]):
                row = view(source, e * LANES, LANES)
                for lane in range(width):
                    out[e, at + lane] = row[lane]
        for r in range(starts.size - 1 if factors.size > 0 else 0):
            for e in range(starts[r], starts[r + 1]):
                factor = factors[e]
                if factor != 0.0:
                    row = view(source, e * LANES, LANES)
                    for lane in range(width):
                        out[r, at + lane] += factor * row[lane]
