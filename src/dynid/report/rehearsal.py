"""A rehearsal as a terminal table, and as `rehearsal.json` (`dynid.rehearsal/1`), `.csv` and `.html`."""

from __future__ import annotations

import io
import math
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from dynid.common.csv_text import RowWriter
from dynid.report.csv_file import harmless
from dynid.report.json_file import json_text, plain
from dynid.report.numbers import number, percent, plural, unit_text, value_text
from dynid.report.page import scripted_page
from dynid.report.plots import figure, line, panel, points
from dynid.report.terminal import plain_table, print_titled, print_warnings, standard_console, verbatim
from dynid.statistics.estimate_parts import worst
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

if TYPE_CHECKING:
    from rich.console import Console

    from dynid.report.plots import Figure

TITLES = ("parameter", "unit", "truth", "sigma", "%", "rms", "ratio", "bias", "in 95 %")
_MORE = (
    "",
    "",
    "",
    "standard deviation",
    "of the truth",
    "of the errors",
    "rms / sigma",
    "in sigma",
    "hold truth",
)
_MOST = 60
_KNOWN = 20.0  # percent: a parameter with a smaller sigma counts as known, as in the report
_ASSUMED = ("rate", "length", "effort noise", "encoder steps", "pose noise")
SCHEMA = "dynid.rehearsal/1"
FILES = ("rehearsal.json", "rehearsal.csv", "rehearsal.html")
_NEAR = 1.2
_WIDEST = 1000.0  # percent: larger values of sigma give no more information


def print_rehearsal(rehearsed: Rehearsal, *, full: bool = False, console: Console | None = None) -> None:
    """Print the table of a rehearsal; if there are many parameters, only the most uncertain ones."""
    out = console or standard_console()
    print_warnings(out, rehearsed.warnings)
    out.print(
        verbatim(f"{rehearsed.robot}, {rehearsed.model}, {rehearsed.estimator}: {rehearsed.words}", "bold")
    )
    plan = ", ".join(f"{name} {rehearsed.plan[name]}" for name in _ASSUMED if name in rehearsed.plan)
    out.print(verbatim(f"assumed: {plan}"))
    for reason in dict.fromkeys(rehearsed.failed):
        out.print(verbatim(f"{rehearsed.failed.count(reason)} runs failed: {reason}", "yellow"))
    table = plain_table(*TITLES, left=TITLES[:2])
    shown = rehearsed.parameters if full else rehearsed.parameters[:_MOST]
    for parameter in shown:
        table.add_row(*(verbatim(text) for text in cells(parameter)))
    more = len(rehearsed.parameters) - len(shown)
    print_titled(out, "Expected accuracy" + (f" (first {_MOST}; --full shows all)" if more else ""), table)
    out.print(
        verbatim(
            "sigma: standard deviation that an identification will report, also in % of the true value;"
            " rms: error of the runs; ratio: rms / sigma, ideally 1; bias: in units of sigma;"
            " in 95 %: share of intervals that contain the true value",
            "dim",
        )
    )


def cells(entry: RehearsedParameter) -> tuple[str, ...]:
    """One parameter as text, in the order of `TITLES`."""
    return (
        entry.name,
        unit_text(entry.unit),
        value_text(entry.truth, entry.sigma),
        number(entry.sigma, 2),
        percent(entry.sigma_rel_percent),
        number(entry.rms, 2),
        f"{entry.ratio:.2f}",
        f"{entry.bias / entry.sigma:+.2f}" if entry.sigma > 0.0 else "-",
        f"{100.0 * entry.coverage:.0f} %",
    )


def rehearsal_document(rehearsed: Rehearsal) -> dict[str, Any]:
    """The content of `rehearsal.json`; undefined values are null."""
    document: dict[str, Any] = plain({"schema": SCHEMA, **asdict(rehearsed)})
    return document


def rehearsal_csv(rehearsal: Rehearsal) -> str:
    """One row per parameter, full precision, SI."""
    names = [field.name for field in fields(RehearsedParameter)]
    text = io.StringIO()
    writer = RowWriter(text)
    writer.writerow(names)
    for entry in rehearsal.parameters:
        values = [plain(getattr(entry, name)) for name in names]
        writer.writerow([harmless(value) if isinstance(value, str) else value for value in values])
    return text.getvalue()


def rehearsal_html(rehearsed: Rehearsal) -> str:
    """One self-contained page with a figure of the actual errors against the reported sigma."""
    return scripted_page(
        "rehearsal.html",
        (),
        found=rehearsed,
        titles=list(zip(TITLES, _MORE, strict=True)),
        headline=_headline(rehearsed),
        level=worst(item.level for item in rehearsed.warnings),
        rows=[cells(entry) for entry in rehearsed.parameters],
        picture=promise_figure(rehearsed),
    )


def _headline(rehearsed: Rehearsal) -> str:
    shares = [entry.sigma_rel_percent for entry in rehearsed.parameters]
    known = sum(share is not None and share < _KNOWN for share in shares)
    text = f"{known} of {plural(len(shares), 'parameter')} will be known"
    return f"{text} within {_KNOWN:.0f} % of their value (sigma)"


def rehearsal_files(rehearsal: Rehearsal) -> dict[str, str]:
    """Name -> text."""
    texts = (json_text(rehearsal_document(rehearsal)), rehearsal_csv(rehearsal), rehearsal_html(rehearsal))
    return dict(zip(FILES, texts, strict=True))


def promise_figure(rehearsal: Rehearsal) -> Figure | None:
    """Ratio of rms error to reported sigma, against the relative sigma of the parameter."""
    shown = [entry for entry in rehearsal.parameters if entry.sigma > 0.0 and entry.rms > 0.0]
    if not shown:
        return None
    inside = [entry for entry in shown if 1.0 / _NEAR <= entry.ratio <= _NEAR]
    outside = [entry for entry in shown if entry not in inside]
    low = math.log10(min(_percent(entry) for entry in shown)) - 0.2
    ends = [10.0**low, _WIDEST * 1.5]
    reach = max(0.4, *(abs(math.log10(entry.ratio)) + 0.05 for entry in shown))
    series = [
        line("rms error = sigma", ends, [1.0, 1.0], "grey", width=1),
        line(f"factor {_NEAR:g}", ends, [_NEAR, _NEAR], "grey", width=1, dash=True),
        line("", ends, [1.0 / _NEAR, 1.0 / _NEAR], "grey", width=1, dash=True, quiet=True),
        *([_marks(inside, f"within {100 * (_NEAR - 1):.0f} %", "blue", "circle")] if inside else []),
        *([_marks(outside, "further away", "red", "diamond")] if outside else []),
    ]
    x = {"title": "expected sigma [% of the value]", "log": True, "range": [low, math.log10(ends[1])]}
    y = {"title": "rms error / reported sigma", "log": True, "range": [-reach, reach]}
    return figure(
        "promise",
        [panel(series, "", x, y, height=400)],
        "ratio of the rms error to the reported sigma, for every parameter by its relative sigma",
        f"Each mark is one parameter: the rms error of {rehearsal.runs} runs divided by the reported sigma."
        f" With this number of runs, a ratio is uncertain by {100.0 / math.sqrt(2.0 * rehearsal.runs):.0f} %."
        f" Parameters with sigma above {_WIDEST:g} % of the value, or with a value of zero, are at the edge.",
    )


def _percent(entry: RehearsedParameter) -> float:
    return _WIDEST if entry.sigma_rel_percent is None else min(_WIDEST, entry.sigma_rel_percent)


def _marks(shown: list[RehearsedParameter], name: str, colour: str, symbol: str) -> dict[str, Any]:
    tips = [
        f"{entry.name}\nsigma {number(entry.sigma, 2)}, rms {number(entry.rms, 2)} {unit_text(entry.unit)}\n"
        f"ratio {entry.ratio:.2f}"
        for entry in shown
    ]
    x, y = [_percent(entry) for entry in shown], [entry.ratio for entry in shown]
    return points(name, x, y, colour, symbol=symbol, tips=tips)
