"""Every parameter with its 95 % interval, in percent of its own value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynid.report.numbers import interval_text, percent, sigma_text, unit_text, value_text
from dynid.report.page import BLUE, GREY, INK, ORANGE, RED, axis, figure, plot_text
from dynid.report.quality import MEANING, Quality, owner_of, quality
from dynid.statistics.estimate import Estimate, ParameterEstimate

if TYPE_CHECKING:
    from markupsafe import Markup

_LIMIT = 100.0  # percent: an interval this wide reaches zero; larger values give no more information
_ROW = 17  # pixels
_STYLE = {
    Quality.GOOD: (BLUE, "circle"),
    Quality.FAIR: (ORANGE, "square"),
    Quality.WEAK: (RED, "triangle-up"),
    Quality.ZERO: (RED, "x"),
}


def interval_figure(estimate: Estimate) -> Markup | None:
    """Intervals coloured by quality, with prior and true values; None without parameters."""
    shown = [p for p in estimate.parameters if p.ci95 is not None and p.value != 0.0]
    if not shown:
        return None
    traces = [_trace(kind, members) for kind in _STYLE if (members := _of(kind, shown))]
    truth = dict(estimate.truth or {})
    bound = _bound(shown, truth)
    traces += _marks("prior", {p.name: p.prior for p in shown}, shown, bound, ("line-ns-open", GREY))
    traces += _marks("truth", truth, shown, bound, ("diamond-open", INK))
    return figure(
        "parameter-intervals",
        traces,
        _layout(shown, bound),
        "95 percent interval of every parameter relative to its value",
        "Each bar is the 95 % interval of one parameter, in percent of its estimate. A bar that reaches "
        "\N{MINUS SIGN}100 % contains zero. Bars beyond \N{PLUS-MINUS SIGN}100 % are clipped; "
        "marks outside the axis are drawn at its edge.",
    )


def _of(kind: Quality, shown: Sequence[ParameterEstimate]) -> list[ParameterEstimate]:
    return [p for p in shown if quality(p) is kind]


def _trace(kind: Quality, members: Sequence[ParameterEstimate]) -> dict[str, Any]:
    colour, symbol = _STYLE[kind]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": MEANING[kind],
        "x": [0.0] * len(members),
        "y": [plot_text(p.name) for p in members],
        "error_x": {
            "type": "data",
            "array": [_half_width(p) for p in members],
            "color": colour,
            "thickness": 3,
            "width": 0,
        },
        "marker": {"color": colour, "symbol": symbol, "size": 10, "line": {"color": "white", "width": 1}},
        "hovertext": [_hover(p) for p in members],
        "hoverinfo": "text",
    }


def _marks(
    name: str,
    values: Mapping[str, float | None],
    shown: Sequence[ParameterEstimate],
    bound: float,
    style: tuple[str, str],
) -> list[dict[str, Any]]:
    """A trace of other values of the same parameters, or none; those outside the axis are at its edge."""
    symbol, colour = style
    pairs = [(p, value) for p in shown if (value := values.get(p.name)) is not None]
    if not pairs:
        return []
    off = [100.0 * (value - p.value) / abs(p.value) for p, value in pairs]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [min(bound, max(-bound, x)) for x in off],
            "y": [plot_text(p.name) for p, _ in pairs],
            "marker": {"color": colour, "symbol": symbol, "size": 9, "line": {"width": 2, "color": colour}},
            "hovertext": [
                f"{plot_text(p.name)}: {name} {value_text(value, p.sigma)} {_unit(p)} ({x:+.3g} %)"
                for (p, value), x in zip(pairs, off, strict=True)
            ],
            "hoverinfo": "text",
        }
    ]


def _half_width(parameter: ParameterEstimate) -> float:
    assert parameter.ci95 is not None  # noqa: S101 (only such are shown)
    low, high = parameter.ci95
    return min(_LIMIT, 50.0 * (high - low) / abs(parameter.value))


def _hover(parameter: ParameterEstimate) -> str:
    p = parameter
    return (
        f"<b>{plot_text(p.name)}</b> = {value_text(p.value, p.sigma)} {_unit(p)}"
        f"<br>sigma {sigma_text(p.sigma)} ({percent(p.sigma_rel_percent)} %)<br>95 % {interval_text(p)}"
    )


def _unit(parameter: ParameterEstimate) -> str:
    return plot_text(unit_text(parameter.unit))


def _bound(shown: Sequence[ParameterEstimate], truth: Mapping[str, float]) -> float:
    """Half the width of the axis [%]: contains intervals and true values, up to the limit."""
    off = [100.0 * abs(truth[p.name] / p.value - 1.0) for p in shown if p.name in truth]
    return min(_LIMIT, max([_half_width(p) for p in shown] + off + [0.1]))


def _layout(shown: Sequence[ParameterEstimate], bound: float) -> dict[str, Any]:
    names = [plot_text(p.name) for p in shown]
    owners = [owner_of(p.name) for p in shown]
    borders = [i - 0.5 for i in range(1, len(owners)) if owners[i] != owners[i - 1]]
    return {
        "height": 110 + _ROW * len(shown),
        "xaxis": axis("deviation from the estimate [% of its value]", range=[-1.06 * bound, 1.06 * bound]),
        "yaxis": axis(
            categoryorder="array",
            categoryarray=names,
            range=[len(shown) - 0.4, -0.6],
            showgrid=False,
            tickmode="array",
            tickvals=names,
            ticktext=names,
        ),
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": y,
                "y1": y,
                "line": {"color": "#d5dbe3", "width": 1},
            }
            for y in borders
        ],
        "legend": {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        "margin": {"l": 90, "r": 20, "t": 44, "b": 48},
    }
