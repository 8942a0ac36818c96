"""Factors: the only form in which a system stores its rows.

For rows [W Y] = Q R the small triangle R contains every inner product the estimators need, and
triangles of different rows merge: qr([R1; R2]) is the triangle of both. So a log of any
length, read in any number of blocks, ends in one triangle per group of rows. Rows that are fewer than
their columns have no smaller factor than themselves, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.lapack import qr_triangle
from dynid.common.paged import in_parts

_PART = 1024  # rows that stay in the cache while they are factorised


@dataclass(frozen=True, eq=False)
class Factor:
    """Few rows R with the inner products of rows [W Y]; the last column is the measured side.

    Attributes:
        R: Shape (k, p + 1) with k <= p + 1; units of the columns. An upper triangle, or the rows themselves
            where k < p + 1.
        n_rows: Number of rows of the system that it represents.
    """

    R: Float[Array, "k p1"]
    n_rows: int

    @property
    def W(self) -> Float[Array, "k p"]:
        """Columns of the parameters."""
        return self.R[:, :-1]

    @property
    def Y(self) -> Float[Array, "k"]:
        """The measured side."""
        return self.R[:, -1]

    def mapped(self, columns: Float[Array, "p1 q1"]) -> Factor:
        """Factor of [W Y] @ columns: selections, ties, known values are all such maps."""
        return Factor(compact(self.R @ columns), self.n_rows)


def triangle(rows: Float[Array, "r p1"]) -> Float[Array, "k p1"]:
    """R of the QR factorisation of `rows` (Householder, columns as they are)."""
    return qr_triangle(rows)


def compact(rows: Float[Array, "r p1"]) -> Float[Array, "k p1"]:
    """Rows with the same inner products, at most as many as there are columns."""
    return rows if len(rows) < rows.shape[1] else triangle(rows)


def column_sizes(W: Float[Array, "r p"]) -> Float[Array, "p"]:
    """Norms of columns, by which they become comparable; one for a zero column."""
    sizes = np.linalg.norm(W, axis=0)
    return np.where(sizes > 0.0, sizes, 1.0)


def scaled_lstsq(W: Float[Array, "r p"], Y: Float[Array, "r *k"], rtol: float | None) -> Float[Array, "p *k"]:
    """Least-squares solution of least norm over comparable columns, where W does not determine all."""
    sizes = column_sizes(W)
    x = np.linalg.lstsq(W / sizes, Y, rcond=rtol)[0]
    return np.asarray(x / sizes.reshape(-1, *(1,) * (x.ndim - 1)))


def orthonormal_map(W: Float[Array, "r p"], rtol: float) -> Float[Array, "p u"]:
    """T for which the columns of W T are orthonormal; none for what W does not determine."""
    sizes = column_sizes(W)
    _, values, vectors = np.linalg.svd(W / sizes, full_matrices=False)
    kept = values > rtol * values.max(initial=0.0)
    return np.asarray(vectors[kept].T / values[kept] / sizes[:, None])


def factor_rows(W: Float[Array, "r p"], Y: Float[Array, "r"]) -> Factor:
    """Factor of dense rows."""
    return Factor(triangle(np.column_stack([W, Y])), len(Y))


def merge(factors: Sequence[Factor]) -> Factor:
    """Factor of all rows of all `factors`, which share their columns."""
    if len(factors) == 1:
        return factors[0]
    stacked = np.concatenate([factor.R for factor in factors])
    size = max(_PART, 4 * stacked.shape[1])
    if len(stacked) > 2 * size:
        stacked = np.concatenate(in_parts(lambda part: compact(stacked[part]), len(stacked), size))
    return Factor(compact(stacked), sum(factor.n_rows for factor in factors))
