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
    U, s, Vt = _surviving(lambda A: np.linalg.svd(A, full_matrices=full_matrices), M)
    return U, s, Vt


def singular_values(M: Inexact[Array, "*n r c"]) -> Float[Array, "*n m"]:
    """Singular values, largest first; NaN where M is not finite."""
    return _surviving(lambda A: np.linalg.svd(A, compute_uv=False), M)[0]


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
    flat = [array.reshape(math.prod(leading), *array.shape[-2:]) for array in arrays]
    fine = np.logical_and.reduce([_finite(array) for array in flat])
    results = _accepted(work, flat if fine.all() else [array[fine] for array in flat])
    if not fine.all():
        results = tuple(_spread(result, fine) for result in results)
    return tuple(np.asarray(result.reshape(*leading, *result.shape[1:])) for result in results)


def _accepted(work: Work, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Result of `work`; where it fails, the batch is halved until the failing samples are isolated."""
    n = len(arrays[0])
    try:
        result = work(*arrays)
        return tuple(result) if isinstance(result, tuple) else (result,)
    except np.linalg.LinAlgError:
        if n == 1:
            none = _accepted(work, [array[:0] for array in arrays])
            return tuple(_spread(empty, np.zeros(1, dtype=bool)) for empty in none)
    halves = [
        _accepted(work, [array[part] for array in arrays]) for part in (slice(n // 2), slice(n // 2, n))
    ]
    return tuple(np.concatenate(pair) for pair in zip(*halves, strict=True))


def _spread(values: Array, fine: Array) -> Array:
    """Results of the valid samples in their places, NaN in the others."""
    out = np.full((len(fine), *values.shape[1:]), np.nan, values.dtype)
    out[fine] = values
    return out


def _finite(M: Array) -> Array:
    return np.asarray(np.isfinite(M).all(axis=(-2, -1)))


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Small triangular factors do not get faster with BLAS threads, which wait for each other: on a
    busy machine with two cores an identification took twelve times as long with them."""
    from threadpoolctl import threadpool_limits

    from dynid.common.lapack import load

    load()
    with threadpool_limits(limits=1, user_api="blas"):
        yield
