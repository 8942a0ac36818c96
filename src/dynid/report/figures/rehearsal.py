"""Actual errors against reported sigma: every parameter of a rehearsal as one mark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dynid.report.figures.figure import BLUE, GREY, RED, axis, figure, plot_text
from dynid.report.numbers import number, unit_text
from dynid.statistics.rehearsal import Rehearsal, RehearsedParameter

if TYPE_CHECKING:
    from markupsafe import Markup

_NEAR = 1.2
_WIDEST = 1000.0  # percent: larger values of sigma give no more information


def promise_figure(found: Rehearsal) -> Markup | None:
    """Ratio of rms error to reported sigma, against the relative sigma of the parameter."""
    shown = [one for one in found.parameters if one.sigma > 0.0 and one.rms > 0.0]
    if not shown:
        return None
    inside = [one for one in shown if 1.0 / _NEAR <= one.ratio <= _NEAR]
    outside = [one for one in shown if one not in inside]
    low = math.log10(min(_percent(one) for one in shown)) - 0.2
    ends = [10.0**low, _WIDEST * 1.5]
    reach = max(0.4, *(abs(math.log10(one.ratio)) + 0.05 for one in shown))
    traces = [
        _line(ends, 1.0, "rms error = sigma", "solid"),
        _line(ends, _NEAR, f"factor {_NEAR:g}", "dot"),
        {**_line(ends, 1.0 / _NEAR, "", "dot"), "showlegend": False},
        _marks(inside, f"within {100 * (_NEAR - 1):.0f} %", BLUE, "circle"),
        _marks(outside, "further away", RED, "diamond"),
    ]
    layout = {
        "height": 420,
        "xaxis": axis("expected sigma [% of the value]", type="log", range=[low, math.log10(ends[1])]),
        "yaxis": axis(
            "rms error / reported sigma",
            type="log",
            range=[-reach, reach],
            tickvals=[0.1, 0.2, 0.5, 1, 2, 5, 10],
            ticktext=["0.1", "0.2", "0.5", "1", "2", "5", "10"],
        ),
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    }
    return figure(
        "promise",
        [trace for trace in traces if trace.get("x")],
        layout,
        "ratio of the rms error to the reported sigma, for every parameter by its relative sigma",
        f"Each mark is one parameter: the rms error of {found.runs} runs divided by the reported sigma. With "
        f"this number of runs, a ratio is uncertain by {100.0 / math.sqrt(2.0 * found.runs):.0f} %. "
        f"Parameters with sigma above {_WIDEST:g} % of the value, or with a value of zero, are at the edge.",
    )


def _percent(one: RehearsedParameter) -> float:
    return _WIDEST if one.sigma_rel_percent is None else min(_WIDEST, one.sigma_rel_percent)


def _line(ends: list[float], ratio: float, name: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": ends,
        "y": [ratio, ratio],
        "line": {"color": GREY, "width": 1, "dash": dash},
        "hoverinfo": "skip",
    }


def _marks(shown: list[RehearsedParameter], name: str, colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [_percent(one) for one in shown],
        "y": [one.ratio for one in shown],
        "marker": {"color": colour, "symbol": symbol, "size": 8, "line": {"color": "white", "width": 1}},
        "hovertext": [
            f"<b>{plot_text(one.name)}</b><br>sigma {number(one.sigma, 2)}, rms {number(one.rms, 2)}"
            f" {plot_text(unit_text(one.unit))}<br>ratio {one.ratio:.2f}"
            for one in shown
        ],
        "hoverinfo": "text",
    }
