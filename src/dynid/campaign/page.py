"""`campaign.html`: one page for all runs of a campaign, readable for a thousand robots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.campaign.file import number_of
from dynid.campaign.fleet import ALARM, Change
from dynid.campaign.trend import Sample
from dynid.report.page import render, scripted_page

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.campaign.campaign import Campaign

_MOST_CHARTS = 24
_MOST_ROWS = 200  # of a table; `summary.json` and `parameters.csv` have all
_WIDTH, _HEIGHT, _EDGE = 260.0, 90.0, 8.0
_ORDER = {"bad": 0, "care": 1, "good": 2}


def campaign_html(done: Campaign) -> str:
    """The page: what needs attention first, then parameters over all robots, then the runs."""
    pairs = [
        (run, outcome) for run, outcome in zip(done.runs, done.outcomes, strict=True) if not outcome.reason
    ]
    pairs.sort(key=lambda pair: (_ORDER.get(pair[1].verdict, 3), pair[0].name))
    counts = Counter(outcome.verdict for _, outcome in pairs)
    level = "care" if done.set_aside or counts["care"] else "good"
    return scripted_page(
        "campaign.html",
        (),
        done=done,
        level="bad" if counts["bad"] or not pairs else level,
        unlike=[entry for entry in done.fleet.pooled if entry.unlike],
        runs=pairs[:_MOST_ROWS],
        hidden=max(0, len(pairs) - _MOST_ROWS),
        counts=[(level, counts[level]) for level in ("good", "care", "bad") if counts[level]],
        robots=len({run.unit for run, _ in pairs}),
        changes=done.fleet.changes[:_MOST_ROWS],
        aside=done.set_aside[:_MOST_ROWS],
        joined=sorted(done.joined, key=lambda robot: (not robot.reason, not robot.left_out))[:_MOST_ROWS],
        charts=[_chart(change, done.fleet.samples) for change in done.fleet.changes[:_MOST_CHARTS]],
        alarm=ALARM,
    )


def _chart(change: Change, samples: Sequence[Sample]) -> Markup:
    """Value with 95 % intervals over the dates, as a drawing."""
    history = [
        sample
        for sample in samples
        if (sample.robot, sample.variant, sample.parameter, sample.description)
        == (change.robot, change.variant, change.parameter, change.description)
    ]
    numbers = [number_of(sample.date) for sample in history]
    t = np.array([k if x is None else x for k, x in enumerate(numbers)], float)
    y, half = (
        np.array(x)
        for x in ([sample.value for sample in history], [1.96 * sample.sigma for sample in history])
    )
    low, high = float(np.min(y - half)), float(np.max(y + half))

    def across(x: float) -> float:
        span = float(np.ptp(t)) or 1.0
        return _EDGE + (x - float(t.min())) / span * (_WIDTH - 2.0 * _EDGE)

    def up(x: float) -> float:
        return _HEIGHT - _EDGE - (x - low) / ((high - low) or 1.0) * (_HEIGHT - 2.0 * _EDGE)

    points = [
        {"x": across(a), "y": up(b), "low": up(b - c), "high": up(b + c)}
        for a, b, c in zip(t.tolist(), y.tolist(), half.tolist(), strict=True)
    ]
    return render(
        "campaign_chart.html",
        change=change,
        points=points,
        low=low,
        high=high,
        first=history[int(np.argmin(t))].date,
        last=history[int(np.argmax(t))].date,
        width=_WIDTH,
        height=_HEIGHT,
    )
