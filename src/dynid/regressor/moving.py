"""Packed rows N^T W whose directions N change from sample to sample."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.regressor.layout import ABSENT, Batch, Layout, tree_regressor

_STILL = 1e-14  # of the largest rate along a direction: rounding of the loops


class MovingRegressor:
    """All rows of the tree, combined sample by sample.

    Every row may contain every parameter: all bodies of a closed robot move with each degree of freedom.

    Args:
        n_rows: Rows of the model, k.
        mounted: Payloads that are on the robot.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        n_rows: int,
        mounted: Sequence[str] = (),
    ) -> None:
        self.tree = tree_regressor(mechanism, parameters, np.eye(len(mechanism.coordinates)), mounted)
        parts = _parts(self.tree.layout)
        columns = sorted(parts)
        size = len(columns) + 1
        self.layout = Layout(
            np.arange(n_rows + 1, dtype=np.int64) * size,
            np.array([*columns, ABSENT] * n_rows, dtype=np.int64),
        )
        self._y_entries = np.arange(1, n_rows + 1) * size - 1
        self.combination = _combination([parts[column] for column in columns], n_rows)

    def of(
        self, mechanism: Mechanism, parameters: Sequence[Parameter], mounted: Sequence[str] = ()
    ) -> MovingRegressor:
        """The same of a robot that differs in numbers only: the entries are the same."""
        other = copy(self)
        other.tree = tree_regressor(mechanism, parameters, np.eye(len(mechanism.coordinates)), mounted)
        return other

    def batch(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        load: Float[Array, "n s"] | None = None,
    ) -> Batch:
        """States laid out for the kernels; `load` as for `TreeRegressor.batch`."""
        return self.tree.batch(q, dq, ddq, np.zeros_like(dq), load)

    def fill(
        self,
        batch: Batch,
        start: int,
        N: Float[Array, "n v k"],
        Y: Float[Array, "n k"],
        out: Float[Array, "e n"],
    ) -> None:
        """Entries of samples start .. start + n, with directions and measured sides of these samples."""
        packed = np.empty((self.tree.layout.n_entries, len(N)))
        self.tree.fill(batch, start, packed)
        self.combine(packed, np.ascontiguousarray(N.transpose(2, 1, 0)), out)
        out[self._y_entries] = Y.T

    def combine(
        self, packed: Float[Array, "t n"], N: Float[Array, "k v n"], out: Float[Array, "e n"]
    ) -> None:
        """Entries of N^T W from those of the tree's rows; the measured side becomes zero."""
        from dynid.regressor.kernels import combine_moving

        size = np.abs(N).max(axis=2)
        moves = ~(size <= _STILL * size.max(axis=1, keepdims=True))  # true for NaN too
        combine_moving(packed, self.combination, N, moves, out)

    def efforts(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        ddq: Float[Array, "n v"],
        chi: Float[Array, "p"],
        load: Float[Array, "n s"] | None = None,
    ) -> Float[Array, "n v"]:
        """Generalised forces W_tree chi of all coordinates, before any combination, in [N m] or [N].

        N^T of these are W chi of the rows; `load` as for `batch`.
        """
        return self.tree.predicted(self.batch(q, dq, ddq, load), self.tree.layout.coefficients(chi)).T


def _parts(layout: Layout) -> dict[int, list[tuple[int, int]]]:
    """Parameter -> its entries in the tree's rows, each with its coordinate."""
    places: dict[int, list[tuple[int, int]]] = {}
    for coordinate in range(len(layout.start) - 1):
        for entry in range(layout.start[coordinate], layout.start[coordinate + 1]):
            if layout.columns[entry] != ABSENT:
                places.setdefault(int(layout.columns[entry]), []).append((entry, coordinate))
    return places


def _combination(parts: Sequence[Sequence[tuple[int, int]]], n_rows: int) -> tuple[Array, ...]:
    """Terms of each output entry; the last of a row is Y, an empty sum."""
    sums = [*parts, []] * n_rows
    start = np.concatenate([[0], np.cumsum([len(terms) for terms in sums])]).astype(np.int64)
    entries = np.array([entry for terms in sums for entry, _ in terms], dtype=np.int64)
    coordinates = np.array([coordinate for terms in sums for _, coordinate in terms], dtype=np.int64)
    rows = np.repeat(np.arange(n_rows, dtype=np.int64), len(parts) + 1)
    return start, entries, coordinates, rows
