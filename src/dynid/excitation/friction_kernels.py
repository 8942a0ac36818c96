"""Friction laws at one velocity, and along a motion: Stribeck curve and LuGre bristles.

A law is a row: coulomb, breakaway, speed, exponent, viscous, stiffness, damping (see `FrictionLaw`).
"""

from __future__ import annotations

import numpy as np

from dynid.common.compiled import allocating as kernel
from dynid.common.compiled import allocating_inner as inner

_TINY = 1e-300


@inner
def steady(law, s):
    """g(s): friction of a steady motion, without sign."""
    return law[0] + (law[1] - law[0]) * np.exp(-((abs(s) / law[2]) ** law[3]))


@inner
def rubbed(law, bristles, s, sign, z):
    """Effort against the motion, for a velocity, its (smoothed) sign and a bristle deflection."""
    g = steady(law, s)
    if not bristles:
        return g * sign + law[4] * s
    dz = s - law[5] * abs(s) / max(g, _TINY) * z
    return law[5] * z + law[6] * dz + law[4] * s


@inner
def bent(law, bristles, z, s, h):
    """Bristle deflection a time h later at the velocity s: exact for constant s."""
    if not bristles:
        return 0.0
    rate = law[5] * abs(s) / max(steady(law, s), _TINY)
    part = -np.expm1(-rate * h)
    gain = s * part / rate if rate * h > 1e-12 else s * h
    return (1.0 - part) * z + gain


@kernel
def levels(laws, s, out):
    """Steady friction at velocities s (n, o)."""
    for n in range(s.shape[0]):
        for o in range(s.shape[1]):
            out[n, o] = steady(laws[o], s[n, o])


@kernel
def friction_efforts(laws, bristles, s, sign, z, out):
    """Efforts (n, o) against the motion."""
    for n in range(s.shape[0]):
        for o in range(s.shape[1]):
            out[n, o] = rubbed(laws[o], bristles[o], s[n, o], sign[n, o], z[n, o])


@kernel
def next_bends(laws, bristles, z, s, h, out):
    """Deflections (n, o) a time h after deflections z at velocities s."""
    for n in range(s.shape[0]):
        for o in range(s.shape[1]):
            out[n, o] = bent(laws[o], bristles[o], z[n, o], s[n, o], h)


@kernel
def bends_along(laws, bristles, s, h, out):
    """Deflections (n, o) along a motion sampled every h that starts with undeflected bristles."""
    out[0] = 0.0
    for n in range(1, s.shape[0]):
        for o in range(s.shape[1]):
            mean = 0.5 * (s[n - 1, o] + s[n, o])
            out[n, o] = bent(laws[o], bristles[o], out[n - 1, o], mean, h)
