"""The few routines of LAPACK and BLAS that NumPy does not offer, from SciPy's compiled modules.

These are loaded without the package `scipy.linalg`: its import takes 0.2 s in every run, and nothing else of
it is needed to identify a plain robot. Where that fails, the package is imported.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dynid.common.arrays import Array, Bool, Float, Int

_BLOCK = 32  # columns that LAPACK's QR treats together


def pivoted_qr(A: Float[Array, "r c"]) -> tuple[Float[Array, "r k"], Float[Array, "k c"], Int[Array, "c"]]:
    """Q, R and pivot with A[:, pivot] = Q R; the diagonal of R falls."""
    lapack, k = _compiled("_flapack"), min(A.shape)
    if k == 0:
        return np.zeros((len(A), 0)), np.zeros((0, A.shape[1])), np.arange(A.shape[1])
    packed, pivot, tau = _called(lapack.dgeqp3, A)
    R = np.triu(packed[:k])
    return _called(lapack.dorgqr, packed[:, :k], tau)[0], R, pivot - 1


def qr_triangle(A: Float[Array, "r c"]) -> Float[Array, "k c"]:
    """R of A = Q R, as `numpy.linalg.qr`, whose threads wait for each other."""
    k, c = min(A.shape), A.shape[1]
    if k == 0:
        return np.zeros((0, c))
    packed, _, _, _ = _compiled("_flapack").dgeqrf(A, lwork=_BLOCK * c)
    return np.where(_upper(k, c), packed[:k], 0.0)


@cache
def _upper(k: int, c: int) -> Bool[Array, "k c"]:
    return np.tri(c, k, dtype=bool).T


def solve_upper(
    R: Float[Array, "d d"], B: Float[Array, "r c"], from_right: bool = False
) -> Float[Array, "r c"]:
    """X with R X = B of an upper triangle, or X R = B.

    BLAS' own triangular solve: LAPACK's starts threads for a 5 x 5 triangle too.
    """
    return np.asarray(_compiled("_fblas").dtrsm(1.0, R, B, side=int(from_right)))


def cholesky_solve(M: Float[Array, "d d"], B: Float[Array, "*r"]) -> Float[Array, "*r"] | None:
    """M^-1 B of a positive definite matrix; None if it is none."""
    lapack = _compiled("_flapack")
    root, failed = lapack.dpotrf(M)
    return None if failed else np.asarray(lapack.dpotrs(root, B)[0]).reshape(B.shape)


def is_positive(M: Float[Array, "d d"]) -> bool:
    """Whether a symmetric matrix is positive definite."""
    return bool(_compiled("_flapack").dpotrf(M)[1] == 0)


def load() -> None:
    """Load the libraries: limits of threads hold only for those that are loaded when they are set."""
    for name in ("_flapack", "_fblas"):
        _compiled(name)


def load_for_solvers() -> None:
    """Load the modules by which compiled code of other packages, Clarabel and Numba, finds LAPACK."""
    for name in ("cython_blas", "cython_lapack"):
        _compiled(name)


def _called(routine: Any, *arguments: Array) -> tuple[Array, ...]:
    """A routine with the work space that it asks for; its results without that, and without its status."""
    asked = routine(*arguments, lwork=-1)
    *results, _, status = routine(*arguments, lwork=int(asked[-2][0]))
    if status < 0:
        raise ValueError(f"argument {-status} of LAPACK")
    return tuple(results)


@cache
def _compiled(name: str) -> ModuleType:
    """A compiled module of `scipy.linalg`, loaded alone where its file is found."""
    full = f"scipy.linalg.{name}"
    scipy = None if full in sys.modules else find_spec("scipy")
    folders = [str(Path(place) / "linalg") for place in (scipy and scipy.submodule_search_locations) or ()]
    file = PathFinder.find_spec(name, folders)
    spec = spec_from_file_location(full, file.origin) if file and file.origin else None
    if spec is None or spec.loader is None:
        return import_module(full)
    try:
        module = sys.modules[full] = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # it needs libraries that only the package finds
        sys.modules.pop(full, None)
        return import_module(full)
    return module
