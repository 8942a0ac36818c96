"""The journal of an optimisation: one line per start, so that an interrupted run can continue.

The first line contains the settings; an incomplete last line is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.excitation.optimal.starts import Start

SCHEMA = "dynid.journal/1"


def _start(document: Mapping[str, Any]) -> Start:
    return Start(**{**document, "z": tuple(document["z"])})


class Journal:
    """Finished starts, stored on disk line by line.

    Args:
        file: Path; None keeps them only in memory.
        asked: Identifies the run: robot, settings, versions. The file of another run is rejected.
        revive: Makes an entry from the content of its line.
    """

    def __init__(
        self, file: Path | None, asked: Mapping[str, Any], revive: Callable[[Mapping[str, Any]], Any] = _start
    ) -> None:
        self.file = file
        self.done: dict[int, Any] = {}
        self._revive = revive
        self._asked = json.loads(json.dumps({"schema": SCHEMA, **asked}))
        if file is not None and file.exists():
            self._read(file)

    def add(self, start: Any) -> None:
        """Store an entry, a dataclass with a `number`; it is on disk when this returns."""
        self.done[start.number] = start
        if self.file is None:
            return
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._append(self.file, self._asked)
        self._append(self.file, asdict(start))

    def remove(self) -> None:
        """Delete the file: the run is finished and its result is written elsewhere."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def _append(self, file: Path, document: Mapping[str, Any]) -> None:
        line = (json.dumps(document) + "\n").encode()
        handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
        try:
            size = os.lseek(handle, 0, os.SEEK_END)
            if size and os.pread(handle, 1, size - 1) != b"\n":
                line = b"\n" + line  # after an incomplete line
            os.write(handle, line)
            os.fsync(handle)
        finally:
            os.close(handle)

    def _read(self, file: Path) -> None:
        documents = []
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                documents.append(json.loads(line))
            except ValueError:
                continue
        if not documents:
            return
        if documents[0] != self._asked:
            raise InputError(
                "is the journal of another run: " + _difference(documents[0], self._asked),
                file=file,
                remedy="finish that run with its own options, choose another --out, or delete this file",
            )
        for document in documents[1:]:
            try:
                entry = self._revive(document)
            except (AttributeError, KeyError, TypeError, ValueError):
                continue  # a damaged line: this entry is computed again
            self.done[entry.number] = entry


def _difference(there: Any, asked: Mapping[str, Any]) -> str:
    if not isinstance(there, dict):
        return "it has another format"
    for key, value in asked.items():
        if there.get(key) != value:
            return f"{key} is {there.get(key)!r} there and {value!r} here"
    return "it contains other options"
