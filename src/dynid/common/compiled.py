"""How dynid compiles its few hot loops; imported by the `kernels` modules only.

Shape-checked test runs wrap every function of the package; `unwrap` passes the original function to Numba.

`for_one_sample`: a plant with a controller has one state only; in a tile of `LANES` samples all others would
be discarded. A kernel and all kernels it calls are compiled once more with LANES = 1: one source, two widths.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from inspect import unwrap
from types import FunctionType
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, Listener, register
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

from dynid.common.compiled_cache import Kernel, Part, cache_of, log, say_uncached

# Argument types: flat and contiguous arrays of one to three dimensions.
F1, F2, F3 = float64[::1], float64[:, ::1], float64[:, :, ::1]
I1, I2, B1 = int64[::1], int64[:, ::1], boolean[::1]
COMPILING = "Compiling kernels for this machine (first run only, 10 s or more) ..."


def kernel(function: Kernel) -> Kernel:
    """Compile for every argument type used, without the interpreter lock, cached on disk.

    A kernel gets its workspace from its caller: it makes no arrays and returns none, and neither do the
    functions that it calls. Then no array is counted as in use, which is a third of the code to compile.

    Every product is rounded. If products and sums could be fused, a kernel that other kernels call would
    round differently alone and inside them. The run that compiles uses the former, later runs the latter.
    """
    return _compiled(function)


def takes(*arguments: Any) -> Callable[[Kernel], Kernel]:
    """Declare the types of a kernel's arguments: it can be compiled before its first call, see `ahead`."""

    def declared(compiled: Kernel) -> Kernel:
        compiled.takes = arguments  # type: ignore[attr-defined]
        return compiled

    return declared


def inner(function: Kernel) -> Kernel:
    """As `kernel`, for functions that only kernels call: machine code is made for those alone."""
    return _compiled(function, no_cpython_wrapper=True, pipeline_class=_PartCompiler)


def inlined(function: Kernel) -> Kernel:
    """As `inner`, inlined into its callers so that loops around it stay vectorised."""
    return _compiled(function, forceinline=True, no_cpython_wrapper=True, pipeline_class=_PartCompiler)


def allocating(function: Kernel) -> Kernel:
    """As `kernel`, for functions that make arrays or return them."""
    return _compiled(function, _nrt=True, pipeline_class=Compiler)


def allocating_inner(function: Kernel) -> Kernel:
    """As `inner`, for functions that make arrays or return them."""
    return _compiled(function, _nrt=True, no_cpython_wrapper=True, pipeline_class=_WholePartCompiler)


def summing(function: Kernel) -> Kernel:
    """As `kernel`, but sums may be reordered: this allows vectorisation and changes rounding only.

    For kernels that no other kernel calls, if results shall not depend on who compiled them.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: Kernel, **special: Any) -> Kernel:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": False,
        "no_cfunc_wrapper": True,  # nobody calls kernels from C
        "pipeline_class": _Compiler,
        "_nrt": False,  # said explicitly: what is not said is as in the function that is compiled first
    }
    return _cached(unwrap(function), options | special)


def _cached(function: Kernel, options: dict[str, Any]) -> Kernel:
    compiled: Kernel = njit(**options)(function)
    try:
        is_part = issubclass(options["pipeline_class"], _WholePartCompiler)
        compiled._cache = cache_of(function, is_part, options["_nrt"])  # type: ignore[attr-defined]
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        say_uncached("no folder for it is writable")  # a read-only install and home: it still runs
    return compiled


class _Compiler(Compiler):
    """Compiles functions without array expressions, closures and arguments None, which nothing looks for."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes that such functions need."""
        passes = PassManager("kernel")  # type: ignore[no-untyped-call]
        for each in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            GenericRewrites,
            ReconstructSSA,
            NopythonTypeInference,
            PreLowerStripPhis,
            IRLegalization,
            NativeLowering,
            NoPythonBackend,
        ):
            passes.add_pass(each, each.__name__)  # type: ignore[no-untyped-call]
        passes.finalize()  # type: ignore[no-untyped-call]
        return [passes]


class _WholePartCompiler(Compiler):
    """Compiles any function into a `Part`."""

    def compile_extra(self, func: Kernel) -> Any:
        """Compile for the argument types of this compiler."""
        self.state.library = Part(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class _PartCompiler(_WholePartCompiler, _Compiler):
    """Compiles a function without such expressions into a `Part`."""


class _Announcement(Listener):
    """Logs once that kernels are being compiled: nothing else moves for a while."""

    def on_start(self, event: Event) -> None:
        """Compilation of a kernel that is not in the cache begins."""
        _say_compiling()

    def on_end(self, event: Event) -> None:
        """It ends: nothing is said."""


register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


@cache
def _say_compiling() -> None:
    """Shown where the logger `dynid` is shown at level INFO: by commands on a terminal."""
    log(logging.INFO, COMPILING)


_KNOWN: dict[Any, Any] = {}
# Names that a compiled copy shares with its original; Numba adds the rest.
_OPTIONS = (
    "nogil",
    "error_model",
    "fastmath",
    "no_cpython_wrapper",
    "no_cfunc_wrapper",
    "forceinline",
    "_nrt",
)


@inner
def _cos_sin(x: Any) -> None:
    """The library's functions: a single number cannot be vectorised."""
    c, s = np.cos(x[0]), np.sin(x[0])
    x[0] = c
    x[1] = s


def for_one_sample(compiled: Kernel) -> Kernel:
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
            names[name] = for_one_sample(names[name])
    copy = FunctionType(source.__code__, names, source.__name__, source.__defaults__, source.__closure__)
    # Numba keeps compiled code on disk by the qualified name: the copy needs its own.
    copy.__qualname__, copy.__module__ = f"{source.__qualname__}_one_sample", source.__module__
    options = {name: value for name, value in compiled.targetoptions.items() if name in _OPTIONS}
    return _cached(copy, options | {"pipeline_class": compiled._compiler.pipeline_class})
