"""Does the model reproduce the measured efforts?"""

from __future__ import annotations

from dynid.report.page import render
from dynid.report.panels import effort_figure, points_per_panel
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section | None:
    """Measured and predicted effort, one figure per log used for the fit."""
    used = [signals for signals in estimate.signals if not signals.validation]
    if not used:
        return None
    most = points_per_panel(estimate.signals)
    figures = [effort_figure(signals, f"efforts-{i}", most) for i, signals in enumerate(used)]
    free = estimate.fit.cost_C is not None
    body = render("efforts.html", figures=figures, free=free)
    what = "wrench" if estimate.model == "wrench" else "effort"
    title = "Free motion, measured and predicted" if free else f"Measured and predicted {what}"
    return Section("efforts", title, body)
