"""Does the model reproduce the measured efforts? What is left, and how strained is a redundant robot?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.report.page import Section, render
from dynid.report.panels import effort_figure, points_per_panel, residual_figure, run_figure, tension_figure
from dynid.statistics.estimate import Estimate, Tension


def efforts_section(estimate: Estimate) -> Section | None:
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


def validation_section(estimate: Estimate) -> Section:
    """Prediction errors of other logs, and the curves; a remark if there is no such log."""
    unseen = [signals for signals in estimate.signals if signals.validation]
    most = points_per_panel(estimate.signals)
    figures = [effort_figure(signals, f"validation-{i}", most) for i, signals in enumerate(unseen)]
    runs = [run_figure(item, estimate.fit, f"runs-{i}") for i, item in enumerate(estimate.validation)]
    figures = [*(one for one in runs if one is not None), *figures]
    body = render("validation.html", validations=estimate.validation, fit=estimate.fit, figures=figures)
    return Section("validation", "Validation", body)


def residuals_section(estimate: Estimate) -> Section:
    """Fit of every group of rows, and the residual of every effort over time."""
    used = [signals for signals in estimate.signals if not signals.validation]
    most = points_per_panel(estimate.signals)
    figures = [residual_figure(signals, f"residuals-{i}", most) for i, signals in enumerate(used)]
    kind = "free" if estimate.fit.cost_C is not None else estimate.model
    body = render("residuals.html", fit=estimate.fit, figures=figures, kind=kind)
    return Section("residuals", "Residuals", body)


def tests_section(estimate: Estimate) -> Section | None:
    """The table of residual tests; omitted if none was made."""
    if not estimate.residual_tests:
        return None
    rows = sorted(estimate.residual_tests, key=lambda one: (not one.warned, one.test))
    warned = sum(one.warned for one in rows)
    title = f"Residual tests ({warned} of {len(rows)} flagged)"
    return Section("tests", title, render("tests.html", rows=rows))


@dataclass(frozen=True)
class TensionSummary:
    """Tension and rebuilt efforts of one log in numbers.

    Attributes:
        means, lows, highs: Mean, and the range of nine tenths of the samples, per direction.
        share_percent: 100 |Z c| / |tau|: how much of the motor efforts only strains the robot.
        off_percent: 100 |tau - rebuilt| / |tau|.
    """

    log: str
    unit: str
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    share_percent: float
    off_percent: float


def tension_section(estimate: Estimate) -> Section | None:
    """Measured and rebuilt motor efforts and the tension, one figure per log; only for redundant robots."""
    found = [(one, one.tension) for one in estimate.signals if one.tension is not None]
    found = [(one, motors) for one, motors in found if np.isfinite(motors.c).any()]
    if not found:
        return None
    most = points_per_panel(estimate.signals)
    figures = [tension_figure(one, motors, f"tension-{i}", most) for i, (one, motors) in enumerate(found)]
    summaries = [tension_summary(one.log, motors) for one, motors in found]
    body = render("tension.html", summaries=summaries, figures=figures)
    return Section("tension", "Motor efforts and internal tension", body)


def tension_summary(log: str, motors: Tension) -> TensionSummary:
    """The numbers of one log, over the samples that are not masked."""
    used = np.isfinite(motors.rebuilt).all(axis=1)
    measured, rebuilt, c = motors.measured[used], motors.rebuilt[used], motors.c[used]
    size = max(float(np.linalg.norm(measured)), np.finfo(float).tiny)
    low, high = np.percentile(c, [5.0, 95.0], axis=0)
    return TensionSummary(
        log,
        motors.units[0],
        tuple(c.mean(axis=0).tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        100.0 * float(np.linalg.norm(c)) / size,
        100.0 * float(np.linalg.norm(measured - rebuilt)) / size,
    )
