"""`comparison.html`: which result predicts better, for which efforts, and which parameters differ."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dynid.base.grouping import probability
from dynid.common.arrays import Array, Float
from dynid.mechanism.drive_terms import drive_term
from dynid.report.numbers import number, percent, unit_text, value_text
from dynid.report.page import Section, render, scripted_page
from dynid.report.plots import PALETTE, Figure, bars, figure, line, panel, points
from dynid.report.words import in_words
from dynid.statistics.comparison import SIGNIFICANT, Comparison, Line, ParameterLine

TITLES = {
    "label": "fit",
    "date": "recorded",
    "verdict": "verdict",
    "n_parameters": "parameters",
    "model_percent": "model error % of peak",
    "fit_percent": "error of the fit %",
    "held_out_percent": "held-out %",
    "effort_percent": "error as logged %",
    "change_percent": "change %",
    "F": "F",
    "p": "p",
    "bic": "BIC",
}
_ERRORS = ("held_out_percent", "effort_percent", "model_percent", "fit_percent")  # the first one counts
_DRAWN = 12  # parameters that are drawn
_SAME_DAY = 0.02  # days: results this close in time have no order
_DRIFT = 3  # dates that show a direction
_FEW = 12  # parameters whose table is not folded
_SURPRISING = 4.0  # sigma: of normal errors 1 in 16 000 differs by more


def shown_columns(comparison: Comparison) -> list[str]:
    """Columns of the table that have a value."""
    return [
        name for name in TITLES if any(getattr(line, name) not in (None, "") for line in comparison.lines)
    ]


def cell(line: Line, name: str) -> str:
    """One value of a line as text."""
    value = getattr(line, name)
    if name == "label":
        return f"{value} (failed)" if line.failed else str(value)
    if name in _ERRORS[1:3] and value is None and line.verdict and not line.failed:
        return "no validation log"
    if value is None or value == "":
        return "-"
    if name == "date":
        return str(value)[:10]
    if name in ("n_parameters", "verdict"):
        return str(value)
    if name == "change_percent":
        return f"{value:+.1f}" if abs(value) >= 0.05 else "0"
    if name in ("bic",):
        return f"{value:.1f}"
    return number(value, 3) if name in ("F", "p") or value < 10 else percent(value)


def difference_text(comparison: Comparison) -> str:
    """How many parameters differ significantly, and the first of them, in one sentence."""
    tested, differing = sum(entry.p is not None for entry in comparison.parameters), comparison.different
    if not tested:
        return "No parameter has a sigma in two of the results: differences cannot be judged."
    if not differing:
        largest = max(comparison.parameters, key=lambda entry: 0.0 if entry.p is None else entry.z or 0.0)
        p = min(1.0, tested * (largest.p or 0.0))
        few = ": only few parts of a log determine its sigma" if (largest.z or 0.0) > _SURPRISING else ""
        return (
            f"No significant difference between the results: {tested} parameters were tested. The largest,"
            f" {number(largest.z, 2)} sigma of {largest.name}, can be chance"
            f" (p {probability(largest.p or 0.0)} alone, p {probability(p)} after"
            f" correction for all tests){few}."
        )
    days = _days([line.date for line in comparison.lines])
    names = ", ".join(_change(entry, days) for entry in differing[:3])
    names += f" and {len(differing) - 3} others" if len(differing) > 3 else ""
    verb = "differs" if len(differing) == 1 else "differ"
    return f"{len(differing)} of {tested} parameters {verb} significantly: {names}."


def _change(entry: ParameterLine, days: Float[Array, "n"] | None) -> str:
    """`Fv_elbow (2.1 to 2.7 N m s/rad)`: from the first to the last result that has it, by their dates."""
    known = [k for k, value in enumerate(entry.values) if value is not None]
    if days is not None:
        known.sort(key=lambda k: float(days[k]))
    values = [float(entry.values[k] or 0.0) for k in known]
    first, last = (value_text(values[i], entry.sigmas[known[i]]) for i in (0, -1))
    steps = np.sign(np.diff(values))
    drift = ""
    if days is not None and len(values) >= _DRIFT and abs(steps.sum()) == len(steps):
        drift = f", {'rising' if steps[0] > 0 else 'falling'} with every date"
    return f"{entry.name} ({first} to {last} {unit_text(entry.unit)}".rstrip() + f"{drift})"


def comparison_html(comparison: Comparison) -> str:
    """One self-contained page in the style of the report."""
    sections = [_lines(comparison), _efforts(comparison), _parameters(comparison)]
    return scripted_page(
        "comparison.html",
        (),
        comparison=comparison,
        sections=[section for section in sections if section is not None],
    )


def _lines(comparison: Comparison) -> Section:
    shown = shown_columns(comparison)
    errors = [name for name in _ERRORS if name in shown]
    columns = [name for name in shown if name not in errors[1:]]
    best = comparison[comparison.recommended] if comparison.recommended else None
    symbols = dict.fromkeys(word for line in comparison.lines for word in line.label.split())
    body = render(
        "comparison_lines.html",
        comparison=comparison,
        table=_table(comparison, columns),
        more=_table(comparison, ["label", *errors[1:]]) if errors[1:] else None,
        failed=[line for line in comparison.lines if line.failed],
        tested="F" in shown,
        terms=[f"{symbol}: {term.words}" for symbol in symbols if (term := drive_term(symbol)) is not None],
        figure=_error_figure(comparison),
        words=_why(comparison),
        level=(best.verdict or "good") if best else "care",
        difference=difference_text(comparison) if comparison.parameters else "",
        names=_meanings(comparison),
    )
    return Section("lines", "Which one predicts better?", body)


def _table(comparison: Comparison, columns: Sequence[str]) -> dict[str, Any]:
    """Titles and rows of a table; the recommended row is the best."""
    rows = [
        {"cells": [cell(line, name) for name in columns], "best": line.label == comparison.recommended}
        for line in comparison.lines
    ]
    return {"titles": [TITLES[name] for name in columns], "rows": rows}


def _meanings(comparison: Comparison) -> dict[str, str]:
    """Name of a parameter -> its words."""
    return {entry.name: in_words(entry.name) for entry in comparison.parameters if in_words(entry.name)}


def _why(comparison: Comparison) -> str:
    """The recommendation as a sentence behind its headline."""
    words = comparison.words
    if comparison.recommended:
        words = words.partition(f"{comparison.recommended}: ")[2]
    return words[:1].upper() + words[1:] + ("." if words and not words.endswith(".") else "")


def _error_figure(comparison: Comparison) -> Figure | None:
    """One bar per line, and the error of each fold or log."""
    known = [line for line in comparison.lines if line.error is not None]
    if len(known) < 2:
        return None
    colours = ["green" if line.label == comparison.recommended else "blue" for line in known]
    series: list[Any] = [bars("all", [line.error or 0.0 for line in known], flat=True, colours=colours)]
    spots = [(x, float(k)) for k, line in enumerate(known) for x in line.folds if len(line.folds) > 1]
    if spots:
        x, y = zip(*spots, strict=True)
        series.append(points("each part", list(x), list(y), "ink", size=3, open=True))
    whole = "rms effort" if any(line.effort_percent is not None for line in known) else "motion"
    axis = {"title": f"error on data not used for the fit [% of the {whole}]"}
    return figure(
        "errors",
        [panel(series, "", axis, {"names": [line.label for line in known]}, row=26)],
        "error of each",
        "Shorter is better; green: recommended." + (" Circles: each fold or log alone." if spots else ""),
        table=False,
        fixed=True,
    )


def _efforts(comparison: Comparison) -> Section | None:
    names = list(dict.fromkeys(name for line in comparison.lines for name in line.by_effort))
    lines = [line for line in comparison.lines if line.by_effort]
    differ = any(warned.code == "logs-differ" for warned in comparison.warnings)
    if not names or differ or len(lines) < 2:  # nothing to rank
        return None
    series = []
    for k, fit in enumerate(lines[: len(PALETTE)]):
        shift = 0.3 * (k / max(1, len(lines) - 1) - 0.5)  # equal errors do not hide each other
        places = [i + shift for i, name in enumerate(names) if name in fit.by_effort]
        errors = [fit.by_effort[name] for name in names if name in fit.by_effort]
        symbol = ("circle", "square", "diamond", "triangle")[k % 4]
        series.append(points(fit.label, errors, places, PALETTE[k], symbol=symbol, open=k > 3))
    high = max(x for line in lines for x in line.by_effort.values())
    axis = {"title": "error [% of the rms effort]", "range": [0.0, 1.06 * high or 1.0]}
    drawn = figure(
        "by-effort",
        [panel(series, "", axis, {"names": names}, row=24)],
        "error of each effort",
        "Further left is better. An effort with marks far apart is predicted well by some only.",
        table=False,
        fixed=True,
    )
    body = render("comparison_efforts.html", names=names, lines=lines, figure=drawn)
    return Section("efforts", "For which efforts?", body)


def _parameters(comparison: Comparison) -> Section | None:
    if not comparison.parameters:
        return None
    differing = {entry.name for entry in comparison.different}
    order = sorted(comparison.parameters, key=lambda entry: -(entry.z or 0.0))
    rows = [
        {"one": entry, "significant": entry.name in differing, "chance": _chance(entry)} for entry in order
    ]
    labels = [line.label for line in comparison.lines]
    body = render(
        "comparison_parameters.html",
        labels=labels,
        rows=rows,
        few=len(rows) <= _FEW,
        text=difference_text(comparison),
        names=_meanings(comparison),
        significant=100.0 * SIGNIFICANT,
        figure=_differences(order[:_DRAWN], comparison, differing),
    )
    return Section("parameters", "Which parameters differ?", body)


def _chance(entry: ParameterLine) -> str:
    return "-" if entry.p is None else probability(entry.p).removeprefix("= ")


def _half(entry: ParameterLine, k: int) -> float:
    """Half of the 95 % interval of the k-th result; zero without one."""
    return float((entry.halves[k] if entry.halves else None) or 0.0)


def _differences(shown: list[ParameterLine], comparison: Comparison, differing: set[str]) -> Figure | None:
    """Values over the dates of the results if these differ; else one below the other."""
    days = _days([line.date for line in comparison.lines])
    if days is not None:
        return _drift_figure(shown, comparison, differing, days)
    return _list_figure(shown, [line.label for line in comparison.lines], differing)


def _days(dates: list[str]) -> Float[Array, "n"] | None:
    """Days since the first date; None where one is not known, or all are the same."""
    if not all(dates):
        return None
    times = [datetime.fromisoformat(text_of_day) for text_of_day in dates]
    seconds = [moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() for moment in times]
    days = (np.array(seconds) - min(seconds)) / 86400.0
    return days if np.ptp(days) > _SAME_DAY else None


def _drift_figure(
    shown: list[ParameterLine], comparison: Comparison, differing: set[str], days: Float[Array, "n"]
) -> Figure | None:
    """Values with 95 % intervals over time."""
    first = min(line.date for line in comparison.lines)[:10]
    panels = []
    for entry in shown:
        known = [k for k, value in enumerate(entry.values) if value is not None]
        if len(known) < 2:
            continue
        known.sort(key=lambda k: float(days[k]))
        x = days[known]
        value = np.array([float(entry.values[k] or 0.0) for k in known])
        half = np.array([_half(entry, k) for k in known])
        low, high = value - half, value + half
        ends = np.column_stack([low, high, np.full(len(x), np.nan)]).ravel()
        colour = "red" if entry.name in differing else "blue"
        tips = [
            f"{comparison.lines[k].label}: {value_text(entry.values[k] or 0.0, entry.sigmas[k])}"
            for k in known
        ]
        series = [
            line("95 % interval", np.repeat(x, 3), ends, colour, width=1.5),
            line("value", x, value, colour, width=1.0, dash=True, quiet=True),
            points("value", x, value, colour, size=3, tips=tips),
        ]
        badge = {"badge": "differs", "level": "care"} if entry.name in differing else {}
        title = f"{entry.name} [{unit_text(entry.unit)}]"
        panels.append(panel(series, title, f"days since {first}", height=170, **badge))
    if not panels:
        return None
    caption = (
        "The parameters that differ most, over the dates of the logs, with 95 % intervals. "
        "Values that move in one direction, by more than their intervals, show drift."
    )
    return figure("drift", panels, "parameters that differ most, over time", caption, columns=3, fixed=True)


def _list_figure(shown: list[ParameterLine], labels: list[str], differing: set[str]) -> Figure | None:
    """Values with 95 % intervals, results from top to bottom in the order given."""
    panels = []
    for entry in shown:
        known = [k for k, value in enumerate(entry.values) if value is not None]
        if len(known) < 2:
            continue
        values = [float(entry.values[k] or 0.0) for k in known]
        half = [_half(entry, k) for k in known]
        reach = [v + s * h for v, h in zip(values, half, strict=True) for s in (-1.0, 1.0)]
        pad = 0.06 * float(np.ptp(reach)) or 1.0
        tips = [
            f"{labels[k]}: {value_text(entry.values[k] or 0.0, entry.sigmas[k])} {unit_text(entry.unit)}"
            for k in known
        ]
        badge = {"badge": "differs", "level": "care"} if entry.name in differing else {}
        marks = points(
            "value and 95 % interval",
            values,
            [float(k) for k in known],
            "red" if entry.name in differing else "blue",
            half=half,
            tips=tips,
            quiet=True,
        )
        axis = {"range": [min(reach) - pad, max(reach) + pad]}
        title = f"{entry.name} [{unit_text(entry.unit)}]"
        panels.append(panel([marks], title, axis, {"names": labels}, row=22, **badge))
    if not panels:
        return None
    return figure(
        "drift",
        panels,
        "parameters that differ most, result by result",
        "The parameters that differ most, with 95 % intervals; results from top to bottom as given. "
        "The dates of the logs are not known, or equal: give the key date in the experiments to see drift.",
        columns=3,
        fixed=True,
        table=False,
    )
