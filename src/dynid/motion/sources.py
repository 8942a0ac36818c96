"""Which logs a path means: a file, a folder that is one log, all logs of a folder, or those of a pattern."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.motion.logs import READERS, ending
from dynid.motion.settings import LogEntry

_NOTES = (".txt", ".dat")  # in a folder of logs these are mostly remarks
_SHOWN = 12


def each_log(sources: Iterable[Any]) -> Iterator[Any]:
    """The sources, with one entry per file where a path means several; all else unchanged."""
    for source in sources:
        if isinstance(source, LogEntry):
            yield from (
                source if place == source.file else source.changed(file=place) for place in files(source.file)
            )
        elif isinstance(source, str | os.PathLike):
            yield from files(os.fspath(source))
        else:
            yield source


def files(place: str) -> list[str]:
    """Paths of the logs that a path or pattern means, in natural order (`run2` before `run10`).

    A path of a file, existing or not, is returned as it is: its reader knows what is wrong with it. Tables of
    results that a pattern finds (`--out` inside the folder of the logs) are no logs.
    """
    path = Path(place)
    if path.is_dir():
        return [place] if ending(path) in READERS else _logs_of(path)
    if path.exists() or not glob.has_magic(place):
        return [place]
    matched = [Path(text) for text in glob.glob(place, recursive=True)]
    logs = _naturally(
        candidate
        for candidate in matched
        if ending(candidate) in READERS and not _is_result(candidate.parent)
    )
    if not logs:
        folder = Path(place[: re.search(r"[*?[]", place).start()] + "x").parent  # type: ignore[union-attr]
        problem = f"nothing matches '{path.name}'" if not matched else f"no match of '{path.name}' is a log"
        raise InputError(
            problem + _content(folder), file=place, remedy=f"logs end in {', '.join(_endings())}"
        )
    return logs


def _logs_of(folder: Path) -> list[str]:
    """All logs directly in a folder; files of plain text only if there are no others."""
    if _is_result(folder):
        raise InputError(
            "this folder is a result of dynid, not a folder of logs",
            file=folder,
            remedy="give the folder of the logs",
        )
    members = [member for member in folder.iterdir() if not member.name.startswith(".")]
    logs = [member for member in members if ending(member) in READERS]
    logs = [member for member in logs if ending(member) not in _NOTES] or logs
    if not logs:
        raise InputError(
            "no log in this folder" + _content(folder),
            file=folder,
            remedy=f"logs end in {', '.join(_endings())}",
        )
    return _naturally(logs)


def _is_result(folder: Path) -> bool:
    return (folder / "result.json").is_file()


def _naturally(paths: Iterable[Path]) -> list[str]:
    def key(path: Path) -> list[tuple[int, str]]:
        parts = re.split(r"([0-9]+)", str(path))
        return [(int(part), "") if part.isdigit() and part.isascii() else (-1, part) for part in parts]

    return [str(place) for place in sorted(paths, key=key)]


def _content(folder: Path) -> str:
    if not folder.is_dir():
        return f"; there is no folder '{folder}'"
    names = sorted(member.name for member in folder.iterdir())
    shown = ", ".join(names[:_SHOWN]) + (f", ... ({len(names)} entries)" if len(names) > _SHOWN else "")
    return f"; the folder '{folder}' contains {shown or 'nothing'}"


def _endings() -> list[str]:
    return [kind for kind in READERS if kind.startswith(".")]
