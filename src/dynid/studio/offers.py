"""Files of the folder in which the studio was started, offered on the page: nobody has to type their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dynid.mechanism.load import DESCRIPTIONS
from dynid.motion.logs import READERS

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


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            seen = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(seen, key=lambda entry: entry.name)


def _ending(names: list[str], kinds: Any) -> list[str]:
    endings = tuple(kind for kind in kinds if kind.startswith("."))
    return [name for name in names if name.lower().endswith(endings)][:_MOST]


def _is_result(entry: os.DirEntry[str]) -> bool:
    return (Path(entry.path) / "result.json").is_file()
