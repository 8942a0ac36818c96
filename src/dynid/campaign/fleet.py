"""Many results together: parameters over time, robots that differ from the others, and the mean of all.

Of one parameter, the values of each robot are tested for a drift and for a step (`trend.py`).
p-values of all tests are corrected together by Holm's method. A fleet is looked at again when logs arrive: at
the k-th possible look p is also multiplied by k^2 pi^2 / 6, and as the sum of 6 / (pi k)^2 is one, the
probability of one or more false alarms in all tables together is below `ALARM`. Between robots,
a_i = mu + u_i with Var(u_i) = between^2 (random effects).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.campaign.trend import LEAST, Fits, Sample, Series, fits, root, scatter, series_of
from dynid.common.arrays import Array, Float
from dynid.common.distributions import student_quantile, student_tails
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.inertia import SYMBOLS

ALARM = 0.05  # probability of any false alarm
_NEAR_ZERO = 300.0  # percent of a mean that is too near zero to be a reference
ROBOTS = 5  # robots of which one can differ from the others


@dataclass(frozen=True)
class Change:
    """A parameter of a robot that changes over time.

    Attributes:
        kind: `drift` or `step`.
        per_day: Slope of a drift, in `unit` per day (per unit of the dates if they are numbers).
        change: Over all dates, in `unit`.
        percent: The same in percent of the mean.
        since: Date of the step, or the first date.
        p: Corrected probability of such a change by chance.
        cause: What all changes of the robot together point to: `friction`, `load` (masses, payloads),
            `gain` (of a drive or its sensor), `offset`; empty: none of these.
    """

    robot: str
    variant: str
    parameter: str
    unit: str
    kind: str
    per_day: float
    change: float
    percent: float
    since: str
    p: float
    description: str = ""
    cause: str = ""

    @property
    def size(self) -> str:
        """The change in percent of the mean; in its unit if the mean is near zero."""
        if abs(self.percent) < _NEAR_ZERO:
            return f"{self.percent:+.1f} %"
        return f"{self.change:+.2g} {self.unit}".strip()

    @property
    def words(self) -> str:
        """The parameter, with kind of robot and settings where there are several."""
        return _words(self)


@dataclass(frozen=True)
class Pooled:
    """One parameter over all robots.

    Attributes:
        mean, sigma: Of the population, and its deviation.
        between: Deviation between robots.
        unlike: Robots that differ from the others, with the corrected probability.
    """

    variant: str
    parameter: str
    unit: str
    robots: int
    mean: float
    sigma: float
    between: float
    unlike: tuple[tuple[str, float], ...] = ()
    description: str = ""

    @property
    def words(self) -> str:
        """The parameter, with kind of robot and settings where there are several."""
        return _words(self)


@dataclass(frozen=True, eq=False)
class History:
    """One parameter of all robots over time."""

    variant: str
    parameter: str
    unit: str
    description: str
    series: Series

    @property
    def words(self) -> str:
        """The parameter, with kind of robot and settings where there are several."""
        return _words(self)


def _words(entry: Change | Pooled | History) -> str:
    of = ", ".join(part for part in (entry.description, entry.variant) if part)
    return f"{entry.parameter} ({of})" if of else entry.parameter


@dataclass(frozen=True)
class Fleet:
    """What many results say together.

    Attributes:
        histories: Values over time, of each parameter.
        changes: Robots that change, the most certain first.
        pooled: Parameters over all robots.
        unproved: Why there are no changes, with the largest that could be chance; empty if there are some, or
            no dates.
    """

    histories: tuple[History, ...] = ()
    changes: tuple[Change, ...] = ()
    pooled: tuple[Pooled, ...] = ()
    unproved: str = ""

    @property
    def untested(self) -> bool:
        """Whether there are too few robots to test differences between them."""
        return all(entry.robots < ROBOTS for entry in self.pooled)

    def document(self) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "changes": [asdict(change) for change in self.changes],
            "pooled": [
                {**asdict(entry), "unlike": [{"robot": name, "p": p} for name, p in entry.unlike]}
                for entry in self.pooled
            ],
        }


def fleet_of(samples: Iterable[Sample]) -> Fleet:
    """Changes over time and differences between robots, with false alarms controlled over all tests."""
    groups: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples:
        key = (sample.description, sample.variant, sample.parameter, sample.unit)
        groups.setdefault(key, []).append(sample)
    changes: list[_Tested] = []
    pooled: list[Pooled] = []
    histories: list[History] = []
    most = 0  # dates of a robot
    for (description, variant, parameter, unit), members in groups.items():
        series = series_of(members)
        histories.append(History(variant, parameter, unit, description, series))
        dates = series.different
        most = max(most, int(dates.max()))
        extra, freedom = scatter(series)
        long = series.rows(dates >= LEAST)
        changes += _tested(long, fits(long, extra), freedom, members[0]) if long.robots else []
        if len(series.robots) > 1:
            pooled.append(_pooled(series, extra, members[0]))
    looks = most - LEAST + 1
    alarms = _with_causes(_alarms([one.change for one in changes], looks))
    unproved = "" if alarms or most < 2 else _unproved(changes, looks)
    return Fleet(tuple(histories), alarms, _with_unlike(pooled), unproved)


@dataclass(frozen=True)
class _Tested:
    """A change before correction: its size in deviations, and how well these are known."""

    change: Change
    deviations: float
    freedom: float


def _factor(looks: int) -> float:
    """By which p is multiplied at the look of that number."""
    return looks**2 * math.pi**2 / 6.0


def _unproved(tested: Sequence[_Tested], looks: int) -> str:
    """Why nothing is reported: few dates prove a change of no size, and that is no all-clear."""
    if not tested:
        return f"changes over time are tested from {LEAST} dates of a robot on"
    largest = max(tested, key=lambda one: one.deviations)
    change = largest.change
    needed = student_quantile(largest.freedom, 1.0 - ALARM / (4.0 * len(tested) * _factor(looks)))
    return (
        f"no change over time is significant: the largest, a {change.kind} of {change.words} of"
        f" {change.robot} by {change.size}, has {largest.deviations:.3g} sigma; these dates and robots need"
        f" about {needed:.3g}, more dates fewer"
    )


def _tested(series: Series, made: Fits, freedom: float, like: Sample) -> list[_Tested]:
    """The likelier of a drift and a step of each robot, with its probability by chance before correction."""
    tested = []
    for i, robot in enumerate(series.robots):
        drift = student_tails(freedom, float(made.slope[i] / made.slope_sigma[i]))
        one_place = student_tails(freedom, float(made.jump[i] / made.jump_sigma[i]))
        step = min(1.0, int(made.places[i]) * one_place) if made.place[i] else 1.0
        # The fit decides: with few freedoms the factor of `step` outweighs a step of any size.
        is_step = bool(made.place[i] and made.step[i] < made.line[i])
        dates, length = series.dates[i], float(series.t[i, -1] - series.t[i, 0])
        change = float(made.jump[i] if is_step else made.slope[i] * length)
        deviation = made.jump[i] / made.jump_sigma[i] if is_step else made.slope[i] / made.slope_sigma[i]
        found = Change(
            robot,
            like.variant,
            like.parameter,
            like.unit,
            "step" if is_step else "drift",
            0.0 if is_step else float(made.slope[i]),
            change,
            100.0 * change / (abs(float(made.mean[i])) or 1.0),
            dates[int(made.place[i]) if is_step else 0],
            min(1.0, 2.0 * min(step, drift)),  # two kinds were tried
            like.description,
        )
        tested.append(_Tested(found, abs(float(deviation)), freedom))
    return tested


def _holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for the number of tests: that of the smallest times all, and so on."""
    order = np.argsort(p)
    corrected = np.empty(len(p))
    largest = 0.0
    for rank, k in enumerate(order.tolist()):
        largest = max(largest, min(1.0, (len(p) - rank) * p[k]))
        corrected[k] = largest
    return corrected.tolist()


def _alarms(changes: Sequence[Change], looks: int) -> tuple[Change, ...]:
    """Changes that are not chance, at the look of that number."""
    corrected = _holm([min(1.0, change.p * _factor(looks)) for change in changes])
    alarms = [replace(change, p=p) for change, p in zip(changes, corrected, strict=True) if p < ALARM]
    return tuple(sorted(alarms, key=lambda change: change.p))


def _with_causes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Changes with what all of their robot point to.

    Wear changes friction alone, a load the inertial parameters alone. Both change together if the scale of an
    effort does: a drive gain.
    """
    of_robot: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        of_robot.setdefault(_owner(change), []).append(change)
    return tuple(replace(change, cause=_cause(of_robot[_owner(change)])) for change in changes)


def _owner(change: Change) -> tuple[str, ...]:
    return change.robot, change.description, change.variant


def _kind(parameter: str) -> str:
    """What a parameter describes: `friction`, `load` or `offset`; empty: something else."""
    symbol = parameter.partition("_")[0].partition("/")[0]
    term = DRIVE_TERMS.get(symbol)
    if term is None:
        return "load" if symbol in SYMBOLS else ""
    return "friction" if term.friction else "gain" if term.inertia else "offset"


def _cause(changes: Sequence[Change]) -> str:
    """Of one robot; a rotor keeps its inertia, so if that changes, the scale of the effort does.

    Changes of different kinds or dates have no common cause.
    """
    kinds = {_kind(change.parameter) for change in changes}
    when = {(change.kind, change.since) for change in changes}
    if "" in kinds or (len(kinds) > 1 and len(when) > 1):
        return ""
    if "gain" in kinds or {"friction", "load"} <= kinds:
        return "gain"
    return "".join(kinds) if len(kinds) == 1 else ""


def _pooled(series: Series, extra: float, like: Sample) -> Pooled:
    """Mean of the robots and the deviation between them (Paule and Mandel), and who differs."""
    w = series.weights(extra)
    variances = 1.0 / w.sum(axis=1)
    means = (w * series.y).sum(axis=1) * variances
    between = _between(means, variances)
    weights = 1.0 / (variances + between)
    mean = float(np.average(means, weights=weights))
    unlike: list[tuple[str, float]] = []
    robots = len(means)
    if robots >= ROBOTS:
        for k, name in enumerate(series.robots):
            rest = np.arange(robots) != k
            spread = _between(means[rest], variances[rest])
            others = 1.0 / (variances[rest] + spread)
            middle = float(np.average(means[rest], weights=others))
            z = (means[k] - middle) / math.sqrt(variances[k] + spread + 1.0 / float(np.sum(others)))
            unlike.append((name, student_tails(robots - 2.0, float(z))))
    sigma = 1.0 / math.sqrt(float(np.sum(weights)))
    named = (like.variant, like.parameter, like.unit)
    return Pooled(*named, robots, mean, sigma, math.sqrt(between), tuple(unlike), like.description)


def _between(means: Float[Array, "r"], variances: Float[Array, "r"]) -> float:
    """Variance between robots at which the scatter of their means is as expected: chi^2 = r - 1."""

    def excess(between: float) -> float:
        weights = 1.0 / (variances + between)
        mean = weights @ means / np.sum(weights)
        return float(weights @ (means - mean) ** 2) - (len(means) - 1.0)

    return root(excess, float(np.var(means)) * len(means)) if len(means) > 1 else 0.0


def _with_unlike(pooled: Sequence[Pooled]) -> tuple[Pooled, ...]:
    """Robots that differ, corrected over all parameters and robots."""
    tests = [(i, name, p) for i, entry in enumerate(pooled) for name, p in entry.unlike]
    corrected = _holm([p for _, _, p in tests])
    named: dict[int, list[tuple[str, float]]] = {}
    for (i, name, _), p in zip(tests, corrected, strict=True):
        if p < ALARM:
            named.setdefault(i, []).append((name, p))
    return tuple(
        replace(entry, unlike=tuple(sorted(named.get(i, ()), key=lambda pair: pair[1])))
        for i, entry in enumerate(pooled)
    )
