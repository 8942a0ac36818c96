"""Rows of one instant combined with each other, so that their errors are independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.projection.model import PackedRows
from dynid.regressor.layout import ABSENT, Layout


class MixedRows:
    """Rows of each instant multiplied by chol(covariance)^-1, of those that are valid there.

    Every mixed row is a combination of equations, so it is an equation. With the covariance of the
    errors the mixed rows have independent errors with standard deviation one.

    Args:
        source: The rows.
        covariance: Of the errors of one instant, shape (k, k), units of the rows.
    """

    def __init__(self, source: PackedRows, covariance: Float[Array, "k k"]) -> None:
        self.source, self.dt, self.covariance = source, source.dt, covariance
        inner = source.layout
        spans = list(zip(inner.start[:-1], inner.start[1:] - 1, strict=True))
        # Rows with few columns first: mixing then adds few new columns to a row.
        self._order = np.argsort([end - start for start, end in spans], kind="stable")
        columns, starts, seen = [], [0], np.zeros(0, dtype=int)
        row_columns: dict[int, Int[Array, "c"]] = {}
        for k in self._order:
            row = inner.columns[spans[k][0] : spans[k][1]]
            seen = np.union1d(seen, row[row != ABSENT])
            row_columns[int(k)] = seen
        for k in range(len(spans)):
            columns += [*row_columns[k].tolist(), ABSENT]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts), np.array(columns))
        self._places = [
            [
                self._targets(inner.columns[slice(*spans[j])], row_columns[k], starts[k])
                for j in range(len(spans))
            ]
            for k in range(len(spans))
        ]
        self._spans = spans

    @staticmethod
    def _targets(
        columns: Int[Array, "e"], row_columns: Int[Array, "c"], start: int
    ) -> tuple[Int[Array, "u"], Int[Array, "u"]]:
        """Entries of a source row that also exist in a mixed row, and their places there."""
        use = np.flatnonzero(np.isin(columns, row_columns))
        return use, start + np.searchsorted(row_columns, columns[use])

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Mixed entries; a row is valid where it was."""
        for at, packed, weights in self.source.rows(start, stop, tile):
            valid = weights > 0
            mixed = np.zeros((self.layout.n_entries, packed.shape[1]))
            for pattern in np.unique(valid, axis=1).T:
                where = np.flatnonzero(np.all(valid == pattern[:, None], axis=0))
                self._mix(packed, pattern, where, mixed)
            yield at, mixed, weights

    def _mix(
        self, packed: Float[Array, "e n"], pattern: Bool[Array, "k"], where: Int[Array, "s"], out: Array
    ) -> None:
        order = [int(k) for k in self._order if pattern[k]]
        if not order:
            return
        L = np.linalg.cholesky(self.covariance[np.ix_(order, order)])
        inverse = np.linalg.inv(L)
        for i, k in enumerate(order):
            for j in range(i + 1):
                start, end = self._spans[order[j]]
                use, target = self._places[k][order[j]]
                part = inverse[i, j] * packed[np.ix_(start + use, where)]
                if np.all(np.diff(np.sort(target))):
                    out[np.ix_(target, where)] += part
                else:  # two entries of one row share a parameter
                    np.add.at(out, (target[:, None], where[None, :]), part)
                out[self.layout.start[k + 1] - 1, where] += inverse[i, j] * packed[end, where]
