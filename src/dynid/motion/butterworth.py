"""Butterworth low-pass: its second-order sections, and a pass forwards and backwards.

Analogue poles -wc exp(i pi m / 2N), m = -N+1, -N+3, .., N-1, moved to the unit disc by the bilinear transform
with wc = 2 fs tan(pi fc / fs); all zeros at z = -1. SciPy has the same filter, but its signal package takes
longer to import than a log of a minute takes to identify.
"""

from __future__ import annotations

from math import pi, tan

import numpy as np

from dynid.common.arrays import Array, Complex, Float


def design(
    cutoff: float, order: int, dt: float
) -> tuple[Float[Array, "sections 6"], Complex[Array, "order"]]:
    """Sections (b0, b1, b2, 1, a1, a2), those with slow poles last, and all poles.

    Args:
        cutoff: Frequency at which one pass has the gain 1 / sqrt(2), in [Hz].
        order: Number of poles.
        dt: Time step, in [s].
    """
    warped = 4.0 * tan(pi * (2.0 * cutoff / (1.0 / dt)) / 2.0)  # for a sampling rate of 2
    analogue = -warped * np.exp(1j * pi * np.arange(1 - order, order, 2) / (2 * order))
    poles = (4.0 + analogue) / (4.0 - analogue)
    gain = warped**order * float(np.real(1.0 / np.prod(4.0 - analogue)))
    upper = poles[: (order + 1) // 2]  # one of each pair; the last one is real where the order is odd
    upper = upper[np.argsort(-np.abs(1.0 - np.abs(upper)), kind="stable")]
    rows = []
    for pole in upper:
        if order % 2 and pole == poles[order // 2]:
            rows.append([1.0, 1.0, 0.0, 1.0, -pole.real, 0.0])
        else:
            rows.append([1.0, 2.0, 1.0, 1.0, -2.0 * pole.real, pole.real**2 + pole.imag**2])
    sections = np.array(rows)
    sections[0, :3] *= gain
    return sections, poles


def both_ways(x: Float[Array, "n m"], sections: Float[Array, "k 6"], width: int) -> Float[Array, "n m"]:
    """Signals filtered forwards and backwards, without phase shift.

    Both sweeps begin in the state that a constant signal leaves. The ends are extended oddly (rotated by 180
    degrees about the end points).

    Args:
        x: Shape (n, m), more than `width` samples.
        sections: See `design`.
        width: Samples of the extension.
    """
    from dynid.motion.kernels import sweep

    n = len(x)
    y = np.empty((n + 2 * width, x.shape[1]))
    y[width : width + n] = x
    y[:width] = 2.0 * x[:1] - x[width:0:-1]
    y[width + n :] = 2.0 * x[-1:] - x[-2 : -2 - width : -1] if width else x[:0]
    settled = _settled(sections)[:, :, None]
    sweep(y, sections, settled * y[0], False)
    sweep(y, sections, settled * y[-1], True)
    return y[width : width + n]


def _settled(sections: Float[Array, "k 6"]) -> Float[Array, "k 2"]:
    """States z = A z + B of the sections that a constant 1 leaves."""
    states = np.empty((len(sections), 2))
    level = 1.0
    for state, section in zip(states, sections, strict=True):
        b, a = section[:3], section[3:]
        state[:] = level * np.linalg.solve([[1.0 + a[1], -1.0], [a[2], 1.0]], b[1:] - a[1:] * b[0])
        level *= float(b.sum() / a.sum())
    return states
