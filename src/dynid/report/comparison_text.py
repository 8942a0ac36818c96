"""The terminal table of a comparison: warnings first, then the recommendation, then all lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.report.console import standard_console
from dynid.report.numbers import number, percent, unit_text, value_text
from dynid.report.tables import plain_table, print_titled, print_warnings, verbatim
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
