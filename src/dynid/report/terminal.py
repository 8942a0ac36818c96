"""Terminal output shared by all commands: console, warnings, titles, plain tables, progress bar."""

from __future__ import annotations

import math
import os
import re
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, cast

from dynid.common import interrupts
from dynid.common.catalogue import Severity
from dynid.common.notices import Notice, by_severity

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

_PIPE_WIDTH = 100
_PATIENCE = 1.0  # seconds before a bar is shown
# Control and format characters (escape sequences, writing direction), lone surrogates, other line ends.
_STEERING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_KEPT = "\n\t"


def standard_console() -> Console:
    """Standard output; colours only on a terminal."""
    from rich.console import Console

    is_fixed = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    if sys.stdout.isatty():
        return Console(highlight=False)
    trimmed = cast("IO[str]", _Trimmed(sys.stdout))
    return Console(highlight=False, width=_PIPE_WIDTH if is_fixed else None, file=trimmed)


class _Trimmed:
    """A stream that leaves out blanks at the ends of lines, which tables are filled with."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Blanks only move the end of a line."""
        return int(self._stream.write(re.sub(r" +(?=\n)", "", text)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


COLOURS = {Severity.STOP: "red", Severity.CARE: "yellow", Severity.NOTE: "blue"}


def print_warnings(out: Console, warnings: Sequence[Notice]) -> None:
    """Print each warning with its severity and remedy, the most severe first."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for notice in by_severity(warnings):
        style = f"bold {COLOURS[notice.severity]}"
        grid.add_row(verbatim("!", style), verbatim(f"{notice.code} ({notice.severity})", style))
        grid.add_row("", verbatim(notice.text))
        if notice.remedy:
            grid.add_row("", verbatim(f"remedy: {notice.remedy}", "cyan"))
    if warnings:
        out.print(grid)
        out.print()


def plain_table(*titles: str, left: Sequence[str] | None = None) -> Table:
    """A plain table; columns are right-aligned except those of `left` (default: the first)."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    texts = (titles[0],) if left is None else left
    for title in titles:
        if title in texts:
            table.add_column(verbatim(title), justify="left", overflow="fold")
        else:
            table.add_column(verbatim(title), justify="right", no_wrap=True)
    return table


GAP = 3  # characters between the columns of a table


def fitting(
    columns: Mapping[str, Sequence[str]], spare: Sequence[str], width: int
) -> dict[str, Sequence[str]]:
    """Columns, title -> cells, without as many of the `spare` ones as a table of this width has no room for.

    Args:
        spare: Titles, the least important first.
    """
    kept = dict(columns)
    for title in spare:
        if sum(max(map(len, (name, *cells))) + GAP for name, cells in kept.items()) - GAP > width:
            kept.pop(title, None)
    return kept


def print_titled(out: Console, title: str, content: RenderableType) -> None:
    """Print something under a title."""
    out.print()
    if title:
        out.print(verbatim(title, "bold"))
    out.print(content)


def verbatim(text: str, style: str = "") -> Text:
    """Literal text: names are never interpreted as markup or terminal control."""
    from rich.text import Text

    return Text(printable(text), style=style)


class StageClock:
    """Time left of a stage, from the pace since its first report; a fraction that falls is a new stage."""

    def __init__(self) -> None:
        self._first = self._last = math.inf
        self._began = 0.0

    def left(self, fraction: float, now: float) -> str:
        """In words; empty if the pace is not known yet.

        Args:
            fraction: Of the stage, 0 to 1.
            now: Time of a clock, in [s].
        """
        if fraction < self._last:
            self._first, self._began = fraction, now
        self._last = fraction
        if fraction <= self._first:
            return ""
        seconds = (now - self._began) * (1.0 - fraction) / (fraction - self._first)
        if seconds < 90.0:
            return f"about {seconds:.0f} s left"
        minutes = seconds / 60.0
        return f"about {minutes:.0f} min left" if minutes < 90.0 else f"about {minutes / 60.0:.1f} h left"


class ProgressBar:
    """Called with the stage and the fraction completed; draws on standard error, if that is a terminal.

    Use as a context manager, so that the bar disappears when the run ends or fails.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shows = sys.stderr.isatty()
        self._bar: Progress | None = None
        self._clock = StageClock()

    def __call__(self, stage: str, fraction: float) -> None:
        """Show that `fraction` (0 to 1) of `stage` is done; raise an interrupt that was lost on the way."""
        interrupts.check()
        left = self._clock.left(fraction, time.monotonic())
        if not self._shows or (self._bar is None and time.monotonic() - self._start < _PATIENCE):
            return
        bar = self._open()
        bar.update(bar.task_ids[0], description=stage, completed=fraction, left=left)

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
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            left = TextColumn("{task.fields[left]}")
            self._bar = Progress(*columns, left, console=Console(stderr=True), transient=True)
            self._bar.add_task("", total=1.0, left="")
            self._bar.start()
        return self._bar


def printable(text: str) -> str:
    """`text` without characters that move the cursor, set colours, rename windows or change the direction."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _steers(c) else c for c in text)


def _steers(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in _STEERING


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
