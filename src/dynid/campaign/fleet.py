"""Many results together: parameters over time, robots that differ from the others, and the mean of all.

Of one parameter, y_ij is the value of robot i at the date t_ij, with the deviation s_ij of its own fit:

    y_ij = a_i + b_i t_ij + e_ij,    Var(e_ij) = s_ij^2 + w^2

w is what varies from log to log beyond the deviations (temperature, for instance). It is estimated from the
scatter of all robots about their own lines, by the median over robots, so that the few robots that change do
not hide themselves. Drift is b_i != 0; a step is a difference of the means before and after one date.
p-values of all tests are corrected together by Holm's method. A fleet is looked at again when logs arrive: at
the k-th possible look p is also multiplied by k^2 pi^2 / 6, and as the sum of 6 / (pi k)^2 is one, the
probability of one or more false alarms in all tables together is below `ALARM`. Between robots,
a_i = mu + u_i with Var(u_i) = between^2 (random effects).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.campaign.file import number_of
from dynid.common.arrays import Array, Float
from dynid.common.distributions import student_tails

ALARM = 0.05  # probability of any false alarm
_LEAST = 4  # dates of a robot: a line through fewer says little of its own scatter
_ROBOTS = 5  # robots of which one can differ from the others


@dataclass(frozen=True)
class Sample:
    """One parameter of one result.

    Attributes:
        robot: The individual.
        date: As written; empty if unknown.
        variant: Settings that it was identified with.
        value, sigma: In `unit`.
        description: Kind of robot, if there are several: only robots of one kind are compared.
    """

    robot: str
    date: str
    variant: str
    parameter: str
    unit: str
    value: float
    sigma: float
    description: str = ""


@dataclass(frozen=True)
class Change:
    """A parameter of a robot that changes over time.

    Attributes:
        kind: `drift` or `step`.
        per_day: Slope of a drift, in `unit` per day (per unit of the dates if they are numbers).
        percent: Change over all dates, in percent of the mean.
        since: Date of the step, or the first date.
        p: Corrected probability of such a change by chance.
    """

    robot: str
    variant: str
    parameter: str
    unit: str
    kind: str
    per_day: float
    percent: float
    since: str
    p: float
    description: str = ""

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


def _words(entry: Change | Pooled) -> str:
    of = ", ".join(part for part in (entry.description, entry.variant) if part)
    return f"{entry.parameter} ({of})" if of else entry.parameter


@dataclass(frozen=True)
class Fleet:
    """What many results say together.

    Attributes:
        samples: All that were used.
        changes: Robots that change, the most certain first.
        pooled: Parameters over all robots.
    """

    samples: tuple[Sample, ...] = ()
    changes: tuple[Change, ...] = ()
    pooled: tuple[Pooled, ...] = ()

    def document(self) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "changes": [asdict(change) for change in self.changes],
            "pooled": [
                {**asdict(entry), "unlike": [{"robot": name, "p": p} for name, p in entry.unlike]}
                for entry in self.pooled
            ],
        }


@dataclass(frozen=True, eq=False)
class _Series:
    """One parameter of one robot over time, in the order of the dates."""

    robot: str
    dates: tuple[str, ...]
    t: Float[Array, "n"]
    y: Float[Array, "n"]
    sigma: Float[Array, "n"]


def fleet_of(samples: Iterable[Sample]) -> Fleet:
    """Changes over time and differences between robots, with false alarms controlled over all tests."""
    kept = tuple(samples)
    groups: dict[tuple[str, ...], list[Sample]] = {}
    for sample in kept:
        key = (sample.description, sample.variant, sample.parameter, sample.unit)
        groups.setdefault(key, []).append(sample)
    changes: list[Change] = []
    pooled: list[Pooled] = []
    most = 0  # dates of a robot
    for members in groups.values():
        series = _series(members)
        most = max(most, *(len(set(history.t.tolist())) for history in series))
        extra = _extra_variance(series)
        changes += [
            _tested(history, extra, members[0])
            for history in series
            if len(set(history.t.tolist())) >= _LEAST
        ]
        if len(series) > 1:
            pooled.append(_pooled(series, extra, members[0]))
    return Fleet(kept, _alarms(changes, most - _LEAST + 1), _with_unlike(pooled))


def _series(members: Sequence[Sample]) -> list[_Series]:
    by_robot: dict[str, list[tuple[float, Sample]]] = {}
    for order, sample in enumerate(members):
        number = number_of(sample.date)
        by_robot.setdefault(sample.robot, []).append((order if number is None else number, sample))
    histories = []
    for robot, dated in by_robot.items():
        dated.sort(key=lambda pair: pair[0])
        t = np.array([number for number, _ in dated])
        values, sigma = (
            np.array([getattr(sample, key) for _, sample in dated]) for key in ("value", "sigma")
        )
        histories.append(_Series(robot, tuple(sample.date for _, sample in dated), t, values, sigma))
    return histories


def _line(history: _Series, extra: float) -> tuple[float, float, float, float]:
    """Weighted line: slope, its deviation, squares of the weighted residuals, mean."""
    w = 1.0 / (history.sigma**2 + extra)
    mean_t, mean_y = np.average(history.t, weights=w), np.average(history.y, weights=w)
    t = history.t - mean_t
    spread = float(np.sum(w * t**2))
    slope = float(np.sum(w * t * history.y)) / spread if spread > 0.0 else 0.0
    rest = history.y - mean_y - slope * t
    deviation = 1.0 / math.sqrt(spread) if spread > 0.0 else math.inf
    return slope, deviation, float(np.sum(w * rest**2)), float(mean_y)


def _extra_variance(series: Sequence[_Series]) -> float:
    """w^2: scatter about the lines beyond the deviations, by the median over robots.

    It is the value at which the typical robot has as much scatter as it should: chi^2 = n - 2.
    """
    long = [history for history in series if len(set(history.t.tolist())) >= _LEAST]
    if not long:
        return 0.0

    robot = np.repeat(np.arange(len(long)), [len(history.t) for history in long])
    t, y, sigma = (np.concatenate([getattr(history, key) for history in long]) for key in ("t", "y", "sigma"))
    k = np.bincount(robot) - 2.0
    # The median of chi^2 with k degrees of freedom is k (1 - 2 / (9 k))^3, by Wilson and Hilferty.
    usual = k * (1.0 - 2.0 / (9.0 * k)) ** 3

    def excess(extra: float) -> float:
        w = 1.0 / (sigma**2 + extra)
        total = np.bincount(robot, w)
        dt = t - (np.bincount(robot, w * t) / total)[robot]
        dy = y - (np.bincount(robot, w * y) / total)[robot]
        slope = np.bincount(robot, w * dt * dy) / np.bincount(robot, w * dt**2)
        squares = np.bincount(robot, w * (dy - slope[robot] * dt) ** 2)
        return float(np.median(squares / usual)) - 1.0

    most = max(float(np.var(history.y)) for history in long) * len(y) + float(np.max(sigma**2))
    return _root(excess, most)


def _root(excess: Callable[[float], float], most: float) -> float:
    """The variance at which the scatter is as expected, between 0 and `most`; 0 if it is less without."""
    from scipy.optimize import brentq

    if excess(0.0) <= 0.0:
        return 0.0
    return most if excess(most) >= 0.0 else float(brentq(excess, 0.0, most, rtol=1e-6, xtol=1e-9 * most))


def _tested(history: _Series, extra: float, like: Sample) -> Change:
    """The likelier of a drift and a step, with its probability by chance before correction."""
    slope, deviation, rest, mean = _line(history, extra)
    dof = float(max(len(history.t) - 2, 1)) if extra == 0.0 else 1e3
    size = abs(mean) or 1.0
    drift = student_tails(max(dof, 30.0), slope / deviation) if math.isfinite(deviation) else 1.0
    length = float(history.t[-1] - history.t[0])
    place, jump, squares, step = _step(history, extra)
    is_step = bool(place) and squares < rest and step < drift
    return Change(
        history.robot,
        like.variant,
        like.parameter,
        like.unit,
        "step" if is_step else "drift",
        0.0 if is_step else slope,
        100.0 * (jump if is_step else slope * length) / size,
        history.dates[place if is_step else 0],
        min(1.0, 2.0 * (step if is_step else drift)),  # two kinds were tried
        like.description,
    )


def _step(history: _Series, extra: float) -> tuple[int, float, float, float]:
    """The best step: its place, size, squares left, and probability (over all places); place 0: none.

    All places at once, by sums of w, w y and w y^2 (y from its mean) before and after each.
    """
    w = 1.0 / (history.sigma**2 + extra)
    y = history.y - np.average(history.y, weights=w)
    places = np.arange(2, len(y) - 1)
    places = places[history.t[places] > history.t[places - 1]]
    if not len(places):
        return 0, 0.0, math.inf, 1.0
    before, moment = np.cumsum(w)[places - 1], np.cumsum(w * y)[places - 1]
    after = np.sum(w) - before
    jump = (np.sum(w * y) - moment) / after - moment / before
    left = np.sum(w * y**2) - moment**2 / before - (np.sum(w * y) - moment) ** 2 / after
    k = int(np.argmin(left))
    z = float(jump[k]) / math.sqrt(1.0 / before[k] + 1.0 / after[k])
    return int(places[k]), float(jump[k]), float(left[k]), min(1.0, len(places) * student_tails(1e3, z))


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
    corrected = _holm([min(1.0, change.p * looks**2 * math.pi**2 / 6.0) for change in changes])
    alarms = [replace(change, p=p) for change, p in zip(changes, corrected, strict=True) if p < ALARM]
    return tuple(sorted(alarms, key=lambda change: change.p))


def _pooled(series: Sequence[_Series], extra: float, like: Sample) -> Pooled:
    """Mean of the robots and the deviation between them (Paule and Mandel), and who differs."""
    w = [1.0 / (history.sigma**2 + extra) for history in series]
    means = np.array(
        [float(np.average(history.y, weights=w_robot)) for history, w_robot in zip(series, w, strict=True)]
    )
    variances = np.array([1.0 / float(np.sum(w_robot)) for w_robot in w])
    between = _between(means, variances)
    weights = 1.0 / (variances + between)
    mean = float(np.average(means, weights=weights))
    unlike: list[tuple[str, float]] = []
    if len(series) >= _ROBOTS:
        for k, history in enumerate(series):
            rest = np.arange(len(series)) != k
            spread = _between(means[rest], variances[rest])
            others = 1.0 / (variances[rest] + spread)
            middle = float(np.average(means[rest], weights=others))
            z = (means[k] - middle) / math.sqrt(variances[k] + spread + 1.0 / float(np.sum(others)))
            unlike.append((history.robot, student_tails(len(series) - 2.0, float(z))))
    sigma = 1.0 / math.sqrt(float(np.sum(weights)))
    robots, spread = len(series), math.sqrt(between)
    named = (like.variant, like.parameter, like.unit)
    return Pooled(*named, robots, mean, sigma, spread, tuple(unlike), like.description)


def _between(means: Float[Array, "r"], variances: Float[Array, "r"]) -> float:
    """Variance between robots at which the scatter of their means is as expected: chi^2 = r - 1."""

    def excess(between: float) -> float:
        weights = 1.0 / (variances + between)
        mean = weights @ means / np.sum(weights)
        return float(weights @ (means - mean) ** 2) - (len(means) - 1.0)

    return _root(excess, float(np.var(means)) * len(means)) if len(means) > 1 else 0.0


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
