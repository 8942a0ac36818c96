"""Promised against found: every parameter of a rehearsal as one mark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dynid.report.figures.figure import BLUE, GREY, RED, axis, figure, plot_text
from dynid.report.numbers import number, unit_text
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

if TYPE_CHECKING:
    from markupsafe import Markup

_NEAR = 1.2


def promise_figure(found: Rehearsal) -> Markup | None:
    """Rms error over expected sigma, both relative to the true value where it is not zero."""
    shown = [one for one in found.parameters if one.truth and one.sigma > 0.0 and one.rms > 0.0]
    if not shown:
        return None
    inside = [one for one in shown if 1.0 / _NEAR <= one.ratio <= _NEAR]
    outside = [one for one in shown if one not in inside]
    sizes = [_percent(one, size) for one in shown for size in (one.sigma, one.rms)]
    low, high = math.log10(min(sizes)) - 0.15, math.log10(max(sizes)) + 0.15
    ends = [10.0**low, 10.0**high]
    traces = [
        _line(ends, 1.0, "found = promised", "solid"),
        _line(ends, _NEAR, f"{_NEAR:g} times more or less", "dot"),
        {**_line(ends, 1.0 / _NEAR, "", "dot"), "showlegend": False},
        _marks(inside, f"within {100 * (_NEAR - 1):.0f} %", BLUE, "circle"),
        _marks(outside, "further away", RED, "diamond"),
    ]
    layout = {
        "height": 460,
        "xaxis": axis("expected sigma [% of the value]", type="log", range=[low, high]),
        "yaxis": axis("rms error found [% of the value]", type="log", range=[low, high]),
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    }
    return figure(
        "promise",
        [trace for trace in traces if trace.get("x")],
        layout,
        "rms error of the runs against expected sigma of every parameter, both axes logarithmic",
        f"Each mark is one parameter: what sigma promises against the rms error of {found.runs} runs. With "
        f"as many, chance alone moves a mark by {100.0 / math.sqrt(2.0 * found.runs):.0f} % up or down.",
    )


def _percent(one: RehearsedParameter, size: float) -> float:
    return 100.0 * size / abs(one.truth)


def _line(ends: list[float], factor: float, name: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": ends,
        "y": [factor * end for end in ends],
        "line": {"color": GREY, "width": 1, "dash": dash},
        "hoverinfo": "skip",
    }


def _marks(shown: list[RehearsedParameter], name: str, colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [_percent(one, one.sigma) for one in shown],
        "y": [_percent(one, one.rms) for one in shown],
        "marker": {"color": colour, "symbol": symbol, "size": 8, "line": {"color": "white", "width": 1}},
        "hovertext": [
            f"<b>{plot_text(one.name)}</b><br>sigma {number(one.sigma, 2)}, rms {number(one.rms, 2)}"
            f" {plot_text(unit_text(one.unit))}<br>ratio {one.ratio:.2f}"
            for one in shown
        ],
        "hoverinfo": "text",
    }
