"""The output console: the width of the terminal, a fixed width for a file or pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 100


def standard_console() -> Console:
    """Standard output; colours only on a terminal."""
    from rich.console import Console

    is_fixed = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=_PIPE_WIDTH if is_fixed else None)
