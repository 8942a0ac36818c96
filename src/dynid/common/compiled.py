"""How dynid compiles its few hot loops; imported by the `kernels` modules only.

Shape-checked test runs wrap every function of the package; `unwrap` passes the original function to Numba.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from inspect import unwrap
from multiprocessing import parent_process
from typing import Any

from numba import njit

Kernel = Callable[..., Any]


def kernel(function: Kernel) -> Kernel:
    """Compile for every argument type used, without the interpreter lock, cached on disk."""
    return _compiled(function)


def inner(function: Kernel) -> Kernel:
    """As `kernel`, for functions that only kernels call: a Python entry point takes long to compile."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Kernel) -> Kernel:
    """As `kernel`, inlined into its callers so that loops around it stay vectorised."""
    return _compiled(function, inline="always")


def summing(function: Kernel) -> Kernel:
    """As `kernel`, but sums may be reordered: this allows vectorisation and changes rounding only."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Kernel, **special: Any) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    compiled: Kernel = njit(**(options | special))(unwrap(function))
    try:
        compiled.enable_caching()  # type: ignore[attr-defined]
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _say_uncached()  # a read-only install and home: it still runs
    return compiled


@cache
def _say_uncached() -> None:
    """One line on stderr, unless logging is set up otherwise; worker processes stay silent."""
    if parent_process() is None:
        logging.getLogger("dynid").warning(
            "dynid: no cache folder for compiled code is writable; each run compiles again (a minute or more)"
            "; set NUMBA_CACHE_DIR to a writable folder"
        )
