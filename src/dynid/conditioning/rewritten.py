"""Rows modified before the row filter: wrappers around the rows of a model.

Each is again a `PackedRows`, so filter, decimation and triangular factors work without changes.

Rows of a log with one more column for each quantity x of the description: what a change of it does.

    error = W(x) chi - Y(x)        D = d error / dx   by differences of the rows at two values of x

[W D Y] then has one triangular factor, from which a Gauss-Newton step of x, its information and its effect
on chi follow without another pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.projection.model import PackedRows, RowSource
from dynid.regressor.layout import ABSENT, Layout

# Input: row number and its residuals. Output: residuals that replace them.
RowChange = Callable[[int, Float[Array, "n"]], Float[Array, "n"]]


def predictor(
    layout: Layout, chi: Float[Array, "p"]
) -> Callable[[Float[Array, "e n"]], Float[Array, "2 k n"]]:
    """A function from packed entries to the measured side and W chi of every row."""
    coefficients = layout.coefficients(chi)

    def compare(packed: Float[Array, "e n"]) -> Float[Array, "2 k n"]:
        return np.stack([packed[layout.start[1:] - 1], layout.sums(packed, coefficients)])

    return compare


class _Rewritten:
    """Rows made from those of a source, with its weights.

    Args:
        source: The rows.
        combine: From the entries of the source and of each of the others to the new ones; None: as they are.
        others: Rows of the same model, so that the entries correspond.
        layout: Of the new rows; default that of the source.
        pieces: Ranges of samples; default those of the source.
    """

    def __init__(
        self,
        source: PackedRows,
        combine: Callable[..., Array] | None = None,
        others: Sequence[PackedRows] = (),
        layout: Layout | None = None,
        pieces: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.source, self.dt, self._combine, self._others = source, source.dt, combine, others
        self.layout = source.layout if layout is None else layout
        self._pieces = pieces

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self.source.pieces() if self._pieces is None else self._pieces

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries and row weights of consecutive tiles, as small as the source needs them."""
        tile = min(tile, self.source.layout.tile)
        streams = [rows.rows(start, stop, tile) for rows in (self.source, *self._others)]
        for (at, packed, weights), *others in zip(*streams, strict=True):
            if self._combine is not None:
                packed = self._combine(packed, *(entries for _, entries, _ in others))
            yield at, packed, weights


def windowed(source: PackedRows, pieces: Sequence[tuple[int, int]]) -> PackedRows:
    """Rows of a source at some ranges of its samples."""
    return _Rewritten(source, pieces=pieces)


def compared_rows(source: PackedRows, chi: Float[Array, "p"]) -> PackedRows:
    """Rows of two entries: W chi and the measured side, with standard parameters chi, shape (p,), SI.

    The row filter is linear: a comparison needs none of the other entries behind it.
    """
    compare, k = predictor(source.layout, chi), len(source.layout.start) - 1

    def both(packed: Float[Array, "e n"]) -> Float[Array, "_ n"]:
        measured, predicted = compare(packed)
        return np.stack([predicted, measured], axis=1).reshape(-1, packed.shape[1])

    return _Rewritten(source, both, layout=Layout(2 * np.arange(k + 1), np.full(2 * k, ABSENT)))


def replaced_rows(source: PackedRows, chi: Float[Array, "p"], change: RowChange) -> PackedRows:
    """Rows whose measured side is W chi + change(Y - W chi), sample by sample.

    Args:
        source: The rows.
        chi: Standard parameters, shape (p,), SI.
        change: Function that gives the new residuals of a row.
    """
    compare, ends = predictor(source.layout, chi), source.layout.start[1:] - 1

    def replaced(packed: Float[Array, "e n"]) -> Float[Array, "e n"]:
        measured, predicted = compare(packed)
        for k, end in enumerate(ends):
            rho = measured[k] - predicted[k]
            # Added to Y, not to W chi: unchanged values stay exact.
            packed[end] = measured[k] + (change(k, rho) - rho)
        return packed

    return _Rewritten(source, replaced)


def joined_rows(source: PackedRows, other: PackedRows, n_parameters: int) -> PackedRows:
    """Rows [Z W Y]: the regressor of another trajectory next to that of the measured one, where both are.

    Args:
        source: Gives W, Y and the weights.
        other: Gives Z; of the same model, so that the entries correspond.
        n_parameters: Columns of Z are numbered from here on.
    """
    inner = source.layout
    take, columns, starts = [], [], [0]
    for start, stop in zip(inner.start[:-1], inner.start[1:], strict=True):
        entries = np.arange(start, stop - 1)
        used = entries[inner.columns[entries] != ABSENT]
        take += [*(used + inner.n_entries), *used, stop - 1]
        columns += [*(inner.columns[used] + n_parameters), *inner.columns[used], ABSENT]
        starts.append(len(columns))

    def both(packed: Float[Array, "e n"], Z: Float[Array, "e n"]) -> Float[Array, "w n"]:
        return np.asarray(np.concatenate([packed, Z])[take])

    ranges = [(max(a, c), min(b, d)) for a, b in source.pieces() for c, d in other.pieces()]
    shared = [(start, stop) for start, stop in ranges if start < stop]
    return _Rewritten(source, both, [other], Layout(np.array(starts), np.array(columns)), shared)


# First sample, entries (e, n), weights (k, n) and added entries (a, n) of consecutive tiles; entries added to
# one row follow each other.
Tiles = Iterator[tuple[int, Array, Array, Array]]
_WIDER = 3  # tiles of added columns: made by many short calls, for which threads wait for each other
# From a range [start, stop) of samples to the weights (k, n) of its rows, and a function from a part of it,
# counted from `start`, to the added entries (a, m).
Added = Callable[[int, int], tuple[Array, Callable[[slice], Array]]]


class WiderRows(_Rewritten):
    """Rows with more columns before the measured side.

    Args:
        source: The rows.
        columns: Numbers of the columns added to each row.
        tiles: From a range of samples and the size of a tile to the source's tiles, with the added entries.
        added: The added entries instead, where tiles and weights are those of the source.

    Attributes:
        n_added: Number of columns added to all rows together.
        alone: Those `added`: nothing else has to be filtered if rows of the source are kept.
    """

    def __init__(
        self,
        source: PackedRows,
        columns: Sequence[Sequence[int]],
        tiles: Callable[[int, int, int], Tiles] | None = None,
        added: Added | None = None,
    ) -> None:
        self.tiles = tiles or self._beside
        self.n_added = len({column for more in columns for column in more})
        self._counts = np.cumsum([0, *map(len, columns)])
        inner = source.layout
        starts, wider = [0], list[int]()
        for first, stop, more in zip(inner.start[:-1], inner.start[1:], columns, strict=True):
            wider += [*inner.columns[first : stop - 1].tolist(), *more, ABSENT]
            starts.append(len(wider))
        layout = Layout(np.array(starts, dtype=np.int64), np.array(wider, dtype=np.int64))
        super().__init__(source, layout=layout)
        self.alone = None if added is None else _Added(self, self._counts, added)

    def _beside(self, start: int, stop: int, tile: int) -> Tiles:
        assert self.alone is not None  # noqa: S101 (without tiles there are added columns)
        more = self.alone.added(start, stop)[1]
        for at, packed, weights in self.source.rows(start, stop, tile):
            yield at, packed, weights, more(slice(at - start, at - start + packed.shape[1]))

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Entries with the added ones before each measured side."""
        for at, packed, weights, more in self.tiles(start, stop, tile):
            yield at, self.joined(packed, more), weights

    def joined(self, packed: Float[Array, "e n"], more: Float[Array, "a n"]) -> Float[Array, "w n"]:
        """Entries of the source with the added ones before each measured side."""
        inner, starts, counts = self.source.layout.start, self.layout.start, self._counts
        wider = np.empty((self.layout.n_entries, packed.shape[1]))
        for k, end in enumerate((starts[1:] - 1).tolist()):
            added = end - (counts[k + 1] - counts[k])
            wider[starts[k] : added] = packed[inner[k] : inner[k + 1] - 1]
            wider[added:end], wider[end] = more[counts[k] : counts[k + 1]], packed[inner[k + 1] - 1]
        return wider


class _Added(_Rewritten):
    """The entries that `WiderRows` add, as rows without a measured side."""

    def __init__(self, whole: WiderRows, counts: Int[Array, "k1"], added: Added) -> None:
        super().__init__(whole, layout=Layout(counts, np.full(counts[-1], ABSENT)))
        self.added = added

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        weights, more = self.added(start, stop)
        tile *= _WIDER
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            # A view with gaps would have the filter compiled once more.
            yield start + at, np.ascontiguousarray(more(part)), np.ascontiguousarray(weights[:, part])


def half_differences(minus: PackedRows, plus: PackedRows) -> PackedRows:
    """Half of what rows along two nearly equal motions differ by: the effect of coordinate noise on [W Y]."""
    return _Rewritten(minus, lambda low, high: 0.5 * (high - low), [plus])


def centred_rows(source: PackedRows, disturbed: Sequence[PackedRows]) -> PackedRows:
    """Rows minus the mean effect of coordinate noise, to second order.

    With the rows W+ and W- of the log disturbed by e and by -e the linear parts cancel:

        W - mean over draws of ((W+ + W-) / 2 - W)

    Args:
        source: The rows.
        disturbed: Those with additional noise of the same size as in the coordinates, and with the same noise
            subtracted, two for each draw: products of one draw scatter as much as those in the log.
    """
    return _Rewritten(source, lambda packed, *noisy: 2.0 * packed - sum(noisy) / len(noisy), disturbed)


class MixedRows(_Rewritten):
    """Rows of each instant multiplied by chol(covariance)^-1, of those that are valid there.

    Every mixed row is a combination of equations, so it is an equation. With the covariance of the
    errors the mixed rows have independent errors with standard deviation one.

    Args:
        source: The rows.
        covariance: Of the errors of one instant, shape (k, k), units of the rows.
    """

    def __init__(self, source: PackedRows, covariance: Float[Array, "k k"]) -> None:
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
        super().__init__(source, layout=Layout(np.array(starts), np.array(columns)))
        self.covariance = covariance
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
            yield at, packed, np.where(fine, weights, 0.0), slopes.reshape(-1, packed.shape[1])

    columns = list(range(len(chi), len(chi) + c))
    return WiderRows(source, [columns] * (len(layout.start) - 1), tiles)
