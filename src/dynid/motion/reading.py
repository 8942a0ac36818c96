"""What every reader of a foreign format needs: packages of extras, limits of size, errors of libraries."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dynid.common import limits
from dynid.common.errors import DynidError, InputError

# Run-length codes can represent any number of rows. Sensor logs are compressed by 2 to 40 times.
LARGEST = 16 * 2**30  # bytes of all numbers together
SUSPECT, RATIO = 64 * 2**20, 200.0  # bytes; larger contents must not be this many times the file


@contextlib.contextmanager
def extra(name: str, what: str, file: object) -> Iterator[None]:
    """A block that imports packages of the extra `name`; if they are missing, the error names it."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or str(error)).split(".")[0]
        raise InputError(
            f"reading {what} needs {missing}, which is not installed",
            file=file,
            remedy=f"pip install 'dynid[{name}]'",
        ) from error


@contextlib.contextmanager
def readable(what: str, file: object) -> Iterator[None]:
    """Errors of the library that reads a file of kind `what` become input errors."""
    remedy = "write the file again; the copy may be truncated or damaged"
    try:
        yield
    except DynidError:
        raise
    except MemoryError as error:
        raise InputError(f"this {what} needs more memory than there is", file=file, remedy=remedy) from error
    except Exception as error:  # libraries raise errors of any class on damaged files
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"not a readable {what}: {said}", file=file, remedy=remedy) from error


def check_place(path: Path) -> None:
    """Refuse what is missing, and devices and pipes: reading them may never end."""
    if not path.exists():
        refuse_address(path, "copy the log, or use `dynid campaign`, which reads logs from stores")
        raise InputError(
            "no such file", file=path, remedy="check the path; in an experiment file it starts at that file"
        )
    if not (path.is_file() or path.is_dir()):
        raise InputError(
            "this is a device or a pipe, not a file", file=path, remedy="write the log into a file"
        )


def check_size(
    declared: float, stored: int, file: object, what: str = "numbers", place: str | None = None
) -> None:
    """Refuse contents that would fill the memory, before anything is allocated.

    Args:
        declared: Size of the contents in memory, in [bytes].
        stored: Size of the file, in [bytes].
        file: For messages.
        what: The contents, for messages.
        place: Where in the file, for messages.
    """
    stored = max(stored, 1)
    grows = declared > SUSPECT and limits.exceeded(declared / stored, RATIO)
    if grows or limits.exceeded(declared, LARGEST):
        raise InputError(
            f"{stored} bytes declare {declared / 2**20:.0f} MB of {what},"
            f" {declared / stored:.0f} times as much",
            file=file,
            place=place,
            remedy=f"copy it again if it may be damaged, or write the log in parts; {limits.REMEDY}",
        )


def inflated(stream: Any, stored: int, file: object) -> bytes:
    """All bytes of a decompressing stream; reading stops as soon as they are too many for the file."""
    parts: list[bytes] = []
    total = 0
    while block := stream.read(1 << 20):
        parts.append(block)
        total += len(block)
        check_size(total, stored, file, "text")
    return b"".join(parts)


def size_of(path: Path) -> int:
    """Size of a file, in [bytes]."""
    return path.stat().st_size


def is_address(file: str) -> bool:
    """Whether a log is in an object store (`s3://...`)."""
    return "://" in file


def refuse_address(path: Path, remedy: str) -> None:
    """Refuse a path that was an address: `Path("s3://bucket")` is `s3:/bucket`."""
    if any(re.fullmatch("[a-z][a-z0-9]+:", part) for part in path.parts):
        raise InputError("this is an address of an object store, not a path", file=path, remedy=remedy)
