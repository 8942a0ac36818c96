"""Structure and identifiable parameters of a mechanism: `dynid info` as text and as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dynid.report.numbers import grouping_text
from dynid.report.terminal import COLOURS, standard_console, verbatim

if TYPE_CHECKING:
    from rich.console import Console

    from dynid.info import Info

_COUNTS = ("dof", "n_bodies", "n_joints", "n_actuators", "n_closures", "n_standard", "n_base")
_GLUE = "\N{NO-BREAK SPACE}"
_FIELDS = ("name", *_COUNTS, "base", "eliminated", "grouped")


def info_document(info: Info) -> dict[str, Any]:
    """The content of `info --json`."""
    from dynid.report.json_file import plain

    base = [{"name": e.name, "unit": e.unit, "grouping": e.grouping} for e in info.base]
    shown = {field: base if field == "base" else plain(getattr(info, field)) for field in _FIELDS}
    return {**shown, "notices": [vars(notice) for notice in info.notices]}


def print_info(info: Info, console: Console | None = None) -> None:
    """Print counts, base parameters with their grouping, what is eliminated and what is grouped."""
    out = console or standard_console()
    for notice in info.notices:
        out.print(verbatim(f"! {notice.code} ({notice.severity}): {notice.text}", COLOURS[notice.severity]))
    out.print(verbatim(info.name, "bold"))
    out.print(verbatim(_count_line(info)))
    out.print(verbatim(f"{info.n_standard} standard parameters, {info.n_base} base parameters\n"))
    _print_base(out, info)
    _print_names(out, "Eliminated (no effect on the efforts)", info.eliminated)
    _print_names(out, "Grouped into others", info.grouped)


def _count_line(info: Info) -> str:
    parts = (
        ("degree of freedom", "degrees of freedom", info.dof),
        ("body", "bodies", info.n_bodies),
        ("joint", "joints", info.n_joints),
        ("actuator", "actuators", info.n_actuators),
        ("closure", "closures", info.n_closures),
    )
    return ", ".join(f"{count} {single if count == 1 else many}" for single, many, count in parts)


def _print_base(out: Console, info: Info) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in ("base parameter", "unit", "grouping"):
        table.add_column(title, overflow="fold")
    names = max([len("base parameter"), *(len(entry.name) for entry in info.base)])
    units = max([len("unit"), *(len(entry.unit) for entry in info.base)])
    room = max(20, out.width - names - units - 6)  # two gaps of three
    for entry in info.base:
        text = grouping_text(entry.name, entry.grouping)
        table.add_row(verbatim(entry.name), verbatim(entry.unit), verbatim(_wrapped(text, room)))
    out.print(table)


def _wrapped(relation: str, width: int) -> str:
    """Lines of a sum, broken only between its terms."""
    glued = re.sub(r"(?<=[^+-]) (?=[^+-])|(?<=[+-]) ", _GLUE, relation)
    return "\n".join(textwrap.wrap(glued, width, break_on_hyphens=False)).replace(_GLUE, " ")


def _print_names(out: Console, title: str, names: Sequence[str]) -> None:
    from rich.padding import Padding

    if names:
        out.print(verbatim(f"\n{title}: {len(names)}", "bold"))
        out.print(Padding(verbatim(", ".join(names)), (0, 0, 0, 2)))
