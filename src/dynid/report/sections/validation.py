"""Does the result predict motion that was not used for the fit?"""

from __future__ import annotations

from dynid.report.page import render
from dynid.report.panels import effort_figure, points_per_panel, run_figure
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate


def section(estimate: Estimate) -> Section:
    """Prediction errors of other logs, and the curves; a remark if there is no such log."""
    unseen = [signals for signals in estimate.signals if signals.validation]
    most = points_per_panel(estimate.signals)
    figures = [effort_figure(signals, f"validation-{i}", most) for i, signals in enumerate(unseen)]
    runs = [run_figure(item, estimate.fit, f"runs-{i}") for i, item in enumerate(estimate.validation)]
    figures = [*(one for one in runs if one is not None), *figures]
    body = render("validation.html", validations=estimate.validation, fit=estimate.fit, figures=figures)
    return Section("validation", "Validation", body)
