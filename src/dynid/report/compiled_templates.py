"""Compiled templates kept beside their sources, as Python keeps compiled modules in `__pycache__`."""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

_FOLDER = Path(__file__).parent / "templates" / "__pycache__"


class CompiledTemplates(BytecodeCache):
    """Valid for one version of Python, of Jinja and of the template's text; never required."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """The code of a template, if it was compiled from this text."""
        stamp = _stamp(bucket)
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            data = _file(bucket).read_bytes()
            if data.startswith(stamp):
                bucket.code = marshal.loads(data[len(stamp) :])  # noqa: S302 (trusted like a .pyc file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the code, if the folder is writable."""
        if sys.dont_write_bytecode or bucket.code is None:
            return
        file = _file(bucket)
        part = file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            _FOLDER.mkdir(exist_ok=True)
            part.write_bytes(_stamp(bucket) + marshal.dumps(bucket.code))
            part.replace(file)


def _file(bucket: Bucket) -> Path:
    return _FOLDER / f"{bucket.key}.{sys.implementation.cache_tag}"


def _stamp(bucket: Bucket) -> bytes:
    return f"dynid {sys.version} jinja {jinja2.__version__} {bucket.checksum}\n".encode()
