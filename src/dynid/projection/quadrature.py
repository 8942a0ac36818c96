"""Integrals of sampled powers over the intervals between samples, by name.

| name    | interpolation                          | a row spans   | error over a window      |
|---------|----------------------------------------|---------------|--------------------------|
| spline  | cubic spline through all samples       | one interval  | h^4/720 [f'''] at its ends |
| simpson | parabolas through three samples        | two intervals | h^4/180 [f'''] at its ends |

Both are linear in the samples. The efforts' power and the friction columns go through the same rule,
so a jump of friction inside an interval has the same effect on both sides of the equation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import check_choice

# The prefilter of the cubic spline decays by 2 - sqrt(3) per sample: at this distance it is 1e-7.
_SPLINE_REACH = 12


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Mean over a span of one or two intervals from neighbouring samples.

    Attributes:
        name: As in the experiment file.
        start, stop: The span of the row of sample 0, in samples.
        first: Offset of the first weight from sample 0.
        weights: Unit sum, shape (w,), dimensionless.
    """

    name: str
    start: int
    stop: int
    first: int
    weights: Float[Array, "w"]

    @property
    def span(self) -> int:
        """Length of a row, in intervals."""
        return self.stop - self.start

    @property
    def before(self) -> int:
        """Samples needed before that of the row."""
        return -self.first

    @property
    def after(self) -> int:
        """Samples needed after that of the row."""
        return len(self.weights) - 1 + self.first

    def means(self, f: Float[Array, "n c"]) -> Float[Array, "m c"]:
        """Mean over the span of every sample that has all its neighbours, n - before - after of them."""
        count = len(f) - len(self.weights) + 1
        total = np.zeros((count, f.shape[1]))
        half = len(self.weights) // 2
        for i, weight in enumerate(self.weights[:half]):  # symmetric: two samples per product
            total += weight * (f[i : i + count] + f[len(self.weights) - 1 - i :][:count])
        if len(self.weights) % 2:
            total += self.weights[half] * f[half : half + count]
        return total

    def changes(self, h: Float[Array, "n c"]) -> Float[Array, "m c"]:
        """Change of `h` over the same spans, divided by their length in intervals."""
        count = len(h) - len(self.weights) + 1
        at = self.before + self.start
        return np.asarray((h[at + self.span :][:count] - h[at:][:count]) / self.span)


def _spline_weights() -> Float[Array, "w"]:
    """Mean over [0, 1] of the cardinal cubic spline through the samples, from -reach to 1 + reach.

    The B-spline coefficients are c = sqrt(3) sum z^|k| f_k with z = sqrt(3) - 2, and the mean over an
    interval is (c_-1 + 11 c_0 + 11 c_1 + c_2) / 24.
    """
    z = np.sqrt(3.0) - 2.0
    k = np.arange(-_SPLINE_REACH, _SPLINE_REACH + 2)
    pieces = [factor * z ** np.abs(k - at) for at, factor in ((-1, 1.0), (0, 11.0), (1, 11.0), (2, 1.0))]
    weights = np.sum(pieces, axis=0)
    return np.asarray(weights / weights.sum())


QUADRATURES = {
    "spline": Quadrature("spline", 0, 1, -_SPLINE_REACH, _spline_weights()),
    "simpson": Quadrature("simpson", -1, 1, -1, np.array([1.0, 4.0, 1.0]) / 6.0),
}
DEFAULT = "spline"


def quadrature_named(name: str) -> Quadrature:
    """The rule, or an error with the valid names."""
    check_choice("energy integration", name, QUADRATURES)
    return QUADRATURES[name]
