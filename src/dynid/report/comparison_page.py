"""`comparison.html`: which result predicts better, for which efforts, and which parameters differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.report.numbers import number, percent, unit_text, value_text
from dynid.report.page import Section, render, scripted_page
from dynid.report.plots import PALETTE, Figure, bars, figure, panel, points
from dynid.statistics.comparison import SIGNIFICANT, Comparison, Line, ParameterLine

TITLES = {
    "label": "fit",
    "n_parameters": "parameters",
    "fit_percent": "fit %",
    "held_out_percent": "held-out %",
    "effort_percent": "as logged %",
    "change_percent": "change %",
    "F": "F",
    "p": "p",
    "bic": "BIC",
}
_DRAWN = 12  # parameters that are drawn
_FEW = 12  # parameters whose table is not folded


def shown_columns(comparison: Comparison) -> list[str]:
    """Columns of the table that have a value."""
    return [name for name in TITLES if any(getattr(line, name) is not None for line in comparison.lines)]


def cell(line: Line, name: str) -> str:
    """One value of a line as text."""
    value = getattr(line, name)
    if name == "label":
        return f"{value} (failed)" if line.failed else str(value)
    if value is None:
        return "-"
    if name == "n_parameters":
        return str(value)
    if name == "change_percent":
        return f"{value:+.1f}"
    if name in ("bic",):
        return f"{value:.1f}"
    return number(value, 3) if name in ("F", "p") or value < 10 else percent(value)


def difference_text(comparison: Comparison) -> str:
    """How many parameters differ significantly, and the first of them, in one sentence."""
    tested, found = sum(one.p is not None for one in comparison.parameters), comparison.different
    if not tested:
        return "No parameter has a sigma in two of the results: differences cannot be judged."
    if not found:
        chance = "by chance some differ by 2 or 3 sigma"
        return (
            f"No significant difference between the results; {tested} parameters were tested, and {chance}."
        )
    names = ", ".join(one.name for one in found[:3]) + (", ..." if len(found) > 3 else "")
    verb = "differs" if len(found) == 1 else "differ"
    return f"{len(found)} of {tested} parameters {verb} significantly: {names}."


def comparison_html(comparison: Comparison) -> str:
    """One self-contained page in the style of the report."""
    sections = [_lines(comparison), _efforts(comparison), _parameters(comparison)]
    return scripted_page(
        "comparison.html",
        (),
        comparison=comparison,
        sections=[one for one in sections if one is not None],
    )


def _lines(comparison: Comparison) -> Section:
    shown = shown_columns(comparison)
    rows = [
        {"cells": [cell(line, name) for name in shown], "best": line.label == comparison.recommended}
        for line in comparison.lines
    ]
    body = render(
        "comparison_lines.html",
        comparison=comparison,
        titles=[TITLES[name] for name in shown],
        rows=rows,
        failed=[line for line in comparison.lines if line.failed],
        tested="F" in shown,
        figure=_error_figure(comparison),
        words=_why(comparison),
        difference=difference_text(comparison) if comparison.parameters else "",
    )
    return Section("lines", "Which one predicts better?", body)


def _why(comparison: Comparison) -> str:
    """The recommendation as a sentence behind its headline."""
    words = comparison.words.removeprefix(f"use {comparison.recommended}: ")
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
    axis = {"title": "error on data not used for the fit [%]"}
    return figure(
        "errors",
        [panel(series, "", axis, {"names": [line.label for line in known]}, row=26)],
        "error of every line",
        "Shorter is better; green: recommended." + (" Circles: each fold or log alone." if spots else ""),
        table=False,
        fixed=True,
    )


def _efforts(comparison: Comparison) -> Section | None:
    names = list(dict.fromkeys(name for line in comparison.lines for name in line.by_effort))
    lines = [line for line in comparison.lines if line.by_effort]
    if not names:
        return None
    series = []
    for k, line in enumerate(lines[: len(PALETTE)]):
        places = [float(i) for i, name in enumerate(names) if name in line.by_effort]
        errors = [line.by_effort[name] for name in names if name in line.by_effort]
        symbol = ("circle", "square", "diamond", "triangle")[k % 4]
        series.append(points(line.label, errors, places, PALETTE[k], symbol=symbol, open=k > 3))
    high = max(x for line in lines for x in line.by_effort.values())
    axis = {"title": "error [% of the norm of the effort]", "range": [0.0, 1.06 * high or 1.0]}
    drawn = figure(
        "by-effort",
        [panel(series, "", axis, {"names": names}, row=24)],
        "error of each effort",
        "Further left is better. An effort with marks far apart is predicted well by some lines only.",
        table=False,
        fixed=True,
    )
    body = render("comparison_efforts.html", names=names, lines=lines, figure=drawn)
    return Section("efforts", "For which efforts?", body)


def _parameters(comparison: Comparison) -> Section | None:
    if not comparison.parameters:
        return None
    found = {one.name for one in comparison.different}
    order = sorted(comparison.parameters, key=lambda one: -(one.z or 0.0))
    rows = [{"one": one, "significant": one.name in found, "chance": _chance(one)} for one in order]
    labels = [line.label for line in comparison.lines]
    body = render(
        "comparison_parameters.html",
        labels=labels,
        rows=rows,
        few=len(rows) <= _FEW,
        text=difference_text(comparison),
        significant=100.0 * SIGNIFICANT,
        figure=_drift_figure(order[:_DRAWN], labels, found),
    )
    return Section("parameters", "Which parameters differ?", body)


def _chance(one: ParameterLine) -> str:
    return "-" if one.p is None else "< 0.0001" if one.p < 1e-4 else number(one.p, 2)


def _drift_figure(shown: list[ParameterLine], labels: list[str], found: set[str]) -> Figure | None:
    """Values with 95 % intervals, results from top to bottom in the order given."""
    panels = []
    for one in shown:
        known = [k for k, value in enumerate(one.values) if value is not None]
        if len(known) < 2:
            continue
        values = [float(one.values[k] or 0.0) for k in known]
        half = [1.96 * float(one.sigmas[k] or 0.0) for k in known]
        reach = [v + s * h for v, h in zip(values, half, strict=True) for s in (-1.0, 1.0)]
        pad = 0.06 * float(np.ptp(reach)) or 1.0
        tips = [
            f"{labels[k]}: {value_text(one.values[k] or 0.0, one.sigmas[k])} {unit_text(one.unit)}"
            for k in known
        ]
        badge = {"badge": "differs", "level": "care"} if one.name in found else {}
        marks = points(
            "value and 95 % interval",
            values,
            [float(k) for k in known],
            "red" if one.name in found else "blue",
            half=half,
            tips=tips,
            quiet=True,
        )
        axis = {"range": [min(reach) - pad, max(reach) + pad]}
        title = f"{one.name} [{unit_text(one.unit)}]"
        panels.append(panel([marks], title, axis, {"names": labels}, row=22, **badge))
    if not panels:
        return None
    return figure(
        "drift",
        panels,
        "parameters that differ most, result by result",
        "The parameters that differ most, with 95 % intervals; results from top to bottom as given. "
        "Results given from old to new show drift: marks that move in one direction.",
        columns=3,
        fixed=True,
        table=False,
    )
