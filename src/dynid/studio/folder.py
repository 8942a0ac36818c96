"""The folder in which the studio was started: its files, which the page offers, and typed paths."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError
from dynid.mechanism.load import DESCRIPTIONS
from dynid.motion.logs import READERS, ending
from dynid.motion.reading import check_place

_MOST = 200  # names of a kind: more of them are no list to choose from


def offered(folder: Path) -> dict[str, Any]:
    """Names of robots (experiment files too) and logs of a folder, and results in `results`.

    Only names are read. Text files may be notes, and are offered where no other log is there.
    """
    files = [entry.name for entry in _entries(folder) if entry.is_file()]
    logs = _ending(files, READERS)
    plain = (".txt", ".dat")
    made = [entry.name for entry in _entries(folder / "results") if _is_result(entry)]
    return {
        "robots": _ending(files, DESCRIPTIONS),
        "logs": [name for name in logs if not name.lower().endswith(plain)] or logs,
        "results": [f"results/{name}" for name in made[:_MOST]],
    }


def typed_path(folder: Path, text: str) -> Path:
    """A typed path, relative to the folder; devices and pipes are refused."""
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InputError("no path is given", remedy="type the path of a file")
    if not _is_text(text):
        raise InputError(
            "the name has bytes that are not UTF-8",
            file=ascii(text),
            remedy="rename it: an experiment file cannot name it",
        )
    try:
        path = folder / Path(text.strip()).expanduser()
    except RuntimeError:
        raise InputError(f"'{text}' is in the folder of an unknown user", remedy="type the path") from None
    if path.exists():
        check_place(path)
    return path


def typed_log(folder: Path, text: str) -> Path:
    """A typed log. Folders and patterns are looked through only inside the folder."""
    path = typed_path(folder, text)
    several = (path.is_dir() and ending(path) not in READERS) or (
        not path.exists() and glob.has_magic(str(path))
    )
    if several and not path.resolve().is_relative_to(folder):
        raise InputError(
            "folders and patterns are read only inside the folder in which the studio was started",
            file=text,
            remedy="give single files, or start the studio there",
        )
    return path


def shown(folder: Path, path: Path) -> str:
    """A path as it is typed: inside the folder relative to it."""
    inside = path.resolve().is_relative_to(folder)
    return str(path.resolve().relative_to(folder)) if inside else str(path)


def _is_text(name: str) -> bool:
    """Whether an experiment file can hold it: names of files are any bytes on Unix."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [one for one in entries if not one.name.startswith(".") and _is_text(one.name)]
    except OSError:
        return []
    return sorted(seen, key=lambda entry: entry.name)


def _ending(names: list[str], kinds: Any) -> list[str]:
    endings = tuple(kind for kind in kinds if kind.startswith("."))
    return [name for name in names if name.lower().endswith(endings)][:_MOST]


def _is_result(entry: os.DirEntry[str]) -> bool:
    return (Path(entry.path) / "result.json").is_file()
