"""Is the description right? Corrections that were tried, and how near a log comes to singular poses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.report.page import Section, render
from dynid.report.panels import points_per_panel, singularity_figure
from dynid.statistics.estimate import SINGULARITY_DISTANCE, Estimate

if TYPE_CHECKING:
    from markupsafe import Markup

_WORST = 3  # logs that are plotted


def section(estimate: Estimate) -> Section | None:
    """Ranked hypotheses and distances from singular poses; omitted where nothing was tried."""
    figures = _figures(estimate)
    if not estimate.hypotheses and not figures:
        return None
    body = render("description.html", rows=estimate.hypotheses, figures=figures)
    return Section("description", "Is the description right?", body, folded=True)


def _figures(estimate: Estimate) -> list[Markup]:
    """Of the logs that come nearest to a singular pose."""
    nearest = []
    for one in estimate.signals:
        distance = one.closure.get(SINGULARITY_DISTANCE, np.zeros(0))
        if np.isfinite(distance).any():
            nearest.append((float(np.nanmin(distance)), one))
    nearest.sort(key=lambda pair: pair[0])
    shown = [one for _, one in nearest[:_WORST]]
    most = points_per_panel(shown)
    return [singularity_figure(one, f"singular-{i}", most) for i, one in enumerate(shown)]
