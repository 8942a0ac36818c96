"""The terminal table of a rehearsal: warnings first, then the verdict, then expected accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.report.console import standard_console
from dynid.report.numbers import number, percent, unit_text, value_text
from dynid.report.tables import plain_table, print_titled, print_warnings, verbatim
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

if TYPE_CHECKING:
    from rich.console import Console

TITLES = ("parameter", "unit", "truth", "sigma", "%", "rms", "ratio", "bias", "in 95 %")
_MOST = 60
_ASSUMED = ("rate", "length", "effort noise", "encoder steps", "pose noise")


def print_rehearsal(found: Rehearsal, *, full: bool = False, console: Console | None = None) -> None:
    """Print the table of a rehearsal; if there are many parameters, only the most uncertain ones."""
    out = console or standard_console()
    print_warnings(out, found.warnings)
    out.print(verbatim(f"{found.robot}, {found.model}, {found.estimator}: {found.words}", "bold"))
    plan = ", ".join(f"{name} {found.plan[name]}" for name in _ASSUMED if name in found.plan)
    out.print(verbatim(f"assumed: {plan}"))
    for reason in dict.fromkeys(found.failed):
        out.print(verbatim(f"{found.failed.count(reason)} runs failed: {reason}", "yellow"))
    table = plain_table(*TITLES, left=TITLES[:2])
    shown = found.parameters if full else found.parameters[:_MOST]
    for one in shown:
        table.add_row(*(verbatim(text) for text in cells(one)))
    more = len(found.parameters) - len(shown)
    print_titled(out, "Expected accuracy" + (f" (first {_MOST}; --full shows all)" if more else ""), table)
    out.print(
        verbatim(
            "sigma: standard deviation that an identification will report, also in % of the true value;"
            " rms: error of the runs; ratio: rms / sigma, ideally 1; bias: in units of sigma;"
            " in 95 %: share of intervals that contain the true value",
            "dim",
        )
    )


def cells(one: RehearsedParameter) -> tuple[str, ...]:
    """One parameter as text, in the order of `TITLES`."""
    return (
        one.name,
        unit_text(one.unit),
        value_text(one.truth, one.sigma),
        number(one.sigma, 2),
        percent(one.sigma_rel_percent),
        number(one.rms, 2),
        f"{one.ratio:.2f}",
        f"{one.bias / one.sigma:+.2f}" if one.sigma > 0.0 else "-",
        f"{100.0 * one.coverage:.0f} %",
    )
