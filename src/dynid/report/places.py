"""Paths in a result: relative to its folder in files, absolute in memory.

A result folder may be sent to others: it contains no home directory, and can be moved with its inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any


def relative_places(provenance: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A provenance for `folder/result.json`; paths that share only the root stay absolute."""

    def relative(file: str) -> str:
        path = os.path.abspath(file)
        if not _share(path, str(folder)):
            return path
        return PurePath(os.path.relpath(path, folder)).as_posix()

    return _changed(provenance, relative, lambda name: relative(name) if os.path.isabs(name) else name)


def absolute_places(provenance: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The provenance in a file of `folder`, with absolute paths."""
    home = folder.resolve()

    def absolute(file: str) -> str:
        return os.path.normpath(home / file)

    # The name of a built-in robot, or of one without a file, is not a path.
    return _changed(provenance, absolute, lambda name: absolute(name) if (home / name).is_file() else name)


def _share(one: str, other: str) -> bool:
    try:
        common = os.path.commonpath([one, other])
    except ValueError:  # two drives
        return False
    return common != PurePath(common).anchor


def _changed(
    provenance: Mapping[str, Any], path: Callable[[str], str], robot: Callable[[str], str]
) -> dict[str, Any]:
    """The provenance with every file path changed."""
    made = dict(provenance)
    if "inputs" in made:
        made["inputs"] = [
            {**one, "file": path(one["file"])} if one.get("sha256") and one.get("file") else one
            for one in made["inputs"]
        ]
    options = dict(made.get("options") or {})
    if isinstance(options.get("robot"), str):
        options["robot"] = robot(options["robot"])
    unloaded = options.get("unloaded")
    if isinstance(unloaded, Mapping) and isinstance(unloaded.get("result"), str):
        options["unloaded"] = {**unloaded, "result": path(unloaded["result"])}
    return made | ({"options": options} if options else {})
