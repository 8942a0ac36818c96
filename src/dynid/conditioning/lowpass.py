"""The row filter: one zero-phase FIR low-pass over Y and every column of W, then decimation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.projection.quadrature import DEFAULT, QUADRATURES, Quadrature

# Half length in periods of the cutoff: a Hamming window of this length falls from pass to stop
# within 0.4 of the cutoff, so that 0.8 of the Nyquist frequency aliases below -40 dB.
_PERIODS = 4.0
_DECAYED = 1e-5


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Symmetric kernel applied at every `decimate`-th sample only.

    Attributes:
        kernel: Unit sum, odd length, shape (2 half + 1,), dimensionless.
        decimate: One output every so many samples.
        cutoff: -6 dB frequency in [Hz]; None when rows are not filtered.
        within: How a row averages over samples before it is filtered, shape (w,), dimensionless.
        support: Fraction of the kernel that must be on valid samples for an output to be used.
    """

    kernel: Float[Array, "h"]
    decimate: int
    cutoff: float | None
    within: Float[Array, "w"] = field(default_factory=lambda: np.ones(1))
    support: float = 0.5

    @property
    def half(self) -> int:
        """Samples on each side of an output."""
        return len(self.kernel) // 2

    @cached_property
    def padded(self) -> Float[Array, "p"]:
        """The kernel with `decimate` zeros before and behind it."""
        return np.pad(self.kernel, self.decimate)

    @property
    def inflation(self) -> float:
        """How much the variance of a fit exceeds that of as many independent rows.

        White noise through the filter gives rows with variance s^2 sum(h^2) whose sums over smooth
        columns have variance s^2 / decimate each: neighbours are correlated, and counting rows
        would underestimate the variance.
        """
        whole = np.convolve(self.kernel, self.within)
        return max(1.0, float(1.0 / (self.decimate * np.sum(whole**2))))


def row_filter(
    dt: float, decimate: int, cutoff: float | None = None, *, butterworth: int | None = None
) -> RowFilter:
    """Low-pass for a sampling step `dt` [s]: windowed sinc, or a zero-phase Butterworth.

    Args:
        decimate: Keep one row in so many; 1 without a cutoff keeps the rows unchanged.
        cutoff: In [Hz]; default 0.8 of the Nyquist frequency of the kept rows.
        butterworth: Order of a Butterworth run forwards and backwards, as a symmetric kernel; the
            sinc is sharper, which is better for decimation.
    """
    if cutoff is None and decimate > 1:
        cutoff = 0.8 / (2.0 * decimate * dt)
    if cutoff is None or cutoff >= 0.5 / dt:
        return RowFilter(np.ones(1), decimate, None)
    kernel = _sinc(cutoff * dt) if butterworth is None else _butterworth(cutoff * dt, butterworth)
    return RowFilter(kernel / kernel.sum(), decimate, cutoff)


def window_filter(
    dt: float, window: float, overlap: bool, rule: Quadrature = QUADRATURES[DEFAULT]
) -> RowFilter:
    """Mean over windows of `window` [s]; overlapping ones begin every half window.

    Rows that span one interval are averaged over an odd number of them, so that a window has a
    middle row; of rows that span two, every second one belongs to a window.
    """
    if rule.span == 2:
        pairs = max(1, round(0.5 * window / dt))
        kernel = np.zeros(2 * pairs - 1)
        kernel[::2] = 1.0 / pairs
        return RowFilter(kernel, pairs if overlap else 2 * pairs, None, rule.weights)
    half = max(1, round(0.5 * window / dt - 0.5))
    width = 2 * half + 1
    return RowFilter(np.full(width, 1.0 / width), half if overlap else width, None, rule.weights)


def _sinc(frequency: float) -> Float[Array, "h"]:
    """Hamming-windowed sinc; `frequency` in cycles per sample."""
    half = int(np.ceil(_PERIODS / frequency))
    return np.asarray(np.sinc(2.0 * frequency * np.arange(-half, half + 1)) * np.hamming(2 * half + 1))


def _butterworth(frequency: float, order: int) -> Float[Array, "h"]:
    """Impulse response of |H|^2, truncated where it has decayed; `frequency` in cycles per sample."""
    n = 1 << int(np.ceil(np.log2(64.0 * order / frequency)))
    warped = np.tan(np.pi * np.arange(n // 2 + 1) / n) / np.tan(np.pi * frequency)
    with np.errstate(over="ignore"):
        gain = 1.0 / (1.0 + warped ** (2 * order))
    response = np.fft.irfft(gain, n)
    half = int(np.flatnonzero(np.abs(response[: n // 2]) > _DECAYED * response[0])[-1])
    return np.concatenate([response[half:0:-1], response[: half + 1]])
