"""`campaign.html`: one page for all runs of a campaign, readable for a thousand robots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.base.grouping import probability
from dynid.campaign.alike import LEAST_ROBOTS
from dynid.campaign.fleet import ALARM, Change, History, Pooled, by_robot
from dynid.report.page import render, scripted_page

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.campaign.campaign import Campaign
    from dynid.campaign.trend import Series

_MOST_CHARTS = 12  # of robots that change
_MOST_HISTORIES = 60  # of parameters
_MOST_ROWS = 200  # of a table; `summary.json` and `parameters.csv` have all
_ALONE = 3  # robots that are drawn one by one; of more the range
_MOST_NAMES = 5  # of robots in a sentence
_BINS = 24  # of dates
_WIDTH, _HEIGHT, _EDGE = 260.0, 90.0, 8.0
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_ORDER = {"bad": 0, "care": 1, "good": 2}


def campaign_html(done: Campaign) -> str:
    """The page: what needs attention first, then parameters over all robots, then the runs."""
    pairs = [
        (run, outcome) for run, outcome in zip(done.runs, done.outcomes, strict=True) if not outcome.reason
    ]
    pairs.sort(key=lambda pair: (_ORDER.get(pair[1].verdict, 3), pair[0].name))
    counts = Counter(outcome.verdict for _, outcome in pairs)
    level = "care" if done.set_aside or counts["care"] else "good"
    changing = by_robot(done.fleet.changes)
    return scripted_page(
        "campaign.html",
        (),
        done=done,
        level="bad" if counts["bad"] or not pairs else level,
        differing=[entry for entry in done.fleet.pooled if _differs(entry)],
        differences=differences(done.fleet.pooled),
        runs=pairs[:_MOST_ROWS],
        hidden=max(0, len(pairs) - _MOST_ROWS),
        counts=[(level, counts[level]) for level in ("good", "care", "bad") if counts[level]],
        robots=len({run.unit for run, _ in pairs}),
        changing=changing[:_MOST_ROWS],
        more_changing=max(0, len(changing) - _MOST_ROWS),
        aside=done.set_aside[:_MOST_ROWS],
        joined=sorted(done.joined, key=lambda robot: (not robot.reason, not robot.left_out))[:_MOST_ROWS],
        charts=[_change_chart(changes[0], done.fleet.histories) for changes in changing[:_MOST_CHARTS]],
        histories=list(_history_charts(done.fleet.histories)),
        alarm=ALARM,
    )


def _differs(entry: Pooled) -> bool:
    return bool(entry.unlike) or (entry.p is not None and entry.p < ALARM)


def differences(pooled: Sequence[Pooled]) -> str:
    """Whether robots differ, by how much, and which stand apart; empty without two robots of a kind."""
    if not pooled:
        return ""
    tested = [entry for entry in pooled if entry.p is not None]
    if not tested:
        return "Differences between robots were not tested: that needs logs of several days."
    differing = [entry for entry in tested if _differs(entry)]
    if not differing:
        several = "parameters" if len(tested) > 1 else "parameter"
        return f"No difference between robots is significant ({len(tested)} {several} tested)."
    most = max(differing, key=lambda entry: entry.relative)
    p = min(entry.p for entry in differing if entry.p is not None)
    text = (
        f"Robots differ in {len(differing)} of {len(tested)} parameters (p {probability(p)}), most in"
        f" {most.words}: their standard deviation is {most.size}."
    )
    names = list(dict.fromkeys(name for entry in differing for name, _ in entry.unlike))
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"{text} Apart from most others: {', '.join(names[:_MOST_NAMES])}{more}."
    if max(entry.robots for entry in tested) < LEAST_ROBOTS:
        return f"{text} Which robot is unusual is tested from {LEAST_ROBOTS} robots on."
    return f"{text} No single robot stands apart from the rest."


def _change_chart(change: Change, histories: Sequence[History]) -> Markup:
    """Values of one robot with 95 % intervals over the dates."""
    key = change.parameter, change.variant, change.description, change.unit
    series = next(
        history.series
        for history in histories
        if (history.parameter, history.variant, history.description, history.unit) == key
    )
    one = series.rows(np.array([robot == change.robot for robot in series.robots]))
    return _chart(one, change.words, change.unit, f"of {change.robot}: {change.kind} of {change.size}")


def _history_charts(histories: Sequence[History]) -> Iterator[Markup]:
    """Each parameter that has several dates."""
    dated = [
        history for history in histories if history.series.dates[0][0] and np.ptp(history.series.t) > 0.0
    ]
    for history in dated[:_MOST_HISTORIES]:
        yield _chart(history.series, history.words, history.unit, "")


def _chart(series: Series, words: str, unit: str, about: str) -> Markup:
    """Values with 95 % intervals of a few robots; of many the median, and where nine of ten are."""
    many = len(series.robots) > _ALONE
    marks = _ranges(series) if many else list(_values(series))
    t, low, high = ([float(mark[key]) for mark in marks] for key in ("t", "low", "high"))
    least, most = min(low), max(high)

    def across(x: float) -> float:
        return _EDGE + (x - min(t)) / ((max(t) - min(t)) or 1.0) * (_WIDTH - 2.0 * _EDGE)

    def up(x: float) -> float:
        return _HEIGHT - _EDGE - (x - least) / ((most - least) or 1.0) * (_HEIGHT - 2.0 * _EDGE)

    points = [
        {**mark, "x": across(mark["t"]), **{key: up(mark[key]) for key in ("y", "low", "high")}}
        for mark in marks
    ]
    legend = list(zip(series.robots, _COLOURS, strict=False)) if 1 < len(series.robots) <= _ALONE else []
    return render(
        "campaign_chart.html",
        words=words,
        about=about,
        unit=unit,
        points=points,
        many=many,
        legend=legend,
        low=least,
        high=most,
        first=series.dates[int(np.argmin(series.t[:, 0]))][0],
        last=series.dates[int(np.argmax(series.t[:, -1]))][-1],
        width=_WIDTH,
        height=_HEIGHT,
    )


def _values(series: Series) -> Iterator[dict[str, Any]]:
    """Each value with its interval."""
    for i in range(len(series.robots)):
        used = series.used[i]
        for t, y, sigma in zip(series.t[i, used], series.y[i, used], series.sigma[i, used], strict=True):
            half = 1.96 * float(sigma)
            colour = _COLOURS[i % len(_COLOURS)]
            yield {"t": float(t), "y": float(y), "low": y - half, "high": y + half, "colour": colour}


def _ranges(series: Series) -> list[dict[str, Any]]:
    """Median, 5 and 95 % of the robots, of each interval of dates."""
    t, y = series.t[series.used], series.y[series.used]
    edges = np.linspace(t.min(), t.max(), min(_BINS, len(np.unique(t))) + 1)
    number = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(edges) - 2)
    ranges = []
    for k in np.unique(number).tolist():
        low, middle, high = np.quantile(y[number == k], (0.05, 0.5, 0.95)).tolist()
        ranges.append({"t": float(np.mean(t[number == k])), "y": middle, "low": low, "high": high})
    return ranges
