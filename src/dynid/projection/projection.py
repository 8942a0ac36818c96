"""System: the linear equations W chi = Y in triangular form, from any model.

Everything after this file is independent of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.brief import one_line
from dynid.common.errors import InputError, nearest
from dynid.motion.repeats import Path
from dynid.projection.factor import Factor, merge

if TYPE_CHECKING:
    from dynid.mechanism.parameters import Parameter

Moving = Callable[[Float[Array, "n v d"], Float[Array, "n v"]], Float[Array, "n v k"]]
# Input: tangent directions at some poses of a run. Output: directions that are smooth along this run, and
# the cosine of the largest angle between their free motion and that of these poses.
Along = Callable[[Float[Array, "n v d"]], tuple[Moving, float]]


@dataclass(frozen=True, eq=False)
class Directions:
    """Tangent directions of a model: its rows are N^T W_tree chi = effort_map tau.

    Attributes:
        names, units: Of the rows.
        N: Tree velocities per unit velocity of each row, shape (n_v, k); None where they change
            with the pose.
        effort_map: Map from efforts to rows, N^T B, shape (k, a); where N changes, only which efforts
            act in a row.
        moving: Directions (n, n_v, k) at a batch of poses, from any basis of the tangent
            space (n, n_v, d) and the velocities (n, n_v); None where N is constant.
        jumps: Whether Coulomb friction jumps in the rows at a reversal; in a power it does not,
        because it is multiplied by the velocity.
        groups: Name of the group that each row belongs to; empty: every row is a group of its own.
        along: Gives directions for one run, where `moving` must choose a basis of a space that rotates.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    N: Float[Array, "v k"] | None
    effort_map: Float[Array, "k a"]
    moving: Moving | None = None
    jumps: bool = True
    groups: tuple[str, ...] = ()
    along: Along | None = None

    @property
    def homogeneous(self) -> Bool[Array, "k"]:
        """Whether no effort acts in a row: 0 = W chi."""
        return np.asarray(~np.any(self.effort_map != 0.0, axis=1))

    @property
    def group_names(self) -> tuple[str, ...]:
        """Group of each row: rows of one group share their weight."""
        return self.groups or self.names


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one kind: one effort (or one power equation) in one log.

    Attributes:
        name: The effort or equation, e.g. `joint_2`.
        log: The log it comes from.
        unit: Of Y.
        columns: Indices of the system's parameters that can be non-zero in these rows; all
            other columns are zero here by structure.
        blocks: Factors over `columns` of consecutive intervals of a fraction of a second, in time order.
        inflation: Ratio of the variance of a fit to that with independent rows, because the row
            filter correlates neighbours.
        times: Number of each block in its log, shape (b,): equal in all groups of the log at
            equal times. None: the blocks are numbered in order.
        runs: Number of the run (segment of the log) of each block, shape (b,). None: one run.
        seconds: Length of a block in [s].
        spans: Blocks of that length that were joined to each block, shape (b,): its number is that of the
            first. None: one.
        instants: Whether blocks are instants of a table, which have no length.
        path: How the robot moved in this log; None where it is unknown.
        homogeneous: Whether no effort acts in these rows: 0 = W chi, satisfied by chi = 0 too.
    """

    name: str
    log: str
    unit: str
    columns: Int[Array, "c"]
    blocks: tuple[Factor, ...]
    inflation: float = 1.0
    times: Int[Array, "b"] | None = None
    runs: Int[Array, "b"] | None = None
    seconds: float = 1.0
    spans: Int[Array, "b"] | None = None
    instants: bool = False
    path: Path | None = None
    homogeneous: bool = False

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Run and number of each block: equal values in other groups of the log mean simultaneous blocks."""
        b = len(self.blocks)
        runs = np.zeros(b, dtype=int) if self.runs is None else self.runs
        times = np.arange(b) if self.times is None else self.times
        return tuple(zip(runs.tolist(), times.tolist(), strict=True))

    @cached_property
    def lasting(self) -> dict[tuple[int, int], int]:
        """The span of the block at each place."""
        spans = [1] * len(self.blocks) if self.spans is None else self.spans.tolist()
        return dict(zip(self.places, spans, strict=True))

    @cached_property
    def n_rows(self) -> int:
        """Number of equations."""
        return sum(block.n_rows for block in self.blocks)

    @cached_property
    def merged(self) -> Factor:
        """All blocks as one factor over `columns`."""
        return merge(self.blocks)

    def squares(self, chi: Float[Array, "p"]) -> tuple[float, float]:
        """|Y - W chi|^2 and |Y|^2 of all rows, chi over all parameters of the system."""
        rho = self.merged.Y - self.merged.W @ chi[self.columns]
        return float(rho @ rho), float(self.merged.Y @ self.merged.Y)

    def multiplied(self, M: Float[Array, "c1 k1"]) -> tuple[Factor, ...]:
        """Blocks [W Y] M, rows in their order."""
        product, stop = np.concatenate([block.R for block in self.blocks]) @ M, 0
        factors = []
        for block in self.blocks:
            start, stop = stop, stop + len(block.R)
            factors.append(Factor(product[start:stop], block.n_rows))
        return tuple(factors)

    def stretches(
        self, labels: Mapping[tuple[str, int, int], int]
    ) -> tuple[Float[Array, "r c1"], list[tuple[int, slice, int]]]:
        """Rows of all blocks, and neighbours of one label: the label, their rows, how many these represent.

        Args:
            labels: Of each (log, run, number).
        """
        numbers = np.array([labels[self.log, *place] for place in self.places])
        first = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        sizes = np.cumsum([0, *(len(block.R) for block in self.blocks)])
        counts = np.add.reduceat([block.n_rows for block in self.blocks], first)
        ends = sizes[[*first[1:], len(numbers)]]
        parts = zip(numbers[first].tolist(), map(slice, sizes[first], ends), counts.tolist(), strict=True)
        return np.concatenate([block.R for block in self.blocks]), list(parts)

    def factor(self, n_parameters: int) -> Factor:
        """The group's rows as one factor over all parameters of the system."""
        merged = self.merged
        R = np.zeros((merged.R.shape[0], n_parameters + 1))
        R[:, self.columns] = merged.W
        R[:, -1] = merged.Y
        return Factor(R, merged.n_rows)


@dataclass(frozen=True, eq=False)
class System:
    """W chi = Y over the standard parameters, as triangular factors per group of rows.

    Attributes:
        parameters: One per column of W.
        known: Columns whose values are given (index -> value); they belong to the right side.
        noise: Norm of each column due to noise of W alone, shape (p,), where it is known in advance.
        why: Parameter -> why it may have no effect in these data, in words, where a specific reason is known.
    """

    parameters: tuple[Parameter, ...]
    groups: tuple[Group, ...]
    known: dict[int, float] = field(default_factory=dict)
    noise: Float[Array, "p"] | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    __repr__ = one_line

    def factor(self, weights: Float[Array, "g"] | None = None) -> Factor:
        """All rows as one factor, each group scaled by its weight (1 over its standard deviation)."""
        p = len(self.parameters)
        factors = []
        for i, group in enumerate(self.groups):
            part = group.factor(p)
            scale = 1.0 if weights is None else float(weights[i])
            factors.append(Factor(part.R * scale, part.n_rows))
        return merge(factors)


def choose_rows(
    directions: Directions, efforts: Sequence[int | str] | None, present: Bool[Array, "a"] | None = None
) -> Directions:
    """The rows to use: the requested ones, else all whose efforts the log has.

    Args:
        efforts: Row numbers (from 1, motors first) or names; None for all present.
        present: Whether each effort is in the log.
    """
    available = np.ones(directions.effort_map.shape[1], bool) if present is None else present
    needs = directions.effort_map != 0
    if efforts is None:
        rows = [k for k in range(len(directions.names)) if np.all(available[needs[k]])]
    else:
        rows = [_row_index(directions.names, effort) for effort in efforts]
        twice = [effort for i, effort in enumerate(efforts) if rows[i] in rows[:i]]
        if twice:  # by its number and by its name: its equations would count double
            raise InputError(f"effort {twice[0]} is listed twice", remedy="list every effort once")
        for k in rows:
            if not np.all(available[needs[k]]):
                raise InputError(
                    f"effort '{directions.names[k]}' is requested, but the log has no such column",
                    remedy="map it under `columns:` or remove it from `efforts:`",
                )
    if rows == list(range(len(directions.names))):
        return directions
    return Directions(
        tuple(directions.names[k] for k in rows),
        tuple(directions.units[k] for k in rows),
        None if directions.N is None else directions.N[:, rows],
        directions.effort_map[rows],
        None if directions.moving is None else _some(directions.moving, rows),
        directions.jumps,
        tuple(directions.groups[k] for k in rows) if directions.groups else (),
        None if directions.along is None else _some_along(directions.along, rows),
    )


def _some(moving: Moving, rows: Sequence[int]) -> Moving:
    return lambda N, dq: moving(N, dq)[:, :, list(rows)]


def _some_along(along: Along, rows: Sequence[int]) -> Along:
    def moving(N: Float[Array, "n v d"]) -> tuple[Moving, float]:
        moving, close = along(N)
        return _some(moving, rows), close

    return moving


def _row_index(names: Sequence[str], effort: int | str) -> int:
    if isinstance(effort, int):
        if not 1 <= effort <= len(names):
            raise InputError(
                f"effort number {effort} does not exist; there are {len(names)}: {', '.join(names)}",
                remedy="use their numbers or names under `efforts:`",
            )
        return effort - 1
    if effort not in names:
        raise InputError(f"effort '{effort}' does not exist" + nearest(effort, names))
    return list(names).index(effort)
