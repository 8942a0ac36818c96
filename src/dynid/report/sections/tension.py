"""How hard do the motors of a redundantly actuated robot work against each other?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.report.page import render
from dynid.report.panels import points_per_panel, tension_figure
from dynid.report.sections.section import Section
from dynid.statistics.estimate import Estimate, Tension


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


def section(estimate: Estimate) -> Section | None:
    """Measured and rebuilt motor efforts and the tension, one figure per log; only for redundant robots."""
    found = [(one, one.tension) for one in estimate.signals if one.tension is not None]
    found = [(one, motors) for one, motors in found if np.isfinite(motors.c).any()]
    if not found:
        return None
    most = points_per_panel(estimate.signals)
    figures = [tension_figure(one, motors, f"tension-{i}", most) for i, (one, motors) in enumerate(found)]
    summaries = [summary(one.log, motors) for one, motors in found]
    body = render("tension.html", summaries=summaries, figures=figures)
    return Section("tension", "Motor efforts and internal tension", body)


def summary(log: str, motors: Tension) -> TensionSummary:
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
