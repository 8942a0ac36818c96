"""`parameters.csv`: one row a parameter, for spreadsheets."""

from __future__ import annotations

import csv
import io

from dynid.report.json_file import plain
from dynid.statistics.estimate import Estimate

_COLUMNS = (
    "name",
    "unit",
    "value",
    "sigma",
    "sigma_rel_percent",
    "ci95_low",
    "ci95_high",
    "essential",
    "prior",
    "truth",
    "grouping",
)
_FORMULA_STARTS = ("=", "+", "-", "@")  # a spreadsheet would run such text


def parameters_csv(estimate: Estimate) -> str:
    """The parameters as CSV text: comma, decimal point, full precision, empty where unknown."""
    truth = estimate.truth or {}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for p in estimate.parameters:
        low, high = p.ci95 or (None, None)
        numbers = [plain(x) for x in (p.value, p.sigma, p.sigma_rel_percent, low, high)]
        essential = "true" if p.essential else "false"
        known = [plain(p.prior), plain(truth.get(p.name))]
        writer.writerow([_harmless(p.name), p.unit, *numbers, essential, *known, _harmless(p.grouping)])
    return text.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
