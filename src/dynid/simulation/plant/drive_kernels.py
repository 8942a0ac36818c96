"""Friction of a plant at one state: drive terms, additional laws, and load-dependent friction.

`friction` is the tables `Friction`. Loads are E tau_l, rows E (m, a); None without load-dependent friction.

Load friction is implicit. With u = N^T w the generalised forces of the motion, and K = (J^T)^+:

    u = N^T side - sum_o (D_o N)^T f_o,     f_o = Fl_o step_o |E_o (K u + (1 - K J^T) tau)|

`side` contains all other efforts. For |Fl| < 1 the right side is a contraction, so the iteration converges
to the unique solution.
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import inner, kernel
from dynid.excitation.friction_kernels import bent, rubbed
from dynid.simulation.plant.layout import (
    CONSTANT,
    DRY,
    ROOT,
    SHARE,
    SPEED,
    STRIBECK,
    UNEVEN,
    VISCOUS,
)

_PATIENCE = 400
_STANDS = 1e-14


@kernel
def resisting(friction, s, z, out):
    """Efforts against the motion at the owners' velocities s (o,), without load friction."""
    width, terms, laws, bristles = friction.width, friction.terms, friction.laws, friction.bristles
    m = terms.shape[0]
    for o in range(s.size):
        step = np.tanh(s[o] / width[o])
        if o >= m:
            out[o] = rubbed(laws[o - m], bristles[o - m], s[o], step, z[o - m])
            continue
        row, size = terms[o], abs(s[o])
        dry = row[DRY]
        if row[ROOT] != 0.0:
            dry += row[ROOT] * np.sqrt(size)
        if row[STRIBECK] != 0.0:
            dry += row[STRIBECK] * np.exp(-((s[o] / row[SPEED]) ** 2))
        out[o] = row[CONSTANT] + row[VISCOUS] * s[o] + row[UNEVEN] * size + dry * step


@inner
def bending(friction, z, s, h, out):
    """Bristle deflections a time h later at the owners' velocities s."""
    m = friction.terms.shape[0]
    for e in range(z.size):
        out[e] = bent(friction.laws[e], friction.bristles[e], z[e], s[m + e], h)


@kernel
def load_friction(friction, E, C, N, tau, side, s, out):
    """Add load friction to the owners' efforts `out` (o,), and subtract it from the efforts `side` (v,).

    N: tangent directions (v, d). tau: of the motors (a,). Returns whether the iteration converged.
    """
    if E is None:
        return True
    D, width, terms = friction.D, friction.width, friction.terms
    loaded = np.flatnonzero(terms[:, SHARE])
    J = C @ N
    K = np.linalg.pinv(np.ascontiguousarray(J.T))
    strain = tau - K @ (J.T @ tau)
    along, gain = D @ N, np.empty(loaded.size)
    for i in range(loaded.size):
        gain[i] = terms[loaded[i], SHARE] * np.tanh(s[loaded[i]] / width[loaded[i]])
    free = N.T @ side
    f, u = np.zeros(loaded.size), free.copy()
    for _ in range(_PATIENCE):
        load = K @ u + strain
        change = largest = 0.0
        u[:] = free
        for i in range(loaded.size):
            o = loaded[i]
            value = gain[i] * abs(np.dot(E[o], load))
            change, largest = max(change, abs(value - f[i])), max(largest, abs(value))
            f[i] = value
            u -= along[o] * value
        if change <= _STANDS * largest:
            break
    for i in range(loaded.size):
        out[loaded[i]] += f[i]
        side -= D[loaded[i]] * f[i]
    return change <= 1e-9 * largest
