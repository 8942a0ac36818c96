"""A plan to solve closure equations for the dependent coordinates, made once per mechanism.

A x = b with the columns of A that belong to dependent coordinates: pivots, fill and order of the
elimination are chosen at sample poses, so that at every sample a kernel only executes a list of
multiplications. Loops involve few coordinates, so most of the matrix is never used. Redundant
rows are omitted: where the loops are closed, as many independent rows as the rank imply them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.kinematics.tile import INVERT, SCALE, SUBTRACT

# A pivot may be this much smaller than the largest number of its column: the loss of one digit is
# acceptable for fewer operations, because Newton steps correct themselves.
_PIVOT = 0.1
_NOTHING = 1e-14
# Pivots and coordinates that are equally good by symmetry are taken in their order, not by rounding.
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Elimination:
    """Operations on numbers kept in slots, each `LANES` wide.

    Attributes:
        independent: Velocity indices that are given, shape (d,).
        dependent: Velocity indices solved for, in the order of `rows`, shape (r,).
        rows: The equation whose right side becomes each dependent coordinate, shape (r,).
        load: Slot and Jacobian entry of the numbers to begin with, shape (l, 2).
        n_slots: Numbers held, fill included.
        factor: Operation and three slots, shape (o, 4).
        solve: Operation, right side, slot, right side, shape (s, 4).
        given: Right side, independent coordinate (its place) and entry of A_i, shape (g, 3).
    """

    independent: Int[Array, "d"]
    dependent: Int[Array, "r"]
    rows: Int[Array, "r"]
    load: Int[Array, "l 2"]
    n_slots: int
    factor: Int[Array, "o 4"]
    solve: Int[Array, "s 4"]
    given: Int[Array, "g 3"]

    @property
    def tables(self) -> tuple[Array, ...]:
        """As input of the kernels."""
        return (
            self.independent,
            self.dependent,
            self.rows,
            self.load,
            self.factor,
            self.solve,
            self.given,
            np.zeros(self.n_slots),
        )


def eliminate(
    A: Float[Array, "n c v"],
    independent: Sequence[int],
    where: tuple[Int[Array, "e"], Int[Array, "e"]],
    others: Float[Array, "m c v"] | None = None,
) -> Elimination | None:
    """The plan for sample Jacobians A; None where the independent coordinates do not determine the others.

    Args:
        A: At generic closed poses, shape (n, c, v).
        independent: Velocity indices that are given.
        where: Row and column of each Jacobian entry.
        others: At further poses, where pivots need not be valid: an entry that is zero at all poses of A, as
            at a symmetric one, need not be zero everywhere.
    """
    given = np.asarray(independent, dtype=np.int64)
    columns = np.setdiff1d(np.arange(A.shape[2]), given)
    pivots = _pivots(A[:, :, columns])
    if pivots is None:
        return None
    rows = np.array([row for row, _ in pivots], dtype=np.int64)
    dependent = columns[[column for _, column in pivots]]
    known = A if others is None else np.concatenate([A, others])
    live = np.abs(known).max(axis=0) > _NOTHING * np.abs(known).max()
    place = {(r, c): e for e, (r, c) in enumerate(zip(*(x.tolist() for x in where), strict=True))}
    slots: dict[tuple[int, int], int] = {}
    load, side = [], []
    for i, row in enumerate(rows.tolist()):
        for j, column in enumerate(dependent.tolist()):
            if live[row, column]:
                slots[i, j] = len(slots)
                load.append((slots[i, j], place[row, column]))
        side += [(i, k, place[row, c]) for k, c in enumerate(given.tolist()) if live[row, c]]
    factor, solve = _operations(len(rows), slots)
    return Elimination(
        given,
        dependent,
        rows,
        np.array(load, dtype=np.int64).reshape(-1, 2),
        len(slots),
        np.array(factor, dtype=np.int64).reshape(-1, 4),
        np.array(solve, dtype=np.int64).reshape(-1, 4),
        np.array(side, dtype=np.int64).reshape(-1, 3),
    )


def _pivots(A: Float[Array, "n c r"]) -> list[tuple[int, int]] | None:
    """Row and column of each pivot: large enough at every pose, and of those the one with least fill-in."""
    V = A / np.maximum(np.abs(A).max(axis=(1, 2), keepdims=True), 1e-300)
    rows, columns = np.ones(V.shape[1], dtype=bool), np.ones(V.shape[2], dtype=bool)
    pivots: list[tuple[int, int]] = []
    while columns.any():
        size = np.where(np.outer(rows, columns)[None], np.abs(V), 0.0)
        live = size.max(axis=0) > _NOTHING
        largest = size.max(axis=1, keepdims=True)
        quality = np.min(size / np.where(largest > 0, largest, 1.0), axis=0)
        if quality.max() < 1e-6:
            return None
        row, column = _cheapest(live, quality, min(_PIVOT, float(quality.max())))
        pivots.append((row, column))
        part = V[:, :, column] / V[:, row, column][:, None]
        part[:, row] = 0.0
        V = V - part[:, :, None] * V[:, row][:, None, :]
        rows[row] = columns[column] = False
    return pivots


def _cheapest(live: Bool[Array, "c r"], quality: Float[Array, "c r"], least: float) -> tuple[int, int]:
    """Of the valid pivots the one with the fewest numbers in its row and column; then the largest."""
    cost = np.outer(live.sum(axis=1) - 1, live.sum(axis=0) - 1).astype(float)
    valid = np.round(quality, _DECIMALS) >= round(least, _DECIMALS)
    score = np.where(valid, np.round(cost - 0.5 * quality, _DECIMALS), np.inf)
    row, column = np.unravel_index(int(np.argmin(score)), score.shape)
    return int(row), int(column)


def _operations(
    n: int, slots: dict[tuple[int, int], int]
) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int, int]]]:
    """Gaussian elimination in the order of the pivots; fill gets slots of its own."""
    factor, forward, backward = [], [], []
    for p in range(n):
        factor.append((INVERT, slots[p, p], 0, 0))
        right = [j for j in range(p + 1, n) if (p, j) in slots]
        for i in range(p + 1, n):
            if (i, p) not in slots:
                continue
            factor.append((SCALE, slots[i, p], slots[p, p], 0))
            forward.append((SUBTRACT, i, slots[i, p], p))
            for j in right:
                target = slots.setdefault((i, j), len(slots))
                factor.append((SUBTRACT, target, slots[i, p], slots[p, j]))
    for p in reversed(range(n)):
        backward += [(SUBTRACT, p, slots[p, j], j) for j in range(p + 1, n) if (p, j) in slots]
        backward.append((SCALE, p, slots[p, p], 0))
    return factor, forward + backward


def best_coordinates(
    N: Float[Array, "n v d"], allowed: Sequence[int], held: Float[Array, "k v"] | None = None
) -> list[int]:
    """As many coordinates as degrees of freedom: each can move at every pose with the earlier ones fixed.

    Args:
        N: Orthonormal tangent directions at sample poses.
        allowed: Velocity indices to choose from.
        held: Combinations of velocities chosen beforehand (e.g. motors): so many fewer are chosen.
    """
    rest, chosen = N, list[int]()
    for row in () if held is None else held:
        rest = _standing(rest, np.einsum("v,nvd->nd", row, rest))
    for _ in range(N.shape[2] - (0 if held is None else len(held))):
        size = np.linalg.norm(rest[:, list(allowed)], axis=2).min(axis=0)
        chosen.append(int(allowed[int(np.argmax(np.round(size, _DECIMALS)))]))
        rest = _standing(rest, rest[:, chosen[-1]])
    return chosen


def _standing(rest: Float[Array, "n v d"], moves: Float[Array, "n d"]) -> Float[Array, "n v d"]:
    """Tangent directions along which a quantity with rates `moves` is constant."""
    axis = moves / np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-300)
    return np.asarray(rest - np.einsum("nvd,nd,ne->nve", rest, axis, axis))
