"""Is the description right? Corrections that were tried, and how near a log comes to singular poses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.report.page import BLUE, Section, figure, packed, render
from dynid.report.panels import heading_of, line, panels, points_per_panel
from dynid.statistics.estimate import Estimate, Signals

if TYPE_CHECKING:
    from markupsafe import Markup

_SIGNAL = "singularity_distance"


def section(estimate: Estimate) -> Section | None:
    """Ranked hypotheses and distances from singular poses; omitted where nothing was tried."""
    shown = [one for one in estimate.signals if np.isfinite(one.closure.get(_SIGNAL, np.zeros(0))).any()]
    if not estimate.hypotheses and not shown:
        return None
    most = points_per_panel(estimate.signals)
    figures = [_distance_figure(one, f"singular-{i}", most) for i, one in enumerate(shown)]
    body = render("description.html", rows=estimate.hypotheses, figures=figures)
    return Section("description", "Description tests", body)


def _distance_figure(signals: Signals, anchor: str, most: int) -> Markup:
    """Distance from singular poses along one log."""
    rows = np.unique(np.linspace(0, len(signals.t) - 1, min(most, len(signals.t))).astype(int))
    distance = signals.closure[_SIGNAL]
    data = [line("distance from singular poses", packed(signals.t[rows]), distance[rows], 0, BLUE, 1.2)]
    return figure(
        anchor,
        data,
        panels([heading_of("distance from singular poses", "1")]),
        f"distance from singular poses of log {signals.log}",
        f"Log {signals.log}",
    )
