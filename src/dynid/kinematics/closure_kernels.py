"""Hot kernel of closures: values and Jacobian of all equations, sample by sample."""

from __future__ import annotations

import numpy as np

from dynid.compiled import kernel
from dynid.kinematics.equation_kinds import ALONG, LINEAR, ROD


@kernel
def closure_values(motion, n_frames, equations, terms, linear, ancestors, coordinates, q, f, A):
    """F (n, c) and A (n, c, v); A must be zero.

    motion: (n, frames + links, 24) of `move_bodies`: loop frames first (a and b of each loop), then
    links. equations: kind, loop, axis, length. terms: start, weight, axis of a, axis of b.
    linear: on positions, on velocities, offset. ancestors: start, coordinates of each frame.
    coordinates: link, axis, slides.
    """
    kind, loop, axis, length = equations
    e, g, d, m = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for s in range(q.shape[0]):
        for c in range(kind.size):
            if kind[c] == LINEAR:
                total = -linear[2][c]
                for i in range(q.shape[1]):
                    total += linear[0][c, i] * q[s, i]
                f[s, c] = total
                for i in range(A.shape[2]):
                    A[s, c, i] = linear[1][c, i]
                continue
            a, b = 2 * loop[c], 2 * loop[c] + 1
            for i in range(3):
                d[i] = motion[s, b, 9 + i] - motion[s, a, 9 + i]
            if kind[c] == ALONG:
                for i in range(3):
                    e[i] = motion[s, a, 3 * i + axis[c]]
                f[s, c] = e[0] * d[0] + e[1] * d[1] + e[2] * d[2]
                _cross(e, d, m)
                _linear_part(motion, n_frames, ancestors, coordinates, s, b, e, 1.0, A[s, c])
                _linear_part(motion, n_frames, ancestors, coordinates, s, a, e, -1.0, A[s, c])
                _angular_part(motion, n_frames, ancestors, coordinates, s, a, m, 1.0, A[s, c])
            elif kind[c] == ROD:
                square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
                f[s, c] = (square - length[c] ** 2) / (2.0 * length[c])
                for i in range(3):
                    e[i] = d[i] / length[c]
                _linear_part(motion, n_frames, ancestors, coordinates, s, b, e, 1.0, A[s, c])
                _linear_part(motion, n_frames, ancestors, coordinates, s, a, e, -1.0, A[s, c])
            else:
                total = 0.0
                for t in range(terms[0][c], terms[0][c + 1]):
                    for i in range(3):
                        e[i] = motion[s, a, 3 * i + terms[2][t]]
                        g[i] = motion[s, b, 3 * i + terms[3][t]]
                    weight = terms[1][t]
                    total += weight * (e[0] * g[0] + e[1] * g[1] + e[2] * g[2])
                    _cross(e, g, m)
                    _angular_part(motion, n_frames, ancestors, coordinates, s, a, m, weight, A[s, c])
                    _angular_part(motion, n_frames, ancestors, coordinates, s, b, m, -weight, A[s, c])
                f[s, c] = total


@kernel
def _cross(a, b, out):
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@kernel
def _linear_part(motion, n_frames, ancestors, coordinates, s, frame, e, sign, row):
    """Add sign * e . (velocity of the frame's origin per unit of each coordinate)."""
    start, listed = ancestors
    link, axis, slides = coordinates
    for j in range(start[frame], start[frame + 1]):
        r = listed[j]
        at = n_frames + link[r]
        zx, zy, zz = motion[s, at, axis[r]], motion[s, at, 3 + axis[r]], motion[s, at, 6 + axis[r]]
        if slides[r]:
            row[r] += sign * (e[0] * zx + e[1] * zy + e[2] * zz)
        else:
            dx = motion[s, frame, 9] - motion[s, at, 9]
            dy = motion[s, frame, 10] - motion[s, at, 10]
            dz = motion[s, frame, 11] - motion[s, at, 11]
            row[r] += sign * (
                e[0] * (zy * dz - zz * dy) + e[1] * (zz * dx - zx * dz) + e[2] * (zx * dy - zy * dx)
            )


@kernel
def _angular_part(motion, n_frames, ancestors, coordinates, s, frame, m, sign, row):
    """Add sign * m . (angular velocity of the frame per unit of each coordinate)."""
    start, listed = ancestors
    link, axis, slides = coordinates
    for j in range(start[frame], start[frame + 1]):
        r = listed[j]
        if not slides[r]:
            at = n_frames + link[r]
            row[r] += sign * (
                m[0] * motion[s, at, axis[r]]
                + m[1] * motion[s, at, 3 + axis[r]]
                + m[2] * motion[s, at, 6 + axis[r]]
            )
