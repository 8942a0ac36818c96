"""Zero-phase low-pass filters that give the same result on a padded chunk as on the whole.

Butterworth: run forwards and backwards, |H|^2 = 1 / (1 + (f/fc)^2N), half amplitude at fc.
FIR: symmetric Kaiser-windowed sinc, half amplitude at fc.

Butterworth low-pass: its second-order sections, and a pass forwards and backwards.

Analogue poles -wc exp(i pi m / 2N), m = -N+1, -N+3, .., N-1, moved to the unit disc by the bilinear transform
with wc = 2 fs tan(pi fc / fs); all zeros at z = -1. SciPy has the same filter, but its signal package takes
longer to import than a log of a minute takes to identify.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, pi, tan
from typing import Literal, get_args

import numpy as np

from dynid.common.arrays import Array, Complex, Float
from dynid.common.errors import InputError, nearest


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


def both_ways(
    x: Float[Array, "n m"],
    sections: Float[Array, "k 6"],
    width: int,
    settled: Float[Array, "k 2"] | None = None,
) -> Float[Array, "n m"]:
    """Signals filtered forwards and backwards, without phase shift.

    Both sweeps begin in the state that a constant signal leaves. The ends are extended oddly (rotated by 180
    degrees about the end points).

    Args:
        x: Shape (n, m), more than `width` samples.
        sections: See `design`.
        width: Samples of the extension.
        settled: States of the sections that a constant 1 leaves, if known.
    """
    from dynid.motion.kernels import sweep

    n = len(x)
    y = np.empty((n + 2 * width, x.shape[1]))
    y[width : width + n] = x
    y[:width] = 2.0 * x[:1] - x[width:0:-1]
    y[width + n :] = 2.0 * x[-1:] - x[-2 : -2 - width : -1] if width else x[:0]
    left = (_settled(sections) if settled is None else settled)[:, :, None]
    sweep(y, sections, left * y[0], False)
    sweep(y, sections, left * y[-1], True)
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


FilterKind = Literal["butterworth", "fir", "none"]

_FORGOTTEN = 1e-14  # remaining part of a chunk's start-up transient: below rounding of q
_KAISER_BETA = 8.0  # stop band 80 dB down


# Filters along the samples; the ends of a segment are extended oddly, which keeps value and slope.
LowPass = Callable[[Float[Array, "n m"]], Float[Array, "n m"]]


def low_pass(kind: str, cutoff: float | None, order: int, dt: float) -> tuple[LowPass, int]:
    """Design a zero-phase filter with half amplitude at `cutoff` [Hz] for samples `dt` [s] apart.

    Returns:
        The filter, and its reach: samples further away do not change an output beyond rounding.
    """
    if kind not in get_args(FilterKind):
        tail = nearest(kind, get_args(FilterKind))
        raise InputError(f"unknown filter kind '{kind}'" + tail, place="filter.kind")
    if kind == "none" or cutoff is None:
        return (lambda x: x), 0
    check_cutoff(cutoff, dt)
    if order < 1 or order > 12:
        raise InputError(f"filter order {order} is outside 1 to 12", place="filter.order")
    return _butterworth(cutoff, order, dt) if kind == "butterworth" else _fir(cutoff, order, dt)


def check_cutoff(cutoff: float, dt: float, place: str = "filter.cutoff") -> None:
    """Refuse a cutoff that is not between zero and half the sampling rate."""
    if not 0.0 < cutoff < 0.5 / dt:
        raise InputError(
            f"cutoff {cutoff:g} Hz is not between 0 and half the sampling rate ({0.5 / dt:g} Hz)",
            place=place,
            remedy="choose a lower cutoff, or remove it to choose it from the data",
        )


def samples(duration: float, dt: float) -> int:
    """Samples that cover `duration` [s]; a step that is off by rounding adds none."""
    return ceil(duration / dt - 1e-6)


def extend_odd(x: Float[Array, "n m"], width: int) -> Float[Array, "n2 m"]:
    """`x` continued by `width` samples at both ends, rotated by 180 degrees about the end points.

    Where the segment is shorter than `width`, the outermost value is repeated.
    """
    known = min(width, len(x) - 1)
    before = 2.0 * x[:1] - x[known:0:-1]
    after = 2.0 * x[-1:] - x[-2 : -2 - known : -1]
    extended = np.concatenate([before, x, after])
    missing = width - known
    return np.pad(extended, ((missing, missing), (0, 0)), mode="edge") if missing else extended


def _butterworth(cutoff: float, order: int, dt: float) -> tuple[LowPass, int]:
    sections, poles = design(cutoff, order, dt)
    slowest = float(np.max(np.abs(poles)))
    # Forwards and backwards the tail decays like k r^k: a tenth more than r^k alone needs.
    reach = ceil(1.1 * log(_FORGOTTEN) / log(slowest)) + 8 if slowest > 0.0 else 8
    extension, settled = samples(1.0 / cutoff, dt), _settled(sections)
    return (lambda x: both_ways(x, sections, min(extension, len(x) - 1), settled)), reach


def _fir(cutoff: float, order: int, dt: float) -> tuple[LowPass, int]:
    from scipy.signal import firwin, oaconvolve

    # At order 4 two periods of the cutoff on either side: transition band about 1.2 cutoff wide.
    half = max(1, samples(0.5 * order / cutoff, dt))
    taps = firwin(2 * half + 1, cutoff, window=("kaiser", _KAISER_BETA), fs=1.0 / dt)

    def smooth(x: Float[Array, "n m"]) -> Float[Array, "n m"]:
        return np.asarray(oaconvolve(extend_odd(x, half), taps[:, None], mode="valid", axes=0))

    return smooth, half
