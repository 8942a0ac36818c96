"""What several commands share."""

from __future__ import annotations

import contextlib
from pathlib import Path


def shown(path: Path) -> str:
    """A path as short as it can be said from here."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)
