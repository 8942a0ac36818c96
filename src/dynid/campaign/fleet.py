"""Many results together: parameters over time, robots that differ from the others, and the mean of all.

Of one parameter, the values of each robot are tested for a drift and for a step (`trend.py`).
p-values of all tests are corrected together by the method of Benjamini and Hochberg: of the alarms, at most
the part `ALARM` is false on average. Where nothing changes every alarm is false, so `ALARM` is then the
probability of any. A fleet is looked at again when logs arrive: with n days, p is also multiplied by
c (n - 2)^2. With c = sum of 1 / j^2 from j = 3 on, the levels of all looks together are `ALARM`. Between
robots, a_i = mu + u_i with Var(u_i) = between^2 (random effects).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.campaign.alike import compared
from dynid.campaign.serial import serial_factors
from dynid.campaign.spread import Prior, priors
from dynid.campaign.trend import LEAST, Sample, Series, daily, fits, scatter, series_of
from dynid.common.arrays import Array, Float
from dynid.common.distributions import student_quantile, student_tails
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.inertia import SYMBOLS

ALARM = 0.05  # expected part of the alarms that are false; where nothing changes, probability of any
_LOOKS = math.pi**2 / 6.0 - 1.25  # sum of 1 / j^2 from j = LEAST - 2 = 3 on
_NEAR_ZERO = 300.0  # percent of a mean that is too near zero to be a reference


@dataclass(frozen=True)
class Change:
    """A parameter of a robot that changes over time.

    Attributes:
        kind: `drift` or `step`.
        per_day: Slope of a drift, in `unit` per day (per unit of the dates if they are numbers).
        change: Over all dates, in `unit`.
        percent: The same in percent of the mean.
        since: Date of the step, or the first date.
        p: Corrected for all tests and looks: the part of false alarms expected among this change and those
            with a smaller p.
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

    @property
    def owner(self) -> tuple[str, str, str]:
        """What its cause is asked of: a robot of a kind, with its settings."""
        return self.robot, self.description, self.variant


@dataclass(frozen=True)
class Pooled:
    """One parameter over all robots.

    Attributes:
        mean, sigma: Of the population, and its deviation.
        between: Deviation between robots.
        p: Of such differences between robots that are alike, corrected for all parameters; None: not tested,
            as no robot has two days.
        unlike: Robots that stand apart from most others, with p corrected for all robots and parameters; of
            fewer than `LEAST_ROBOTS` none is tested.
    """

    variant: str
    parameter: str
    unit: str
    robots: int
    mean: float
    sigma: float
    between: float
    p: float | None
    unlike: tuple[tuple[str, float], ...] = ()
    description: str = ""

    @property
    def relative(self) -> float:
        """Deviation between robots over the mean."""
        return self.between / abs(self.mean) if self.mean else math.inf

    @property
    def size(self) -> str:
        """The same in words; in its unit if the mean is near zero."""
        if 100.0 * self.relative < _NEAR_ZERO:
            return f"{100.0 * self.relative:.2g} % of the mean"
        return f"{self.between:.2g} {self.unit}".strip()

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
    if not groups:
        return Fleet()
    histories = [
        History(variant, parameter, unit, description, series_of(members))
        for (description, variant, parameter, unit), members in groups.items()
    ]
    every = [daily(history.series) for history in histories]
    extras = [scatter(series) for series in every]
    owners = [
        [(robot, history.description, history.variant) for robot in history.series.robots]
        for history in histories
    ]
    changes: list[_Tested] = []
    pooled: list[Pooled] = []
    most = 0  # days of a robot
    for history, series, extra, prior, factor in zip(
        histories, every, extras, priors(every, extras, owners), serial_factors(every, extras), strict=True
    ):
        most = max(most, int(series.counts.max()))
        long = series.counts >= LEAST
        if np.any(long):
            changes += _tested(series.rows(long), extra, prior.rows(long), factor[long], history)
        if len(series.robots) > 1:
            pooled.append(_pooled(series, extra, prior, history))
    alarms = _with_causes(_alarms([one.change for one in changes], most))
    unproved = "" if alarms or most < 2 else _unproved(changes, most)
    return Fleet(tuple(histories), alarms, _corrected(pooled), unproved)


@dataclass(frozen=True)
class _Tested:
    """A change before correction: its size in deviations, and how well these are known."""

    change: Change
    deviations: float
    freedom: float


def _factor(days: int) -> float:
    """By which p is multiplied at the look after so many days."""
    return _LOOKS * (days - 2.0) ** 2


def _unproved(tested: Sequence[_Tested], days: int) -> str:
    """Why nothing is reported: few dates prove a change of no size, and that is no all-clear."""
    if not tested:
        return f"changes over time are tested from {LEAST} days of a robot on"
    largest = max(tested, key=lambda one: one.deviations)
    change = largest.change
    needed = student_quantile(largest.freedom, 1.0 - ALARM / (4.0 * len(tested) * _factor(days)))
    return (
        f"no change over time is significant: the largest, a {change.kind} of {change.words} of"
        f" {change.robot} by {change.size}, has {largest.deviations:.3g} sigma; these days and robots need"
        f" about {needed:.3g}, more days fewer"
    )


def _tested(
    series: Series, extra: float, prior: Prior, factor: Float[Array, "r"], of: History
) -> list[_Tested]:
    """The likelier of a drift and a step of each robot, with its probability by chance before correction."""
    made = fits(series, extra)
    own = series.counts - 2.0
    freedom = prior.freedom + own
    slope = made.slope / (made.slope_sigma * np.sqrt(factor * prior.moderated(made.line, own)))
    jump = made.jump / (made.jump_sigma * np.sqrt(factor * prior.moderated(made.step, own)))
    tested = []
    for i, robot in enumerate(series.robots):
        drift = student_tails(float(freedom[i]), float(slope[i]))
        one_place = student_tails(float(freedom[i]), float(jump[i])) if made.place[i] else 1.0
        step = min(1.0, int(made.places[i]) * one_place)
        # The fit decides: with few freedoms the factor of `step` outweighs a step of any size.
        is_step = bool(made.place[i] and made.step[i] < made.line[i])
        dates, length = series.dates[i], float(series.t[i, -1] - series.t[i, 0])
        change = float(made.jump[i] if is_step else made.slope[i] * length)
        found = Change(
            robot,
            of.variant,
            of.parameter,
            of.unit,
            "step" if is_step else "drift",
            0.0 if is_step else float(made.slope[i]),
            change,
            100.0 * change / (abs(float(made.mean[i])) or 1.0),
            dates[int(made.place[i]) if is_step else 0],
            min(1.0, 2.0 * min(step, drift)),  # two kinds were tried
            of.description,
        )
        deviation = jump[i] if is_step else slope[i]
        tested.append(_Tested(found, abs(float(deviation)), float(freedom[i])))
    return tested


def _corrected_p(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number m (Benjamini and Hochberg): the k-th smallest times m / k."""
    order = np.argsort(p)[::-1]
    shares = len(p) / np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, np.minimum.accumulate(shares * np.asarray(p)[order]))
    return corrected.tolist()


def _alarms(changes: Sequence[Change], days: int) -> tuple[Change, ...]:
    """Changes that are not chance, at the look after so many days."""
    corrected = _corrected_p([min(1.0, change.p * _factor(days)) for change in changes])
    alarms = [replace(change, p=p) for change, p in zip(changes, corrected, strict=True) if p < ALARM]
    return tuple(sorted(alarms, key=lambda change: change.p))


def _with_causes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Changes with what all of their robot point to.

    Wear changes friction alone, a load the inertial parameters alone. Both change together if the scale of an
    effort does: a drive gain.
    """
    causes = {members[0].owner: _cause(members) for members in by_robot(changes)}
    return tuple(replace(change, cause=causes[change.owner]) for change in changes)


def by_robot(changes: Sequence[Change]) -> list[tuple[Change, ...]]:
    """Changes of each robot, in the order of its first."""
    robots: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        robots.setdefault(change.owner, []).append(change)
    return [tuple(members) for members in robots.values()]


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


def _pooled(series: Series, extra: float, prior: Prior, of: History) -> Pooled:
    """Mean of the robots, the deviation between them, and who differs; before correction."""
    own = series.counts - 1.0
    variances = prior.moderated(fits(series, extra).size, own) / series.weights(extra).sum(axis=1)
    means = fits(series, extra).mean
    made = compared(means, variances, prior.freedom + own)
    named = (of.variant, of.parameter, of.unit, len(means), made.mean, made.sigma, made.between, made.p)
    unlike = tuple(zip(series.robots, made.apart, strict=True)) if made.apart else ()
    return Pooled(*named, unlike, of.description)


def _corrected(pooled: Sequence[Pooled]) -> tuple[Pooled, ...]:
    """Differences corrected over all parameters, and robots that differ over all parameters and robots."""
    differ = iter(_corrected_p([entry.p for entry in pooled if entry.p is not None]))
    apart = iter(_corrected_p([p for entry in pooled for _, p in entry.unlike]))
    corrected = []
    for entry in pooled:
        p = None if entry.p is None else next(differ)
        named = sorted(((name, next(apart)) for name, _ in entry.unlike), key=lambda pair: pair[1])
        corrected.append(replace(entry, p=p, unlike=tuple(pair for pair in named if pair[1] < ALARM)))
    return tuple(corrected)
