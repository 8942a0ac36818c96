"""Byte code of dataclasses, kept on disk beside that of their modules.

`dataclasses` writes the methods of a class as text, and Python compiles this text in every process: for the
classes of an identification that takes as long as reading its log. The text itself is the key: a class that
changes has another text. The file is in the folder of the byte code of this module, and trusted as that is.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import marshal
import os
import sys
import zlib
from importlib.util import MAGIC_NUMBER, cache_from_source
from typing import Any

_MOST = 1 << 23  # bytes: a larger file has texts of many earlier versions, and is begun again
_CHECK = 4  # bytes of the checksum at its end


def keep_dataclass_code() -> None:
    """Let this process take compiled methods from a file, and add those that it lacks when the process ends.

    Without a folder that can be written, or without byte code on disk, all is as usual.
    """
    file = os.path.splitext(cache_from_source(__file__))[0] + ".kept"
    known, new = _read(file), dict[str, bytes]()

    def run(text: str, names: Any = None, space: Any = None) -> None:
        if text in known:
            code = marshal.loads(known[text])  # noqa: S302 (trusted as the byte code beside it)
        else:
            code = compile(text, "<string>", "exec")
            new[text] = marshal.dumps(code)
        exec(code, names, space)  # noqa: S102 (text that `dataclasses` has written)

    def keep() -> None:
        if new and not sys.dont_write_bytecode:
            _write(file, new | known)

    dataclasses.exec = run  # type: ignore[attr-defined]
    atexit.register(keep)


def _read(file: str) -> dict[str, bytes]:
    """Text -> compiled methods; empty if there is no such file, or another Python wrote it."""
    with contextlib.suppress(OSError), open(file, "rb") as stream:
        content = stream.read(_MOST + 1)
        start, end = len(MAGIC_NUMBER), len(content) - _CHECK
        body = memoryview(content)[start:end]
        whole = content[:start] == MAGIC_NUMBER and len(content) <= _MOST
        if whole and content[end:] == zlib.crc32(body).to_bytes(_CHECK, "little"):
            known: dict[str, bytes] = marshal.loads(body)  # noqa: S302 (as above)
            return known
    return {}


def _write(file: str, known: dict[str, bytes]) -> None:
    """Replace the file at once: other processes may read it."""
    body = marshal.dumps(known)
    new = f"{file}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(new, "wb") as stream:
            stream.write(MAGIC_NUMBER + body + zlib.crc32(body).to_bytes(_CHECK, "little"))
        os.replace(new, file)
