"""Rows of a log with one more column for each quantity x of the description: what a change of it does.

    error = W(x) chi - Y(x)        D = d error / dx   by differences of the rows at two values of x

[W D Y] then has one triangular factor, from which a Gauss-Newton step of x, its information and its effect
on chi follow without another pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.conditioning.rewritten import Tiles, WiderRows
from dynid.projection.contract import RowSource


def slope_rows(
    source: RowSource,
    changed: Sequence[tuple[RowSource, RowSource | None]],
    steps: Sequence[float],
    chi: Float[Array, "p"],
) -> WiderRows:
    """Rows with the columns D before the measured side.

    Args:
        source: Rows at the values at hand.
        changed: The same rows after and before a change of each quantity; None: at the values at hand.
        steps: Distance between the two values of each quantity.
        chi: Parameters at hand, shape (p,), SI.
    """
    layout, c = source.layout, len(changed)
    coefficients = layout.coefficients(chi)
    coefficients[layout.start[1:] - 1] = -1.0

    def error(rows: Iterator[tuple[int, Array, Array]]) -> Float[Array, "k n"]:
        """W chi - Y of the next tile; NaN where the row is not usable."""
        _, packed, fine = next(rows)
        return np.where(fine > 0.0, layout.sums(packed, coefficients), np.nan)

    def tiles(start: int, stop: int, tile: int) -> Tiles:
        pairs = [
            (after.rows(start, stop, tile), None if before is None else before.rows(start, stop, tile))
            for after, before in changed
        ]
        for at, packed, weights in source.rows(start, stop, tile):
            nominal = layout.sums(packed, coefficients)
            slopes = np.zeros((len(nominal), c, packed.shape[1]))
            for j, ((after, before), step) in enumerate(zip(pairs, steps, strict=True)):
                high, low = error(after), nominal if before is None else error(before)
                slopes[:, j] = (high - low) / step
            # A pose that does not exist at a changed value has no slope; it keeps no row.
            fine = np.isfinite(slopes).all(axis=1)
            packed, slopes = (np.where(np.isfinite(x), x, 0.0) for x in (packed, slopes))
            yield at, packed, np.where(fine, weights, 0.0), slopes

    k = len(layout.start) - 1
    return WiderRows(source, np.tile(len(chi) + np.arange(c), (k, 1)), tiles)
