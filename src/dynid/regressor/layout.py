"""Packed rows: which entries of N^T W can be non-zero, and their positions.

A body acts only on the joints between it and the base, so most of W is zero by structure.
Rows are stored as lists of entries, row after row; the last entry of a row is its Y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Inexact, Int
from dynid.kinematics.tile import LANES
from dynid.kinematics.tree import Tree, tree_of
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS, LOADED
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism, Term
from dynid.mechanism.parameters import STRIBECK_SPEED, Parameter

ABSENT = -1
_TILE_BYTES = 1 << 20  # of all entries: they stay in the cache of a core between the kernels
_NO_FACTORS = np.empty(0)
Batch = tuple[Any, ...]  # states of some samples: the first arguments of `kernels.fill_rows`


@dataclass(frozen=True, eq=False)
class Layout:
    """Entries of the rows of a model.

    Attributes:
        start: First entry of each row, shape (k + 1,); entry start[r + 1] - 1 is Y of row r.
        columns: Parameter of each entry, ABSENT for Y and for entries that are not requested.
    """

    start: Int[Array, "k1"]
    columns: Int[Array, "e"]

    @property
    def n_entries(self) -> int:
        """Entries of all rows together."""
        return int(self.columns.size)

    @property
    def tile(self) -> int:
        """Samples of all entries that are computed at a time."""
        return max(256, _TILE_BYTES // (8 * self.n_entries) // 64 * 64)

    def coefficients(self, chi: Float[Array, "p"]) -> Float[Array, "e"]:
        """Coefficient of each entry in W chi: zero for Y and for entries that are not requested."""
        return np.where(self.columns == ABSENT, 0.0, chi[np.maximum(self.columns, 0)])

    def sums(self, packed: Inexact[Array, "e n"], coefficients: Float[Array, "e"]) -> Inexact[Array, "k n"]:
        """W chi of every row, from its entries and their coefficients."""
        ranges = zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True)
        return np.stack([coefficients[first:last] @ packed[first:last] for first, last in ranges])

    def dense(self, packed: Inexact[Array, "e n"], n_parameters: int) -> Inexact[Array, "n k p"]:
        """W with its zeros, samples first."""
        k = len(self.start) - 1
        W = np.zeros((packed.shape[1], k, n_parameters), packed.dtype)
        for row in range(k):
            for entry in range(self.start[row], self.start[row + 1]):
                if self.columns[entry] != ABSENT:
                    W[:, row, self.columns[entry]] += packed[entry]
        return W


@dataclass(frozen=True, eq=False)
class TreeRegressor:
    """Computes packed rows of N^T W (and N^T B tau) for batches of tree states.

    The arrays are the input of the kernels; see `kernels.fill_tile`.
    """

    tree: Tree
    layout: Layout
    pairs: tuple[Array, ...]
    drives: tuple[Array, ...]
    given_entries: Int[Array, "g"]
    terms: tuple[Term, ...]
    actuator_map: Float[Array, "a v"]
    uses_actuators: bool
    uses_load: bool
    n_tree: int
    combination: tuple[Array, ...]
    coordinates: tuple[str, ...]
    positions: tuple[str, ...]

    def packed(
        self,
        q: Inexact[Array, "n q"],
        dq: Inexact[Array, "n v"],
        ddq: Inexact[Array, "n v"],
        Y: Float[Array, "n k"],
        load: Float[Array, "n s"] | None = None,
    ) -> Inexact[Array, "e n"]:
        """Entries of all rows, shape (e, n); Y goes to each row's last entry."""
        out = np.empty((self.layout.n_entries, len(Y)), np.result_type(np.float64, q, dq, ddq))
        self.fill(self.batch(q, dq, ddq, Y, load), 0, out)
        return out

    def batch(
        self,
        q: Inexact[Array, "n q"],
        dq: Inexact[Array, "n v"],
        ddq: Inexact[Array, "n v"],
        Y: Float[Array, "n k"],
        load: Float[Array, "n s"] | None = None,
    ) -> Batch:
        """States laid out for the kernels; rows are computed range by range with `fill`.

        Args:
            load: Loads to which load-dependent friction (Fl) is proportional, of all coordinates, then of all
                actuators, shape (n, v + a), in [N m] or [N]; None: one, so that the column of Fl is
                friction per unit of load.
        """
        from dynid.kinematics.kernels import LINK

        kind = np.result_type(np.float64, q, dq, ddq)
        q, dq, ddq = (np.ascontiguousarray(x, dtype=kind) for x in (q, dq, ddq))
        source_dq, source_ddq = dq, ddq
        if self.uses_actuators:
            source_dq, source_ddq = (np.hstack([x, x @ self.actuator_map.T]) for x in (dq, ddq))
        source_load = np.zeros((0, 0))
        if self.uses_load:
            size = (len(dq), sum(self.actuator_map.shape))
            source_load = np.ones(size) if load is None else np.ascontiguousarray(load, dtype=float)
        terms = [self._term(term, q, dq, ddq) for term in self.terms]
        given = np.column_stack([*terms, Y]) if terms else np.ascontiguousarray(Y)
        tree = self.tree
        sizes = ((tree.parent.size + 1) * LINK, LINK, self.n_tree, self.combination[0].size - 1)
        return (
            (tree.parent, tree.kind, tree.q_start, tree.v_start, tree.placement),
            (tree.body_link, tree.body_frame),
            tree.gravity,
            self.pairs,
            self.drives,
            (self.given_entries, given),
            (q, dq, ddq, source_dq, source_ddq, source_load),
            self.combination,
            tuple(np.zeros(size * LANES, kind) for size in sizes),
        )

    def fill(self, batch: Batch, start: int, out: Inexact[Array, "e n"]) -> None:
        """Write the entries of samples start .. start + n of a batch to `out`, shape (e, n)."""
        from dynid.regressor.kernels import fill_rows

        fill_rows(*batch, start, out, out.reshape(-1), self.layout.start, _NO_FACTORS)

    def predicted(self, batch: Batch, coefficients: Float[Array, "e"]) -> Float[Array, "k n"]:
        """W chi of every row at all samples of a batch; `coefficients`: of the layout."""
        from dynid.regressor.kernels import fill_rows

        out = np.zeros((len(self.layout.start) - 1, len(batch[6][0])))
        fill_rows(*batch, 0, out, out.reshape(-1), self.layout.start, coefficients)
        return out

    def _term(
        self, term: Term, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"], ddq: Inexact[Array, "n v"]
    ) -> Inexact[Array, "n"]:
        def signal(kind: str, name: str) -> Inexact[Array, "n"]:
            if kind == "q":
                return q[:, self.positions.index(name)]
            return (dq if kind == "dq" else ddq)[:, self.coordinates.index(name)]

        return np.broadcast_to(term.expression.evaluate({}, signal), len(q))


def tree_regressor(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    N: Float[Array, "v k"],
    mounted: Sequence[str] = (),
) -> TreeRegressor:
    """The regressor of rows N^T W_tree for constant tangent directions N.

    Args:
        N: Tangent directions, tree velocities per unit of each row's coordinate, shape (n_v, k).
        mounted: Payloads that are on the robot; columns of the others are zero.
    """
    builder = _Builder(mechanism, parameters, mounted)
    rows = [int(j) for j in np.flatnonzero(np.any(N != 0, axis=1))]
    for row in rows:
        builder.add_row(row)
    return builder.finish(rows, N)


class _Builder:
    """Collects entries row by row; one instance per regressor."""

    def __init__(self, mechanism: Mechanism, parameters: Sequence[Parameter], mounted: Sequence[str]) -> None:
        self.mechanism = mechanism
        self.tree = tree_of(mechanism)
        self.index = {parameter.name: i for i, parameter in enumerate(parameters)}
        self.carried = [name not in mechanism.payloads or name in mounted for name in self.tree.body_names]
        self.columns: list[int] = []
        self.row_entries: dict[int, list[int]] = {}
        self.pairs: list[tuple[int, int, int, int]] = []
        self.drives: list[tuple[int, int, int, float, float]] = []
        self.given: list[tuple[int, Term]] = []
        self.row_link = self.tree.coordinate_links()
        self.subtree = _subtrees(self.tree)

    def _entry(self, row: int, column: int) -> int:
        self.columns.append(column)
        self.row_entries[row].append(len(self.columns) - 1)
        return len(self.columns) - 1

    def add_row(self, row: int) -> None:
        """Entries of tree coordinate `row`: bodies it carries, its drive terms, declared terms."""
        self.row_entries[row] = []
        link, axis, _ = self.row_link[row]
        for body in self.subtree[link]:
            name = self.tree.body_names[body]
            columns = [self.index.get(f"{symbol}_{name}", ABSENT) for symbol in SYMBOLS]
            if self.carried[body] and any(column != ABSENT for column in columns):
                self.pairs.append((body, link, axis, len(self.columns)))
                for column in columns:
                    self._entry(row, column)
        self._add_drives(row)
        coordinate = self.mechanism.coordinates[row]
        for term in self.mechanism.terms:
            if term.joint == coordinate and term.name in self.index:
                self.given.append((self._entry(row, self.index[term.name]), term))

    def _add_drives(self, row: int) -> None:
        robot = self.mechanism
        sources = {robot.coordinates[row]: (row, 1.0)}
        for i, actuator in enumerate(robot.actuators):
            if actuator.name not in robot.coordinates and robot.actuator_map[i, row] != 0.0:
                sources[actuator.name] = (len(robot.coordinates) + i, robot.actuator_map[i, row])
        for owner, (source, factor) in sources.items():
            for symbol in robot.drive.get(owner, ()):
                column = self.index.get(f"{symbol}_{owner}", ABSENT)
                if column != ABSENT:
                    entry = self._entry(row, column)
                    scale = robot.stribeck.get(owner, STRIBECK_SPEED)
                    self.drives.append((entry, DRIVE_SYMBOLS.index(symbol), source, factor, scale))

    def finish(self, rows: Sequence[int], N: Float[Array, "v k"]) -> TreeRegressor:
        if _is_selection(N) and len(rows) == N.shape[1]:
            layout, order, y_entries = self._selected(N)
            combination = _csr([])
        else:
            y_entries = [len(self.columns) + k for k in range(N.shape[1])]
            layout, combination = self._combined(rows, N, y_entries)
            order = np.arange(len(self.columns))
        n_v = len(self.mechanism.coordinates)
        return TreeRegressor(
            tree=self.tree,
            layout=layout,
            pairs=_pair_arrays(self.pairs, order, len(self.tree.body_names)),
            drives=_drive_arrays(self.drives, order),
            given_entries=np.array([order[e] for e, _ in self.given] + y_entries, dtype=np.int64),
            terms=tuple(term for _, term in self.given),
            actuator_map=self.mechanism.actuator_map,
            uses_actuators=any(source >= n_v for _, _, source, _, _ in self.drives),
            uses_load=any(DRIVE_SYMBOLS[symbol] in LOADED for _, symbol, _, _, _ in self.drives),
            n_tree=len(self.columns) + N.shape[1],
            combination=combination,
            coordinates=self.mechanism.coordinates,
            positions=self.mechanism.positions,
        )

    def _selected(self, N: Float[Array, "v k"]) -> tuple[Layout, Int[Array, "t"], list[int]]:
        """Rows are tree rows: renumber the entries row after row, with Y behind each."""
        order = np.zeros(len(self.columns), dtype=np.int64)
        start: list[int] = [0]
        columns: list[int] = []
        y_entries: list[int] = []
        for k in range(N.shape[1]):
            for entry in self.row_entries[int(np.argmax(N[:, k]))]:
                order[entry] = len(columns)
                columns.append(self.columns[entry])
            y_entries.append(len(columns))
            columns.append(ABSENT)
            start.append(len(columns))
        return _layout(start, columns), order, y_entries

    def _combined(
        self, rows: Sequence[int], N: Float[Array, "v k"], y_entries: Sequence[int]
    ) -> tuple[Layout, tuple[Array, ...]]:
        """Rows are sums of tree rows: each entry gathers those of one parameter."""
        start: list[int] = [0]
        columns: list[int] = []
        sums: list[list[tuple[int, float]]] = []
        for k in range(N.shape[1]):
            gathered: dict[int, list[tuple[int, float]]] = {}
            for row in rows:
                if N[row, k] != 0.0:
                    for entry in self.row_entries[row]:
                        if self.columns[entry] != ABSENT:
                            gathered.setdefault(self.columns[entry], []).append((entry, N[row, k]))
            for column in sorted(gathered):
                columns.append(column)
                sums.append(gathered[column])
            columns.append(ABSENT)
            sums.append([(y_entries[k], 1.0)])
            start.append(len(columns))
        return _layout(start, columns), _csr(sums)


def _layout(start: Sequence[int], columns: Sequence[int]) -> Layout:
    return Layout(np.array(start, dtype=np.int64), np.array(columns, dtype=np.int64))


def _subtrees(tree: Tree) -> Mapping[int, list[int]]:
    """Bodies that move with each link, in order."""
    carried: dict[int, list[int]] = {link: [] for link in range(tree.parent.size)}
    for body, link in enumerate(tree.body_link):
        for ancestor in tree.ancestors(int(link)):
            carried[ancestor].append(body)
    return carried


def _is_selection(N: Float[Array, "v k"]) -> bool:
    """Whether each column of N is one unit vector and no two are the same."""
    return bool(np.all((N == 0) | (N == 1)) and np.all(N.sum(0) == 1) and np.all(N.sum(1) <= 1))


def _pair_arrays(
    pairs: Sequence[tuple[int, int, int, int]], order: Int[Array, "t"], n_bodies: int
) -> tuple[Array, ...]:
    """Body-joint pairs sorted by body: starts per body, link, axis, first entry."""
    ordered = sorted(pairs)
    counts = np.bincount([pair[0] for pair in ordered], minlength=n_bodies) if ordered else np.zeros(n_bodies)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    link, axis = (np.array([pair[k] for pair in ordered], dtype=np.int64) for k in (1, 2))
    entry = np.array([order[pair[3]] for pair in ordered], dtype=np.int64)
    return start, link, axis, entry


def _drive_arrays(
    drives: Sequence[tuple[int, int, int, float, float]], order: Int[Array, "t"]
) -> tuple[Array, ...]:
    """Entry, symbol, source, ratio and Stribeck speed of every drive term."""
    entry = np.array([order[drive[0]] for drive in drives], dtype=np.int64)
    symbol, source = (np.array([drive[k] for drive in drives], dtype=np.int64) for k in (1, 2))
    factor, scale = (np.array([drive[k] for drive in drives], dtype=float) for k in (3, 4))
    return entry, symbol, source, factor, scale


def _csr(sums: Sequence[Sequence[tuple[int, float]]]) -> tuple[Array, ...]:
    start = np.concatenate([[0], np.cumsum([len(parts) for parts in sums])]).astype(np.int64)
    entries = np.array([entry for parts in sums for entry, _ in parts], dtype=np.int64)
    factors = np.array([factor for parts in sums for _, factor in parts], dtype=float)
    return start, entries, factors
