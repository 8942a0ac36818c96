"""How dynid compiles its few hot loops; imported by the `kernels` modules only.

Shape-checked test runs wrap every function of the package; `unwrap` hands Numba the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any

from numba import njit

Kernel = Callable[..., Any]


def kernel(function: Kernel) -> Kernel:
    """Compile for every argument type it meets, without the interpreter lock, kept on disk."""
    compiled: Kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(
        unwrap(function)
    )
    return compiled


def inner(function: Kernel) -> Kernel:
    """As `kernel`, for functions that only other kernels call: no door for Python, which takes long
    to compile."""
    compiled: Kernel = njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath={"contract"},
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(unwrap(function))
    return compiled


def inlined(function: Kernel) -> Kernel:
    """As `kernel`, copied into its callers so that loops around it stay vectors."""
    compiled: Kernel = njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, inline="always"
    )(unwrap(function))
    return compiled


def summing(function: Kernel) -> Kernel:
    """As `kernel`, free to reorder sums: it fills the vector units and changes rounding only."""
    compiled: Kernel = njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
    )(unwrap(function))
    return compiled
