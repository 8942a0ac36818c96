"""Terminal output shared by all commands: warnings, titles, plain tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynid.common.catalogue import Severity
from dynid.common.notices import Notice, by_severity
from dynid.common.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text


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
