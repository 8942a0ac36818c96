"""Parameters of a recursive estimate over time: one small panel each, with a band of two sigma."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.estimator.history import History
from dynid.report.figures.figure import BLUE, RED, figure, packed
from dynid.report.figures.small_multiples import axis_name, heading_of, line, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup


def history_figure(history: History, names: Sequence[str], units: Mapping[str, str]) -> Markup:
    """The named parameters over time; a line marks each change."""
    t = packed(history.seconds)
    data: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for panel, name in enumerate(names):
        k = history.names.index(name)
        chi, half = history.chi[:, k], 2.0 * history.sigma[:, k]
        low, high = _first_seen(chi, half)
        lower = line("2 sigma", t, low, panel, BLUE, 0.0) | {"showlegend": False, "hoverinfo": "skip"}
        upper = line("2 sigma", t, high, panel, BLUE, 0.0)
        data += [lower, upper | {"fill": "tonexty", "fillcolor": "rgba(0,114,178,0.18)"}]
        data.append(line("estimate", t, chi, panel, BLUE, 1.6))
        shapes += [_mark(panel, change.seconds) for change in history.changes]
    titles = [heading_of(name, units.get(name, "")) for name in names]
    return figure(
        "history-parameters",
        data,
        panels(titles) | {"shapes": shapes},
        "parameters over time",
        "Estimate after each update, with a band of two sigma"
        + ("; lines mark detected changes" if history.changes else ""),
    )


def _first_seen(chi: Any, half: Any) -> tuple[Any, Any]:
    """The band, clipped at the beginning, where it is so wide that it would hide the curve."""
    wide = half > 20.0 * np.nanmedian(half) if np.any(np.isfinite(half)) else np.zeros(len(half), bool)
    shown = np.where(wide, np.nan, half)
    return chi - shown, chi + shown


def _mark(panel: int, seconds: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": axis_name("x", panel),
        "yref": f"{axis_name('y', panel)} domain",
        "x0": seconds,
        "x1": seconds,
        "y0": 0,
        "y1": 1,
        "line": {"color": RED, "width": 1.2, "dash": "dot"},
    }
