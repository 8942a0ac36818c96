"""A comparison as a terminal table, and as `comparison.json` (`dynid.comparison/1`), `.csv` and `.html`."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dynid.common.audience import for_python
from dynid.report.comparison_page import TITLES, cell, comparison_html, difference_text, shown_columns
from dynid.report.csv_file import RowWriter, harmless
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, plural, unit_text, value_text
from dynid.report.terminal import (
    fitting,
    plain_table,
    print_titled,
    print_warnings,
    standard_console,
    verbatim,
)
from dynid.statistics.comparison import Comparison, ParameterLine

if TYPE_CHECKING:
    from rich.console import Console

_MOST_PARAMETERS = 30
_MOST_EQUAL = 5  # the same where no difference is significant
_EFFORTS = (
    "errors are 100 |tau - tau_pred| / |tau| of efforts that were not used for the fit; held-out %: low-pass"
    " filtered as in the fit; as logged: every sample that is not masked, not filtered, noise included;"
    " change: relative to the first line"
)
_MOTIONS = (
    "held-out %: error of simulated free motions against motions that were not used for the fit, in percent"
    " of the measured motion (positions and attitudes each); change: relative to the first line"
)
_SPARE = ("bic", "F", "p", "fit_percent", "date", "verdict", "n_parameters")  # first to go where it is narrow
_WIDTH = 110  # of the text that Python prints
SCHEMA = "dynid.comparison/1"
FILES = ("comparison.json", "comparison.csv", "comparison.html")
_COLUMNS = (
    "label",
    "date",
    "verdict",
    "model",
    "estimator",
    "drive",
    "n_parameters",
    "model_percent",
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
        judged = comparison[comparison.recommended].verdict in ("", "good")
        out.print(verbatim(comparison.words, "bold green" if judged else "bold yellow"))
    elif comparison.words:
        out.print(verbatim(comparison.words))
    shown = shown_columns(comparison)
    cells_of = {TITLES[name]: [cell(line, name) for line in comparison.lines] for name in shown}
    columns = fitting(cells_of, [TITLES[name] for name in _SPARE], out.width)
    table = plain_table(*columns)
    for line, *cells in zip(comparison.lines, *columns.values(), strict=True):
        style = "bold green" if line.label == comparison.recommended else "dim" if line.failed else ""
        table.add_row(*(verbatim(text, style) for text in cells))
    held_out = f" ({comparison.held_out})" if comparison.held_out else ""
    print_titled(out, comparison.title + held_out, table)
    if "held_out_percent" in shown:
        efforts = any(line.effort_percent is not None for line in comparison.lines)
        out.print(verbatim(_EFFORTS if efforts else _MOTIONS, "dim"))
    if comparison.parameters:
        out.print(verbatim(difference_text(comparison), "bold" if comparison.different else ""))
        _print_parameters(out, comparison)


def comparison_text(comparison: Comparison) -> str:
    """The same as text, with arguments of Python instead of options."""
    from rich.console import Console

    out = io.StringIO()
    print_comparison(comparison, console=Console(file=out, width=_WIDTH, no_color=True))
    return for_python("\n".join(line.rstrip() for line in out.getvalue().splitlines()))


def _print_parameters(out: Console, comparison: Comparison) -> None:
    most = _MOST_PARAMETERS if comparison.different else _MOST_EQUAL
    tested = [item for item in comparison.parameters if item.z is not None]
    worst = sorted(tested or comparison.parameters, key=lambda item: -(item.z or 0.0))[:most]
    names = [line.label for line in comparison.lines]
    rows = [[_value(entry, k) for k in range(len(names))] for entry in worst]
    cells_of = {
        "parameter": [entry.name for entry in worst],
        "unit": [unit_text(entry.unit) for entry in worst],
        **dict(zip(names, zip(*rows, strict=True), strict=True)),
        "difference / sigma": [number(entry.z, 2) for entry in worst],
    }
    columns = fitting(cells_of, names[1:-1], out.width)
    table = plain_table(*columns, left=("parameter", "unit"))
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(verbatim, cells))
    count = len(comparison.parameters)
    title = (
        "Parameters" if count <= len(worst) else f"The {len(worst)} of {count} parameters that differ most"
    )
    hidden = len(cells_of) - len(columns)
    if hidden:
        title += f" ({plural(hidden, 'result')} between not shown: comparison.html has all)"
    print_titled(out, title, table)


def _value(entry: ParameterLine, k: int) -> str:
    value = entry.values[k]
    return "-" if value is None else value_text(value, entry.sigmas[k])


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The content of `comparison.json`; undefined values are null."""
    document: dict[str, Any] = plain({"schema": SCHEMA, **asdict(comparison)})
    return document


def comparison_csv(comparison: Comparison) -> str:
    """One row per fit, then the held-out error of each effort and fold in separate columns."""
    efforts = list(dict.fromkeys(name for line in comparison.lines for name in line.by_effort))
    n_folds = max((len(line.folds) for line in comparison.lines), default=0)
    text = io.StringIO()
    writer = RowWriter(text)
    extra = [*(f"held_out_percent_{name}" for name in efforts), *(f"fold_{k + 1}" for k in range(n_folds))]
    writer.writerow([*_COLUMNS, *map(harmless, extra)])
    for line in comparison.lines:
        cells = [plain(getattr(line, name)) for name in _COLUMNS]
        cells = [harmless(value) if isinstance(value, str) else value for value in cells]
        folds = [*line.folds, *[None] * (n_folds - len(line.folds))]
        writer.writerow([*cells, *(plain(line.by_effort.get(name)) for name in efforts), *map(plain, folds)])
    return text.getvalue()


def comparison_files(comparison: Comparison) -> dict[str, str]:
    """Name -> text."""
    texts = (
        json_text(comparison_document(comparison)),
        comparison_csv(comparison),
        comparison_html(comparison),
    )
    return dict(zip(FILES, texts, strict=True))
