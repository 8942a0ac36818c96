"""What did it find? Bodies in kg and mm, friction over speed, the parameters, and how they varied in time.

Free oscillations and tensions of a robot on cables, as a part of the report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.estimator.solution import History
from dynid.mechanism.drive_terms import DRIVE_TERMS, drive_term, is_positive
from dynid.report.bodies import body_row, far_words, is_known, origins_of
from dynid.report.numbers import number, unit_text
from dynid.report.page import Section, render
from dynid.report.panels import history_figure
from dynid.report.plots import PALETTE, Figure, band, figure, line, panel, points
from dynid.report.quality import (
    LABELS,
    MEANING,
    Quality,
    compared,
    holds_truth,
    home_of,
    interval_figure,
    loads,
    numbered_reasons,
    quality,
)
from dynid.report.words import in_words, owner_of
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.friction import curves_of

if TYPE_CHECKING:
    from markupsafe import Markup


_SHOWN = ("M", "MX", "MY", "MZ", "XX", "YY", "ZZ", "XY", "XZ", "YZ")  # mass first, products last
_NOTHING = 1e-9  # of the body's largest entry of that unit: solver residual of an exact zero
_FEW = 20  # parameters whose table is not folded

_SYMBOLS = (
    ({"M"}, "M: mass"),
    ({"MX", "MY", "MZ"}, "MX, MY, MZ: mass times centre of mass"),
    ({"XX", "XY", "XZ", "YY", "YZ", "ZZ"}, "XX to ZZ: inertia about the origin of the body frame"),
    *(({symbol}, f"{symbol}: {term.words}") for symbol, term in DRIVE_TERMS.items() if symbol.isalpha()),
)

Entry = Mapping[str, Any]
_PANELS = 12
_LISTED = 8
_CURVES = 12
_WIDE = 1.5  # times the span of a friction curve: half of a band that hides it


def section(estimate: Estimate) -> Section:
    """Bodies, friction, then the full table of parameters."""
    parts = [parameters(estimate), standard(estimate), history(estimate)]
    drawn, bad = estimate.bodies, estimate.verdict.level == "bad"
    known = [entry for entry in drawn if is_known(entry)]
    bodies = [body_row(entry) for entry in known]
    drives = drive_table(estimate)
    shown = [p for row in (drives["rows"] if drives else {}).values() for p in row.values()]
    body = render(
        "found.html",
        bad=bad,
        loads=_loads(estimate, {row["name"] for row in bodies if row["measured"]}),
        bodies=bodies,
        in_sums=len(drawn) - len(known),
        origins=origins_of(bodies),
        far=far_words(bodies),
        exported=all(entry["exported"] for entry in drawn),
        exact=all(entry["exact"] for entry in known),
        changed=any(row["change"] for row in bodies),
        described=any(row["prior_mass"] != "-" for row in bodies),
        friction=friction_figure(estimate),
        drives=drives,
        negative={
            p.name for p in shown if p.ci95 and p.ci95[1] < 0.0 and is_positive(p.name.partition("_")[0])
        },
        greyed={p.name for p in shown if quality(p) is Quality.ZERO},
        sensor=compared(estimate) == "reading",
        swings=swings_part(estimate),
        parts=[part for part in parts if part is not None],
    )
    note = "not usable: see the verdict" if bad else ""
    return Section("found", "What did it find?", body, folded=bad, note=note, unprinted=bad)


def _loads(estimate: Estimate, measured: Collection[str]) -> list[tuple[str, str]]:
    """Name and values of each tool and payload; not of those whose mass is all there is, and in the table."""
    named = [(name.partition(" ")[2], text.replace("+-", "±")) for name, text in loads(estimate)]
    return [(name, text) for name, text in named if name not in measured or "centre" in text]


def drive_table(estimate: Estimate) -> Mapping[str, Any] | None:
    """Identified drive terms with sigma: one line per drive, one column per term; None without any."""
    cells: dict[str, dict[str, ParameterEstimate]] = {}
    for parameter in estimate.parameters:
        symbol, _, owner = parameter.name.partition("_")
        if drive_term(symbol) is not None and owner and not parameter.grouping:
            cells.setdefault(owner, {})[symbol] = parameter
    listed = dict.fromkeys((*DRIVE_TERMS, *(symbol for row in cells.values() for symbol in row)))
    symbols = [symbol for symbol in listed if any(symbol in row for row in cells.values())]
    units = {symbol: {row[symbol].unit for row in cells.values() if symbol in row} for symbol in symbols}
    shared = {symbol: next(iter(seen)) if len(seen) == 1 else "" for symbol, seen in units.items()}
    words = {symbol: term.words for symbol in symbols if (term := drive_term(symbol)) is not None}
    return {"rows": cells, "symbols": symbols, "units": shared, "words": words} if cells else None


def friction_figure(
    estimate: Estimate, speed: float | None = None, drives: Sequence[str] = ()
) -> Figure | None:
    """Friction of drives over their speed, with band and measured points; None without friction.

    Args:
        speed: Draw curves up to this speed, in [rad/s] or [m/s], without points; None: as far as the log.
        drives: Names or globs of the drives; none: all.
    """
    drawn = [entry for entry in estimate.drawing.get("logs", ()) if entry["friction"]]
    curves = drawn[0]["friction"] if drawn and speed is None else curves_of(estimate, speed or 1.0)
    if not curves or (not drawn and speed is None):
        return None
    curves = _of_drives(curves, drives)
    panels, wide = [], False
    for drawn_curve in curves[:_CURVES]:
        v, f, half = drawn_curve["speed"], drawn_curve["effort"], drawn_curve["half"]
        per = "rad/s" if drawn_curve["unit"] == "N m" else "m/s"
        series = [
            band("95 % interval", v, f - half, f + half, "red"),
            line("identified friction", v, f, "red", width=1.8),
        ]
        if "points" in drawn_curve:
            seen = points(
                "samples of the log", drawn_curve["at"], drawn_curve["points"], "blue", size=1.6, opacity=0.45
            )
            series.insert(0, seen)
        title = f"{drawn_curve['owner']} [{unit_text(drawn_curve['unit'])}]"
        near = _near(np.concatenate([f, drawn_curve.get("points", [])]), half)
        wide |= bool(near)
        panels.append(panel(series, title, f"speed [{per}]", near, height=180))
    cloud = (
        f" A point is friction plus residual at a sample of log '{drawn[0]['log']}'; "
        "points away from the curve show friction that the model lacks."
        if any("points" in drawn_curve for drawn_curve in curves)
        else ""
    )
    cut = " A band that fills a panel is wider than shown: that friction is hardly known." if wide else ""
    left = f" The first {_CURVES} of {len(curves)} drives." if len(curves) > _CURVES else ""
    return figure(
        "friction",
        panels,
        "friction of every drive over its speed",
        f"Friction over speed.{cloud}{cut}{left}",
        columns=3,
    )


def _of_drives(curves: Sequence[dict[str, Any]], drives: Sequence[str]) -> list[dict[str, Any]]:
    """Curves whose owner one of the names or globs matches; all if none is given."""
    owners = [curve["owner"] for curve in curves]
    for pattern in drives:
        if not any(fnmatchcase(owner, pattern) for owner in owners):
            raise InputError(
                f"no drive '{pattern}' with friction in this result" + nearest(pattern, owners),
                remedy="name a joint or motor, or a glob",
            )
    return [
        curve for curve in curves if not drives or any(fnmatchcase(curve["owner"], name) for name in drives)
    ]


def _near(seen: Float[Array, "n"], half: Float[Array, "m"]) -> dict[str, Any]:
    """Range of an axis that keeps curve and points readable beside a band far wider than they are."""
    low, high = float(np.nanmin(seen)), float(np.nanmax(seen))
    span = (high - low) or 1.0
    return {"range": [low - span, high + span]} if np.nanmax(half) > _WIDE * span else {}


def parameters(estimate: Estimate) -> Markup:
    """A figure of the relative intervals and the full table."""
    truth = estimate.truth or {}
    rows = [
        {
            "p": p,
            "owner": owner_of(p.name),
            "words": in_words(p.name, p.grouping),
            "quality": quality(p).value,
            "truth": truth.get(p.name),
            "inside": holds_truth(p, truth[p.name]) if p.name in truth else None,
        }
        for p in estimate.parameters
    ]
    marks = [row["quality"] for row in rows]
    return render(
        "parameters.html",
        doubts=[str(k) for k, reason in numbered_reasons(estimate) if home_of(reason.code) != "use"],
        rows=rows,
        few=len(rows) <= _FEW,
        figure=interval_figure(estimate),
        labels=LABELS,
        legend=[(kind.value, MEANING[kind], marks.count(kind.value)) for kind in Quality if kind in marks],
        meanings=[
            text for symbols, text in _SYMBOLS if symbols & {_symbol(p.name) for p in estimate.parameters}
        ],
        per_mass=any("/M_" in p.name for p in estimate.parameters),
        sums=any(p.name.endswith("_R") for p in estimate.parameters),
        has_prior=any(p.prior is not None for p in estimate.parameters),
        has_truth=bool(truth),
        how=estimate.choices.get("uncertainty", ""),
    )


def _symbol(name: str) -> str:
    return name.partition("_")[0].partition("/")[0].rstrip("+-")


def standard(estimate: Estimate) -> Markup | None:
    """The physically consistent standard set; omitted if not requested, or if the parameters are this set."""
    if {entry["name"] for entry in estimate.standard} <= {p.name for p in estimate.parameters}:
        return None
    entries = [_split(entry) for entry in estimate.standard]
    determined = sum(entry["from"] == "data" for entry in entries)
    return render(
        "standard.html",
        rows=entries,
        bodies={owner: _without_dust(row) for owner, row in _by_owner(entries).items()},
        symbols=_SHOWN,
        determined=determined,
        sensor=compared(estimate) in ("reading", "wrench"),
        bad=estimate.verdict.level == "bad",
    )


def _split(entry: Entry) -> Entry:
    name = str(entry["name"])
    return {**entry, "symbol": name.partition("_")[0], "owner": owner_of(name)}


def _by_owner(entries: Sequence[Entry]) -> dict[str, dict[str, Entry]]:
    """Owner -> symbol -> entry, of the ten inertial parameters."""
    by_owner: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        if entry["symbol"] in _SHOWN:
            by_owner.setdefault(entry["owner"], {})[entry["symbol"]] = entry
    return by_owner


def _without_dust(row: Mapping[str, Entry]) -> dict[str, Entry]:
    """A body's entries, with zeros in place of rounding errors."""
    largest: dict[str, float] = {}
    for entry in row.values():
        largest[entry["unit"]] = max(largest.get(entry["unit"], 0.0), abs(entry["value"]))
    return {
        symbol: {**entry, "value": 0.0} if abs(entry["value"]) < _NOTHING * largest[entry["unit"]] else entry
        for symbol, entry in row.items()
    }


def history(estimate: Estimate) -> Markup | None:
    """Changes with the affected parameters, and the parameters that vary most; only recursive estimates."""
    record = estimate.history
    if record is None or not np.any(np.isfinite(record.chi)):
        return None
    units = {entry.name: entry.unit for entry in estimate.parameters}
    names = shown_names(record)
    n = len(record.changes)
    return render(
        "history.html",
        said="no change detected" if not n else f"{n} change{'s' if n > 1 else ''} detected",
        changes=record.changes,
        units=units,
        most=_LISTED,
        half_life=record.half_life,
        figure=history_figure(record, names, units),
        shown=len(names),
        total=len(record.names),
    )


def shown_names(history: History) -> list[str]:
    """Parameters for the figure: those that changed abruptly, then those that vary most relative to sigma."""
    jumped = [jump.name for change in history.changes for jump in change.jumped]
    finite = np.isfinite(history.chi).all(axis=1)
    late = history.chi[finite][int(finite.sum()) // 4 :]
    sigma = np.where(history.sigma[-1] > 0, history.sigma[-1], np.inf)
    moved = np.ptp(late, axis=0) / sigma if len(late) else np.zeros(len(history.names))
    others = [history.names[k] for k in np.argsort(-moved, kind="stable")]
    return list(dict.fromkeys([*jumped, *others]))[:_PANELS]


def swings_part(estimate: Estimate) -> Markup | None:
    """Modes of the first run, tensions, and a table of all runs; None where nothing swings on cables."""
    swings = estimate.drawing.get("swings")
    if not swings:
        return None
    runs = swings["runs"]
    tensions = np.stack([swing_run["tensions"] for swing_run in runs])
    return render(
        "swings.html",
        modes=list(zip(runs[0]["frequencies"], runs[0]["words"], strict=True)),
        agreement=_agreement(runs),
        drawn=bool(swings["modes"]),
        least=float(np.nanmin(tensions)),
        most=float(np.nanmax(tensions)),
        slack=bool(np.nanmin(tensions) < 0.0),
        unit=swings["unit"],
        origin=swings["origin"],
        figure=_tension_ranges(swings),
        cables=list(swings["cables"]),
        rows=[
            {
                "log": swing_run["log"],
                "t": swing_run["t"],
                "frequencies": list(zip(swing_run["frequencies"], swing_run["measured"], strict=True)),
                "tensions": swing_run["tensions"].T.tolist(),
            }
            for swing_run in runs
        ],
    )


def _agreement(runs: list[dict[str, Any]]) -> str:
    """How far the frequencies of the model are from those of the logs."""
    model, log = (
        np.concatenate([swing_run[key] for swing_run in runs]) for key in ("frequencies", "measured")
    )
    seen = np.isfinite(log)
    if not seen.any():
        return "The runs are too short to show the frequencies."
    off = 100.0 * (model[seen] / log[seen] - 1.0)
    return (
        f"Over {len(runs)} run{'s' if len(runs) > 1 else ''} the frequencies of the model differ from those"
        f" of the log by {number(float(np.median(np.abs(off))), 2)} % (median)."
    )


def _tension_ranges(swings: dict[str, Any]) -> Figure:
    """Tension of every cable in every run: at rest, and its range."""
    series: list[dict[str, Any]] = []
    runs, cables = swings["runs"], swings["cables"]
    place = np.arange(1.0, len(runs) + 1.0)
    for i, name in enumerate(cables):
        x = place + 0.16 * (i - 0.5 * (len(cables) - 1))
        rest, low, high = np.stack([swing_run["tensions"][:, i] for swing_run in runs], axis=1)
        colour = PALETTE[i % len(PALETTE)]
        ends = np.column_stack([low, high, np.full(len(runs), np.nan)]).ravel()
        tips = [f"{name}: {a:.3g} to {b:.3g} {swings['unit']}" for a, b in zip(low, high, strict=True)]
        series.append(line(name, np.repeat(x, 3), ends, colour, width=4))
        series.append(points("", x, rest, colour, size=3, tips=tips, quiet=True))
    chart = panel(series, "", "run", f"tension [{swings['unit']}]", height=240)
    caption = "Tension in each run. Bar: range during the run. Dot: at rest."
    label = "tension of every cable in every run"
    return figure("swings-tension", [chart], label, caption, fixed=True, table=False)  # a table follows
