"""A comparison as a terminal table, and as `comparison.json` (`dynid.comparison/1`), `.csv` and `.html`."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dynid.report.csv_file import RowWriter, harmless
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, percent, unit_text, value_text
from dynid.report.page import page_style, render, static_policy
from dynid.report.terminal import plain_table, print_titled, print_warnings, standard_console, verbatim
from dynid.statistics.comparison import Comparison, Line

if TYPE_CHECKING:
    from rich.console import Console

_MOST_PARAMETERS = 30
_EFFORTS = (
    "errors are 100 |tau - tau_pred| / |tau| of efforts that were not used for the fit; held-out %: low-pass"
    " filtered as in the fit; as logged %: every sample, not filtered; change: relative to the first line"
)
_MOTIONS = (
    "held-out %: error of simulated free motions against motions that were not used for the fit, in percent"
    " of the measured motion (positions and attitudes each); change: relative to the first line"
)
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
SCHEMA = "dynid.comparison/1"
FILES = ("comparison.json", "comparison.csv", "comparison.html")
_COLUMNS = (
    "label",
    "model",
    "estimator",
    "drive",
    "n_parameters",
    "fit_percent",
    "held_out_percent",
    "effort_percent",
    "change_percent",
    "F",
    "p",
    "bic",
    "failed",
)


def print_comparison(comparison: Comparison, *, console: Console | None = None) -> None:
    """Print the table of a comparison."""
    out = console or standard_console()
    print_warnings(out, comparison.warnings)
    if comparison.recommended:
        out.print(verbatim(comparison.words, "bold green"))
    elif comparison.words:
        out.print(verbatim(comparison.words))
    shown = [name for name in TITLES if any(getattr(line, name) is not None for line in comparison.lines)]
    table = plain_table(*(TITLES[name] for name in shown))
    for line in comparison.lines:
        style = "bold green" if line.label == comparison.recommended else "dim" if line.failed else ""
        table.add_row(*(verbatim(cell(line, name), style) for name in shown))
    held_out = f" ({comparison.held_out})" if comparison.held_out else ""
    print_titled(out, comparison.title + held_out, table)
    efforts = any(line.effort_percent is not None for line in comparison.lines)
    out.print(verbatim(_EFFORTS if efforts else _MOTIONS, "dim"))
    if comparison.parameters:
        _print_parameters(out, comparison)


def _print_parameters(out: Console, comparison: Comparison) -> None:
    names = [line.label for line in comparison.lines]
    table = plain_table("parameter", "unit", *names, "largest difference / sigma", left=("parameter", "unit"))
    worst = sorted(comparison.parameters, key=lambda one: -(one.z or 0.0))[:_MOST_PARAMETERS]
    for one in worst:
        cells = [
            "-" if value is None else value_text(value, sigma)
            for value, sigma in zip(one.values, one.sigmas, strict=True)
        ]
        texts = (one.name, unit_text(one.unit), *cells, number(one.z, 2))
        table.add_row(*(verbatim(text) for text in texts))
    count = len(comparison.parameters)
    title = (
        "Parameters" if count <= len(worst) else f"The {len(worst)} of {count} parameters that differ most"
    )
    print_titled(out, title, table)


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


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The content of `comparison.json`; undefined values are null."""
    found: dict[str, Any] = plain({"schema": SCHEMA, **asdict(comparison)})
    return found


def comparison_csv(comparison: Comparison) -> str:
    """One row per fit, then the held-out error of each effort and fold in separate columns."""
    efforts = list(dict.fromkeys(name for line in comparison.lines for name in line.by_effort))
    n_folds = max((len(line.folds) for line in comparison.lines), default=0)
    text = io.StringIO()
    writer = RowWriter(text)
    extra = [*(f"held_out_percent_{name}" for name in efforts), *(f"fold_{k + 1}" for k in range(n_folds))]
    writer.writerow([*_COLUMNS, *map(harmless, extra)])
    for line in comparison.lines:
        own = [plain(getattr(line, name)) for name in _COLUMNS]
        own = [harmless(value) if isinstance(value, str) else value for value in own]
        folds = [*line.folds, *[None] * (n_folds - len(line.folds))]
        writer.writerow([*own, *(plain(line.by_effort.get(name)) for name in efforts), *map(plain, folds)])
    return text.getvalue()


def comparison_html(comparison: Comparison) -> str:
    """One self-contained page without scripts."""
    shown = [name for name in TITLES if any(getattr(line, name) is not None for line in comparison.lines)]
    rows = [
        {
            "line": line,
            "cells": [cell(line, name) for name in shown],
            "best": line.label == comparison.recommended,
        }
        for line in comparison.lines
    ]
    efforts = list(dict.fromkeys(name for line in comparison.lines for name in line.by_effort))
    page = render(
        "comparison.html",
        comparison=comparison,
        titles=[TITLES[name] for name in shown],
        rows=rows,
        efforts=efforts,
        style=page_style(),
        policy=static_policy(),
    )
    return str(page)


def comparison_files(comparison: Comparison) -> dict[str, str]:
    """Name -> text."""
    texts = (
        json_text(comparison_document(comparison)),
        comparison_csv(comparison),
        comparison_html(comparison),
    )
    return dict(zip(FILES, texts, strict=True))
