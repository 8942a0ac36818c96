"""What a mechanism is and what can be known of it: `dynid info` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dynid.report.json_file import plain

if TYPE_CHECKING:
    from rich.console import Console

    from dynid.info import Info

_COUNTS = ("dof", "n_bodies", "n_joints", "n_actuators", "n_closures", "n_standard", "n_base")
_FIELDS = ("name", *_COUNTS, "base", "eliminated", "grouped")


def info_document(info: Info) -> dict[str, Any]:
    """The content of `info --json`."""
    document = {field: plain(getattr(info, field)) for field in _FIELDS if field != "base"}
    base = [{key: _part(entry, key) for key in ("name", "unit", "grouping")} for entry in info.base]
    return {field: base if field == "base" else document[field] for field in _FIELDS}


def print_info(info: Info, console: Console | None = None) -> None:
    """Print counts, base parameters with their grouping, what is eliminated and what is grouped."""
    from rich.console import Console
    from rich.text import Text

    out = console or Console(highlight=False)
    for notice in getattr(info, "notices", ()):
        out.print(Text(f"! {notice.code}: {notice.text}", style="yellow"))
    out.print(Text(info.name, style="bold"))
    out.print(Text(_count_line(info)))
    for closure in getattr(info, "closures", ()):
        out.print(Text(f"  closure {closure}"))
    out.print(Text(f"{info.n_standard} standard parameters, {info.n_base} base parameters\n"))
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
    return ", ".join(f"{count} {one if count == 1 else many}" for one, many, count in parts)


def _print_base(out: Console, info: Info) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for title in ("base parameter", "unit"):
        table.add_column(title, no_wrap=True)
    table.add_column("grouping", overflow="fold")
    for entry in info.base:
        table.add_row(*(Text(str(_part(entry, key))) for key in ("name", "unit", "grouping")))
    out.print(table)


def _print_names(out: Console, title: str, names: Sequence[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if names:
        out.print(Text(f"\n{title}: {len(names)}", style="bold"))
        out.print(Padding(Text(_list(names)), (0, 0, 0, 2)))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _part(entry: Any, key: str) -> Any:
    return entry[key] if isinstance(entry, dict) else getattr(entry, key)
