"""What are the standard parameters of the bodies, and which entries do the data determine?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dynid.report.page import render
from dynid.report.quality import owner_of
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate

_SHOWN = ("M", "MX", "MY", "MZ", "XX", "YY", "ZZ", "XY", "XZ", "YZ")  # mass first, products last
_NOTHING = 1e-9  # of the body's largest entry of that unit: solver residual of an exact zero

Entry = Mapping[str, Any]


def section(estimate: Estimate) -> Section | None:
    """The physically consistent standard set; omitted if not requested."""
    if not estimate.standard:
        return None
    entries = [_split(entry) for entry in estimate.standard]
    bodies, drives = _by_owner(entries, inertial=True), _by_owner(entries, inertial=False)
    terms = list(dict.fromkeys(symbol for row in drives.values() for symbol in row))
    determined = sum(entry["from"] == "data" for entry in entries)
    body = render(
        "standard.html",
        rows=entries,
        bodies={owner: _without_dust(row) for owner, row in bodies.items()},
        symbols=_SHOWN,
        drives=drives,
        terms=terms,
        determined=determined,
        sensor=estimate.model == "wrench",
    )
    return Section("standard", f"Standard parameters ({len(entries)})", body)


def _split(entry: Entry) -> Entry:
    name = str(entry["name"])
    return {**entry, "symbol": name.partition("_")[0], "owner": owner_of(name)}


def _by_owner(entries: Sequence[Entry], inertial: bool) -> dict[str, dict[str, Entry]]:
    """Owner -> symbol -> entry, of the ten inertial parameters or of all others."""
    found: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        if (entry["symbol"] in _SHOWN) == inertial:
            found.setdefault(entry["owner"], {})[entry["symbol"]] = entry
    return found


def _without_dust(row: Mapping[str, Entry]) -> dict[str, Entry]:
    """A body's entries, with zeros in place of rounding errors."""
    largest: dict[str, float] = {}
    for entry in row.values():
        largest[entry["unit"]] = max(largest.get(entry["unit"], 0.0), abs(entry["value"]))
    return {
        symbol: {**entry, "value": 0.0} if abs(entry["value"]) < _NOTHING * largest[entry["unit"]] else entry
        for symbol, entry in row.items()
    }
