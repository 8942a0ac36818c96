"""Efforts of written code: C compiled by the system compiler, or a NumPy module imported by its path."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.contract import EffortsOf

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared")
_PATIENCE = 300  # s: a robot of 30 joints takes ten
NO_COMPILER = (
    "no C compiler was found (cc, gcc or clang): the code was written, but not compiled and compared"
)


def compiler() -> str | None:
    """The system's C compiler."""
    return next((path for name in _COMPILERS if (path := shutil.which(name))), None)


def compiler_version(program: str) -> str:
    """Its name and version, in one line."""
    lines = _run([program, "--version"]).stdout.splitlines()
    return lines[0] if lines else Path(program).name


def library(source: Path, flags: Sequence[str] = _FLAGS) -> ctypes.CDLL:
    """A C file, compiled in a temporary folder and loaded; its header is beside it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "controller.so"
        compiled([source], target, flags)
        return ctypes.CDLL(str(target))  # stays loaded without its file (which Windows keeps)


def compiled(sources: Sequence[Path], target: Path, flags: Sequence[str] = _FLAGS) -> None:
    """Compile C files into a shared library."""
    program = compiler()
    if program is None:
        raise InputError(NO_COMPILER, remedy="install a C compiler")
    command = [program, *flags, *(str(source.resolve()) for source in sources), "-o", str(target), "-lm"]
    made = _run(command)
    if made.returncode != 0:
        text = [*made.stderr.strip().splitlines(), "no message"]
        raise InputError(f"the compiler refuses the code: {text[0]}", file=sources[0])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)  # noqa: S603


def c_efforts(source: Path, name: str, n_actuators: int, flags: Sequence[str] = _FLAGS) -> EffortsOf:
    """Inverse dynamics of a C file.

    Args:
        source: The file; its header is beside it.
        name: First part of its functions.
        n_actuators: Length of `tau`.
        flags: Of the compiler.
    """
    function = getattr(library(source, flags), f"{name}_inverse_dynamics")
    function.restype = None

    def efforts(
        q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
    ) -> Float[Array, "n a"]:
        states = [np.ascontiguousarray(x, dtype=float) for x in (q, dq, ddq)]
        tau = np.empty((len(q), n_actuators))
        for given in zip(*(_rows(x) for x in (*states, tau)), strict=True):
            function(*given)
        return tau

    return efforts


def _rows(x: Float[Array, "n m"]) -> list[ctypes.c_void_p]:
    """Addresses of the rows of an array."""
    return [ctypes.c_void_p(x.ctypes.data + i * x.strides[0]) for i in range(len(x))]


def imported(source: Path) -> Any:
    """A Python file as a module, kept out of `sys.modules`."""
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or spec.loader is None:
        raise InputError("cannot be imported", file=source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_efforts(source: Path) -> EffortsOf:
    """Inverse dynamics of a NumPy module."""
    module = imported(source)

    def efforts(
        q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
    ) -> Float[Array, "n a"]:
        return np.asarray(module.inverse_dynamics(q, dq, ddq))

    return efforts
