"""Rows of a log with one more column for each quantity x of the description: what a change of it does.

    error = W(x) chi - Y(x)        D = d error / dx   by differences of the rows at two values of x

[W D Y] then has one triangular factor, from which a Gauss-Newton step of x, its information and its effect
on chi follow without another pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.projection.contract import RowSource
from dynid.regressor.layout import ABSENT, Layout


class SlopeRows:
    """Rows with the columns D before the measured side (a `PackedRows`).

    Args:
        source: Rows at the values at hand.
        changed: The same rows after and before a change of each quantity; None: at the values at hand.
        steps: Distance between the two values of each quantity.
        chi: Parameters at hand, shape (p,), SI.
    """

    def __init__(
        self,
        source: RowSource,
        changed: Sequence[tuple[RowSource, RowSource | None]],
        steps: Sequence[float],
        chi: Float[Array, "p"],
    ) -> None:
        self.source, self.changed, self.steps = source, changed, steps
        self.dt = source.dt
        inner, c = source.layout, len(changed)
        weights = np.where(inner.columns == ABSENT, 0.0, chi[np.maximum(inner.columns, 0)])
        weights[inner.start[1:] - 1] = -1.0
        self._weights = weights
        columns: list[int] = []
        starts = [0]
        for start, stop in zip(inner.start[:-1], inner.start[1:], strict=True):
            columns += [*inner.columns[start : stop - 1].tolist(), *range(len(chi), len(chi) + c), ABSENT]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts, dtype=np.int64), np.array(columns, dtype=np.int64))

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries with the columns D before the measured side."""
        inner = self.source.layout
        ends = inner.start[1:] - 1
        pairs = [
            (after.rows(start, stop, tile), None if before is None else before.rows(start, stop, tile))
            for after, before in self.changed
        ]
        for at, packed, weights in self.source.rows(start, stop, tile):
            error = inner.sums(packed, self._weights)
            out = np.empty((self.layout.n_entries, packed.shape[1]))
            slopes = []
            for (after, before), step in zip(pairs, self.steps, strict=True):
                high, low = self._error(after), error if before is None else self._error(before)
                slopes.append((high - low) / step)
            for k, end in enumerate(ends):
                first, last = int(self.layout.start[k]), int(self.layout.start[k + 1]) - 1
                own = end - int(inner.start[k])
                out[first : first + own] = packed[inner.start[k] : end]
                for j, slope in enumerate(slopes):
                    out[first + own + j] = slope[k]
                out[last] = packed[end]
            # A pose that does not exist at a changed value has no slope; it keeps no row.
            fine = np.all([np.isfinite(slope) for slope in slopes], axis=0) if slopes else True
            out[~np.isfinite(out)] = 0.0
            yield at, out, np.where(fine, weights, 0.0)

    def _error(self, rows: Iterator[tuple[int, Array, Array]]) -> Float[Array, "k n"]:
        """W chi - Y of the next tile; NaN where the row is not usable."""
        _, packed, fine = next(rows)
        return np.where(fine > 0.0, self.source.layout.sums(packed, self._weights), np.nan)
