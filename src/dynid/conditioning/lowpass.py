"""The row filter: one zero-phase FIR low-pass over Y and every column of W, then decimation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array

# Half length in periods of the cutoff: a Hamming window of this length falls from pass to stop
# within 0.4 of the cutoff, so that 0.8 of the Nyquist frequency aliases below -40 dB.
_PERIODS = 4.0


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Symmetric kernel applied at every `decimate`-th sample only.

    Attributes:
        kernel: Unit sum, odd length, shape (2 half + 1,), dimensionless.
        decimate: One output every so many samples.
        cutoff: -6 dB frequency in [Hz]; None when rows are taken as they are.
    """

    kernel: Float[Array, "h"]
    decimate: int
    cutoff: float | None

    @property
    def half(self) -> int:
        """Samples on each side of an output."""
        return len(self.kernel) // 2

    @property
    def inflation(self) -> float:
        """How much the variance of a fit exceeds that of as many independent rows.

        White noise through the filter gives rows with variance s^2 sum(h^2) whose sums over smooth
        columns have variance s^2 / decimate each: neighbours are correlated, and counting rows
        would promise too much.
        """
        return max(1.0, float(1.0 / (self.decimate * np.sum(self.kernel**2))))


def row_filter(dt: float, decimate: int, cutoff: float | None = None) -> RowFilter:
    """Windowed-sinc low-pass for a sampling step `dt` [s].

    Args:
        decimate: Keep one row in so many; 1 without a cutoff leaves the rows alone.
        cutoff: In [Hz]; default 0.8 of the Nyquist frequency of the kept rows.
    """
    if cutoff is None and decimate > 1:
        cutoff = 0.8 / (2.0 * decimate * dt)
    if cutoff is None or cutoff >= 0.5 / dt:
        return RowFilter(np.ones(1), decimate, None)
    half = int(np.ceil(_PERIODS / (cutoff * dt)))
    at = np.arange(-half, half + 1)
    kernel = np.sinc(2.0 * cutoff * dt * at) * np.hamming(2 * half + 1)
    return RowFilter(kernel / kernel.sum(), decimate, cutoff)
