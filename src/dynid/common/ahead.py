"""Kernels that a job will need: loaded while it begins; a second process compiles those that are missing.

It can compile kernels whose argument types are declared (`compiled.takes`). It begins with the one that the
job needs last, and leaves out those that the job compiles itself: they meet in the middle, and nothing is
compiled twice (`compiled_cache.KernelCache.claim`).
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from multiprocessing import parent_process
from typing import Any

from dynid.common.paged import begun


def prepare(names: Sequence[str]) -> None:
    """Load kernels, `module:function` in the order of their first use, in a thread; compile what is missing.

    Importing Numba needs the interpreter lock: beside other work both would take longer. So it comes first.
    """
    kernels = {name: _kernel(name) for name in names}

    def load_all() -> None:
        missing = [name for name, kernel in kernels.items() if not load(kernel)]
        if missing and _may_start():
            _start(missing[::-1])

    begun(load_all)


def load(kernel: Any) -> bool:
    """Load what is compiled of a kernel, which its first call would do otherwise: False if nothing is.

    True too if no folder can be written: then a second process cannot help.
    """
    from dynid.common.compiled_cache import kept_signatures

    kept = kept_signatures(kernel)
    for signature in kept or ():
        kernel.compile(signature)
    return kept != []


def compile_free(names: Iterable[str]) -> None:
    """Compile kernels one after the other, but none that another process compiles at this moment."""
    for name in names:
        kernel = _kernel(name)
        if not kernel._cache.signatures() and kernel._cache.claim(patience=0.0):
            kernel.compile(kernel.takes)


def _kernel(name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f"dynid.{module}"), function)


def _may_start() -> bool:
    """Whether a process of ours may start another one: not a worker, and not on one core."""
    return parent_process() is None and bool(sys.executable) and (os.cpu_count() or 1) > 1


def _start(names: Sequence[str]) -> None:
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", __name__, *names]  # -P: no module of the current folder
    child = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 (names of kernels)
    atexit.register(child.kill)


if __name__ == "__main__":
    compile_free(sys.argv[1:])
