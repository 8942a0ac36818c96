"""A lock file beside a result folder: two runs never write the same folder."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from dynid.common.errors import InputError
from dynid.common.strict_number import is_count

_WRITTEN_AFTER = 0.5  # s: a lock is written immediately after it is created


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock `file` (process id and host) during the block.

    A lock whose process no longer exists on this machine is stale and taken over; so is an empty one.

    Raises:
        InputError: Another run holds it.
    """
    _take(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _take(file: Path) -> None:
    for _ in range(2):
        try:
            handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            _drop_if_stale(file)
            continue
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(f"{os.getpid()} {socket.gethostname()}\n")
        return
    raise InputError("another run took this lock just now", file=file, remedy="try again")


def _drop_if_stale(file: Path) -> None:
    try:
        content = file.read_text(encoding="utf-8", errors="replace").strip()
        if not content:  # just created, or left by a run that was killed at that moment
            time.sleep(_WRITTEN_AFTER)
            content = file.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return
    number, _, host = content.partition(" ")
    pid = int(number) if is_count(number) else 0
    if not content or (pid and host == socket.gethostname() and not _alive(pid)):
        file.unlink(missing_ok=True)
        return
    raise InputError(
        f"another run (process {number or 'unknown'} on {host or 'an unknown host'}) is writing here",
        file=file,
        remedy="wait for it or choose another --out; delete this file if that run no longer exists",
    )


def _alive(pid: int) -> bool:
    if os.name == "nt":  # signal 0 is Ctrl-C there
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
