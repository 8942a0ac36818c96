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

from dynid.common.arrays import Array, Float, Int
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


def windowed(source: PackedRows, pieces: Sequence[tuple[int, int]]) -> PackedRows:
    """Rows of a source at some ranges of its samples."""
    return _Windows(source, pieces)


class _Windows:
    def __init__(self, source: PackedRows, pieces: Sequence[tuple[int, int]]) -> None:
        self.source, self.layout, self.dt, self._pieces = source, source.layout, source.dt, pieces

    def pieces(self) -> Sequence[tuple[int, int]]:
        return self._pieces

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        return self.source.rows(start, stop, tile)


class ComparedRows:
    """Rows of two entries: W chi and the measured side.

    The row filter is linear: a comparison needs none of the other entries behind it.

    Args:
        source: The rows.
        chi: Standard parameters, shape (p,), SI.
    """

    def __init__(self, source: PackedRows, chi: Float[Array, "p"]) -> None:
        self.source, self.dt = source, source.dt
        self._compare, k = predictor(source.layout, chi), len(source.layout.start) - 1
        self.layout = Layout(2 * np.arange(k + 1), np.full(2 * k, ABSENT))

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """W chi and Y of every row, in tiles that the entries of the source allow."""
        for at, packed, weights in self.source.rows(start, stop, min(tile, self.source.layout.tile)):
            measured, predicted = self._compare(packed)
            yield at, np.stack([predicted, measured], axis=1).reshape(-1, packed.shape[1]), weights


class ReplacedRows:
    """Rows whose measured side is W chi + change(Y - W chi), sample by sample.

    Args:
        source: The rows.
        chi: Standard parameters, shape (p,), SI.
        change: Function that gives the new residuals of a row.
    """

    def __init__(self, source: PackedRows, chi: Float[Array, "p"], change: RowChange) -> None:
        self.source, self.layout, self.dt = source, source.layout, source.dt
        self._compare, self._change = predictor(source.layout, chi), change

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries with the measured side replaced."""
        for at, packed, weights in self.source.rows(start, stop, tile):
            measured, predicted = self._compare(packed)
            for k, end in enumerate(self.layout.start[1:] - 1):
                rho = measured[k] - predicted[k]
                # Added to Y, not to W chi: unchanged values stay exact.
                packed[end] = measured[k] + (self._change(k, rho) - rho)
            yield at, packed, weights


class JoinedRows:
    """Rows [Z W Y]: the regressor of another trajectory next to that of the measured one.

    Columns of Z are numbered from `n_parameters` on.

    Args:
        source: Gives W, Y and the weights.
        other: Gives Z; of the same model, so that the entries correspond.
    """

    def __init__(self, source: PackedRows, other: PackedRows, n_parameters: int) -> None:
        self.source, self.other, self.dt = source, other, source.dt
        inner = source.layout
        take, columns, starts = [], [], [0]
        for start, stop in zip(inner.start[:-1], inner.start[1:], strict=True):
            entries = np.arange(start, stop - 1)
            used = entries[inner.columns[entries] != ABSENT]
            take += [*(used + inner.n_entries), *used, stop - 1]
            columns += [*(inner.columns[used] + n_parameters), *inner.columns[used], ABSENT]
            starts.append(len(columns))
        self.layout = Layout(np.array(starts), np.array(columns))
        self._take = np.array(take)

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges that both have."""
        shared = []
        for a, b in self.source.pieces():
            for c, d in self.other.pieces():
                if max(a, c) < min(b, d):
                    shared.append((max(a, c), min(b, d)))
        return shared

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Entries of both, those of Z first in each row."""
        both = zip(self.source.rows(start, stop, tile), self.other.rows(start, stop, tile), strict=True)
        for (at, packed, weights), (_, other, _) in both:
            yield at, np.concatenate([packed, other])[self._take], weights


# First sample, entries (e, n), weights (k, n) and added columns (k, c, n) of consecutive tiles.
Tiles = Iterator[tuple[int, Array, Array, Array]]
_WIDER = 3  # tiles of added columns: made by many short calls, for which threads wait for each other
# From a range [start, stop) of samples to the weights (k, n) of its rows, and a function from a part of it,
# counted from `start`, to the added columns (k, c, m).
Added = Callable[[int, int], tuple[Array, Callable[[slice], Array]]]


class WiderRows:
    """Rows with more columns before the measured side.

    Args:
        source: The rows.
        columns: Numbers of the columns added to each row, shape (k, c).
        tiles: From a range of samples and the size of a tile to the source's tiles, with the added columns.
        added: The added columns instead, where tiles and weights are those of the source.

    Attributes:
        n_added: Number of columns added to all rows together.
        alone: Those `added`: nothing else has to be filtered if rows of the source are kept.
    """

    def __init__(
        self,
        source: PackedRows,
        columns: Int[Array, "k c"],
        tiles: Callable[[int, int, int], Tiles] | None = None,
        added: Added | None = None,
    ) -> None:
        self.source, self.dt, self.tiles = source, source.dt, tiles or self._beside
        self.n_added = len(np.unique(columns))
        inner = source.layout
        starts, wider = [0], list[int]()
        for first, stop, more in zip(inner.start[:-1], inner.start[1:], columns.tolist(), strict=True):
            wider += [*inner.columns[first : stop - 1].tolist(), *more, ABSENT]
            starts.append(len(wider))
        self.layout = Layout(np.array(starts, dtype=np.int64), np.array(wider, dtype=np.int64))
        self.alone = None if added is None else _Added(self, added)

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source."""
        return self.source.pieces()

    def _beside(self, start: int, stop: int, tile: int) -> Tiles:
        assert self.alone is not None  # noqa: S101 (without tiles there are added columns)
        more = self.alone.added(start, stop)[1]
        for at, packed, weights in self.source.rows(start, stop, tile):
            yield at, packed, weights, more(slice(at - start, at - start + packed.shape[1]))

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Entries with the added columns before each measured side."""
        for at, packed, weights, more in self.tiles(start, stop, tile):
            yield at, self.joined(packed, more), weights

    def joined(self, packed: Float[Array, "e n"], more: Float[Array, "k c n"]) -> Float[Array, "w n"]:
        """Entries of the source with the added columns before each measured side."""
        inner, ends = self.source.layout.start, self.layout.start[1:] - 1
        wider = np.empty((self.layout.n_entries, packed.shape[1]))
        for k, end in enumerate(ends.tolist()):
            added = end - more.shape[1]
            wider[self.layout.start[k] : added] = packed[inner[k] : inner[k + 1] - 1]
            wider[added:end], wider[end] = more[k], packed[inner[k + 1] - 1]
        return wider


class _Added:
    """The columns that `WiderRows` add, as rows without a measured side."""

    def __init__(self, whole: WiderRows, added: Added) -> None:
        self.added, self.dt, self.pieces = added, whole.dt, whole.pieces
        k = len(whole.layout.start) - 1
        size = whole.layout.n_entries - whole.source.layout.n_entries
        self.layout = Layout(size // k * np.arange(k + 1), np.full(size, ABSENT))

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        weights, more = self.added(start, stop)
        tile *= _WIDER
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            # A view with gaps would have the filter compiled once more.
            packed = np.ascontiguousarray(more(part).reshape(self.layout.n_entries, -1))
            yield start + at, packed, np.ascontiguousarray(weights[:, part])


class DifferenceRows:
    """Rows of one trajectory minus those of another: the effect of coordinate noise on [W Y].

    Args:
        source: Subtracted; its segments and weights are used.
        other: Along nearly the same motion.
        factor: On the differences.
    """

    def __init__(self, source: PackedRows, other: PackedRows, factor: float = 1.0) -> None:
        self.source, self.other, self.factor = source, other, factor
        self.layout, self.dt = source.layout, source.dt

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source, where the weights come from too."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Differences of the entries."""
        both = zip(self.source.rows(start, stop, tile), self.other.rows(start, stop, tile), strict=True)
        for (at, packed, weights), (_, other, _) in both:
            yield at, self.factor * (other - packed), weights


class CentredRows:
    """Rows minus the mean effect of coordinate noise, to second order.

    With the rows W+ and W- of the log disturbed by e and by -e the linear parts cancel:

        W - mean over draws of ((W+ + W-) / 2 - W)

    Args:
        source: The rows.
        pairs: Those with additional noise of the same size as in the coordinates, and those with the same
            noise subtracted, one pair per draw: products of one draw scatter as much as those in the log.
    """

    def __init__(self, source: PackedRows, pairs: Sequence[tuple[PackedRows, PackedRows]]) -> None:
        self.source, self.pairs = source, pairs
        self.layout, self.dt = source.layout, source.dt

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Those of the source, where the weights come from too."""
        return self.source.pieces()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Corrected entries."""
        noisy = [disturbed.rows(start, stop, tile) for pair in self.pairs for disturbed in pair]
        for (at, packed, weights), *others in zip(self.source.rows(start, stop, tile), *noisy, strict=True):
            mean = sum(other for _, other, _ in others) / len(others)
            yield at, 2.0 * packed - mean, weights


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
