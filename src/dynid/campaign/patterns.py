"""Patterns of logs: `*`, `**`, sets of characters, and the fields {unit}, {date} and {run}."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from pathlib import Path

from dynid.campaign.stores import remote_paths
from dynid.motion.reading import is_address

FIELD = re.compile(r"\{(unit|date|run)\}")


def paths_of(pattern: str, start: Path) -> list[str]:
    """Paths and addresses that match now."""
    wanted = FIELD.sub("*", pattern)
    if is_address(pattern):
        return remote_paths(wanted)
    if not glob.has_magic(wanted) or os.path.lexists(start / wanted):
        return [str(start / wanted)] if os.path.lexists(start / wanted) else []
    found = glob.glob(wanted, root_dir=start, recursive=True)
    if wanted.endswith("**"):  # matches the folder itself, too
        found = [path for path in found if path and not path.endswith(os.sep)]
    return sorted(str(start / path) for path in found)


def expression_of(pattern: str) -> re.Pattern[str]:
    """A regular expression that reads the fields of a path."""
    parts: list[str] = []
    seen: set[str] = set()
    for piece in re.split(r"(\{(?:unit|date|run)\}|\*\*/?|\*|\?|\[!?\]?[^\]/]*\])", pattern):
        field_match = FIELD.fullmatch(piece)
        if field_match and field_match[1] not in seen:
            seen.add(field_match[1])
            parts.append(f"(?P<{field_match[1]}>[^/]+?)")
        elif field_match:
            parts.append(f"(?P={field_match[1]})")
        elif piece.startswith("[") and piece.endswith("]"):  # of a pattern, or part of a name
            parts.append(f"(?:{fnmatch.translate(piece)[4:-3]}|{re.escape(piece)})")
        else:
            parts.append(
                {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
            )
    return re.compile("".join(parts))


def asks_for(pattern: str, log: str) -> bool:
    """Whether a pattern has this path, also if the log is gone, or the pattern started in another folder."""
    if is_address(pattern):
        return expression_of(pattern).fullmatch(log) is not None
    before = "" if os.path.isabs(pattern) else "(?:.*/)?"
    expression = expression_of(Path(pattern).as_posix()).pattern
    return re.fullmatch(before + expression, Path(log).as_posix()) is not None
