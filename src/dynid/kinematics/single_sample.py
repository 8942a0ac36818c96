"""Kernels for one state at a time: the same code, compiled with tiles of one sample.

A plant with a controller has one state only; in a tile of `LANES` all others would be discarded. A kernel
and all kernels it calls are compiled once more with LANES = 1: one source, two widths.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from dynid.common.compiled import Kernel, inner

_KNOWN: dict[Any, Any] = {}
# Names that a compiled copy shares with its original; Numba adds the rest.
_OPTIONS = ("nogil", "error_model", "fastmath", "no_cpython_wrapper", "no_cfunc_wrapper", "inline")


@inner
def _cos_sin(x: Any) -> None:
    """The library's functions: a single number cannot be vectorised."""
    c, s = np.cos(x[0]), np.sin(x[0])
    x[0] = c
    x[1] = s


def alone(compiled: Kernel) -> Kernel:
    """A kernel that uses LANES, for tiles of one sample."""
    if compiled not in _KNOWN:
        _KNOWN[compiled] = _copy(compiled)
    single: Kernel = _KNOWN[compiled]
    return single


def _copy(compiled: Any) -> Any:
    source = compiled.py_func
    names = dict(source.__globals__)
    for name in source.__code__.co_names:
        if name == "LANES":
            names[name] = 1
        elif name == "cos_sin":
            names[name] = _cos_sin
        elif isinstance(names.get(name), Dispatcher):
            names[name] = alone(names[name])
    copy = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
    # Numba keeps compiled code on disk by the qualified name: the copy needs its own.
    copy.__qualname__, copy.__module__ = f"{source.__qualname__}_alone", source.__module__
    options = {name: value for name, value in compiled.targetoptions.items() if name in _OPTIONS}
    return njit(cache=True, **options)(copy)
