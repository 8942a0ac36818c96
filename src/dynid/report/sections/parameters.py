"""What are the parameters, how well is each known, which are unknown, and how did they vary in time?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.estimator.history import History
from dynid.report.intervals import interval_figure
from dynid.report.page import Section, render
from dynid.report.panels import history_figure
from dynid.report.quality import MEANING, Quality, holds_truth, owner_of, quality
from dynid.statistics.estimate import Estimate

_SHOWN = ("M", "MX", "MY", "MZ", "XX", "YY", "ZZ", "XY", "XZ", "YZ")  # mass first, products last
_NOTHING = 1e-9  # of the body's largest entry of that unit: solver residual of an exact zero

Entry = Mapping[str, Any]
_PANELS = 12
_LISTED = 8


def parameters_section(estimate: Estimate) -> Section:
    """A figure of the relative intervals, the full table, and the most correlated pairs."""
    truth = estimate.truth or {}
    rows = [
        {
            "p": p,
            "owner": owner_of(p.name),
            "quality": quality(p).value,
            "truth": truth.get(p.name),
            "inside": holds_truth(p, truth[p.name]) if p.name in truth else None,
        }
        for p in estimate.parameters
    ]
    found = {row["quality"] for row in rows}
    body = render(
        "parameters.html",
        rows=rows,
        figure=interval_figure(estimate),
        legend=[(kind.value, MEANING[kind]) for kind in Quality if kind.value in found],
        has_prior=any(p.prior is not None for p in estimate.parameters),
        has_truth=bool(truth),
        how=estimate.choices.get("uncertainty", ""),
        pairs=estimate.correlations,
    )
    return Section("parameters", f"Parameters ({len(rows)})", body)


def unknown_section(estimate: Estimate) -> Section | None:
    """Parameters not determined by these data or by any motion; omitted if there is none."""
    if not estimate.not_identifiable and not estimate.invisible:
        return None
    body = render("unknown.html", items=estimate.not_identifiable, invisible=estimate.invisible)
    return Section("unknown", f"Not identifiable ({len(estimate.not_identifiable)})", body)


def standard_section(estimate: Estimate) -> Section | None:
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


def history_section(estimate: Estimate) -> Section | None:
    """Changes with the affected parameters, and the parameters that vary most; only recursive estimates."""
    history = estimate.history
    if history is None or not np.any(np.isfinite(history.chi)):
        return None
    units = {one.name: one.unit for one in estimate.parameters}
    names = shown_names(history)
    body = render(
        "history.html",
        changes=history.changes,
        units=units,
        most=_LISTED,
        half_life=history.half_life,
        figure=history_figure(history, names, units),
        shown=len(names),
        total=len(history.names),
    )
    n = len(history.changes)
    said = "no change detected" if not n else f"{n} change{'s' if n > 1 else ''} detected"
    return Section("history", f"Parameters over time ({said})", body)


def shown_names(history: History) -> list[str]:
    """Parameters for the figure: those that changed abruptly, then those that vary most relative to sigma."""
    jumped = [one.name for change in history.changes for one in change.jumped]
    finite = np.isfinite(history.chi).all(axis=1)
    late = history.chi[finite][int(finite.sum()) // 4 :]
    sigma = np.where(history.sigma[-1] > 0, history.sigma[-1], np.inf)
    moved = np.ptp(late, axis=0) / sigma if len(late) else np.zeros(len(history.names))
    others = [history.names[k] for k in np.argsort(-moved, kind="stable")]
    return list(dict.fromkeys([*jumped, *others]))[:_PANELS]
