"""What does the model not explain, and does it look like noise?"""

from __future__ import annotations

from dynid.report.page import render
from dynid.report.panels import points_per_panel, residual_figure
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """Fit of every group of rows, and the residual of every effort over time."""
    used = [signals for signals in estimate.signals if not signals.validation]
    most = points_per_panel(estimate.signals)
    figures = [residual_figure(signals, f"residuals-{i}", most) for i, signals in enumerate(used)]
    kind = "free" if estimate.fit.cost_C is not None else estimate.model
    body = render("residuals.html", fit=estimate.fit, figures=figures, kind=kind)
    return Section("residuals", "Residuals", body)
