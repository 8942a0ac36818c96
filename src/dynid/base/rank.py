"""Which columns of W are independent, decided in a fixed order and reported with the gap.

One documented order of the columns keeps the same columns on every machine; with pivoting,
rounding would choose. Columns have unit norm before the decision, so units do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.lapack import qr_triangle

STRUCTURAL_RTOL = 1e-8  # residuals are 1e-15..1e-12 for a dependent column, far more than 1e-6 by geometry
DATA_RTOL = 1e-7
DECIDED_GAP = 10.0
# A column this small relative to the largest one is rounding (the sine of a half turn), not motion.
ZERO_RTOL = 1e-13
_FLOOR = float(np.finfo(float).eps)
_BLOCK = 32


@dataclass(frozen=True, eq=False)
class ColumnRank:
    """Independent and dependent columns of a matrix.

    Attributes:
        kept: Independent columns, in the order considered.
        dependent: Columns that are combinations of kept ones, in the order considered.
        zero: Columns without any effect.
        K: W[:, dependent] = W[:, kept] @ K, shape (kept, dependent), ratio of the columns' units.
        residuals: Residual of each considered non-zero column after projection on the columns
            kept before it, relative to its norm, in the order considered.
        smallest_kept, largest_dropped: Relative residuals on either side of the decision (a
            missing side counts as 1 and 0).
        effects: Residual of each kept column relative to the largest norm of all columns, shape (kept,).
        clearest_rank, clearest_gap: Where the sorted residuals jump most, and by how much.
    """

    kept: tuple[int, ...]
    dependent: tuple[int, ...]
    zero: tuple[int, ...]
    K: Float[Array, "kept dependent"]
    residuals: Float[Array, "considered"]
    smallest_kept: float
    largest_dropped: float
    effects: Float[Array, "kept"]
    clearest_rank: int
    clearest_gap: float

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return len(self.kept)

    @property
    def gap(self) -> float:
        """Smallest kept over largest dropped residual; nothing dropped counts as rounding."""
        return self.smallest_kept / max(self.largest_dropped, _FLOOR)

    @property
    def decided(self) -> bool:
        """Whether the two sides are at least a factor of ten apart."""
        return self.gap >= DECIDED_GAP


def independent_columns(
    R: Float[Array, "k p"],
    order: Sequence[int],
    *,
    rtol: float = STRUCTURAL_RTOL,
    floor: Float[Array, "p"] | None = None,
    common_scale: bool = False,
) -> ColumnRank:
    """Keep each column that is independent of those kept before it.

    Args:
        R: Triangle of W (or W itself), shape (k, p), units of the columns.
        order: Column indices in the order considered; missing columns are ignored.
        rtol: A column is kept if its residual exceeds this part of its own norm.
        floor: And if it exceeds the norm due to noise alone, shape (p,), unit of the column.
        common_scale: Residuals are relative to the largest norm of all columns, not to their own: an error
            of the geometry changes large and small columns by the same amount.
    """
    columns = np.asarray(order, dtype=int)
    norms = _column_norms(R)
    largest = max(norms.max(initial=0.0), np.finfo(float).tiny)
    live = norms[columns] > (rtol if common_scale else ZERO_RTOL) * largest
    if common_scale:
        norms = np.full_like(norms, largest)
    if floor is not None:
        live &= norms[columns] > floor[columns]
    considered = columns[live]
    scaled = R[:, considered] / norms[considered]
    least = np.full(len(considered), rtol)
    if floor is not None:
        least = np.maximum(least, floor[considered] / norms[considered])
    Q, keep, residuals = _sweep(scaled, least)
    kept, dependent = considered[keep], considered[~keep]
    K = _combinations(Q.T @ scaled[:, keep], Q.T @ scaled[:, ~keep], float(least.max(initial=rtol)))
    K *= norms[dependent] / norms[kept, None]
    return _decision(considered, keep, columns[~live], K, residuals, norms[considered] / largest)


def confirmed_columns(R: Float[Array, "k p"], order: Sequence[int], like: ColumnRank) -> ColumnRank | None:
    """The decision of another matrix where `independent_columns` would decide the same here; else None.

    With the kept columns first, one QR has all residuals: W = Q [R_kept R_rest; 0 E]. It takes a third of the
    time of the sweep.

    Args:
        like: Decided for another matrix, with the same order.
    """
    kept, dependent, zero = (list(indices) for indices in (like.kept, like.dependent, like.zero))
    norms = _column_norms(R)
    live = norms > ZERO_RTOL * max(norms.max(initial=0.0), np.finfo(float).tiny)
    if not live[kept + dependent].all() or live[zero].any() or not kept or len(R) < len(kept):
        return None
    n, place = len(kept), {column: i for i, column in enumerate(order)}
    T = qr_triangle(R[:, kept + dependent] / norms[kept + dependent])
    before = np.searchsorted([place[i] for i in kept], [place[i] for i in dependent])
    # A dependent column is compared with the columns kept before it, as in the sweep.
    left = np.array([np.linalg.norm(T[m:, n + j]) for j, m in enumerate(before.tolist())])
    pivots = np.abs(np.diag(T)[:n])
    if pivots.min() <= STRUCTURAL_RTOL or left.max(initial=0.0) > STRUCTURAL_RTOL:
        return None
    K = _combinations(T[:n, :n], T[:n, n:], STRUCTURAL_RTOL) * norms[dependent] / norms[kept, None]
    at = np.argsort([place[i] for i in kept + dependent])
    considered = np.array(kept + dependent)[at]
    sizes = norms[considered] / norms.max()
    return _decision(considered, at < n, zero, K, np.concatenate([pivots, left])[at], sizes)


def _decision(
    considered: Int[Array, "m"],
    keep: Bool[Array, "m"],
    zero: Sequence[int] | Int[Array, "z"],
    K: Float[Array, "kept dependent"],
    residuals: Float[Array, "m"],
    sizes: Float[Array, "m"],
) -> ColumnRank:
    """The columns of each kind with the figures of the decision."""
    clearest_rank, clearest_gap = _clearest(residuals)
    return ColumnRank(
        kept=tuple(considered[keep].tolist()),
        dependent=tuple(considered[~keep].tolist()),
        zero=tuple(int(i) for i in zero),
        K=K,
        residuals=residuals,
        smallest_kept=float(residuals[keep].min(initial=1.0)),
        largest_dropped=float(residuals[~keep].max(initial=0.0)),
        effects=residuals[keep] * sizes[keep],
        clearest_rank=clearest_rank,
        clearest_gap=clearest_gap,
    )


def _column_norms(R: Float[Array, "k p"]) -> Float[Array, "p"]:
    """Norms that neither overflow nor underflow: columns are scaled to size one first."""
    peak = np.abs(R).max(axis=0, initial=0.0)
    safe = np.where(peak > 0, peak, 1.0)
    return np.asarray(peak * np.sqrt(np.sum((R / safe) ** 2, axis=0)))


def _sweep(
    A: Float[Array, "k m"], least: Float[Array, "m"]
) -> tuple[Float[Array, "k kept"], Array, Float[Array, "m"]]:
    """Gram-Schmidt, every column twice; blocks of columns are projected by matrix products."""
    k, m = A.shape
    Q = np.zeros((k, min(k, m)), order="F")
    keep, residuals, n = np.zeros(m, dtype=bool), np.zeros(m), 0
    for start in range(0, m, _BLOCK):
        block, first = A[:, start : start + _BLOCK].copy(order="F"), n
        for _ in range(2):
            block -= Q[:, :n] @ (Q[:, :n].T @ block)
        for i, column in enumerate(block.T, start):
            for _ in range(2):
                column = column - Q[:, first:n] @ (Q[:, first:n].T @ column)
            if np.linalg.norm(column) < 0.1:  # cancellation has reintroduced old directions
                column = column - Q[:, :n] @ (Q[:, :n].T @ column)
            residuals[i] = np.linalg.norm(column)
            if residuals[i] > least[i] and n < Q.shape[1]:
                Q[:, n] = column / residuals[i]
                keep[i], n = True, n + 1
    return Q[:, :n], keep, residuals


def _combinations(
    R_kept: Float[Array, "kept kept"], R_rest: Float[Array, "kept dependent"], rtol: float
) -> Float[Array, "kept dependent"]:
    """Coefficients of the dependent unit columns; rounding errors are set to zero."""
    if not R_rest.size:
        return np.zeros(R_rest.shape)
    K = np.linalg.solve(np.triu(R_kept), R_rest)
    return np.where(np.abs(K) < 1e-2 * rtol, 0.0, K)


def _clearest(residuals: Float[Array, "m"]) -> tuple[int, float]:
    """Rank at the largest jump of the sorted residuals (the end counts as rounding)."""
    if residuals.size == 0:
        return 0, 1.0
    descending = np.maximum(np.sort(residuals)[::-1], _FLOOR)
    ratios = descending / np.append(descending[1:], _FLOOR)
    best = int(np.argmax(ratios))
    return best + 1, float(ratios[best])
