"""`comparison.json` (`dynid.comparison/1`), `comparison.csv` and `comparison.html`."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

from dynid.report.comparison_text import TITLES, cell
from dynid.report.csv_file import RowWriter, harmless
from dynid.report.html import page_style, static_policy
from dynid.report.json_file import json_text, plain
from dynid.report.template import render
from dynid.statistics.comparison import Comparison

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
