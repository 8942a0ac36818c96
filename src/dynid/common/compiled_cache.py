"""Compiled code on disk: parts, kernels, and one compilation at a time among processes.

Private parts of Numba, as in `compiled`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import time
import zlib
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from multiprocessing import current_process, parent_process
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from llvmlite.binding import add_symbol, parse_bitcode
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import compile_result
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.runtime.nrt import rtsys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

_ROOT = Path(__file__).parents[1]
_IMPORTED = re.compile(r"^from dynid\.([\w.]+) import", re.MULTILINE)
_FORMS = ("compiled.py", "compiled_cache.py")
Kernel = Callable[..., Any]
_PATIENCE = 120.0  # seconds for a process that compiles the same, which may have been stopped


class Part(JITCodeLibrary):
    """Code of a function that only kernels call: unoptimised, without machine code and entry point.

    Each kernel contains the code of all that it calls, and optimises it as a whole.
    """

    codegen = SimpleNamespace(set_env=lambda name, environment: None)  # only entry points need one

    @classmethod
    def stored(cls, codegen: Any, name: str, code: bytes) -> Part:
        """As `serialize_using_object_code` wrote it."""
        part = cls(codegen, name)
        part._final_module, part._finalized = parse_bitcode(code), True
        return part

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """What a cache stores."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return self.name, self._final_module.as_bitcode()

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class _Stored(JITCodeLibrary):
    """Machine code of a kernel from the disk; what others contain of it is read when they are compiled."""

    bitcode: bytes

    @classmethod
    def of(cls, codegen: Any, stored: Any, description: Any) -> _Stored:
        """As Numba wrote it; of its symbols only those that are called count as defined."""
        name, _, (code, bitcode) = stored
        library = cls(codegen, name)
        library.bitcode = bitcode
        library.enable_object_caching()  # type: ignore[no-untyped-call]
        library._set_compiled_object(code)  # type: ignore[no-untyped-call]
        library._finalize_final_module()  # type: ignore[no-untyped-call]
        called = {description.llvm_func_name, description.llvm_cpython_wrapper_name}
        codegen._engine._defined_symbols |= called
        return library

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = parse_bitcode(self.bitcode)
        return self._shared_module


@cache
def _link_helpers() -> None:
    """Let machine code find what takes arrays from Python; compiling what counts them takes longer."""
    for name, address in _nrt_python.c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _KernelCache(FunctionCache):
    """Loads compiled code without what only compilation needs: importing that takes 0.3 s in every run.

    Numba compiles a kernel again if its own file has changed. It contains the code of the kernels that it
    calls, so here their files count too: an upgrade may change these and not the file of the caller.
    """

    def __init__(self, function: Kernel, counts_arrays: bool) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._prepare = rtsys.initialize if counts_arrays else lambda context: _link_helpers()
        self._cache_file._source_stamp = source_stamp(Path(function.__code__.co_filename))
        self._place = zlib.crc32(f"{function.__module__}.{function.__qualname__}".encode()) >> 1

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for these argument types, None if it must be compiled, by this process alone."""
        self._prepare(target_context)
        found = self._read(sig, target_context)
        if found is None:
            self.claim(_PATIENCE)
            found = self._read(sig, target_context)
            if found is not None:
                self.release()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store what was compiled; where that fails, this process still has it."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            say_uncached(f"{self._cache_path}: {error.strerror or error}")
        finally:
            self.release()

    def _read(self, sig: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        codegen, index = target_context.codegen(), self._index_key
        kept: Any = self._cache_file.load(index(sig, codegen))  # type: ignore[no-untyped-call]
        if kept is None:
            return None
        stored, description, environment, signature = kept[:4]
        library = self._library(codegen, stored, description)
        for other in kept[-1]:  # of functions inside
            library.codegen.set_env(other.env_name, other)
        return compile_result(  # type: ignore[no-untyped-call]
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=target_context.get_executable(library, description, environment),
            fndesc=description,
            signature=signature,
            objectmode=False,
        )

    def _library(self, codegen: Any, stored: Any, description: Any) -> Any:
        return _Stored.of(codegen, stored, description)

    def claim(self, patience: float) -> bool:
        """Whether no other process compiles this function, now or within the given time in seconds.

        Processes that need the same code would compile it as often as there are processes. A lock ends with
        its process. Functions wait only for functions that they call: never for each other.
        """
        end = time.monotonic() + patience
        while not _lock(self._cache_path, self._place):
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        return True

    def release(self) -> None:
        """Let other processes compile this function."""
        _unlock(self._cache_path, self._place)

    def signatures(self) -> list[Any]:
        """Argument types for which there is compiled code."""
        kept: Any = self._cache_file._load_index()  # type: ignore[no-untyped-call]
        codegen = cpu_target.target_context.codegen()
        index: Callable[..., Any] = self._index_key
        return [key[0] for key in kept if key == index(key[0], codegen)]


class _PartCache(_KernelCache):
    """Stores parts, for kernels that are compiled later."""

    def _library(self, codegen: Any, stored: Any, description: Any) -> Any:
        return Part.stored(codegen, *stored)


@cache
def say_uncached(reason: str) -> None:
    """One line on stderr, unless logging is set up otherwise."""
    log(
        logging.WARNING,
        f"dynid: compiled code cannot be kept ({reason}); each run compiles again (a minute or more)"
        "; set NUMBA_CACHE_DIR to a writable folder",
    )


def log(level: int, text: str) -> None:
    """Through the logger of the package; of worker processes only the first one warns."""
    first = parent_process() is None or (level >= logging.WARNING and current_process().name.endswith("-1"))
    if first:
        logging.getLogger("dynid").log(level, text)


def cache_of(function: Kernel, is_part: bool, counts_arrays: bool) -> Any:
    """The cache of a function that is to be compiled; `counts_arrays`: it makes arrays or returns them.

    Raises:
        RuntimeError: No folder can be written.
    """
    return (_PartCache if is_part else _KernelCache)(function, counts_arrays)


def kept_signatures(compiled: Any) -> list[Any] | None:
    """Argument types for which there is compiled code on disk; None if no folder can be written."""
    return compiled._cache.signatures() if isinstance(compiled._cache, _KernelCache) else None


@cache
def source_stamp(file: Path) -> str:
    """Digest of a file of kernels and of all that it imports from this package, through other such files.

    The files in _FORMS count for all of them: they decide in which form compiled code is kept.
    """
    text, forms = file.read_text(encoding="utf-8"), [_ROOT / "common" / name for name in _FORMS]
    if file in forms:
        return sha256(text.encode()).hexdigest()
    names = _IMPORTED.findall(text) if "dynid.common.compiled" in text else []
    below = [_ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names]
    return sha256("".join([text, *map(source_stamp, dict.fromkeys([*forms, *below]))]).encode()).hexdigest()


@cache
def _lock_file(folder: str) -> int | None:
    """Open as long as this process runs: closing any handle of a file ends all its locks on POSIX."""
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        return os.open(os.path.join(folder, "dynid.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    return None


def _lock(folder: str, place: int) -> bool:
    """Lock a byte of the lock file unless another process has; no lock where the system offers none."""
    file = _lock_file(folder)
    if file is None:
        return True
    try:
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        else:
            os.lseek(file, place, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


def _unlock(folder: str, place: int) -> None:
    file = _lock_file(folder)
    if file is None:
        return
    with contextlib.suppress(OSError):
        if fcntl is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
        else:
            os.lseek(file, place, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
