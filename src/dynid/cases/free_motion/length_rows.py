"""Rows of free motion with one more column for each cable: what a change of its locked length does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.projection.contract import RowSource
from dynid.regressor.layout import ABSENT, Layout

STEP = 1e-5  # m: the rows are smooth over far more, and rounding stays at 1e-10 of them


class LengthRows:
    """Rows of one log with one more column for each cable: what a change of its length does (a `PackedRows`).

    Args:
        source: Rows with the lengths at hand.
        changed: The same with each length longer by `STEP`.
        chi: Parameters at hand, shape (p,), SI.
    """

    def __init__(self, source: RowSource, changed: Sequence[RowSource], chi: Float[Array, "p"]) -> None:
        self.source, self.changed = source, changed
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
        """Packed entries with the columns of the lengths before the measured side."""
        inner = self.source.layout
        ends = inner.start[1:] - 1
        others = [one.rows(start, stop, tile) for one in self.changed]
        for at, packed, weights in self.source.rows(start, stop, tile):
            error = inner.sums(packed, self._weights)
            out = np.empty((self.layout.n_entries, packed.shape[1]))
            slopes = []
            for other in others:
                _, moved, fine = next(other)
                weights = weights * fine
                slopes.append((inner.sums(moved, self._weights) - error) / STEP)
            for k, end in enumerate(ends):
                first, last = int(self.layout.start[k]), int(self.layout.start[k + 1]) - 1
                own = end - int(inner.start[k])
                out[first : first + own] = packed[inner.start[k] : end]
                for j, slope in enumerate(slopes):
                    out[first + own + j] = slope[k]
                out[last] = packed[end]
            yield at, out, weights
