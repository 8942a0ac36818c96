"""A progress bar on the terminal, for long runs."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from dynid.common import interrupts

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0  # seconds before a bar is shown


class ProgressBar:
    """Called with the stage and the fraction completed; draws on standard error, if that is a terminal.

    Use as a context manager, so that the bar disappears when the run ends or fails.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shows = sys.stderr.isatty()
        self._bar: Progress | None = None

    def __call__(self, stage: str, fraction: float) -> None:
        """Show that `fraction` (0 to 1) of `stage` is done; raise an interrupt that was lost on the way."""
        interrupts.check()
        if not self._shows or (self._bar is None and time.monotonic() - self._start < _PATIENCE):
            return
        bar = self._open()
        bar.update(bar.task_ids[0], description=stage, completed=fraction)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if error is None:
            interrupts.check()

    def _open(self) -> Progress:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.add_task("", total=1.0)
            self._bar.start()
        return self._bar
