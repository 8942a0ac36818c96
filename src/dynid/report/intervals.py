"""Every parameter with its 95 % interval, in percent of its own value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynid.report.numbers import interval_text, percent, sigma_text, unit_text, value_text
from dynid.report.plots import figure, panel, points
from dynid.report.quality import MEANING, Quality, quality
from dynid.statistics.estimate import Estimate, ParameterEstimate

if TYPE_CHECKING:
    from dynid.report.plots import Figure

_LIMIT = 100.0  # percent: an interval this wide reaches zero; larger values give no more information
_STYLE = {
    Quality.GOOD: ("blue", "circle"),
    Quality.FAIR: ("orange", "square"),
    Quality.WEAK: ("red", "triangle"),
    Quality.ZERO: ("red", "cross"),
}


def interval_figure(estimate: Estimate) -> Figure | None:
    """Intervals coloured by quality, with prior and true values; None without parameters."""
    shown = [p for p in estimate.parameters if p.ci95 is not None and p.value != 0.0]
    if not shown:
        return None
    truth = dict(estimate.truth or {})
    bound = _bound(shown, truth)
    series = [_series(kind, shown) for kind in _STYLE if any(quality(p) is kind for p in shown)]
    series += _marks("description", {p.name: p.prior for p in shown}, shown, bound, "bar", "grey")
    series += _marks("truth", truth, shown, bound, "diamond", "ink")
    x = {"title": "deviation from the estimate [% of its value]", "range": [-1.06 * bound, 1.06 * bound]}
    return figure(
        "parameter-intervals",
        [panel(series, "", x, {"names": [p.name for p in shown]}, row=17)],
        "95 percent interval of every parameter relative to its value",
        "Each bar is the 95 % interval of one parameter, in percent of its estimate. A bar that reaches "
        "\N{MINUS SIGN}100 % contains zero. Bars beyond ±100 % are clipped; "
        "marks outside the axis are drawn at its edge.",
        table=False,
        fixed=True,
    )


def _series(kind: Quality, shown: Sequence[ParameterEstimate]) -> dict[str, Any]:
    colour, symbol = _STYLE[kind]
    members = [(i, p) for i, p in enumerate(shown) if quality(p) is kind]
    return points(
        MEANING[kind],
        [0.0] * len(members),
        [float(i) for i, _ in members],
        colour,
        half=[_half_width(p) for _, p in members],
        symbol=symbol,
        tips=[_tip(p) for _, p in members],
    )


def _marks(
    name: str,
    values: Mapping[str, float | None],
    shown: Sequence[ParameterEstimate],
    bound: float,
    symbol: str,
    colour: str,
) -> list[dict[str, Any]]:
    """A series of other values of the same parameters, or none; those outside the axis are at its edge."""
    pairs = [(i, p, value) for i, p in enumerate(shown) if (value := values.get(p.name)) is not None]
    if not pairs:
        return []
    off = [100.0 * (value - p.value) / abs(p.value) for _, p, value in pairs]
    tips = [
        f"{p.name}: {name} {value_text(value, p.sigma)} {unit_text(p.unit)} ({x:+.3g} %)"
        for (_, p, value), x in zip(pairs, off, strict=True)
    ]
    x = [min(bound, max(-bound, offset)) for offset in off]
    places = [float(i) for i, _, _ in pairs]
    return [points(name, x, places, colour, symbol=symbol, open=True, tips=tips)]


def _half_width(parameter: ParameterEstimate) -> float:
    assert parameter.ci95 is not None  # noqa: S101 (only such are shown)
    low, high = parameter.ci95
    return min(_LIMIT, 50.0 * (high - low) / abs(parameter.value))


def _tip(p: ParameterEstimate) -> str:
    value = f"{p.name} = {value_text(p.value, p.sigma)} {unit_text(p.unit)}"
    return f"{value}\nsigma {sigma_text(p.sigma)} ({percent(p.sigma_rel_percent)} %)\n95 % {interval_text(p)}"


def _bound(shown: Sequence[ParameterEstimate], truth: Mapping[str, float]) -> float:
    """Half the width of the axis [%]: contains intervals and true values, up to the limit."""
    off = [100.0 * abs(truth[p.name] / p.value - 1.0) for p in shown if p.name in truth]
    return min(_LIMIT, max([_half_width(p) for p in shown] + off + [0.1]))
