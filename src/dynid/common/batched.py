"""Factorisations and solutions of many small matrices at once; a bad sample does not affect the others.

NumPy raises `LinAlgError` for a whole batch when one matrix of it is singular or not finite. Here that
matrix gives NaN. Every other matrix gives the same result as alone: LAPACK works on one matrix at a time.
Callers treat NaN as "no answer for this sample". Leading axes are samples; a single matrix has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Inexact

Work = Callable[..., Any]


def solve(M: Inexact[Array, "*n d d"], y: Inexact[Array, "*n d k"]) -> Inexact[Array, "*n d k"]:
    """X with M X = y; NaN where M is singular or anything is not finite."""
    return _surviving(np.linalg.solve, M, y)[0]


def solve_or_nearest(M: Float[Array, "n d d"], y: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """X with M x = y; the minimum-norm least-squares solution where M is exactly singular."""
    x = solve(M, y[:, :, None])[:, :, 0]
    lost = _finite(M) & _finite(y[:, :, None]) & ~np.isfinite(x).all(axis=1)
    if lost.any():
        x[lost] = np.einsum("nij,nj->ni", pinv(M[lost]), y[lost])
    return x


def inv(M: Inexact[Array, "*n d d"]) -> Inexact[Array, "*n d d"]:
    """Inverses; NaN where M is singular or not finite."""
    return _surviving(np.linalg.inv, M)[0]


def pinv(M: Inexact[Array, "*n r c"]) -> Inexact[Array, "*n c r"]:
    """Pseudo-inverses; NaN where M is not finite."""
    return _surviving(np.linalg.pinv, M)[0]


def svd(
    M: Inexact[Array, "*n r c"], full_matrices: bool = True
) -> tuple[Inexact[Array, "*n r k"], Float[Array, "*n m"], Inexact[Array, "*n l c"]]:
    """U, s, V^T; NaN where M is not finite."""
    U, s, Vt = _surviving(lambda one: np.linalg.svd(one, full_matrices=full_matrices), M)
    return U, s, Vt


def singular_values(M: Inexact[Array, "*n r c"]) -> Float[Array, "*n m"]:
    """Singular values, largest first; NaN where M is not finite."""
    return _surviving(lambda one: np.linalg.svd(one, compute_uv=False), M)[0]


def qr(
    M: Inexact[Array, "*n r c"], complete: bool = False
) -> tuple[Inexact[Array, "*n r k"], Inexact[Array, "*n k c"]]:
    """Q and R; NaN where M is not finite."""
    Q, R = _surviving(_complete_qr if complete else np.linalg.qr, M)
    return Q, R


def eigh(M: Inexact[Array, "*n d d"]) -> tuple[Float[Array, "*n d"], Inexact[Array, "*n d d"]]:
    """Eigenvalues, ascending, and vectors of symmetric matrices; NaN where M is not finite."""
    values, vectors = _surviving(np.linalg.eigh, M)
    return values, vectors


def eigvalsh(M: Inexact[Array, "*n d d"]) -> Float[Array, "*n d"]:
    """Eigenvalues of symmetric matrices, ascending; NaN where M is not finite."""
    return _surviving(np.linalg.eigvalsh, M)[0]


def eigvals(M: Inexact[Array, "*n d d"]) -> Inexact[Array, "*n d"]:
    """Eigenvalues of any square matrices; NaN where M is not finite."""
    return _surviving(np.linalg.eigvals, M)[0]


def cholesky(M: Inexact[Array, "*n d d"]) -> Inexact[Array, "*n d d"]:
    """Lower triangles L with L L^T = M; NaN where M is not positive definite or not finite."""
    return _surviving(np.linalg.cholesky, M)[0]


def _complete_qr(M: Array) -> Any:
    return np.linalg.qr(M, mode="complete")


def _surviving(work: Work, *arrays: Array) -> tuple[Array, ...]:
    """Result of `work` for each sample; NaN for samples that are not finite or for which it fails."""
    leading = arrays[0].shape[:-2]
    # Not -1: a batch without samples, or of empty matrices, has no size to divide.
    flat = [one.reshape(math.prod(leading), *one.shape[-2:]) for one in arrays]
    fine = np.logical_and.reduce([_finite(one) for one in flat])
    found = _accepted(work, flat if fine.all() else [one[fine] for one in flat])
    if not fine.all():
        found = tuple(_spread(one, fine) for one in found)
    return tuple(np.asarray(one.reshape(*leading, *one.shape[1:])) for one in found)


def _accepted(work: Work, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Result of `work`; where it fails, the batch is halved until the failing samples are isolated."""
    n = len(arrays[0])
    try:
        found = work(*arrays)
        return tuple(found) if isinstance(found, tuple) else (found,)
    except np.linalg.LinAlgError:
        if n == 1:
            none = _accepted(work, [one[:0] for one in arrays])
            return tuple(_spread(one, np.zeros(1, dtype=bool)) for one in none)
    halves = [_accepted(work, [one[part] for one in arrays]) for part in (slice(n // 2), slice(n // 2, n))]
    return tuple(np.concatenate(pair) for pair in zip(*halves, strict=True))


def _spread(found: Array, fine: Array) -> Array:
    """Results of the valid samples in their places, NaN in the others."""
    out = np.full((len(fine), *found.shape[1:]), np.nan, found.dtype)
    out[fine] = found
    return out


def _finite(M: Array) -> Array:
    return np.asarray(np.isfinite(M).all(axis=(-2, -1)))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Small triangular factors do not get faster with BLAS threads, which wait for each other: on a
    busy machine with two cores an identification took twelve times as long with them."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
