"""One parameter of many robots over time: days, lines, steps, and the usual scatter from day to day.

    y_ij = a_i + b_i t_ij + e_ij,    Var(e_ij) = f_i (s_ij^2 + w^2)

y_ij is the value of robot i on the day t_ij, s_ij the deviation of its own fit. A short log knows its own
deviation badly, and one that is too small by chance would count most: no s_ij is below the median of all.
Logs of one day share what is special about it: together they are one value.

w is what varies from day to day beyond the deviations (temperature, for instance). It is estimated from the
scatter of each robot about its own line or step, whichever is closer, by the median over robots, so that the
few robots that change do not hide themselves. What a robot scatters more or less than others, f_i, is in
`spread.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dynid.campaign.dates import number_of
from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.distributions import digamma, trigamma
from dynid.common.strict_number import is_number

LEAST = 5  # days of a robot: a line through fewer says little of its own scatter
_LOW = 0.3  # of the median: squares below that are small by chance
_DRAWS = 4000  # series without any change, for the usual scatter about the closer of line and step
_LONG = 40  # dates beyond which it is that of chi-squared


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, eq=False)
class Series:
    """One parameter of all robots, in the order of their dates; rows are filled up to the longest.

    Attributes:
        robots: Names, shape (r,).
        dates: As written, of each robot.
        t: Dates as numbers, shape (r, n).
        y: Values, shape (r, n).
        sigma: Deviations of the fits, shape (r, n).
        used: Which entries are values, shape (r, n).
        typical: Median of the deviations; none counts as smaller.
    """

    robots: tuple[str, ...]
    dates: tuple[tuple[str, ...], ...]
    t: Float[Array, "r n"]
    y: Float[Array, "r n"]
    sigma: Float[Array, "r n"]
    used: Bool[Array, "r n"]
    typical: float

    @property
    def counts(self) -> Int[Array, "r"]:
        """Values of each robot."""
        return np.asarray(self.used.sum(axis=1))

    def weights(self, extra: float) -> Float[Array, "r n"]:
        """Of each value, with the variance `extra` from log to log."""
        return np.where(self.used, 1.0 / (np.maximum(self.sigma, self.typical) ** 2 + extra), 0.0)

    def rows(self, chosen: Bool[Array, "r"]) -> Series:
        """Some of the robots."""
        where = np.flatnonzero(chosen).tolist()
        names, dates = tuple(self.robots[i] for i in where), tuple(self.dates[i] for i in where)
        arrays = self.t[where], self.y[where], self.sigma[where], self.used[where]
        return Series(names, dates, *arrays, self.typical)


def series_of(samples: Sequence[Sample]) -> Series:
    """All values of a parameter, by robot and date; without dates in the order given."""
    by_robot: dict[str, list[tuple[float, Sample]]] = {}
    for order, sample in enumerate(samples):
        number = number_of(sample.date)
        by_robot.setdefault(sample.robot, []).append((order if number is None else number, sample))
    histories = [sorted(dated, key=lambda pair: pair[0]) for dated in by_robot.values()]
    shape = len(histories), max(map(len, histories))
    t, y, sigma, used = np.zeros(shape), np.zeros(shape), np.ones(shape), np.zeros(shape, dtype=bool)
    for i, dated in enumerate(histories):
        n = len(dated)
        t[i, :n], t[i, n:] = [number for number, _ in dated], dated[-1][0]
        y[i, :n], sigma[i, :n] = [sample.value for _, sample in dated], [sample.sigma for _, sample in dated]
        used[i, :n] = True
    dates = tuple(tuple(sample.date for _, sample in dated) for dated in histories)
    return Series(tuple(by_robot), dates, t, y, sigma, used, float(np.median(sigma[used])))


def daily(series: Series) -> Series:
    """One value for each day of a robot: the mean of its logs, which share what is special about that day.

    If logs of one day scatter more than their deviations, all deviations are too small by that factor. Days
    are those of dates; plain numbers (of logs, for instance) are one day only if they are equal.
    """
    day = np.floor(series.t) if _has_dates(series) else series.t
    first = np.diff(day, axis=1, prepend=-np.inf) > 0.0
    first &= series.used
    if np.array_equal(first, series.used):
        return series
    row, place = np.nonzero(series.used)
    number = np.cumsum(first, axis=1)[row, place] - 1
    shape = len(series.robots), int(number.max()) + 1
    flat = row * shape[1] + number
    weight, value = series.weights(0.0)[row, place], series.y[row, place]
    size = shape[0] * shape[1]
    total = np.bincount(flat, weight, size)
    used = total > 0.0
    safe = np.where(used, total, 1.0)
    mean = np.bincount(flat, weight * value, size) / safe
    spread = float(weight @ (value - mean[flat]) ** 2) / (len(value) - np.count_nonzero(used))
    sigma = np.sqrt(max(1.0, spread) / safe)
    last = np.broadcast_to(day[:, -1:], shape).copy().reshape(size)
    last[flat] = day[row, place]
    dates = tuple(
        tuple(text for text, new in zip(texts, new_days, strict=False) if new)
        for texts, new_days in zip(series.dates, first.tolist(), strict=True)
    )
    arrays = last.reshape(shape), mean.reshape(shape), sigma.reshape(shape), used.reshape(shape)
    return Series(series.robots, dates, *arrays, float(np.median(sigma[used])))


def _has_dates(series: Series) -> bool:
    text = series.dates[0][0].strip()
    return bool(text) and not (is_number(text) and float(text) == series.t[0, 0])


@dataclass(frozen=True, eq=False)
class Fits:
    """A line and the best step through the values of each robot, shape (r,) each.

    Attributes:
        mean: Weighted.
        size: Weighted squares about it.
        slope, slope_sigma: Of the line, per unit of the dates.
        line: Weighted squares left by it.
        place: Index of the first value after the step; 0: there is no place for one.
        jump, jump_sigma: Of the step.
        step: Weighted squares left by it; infinite without a place.
        places: Steps that were tried.
    """

    mean: Float[Array, "r"]
    size: Float[Array, "r"]
    slope: Float[Array, "r"]
    slope_sigma: Float[Array, "r"]
    line: Float[Array, "r"]
    place: Int[Array, "r"]
    jump: Float[Array, "r"]
    jump_sigma: Float[Array, "r"]
    step: Float[Array, "r"]
    places: Int[Array, "r"]


def fits(series: Series, extra: float) -> Fits:
    """Lines and steps by weighted least squares; `extra` is the variance from log to log."""
    w = series.weights(extra)
    total = w.sum(axis=1)
    mean = (w * series.y).sum(axis=1) / total
    y = series.y - mean[:, None]
    t = series.t - ((w * series.t).sum(axis=1) / total)[:, None]
    spread, size = (w * t**2).sum(axis=1), (w * y**2).sum(axis=1)
    several = spread > 0.0
    spread = np.where(several, spread, 1.0)
    slope = np.where(several, (w * t * y).sum(axis=1) / spread, 0.0)
    slope_sigma = np.where(several, 1.0 / np.sqrt(spread), np.inf)
    left = size - slope**2 * spread
    return Fits(mean, size, slope, slope_sigma, left, *_best_steps(series, w, y, size))


def residuals(series: Series, extra: float) -> Float[Array, "r n"]:
    """What the line of each robot leaves, in its deviations; zero where there is no value."""
    made, w = fits(series, extra), series.weights(extra)
    t = series.t - ((w * series.t).sum(axis=1) / w.sum(axis=1))[:, None]
    return np.asarray(np.sqrt(w) * (series.y - made.mean[:, None] - made.slope[:, None] * t))


def _best_steps(
    series: Series, w: Float[Array, "r n"], y: Float[Array, "r n"], size: Float[Array, "r"]
) -> tuple[Int[Array, "r"], Float[Array, "r"], Float[Array, "r"], Float[Array, "r"], Int[Array, "r"]]:
    """All places at once, by sums of w and w y (y from its mean) before and after each."""
    place = np.arange(1, series.t.shape[1] + 1)  # of the first value after the step
    apart = np.diff(series.t, axis=1, append=series.t[:, -1:]) > 0.0
    possible = (place >= 2) & (place <= series.counts[:, None] - 2) & apart
    before, moment = np.cumsum(w, axis=1), np.cumsum(w * y, axis=1)
    after = np.where(possible, w.sum(axis=1)[:, None] - before, 1.0)
    inverse = 1.0 / before + 1.0 / after
    left = np.where(possible, size[:, None] - moment**2 * inverse, np.inf)
    best = np.argmin(left, axis=1)[:, None]
    moment, inverse, left = (np.take_along_axis(sums, best, axis=1)[:, 0] for sums in (moment, inverse, left))
    found = np.where(np.isfinite(left), best[:, 0] + 1, 0)
    return found, -moment * inverse, np.sqrt(inverse), left, possible.sum(axis=1)


@dataclass(frozen=True)
class Usual:
    """Squares that n values without any change leave about the closer of line and step, in their variance.

    Attributes:
        median: Of the squares.
        mean, variance: Of `logarithm`.
    """

    median: float
    mean: float
    variance: float

    def logarithm(self, squares: Float[Array, "r"]) -> Float[Array, "r"]:
        """Of squares; very small ones, whose logarithms would count most, are raised."""
        return np.log(np.maximum(squares, _LOW * self.median))


def scatter(series: Series) -> float:
    """w^2 at which the typical robot has as much scatter as without any change; zero without enough days."""
    long = series.rows(series.counts >= LEAST)
    if not long.robots:
        return 0.0
    expected = np.array([usual(n).median for n in long.counts.tolist()])

    def excess(extra: float) -> float:
        made = fits(long, extra)
        return float(np.median(np.minimum(made.line, made.step) / expected)) - 1.0

    values = long.y[long.used]
    most = max(float(np.var(row[used])) for row, used in zip(long.y, long.used, strict=True)) * len(values)
    return root(excess, most + float(np.max(long.sigma**2)))


@lru_cache(maxsize=1024)
def usual(n: int) -> Usual:
    """Of n days; below `LEAST` about the mean, as only that can be fitted."""
    if n > _LONG:
        half = 0.5 * (n - 3.0)
        return Usual(2.0 * half - 2.0 / 3.0, digamma(half) + math.log(2.0), trigamma(half))
    y = np.random.default_rng(n).standard_normal((_DRAWS, n))
    t = np.broadcast_to(np.arange(float(n)), y.shape)
    names = ("",) * _DRAWS
    made = fits(Series(names, (), t, y, np.ones_like(y), np.ones_like(y, dtype=bool), 1.0), 0.0)
    left = made.size if n < LEAST else np.minimum(made.line, made.step)
    known = Usual(float(np.median(left)), 0.0, 0.0)
    levels = known.logarithm(left)
    return replace(known, mean=float(np.mean(levels)), variance=float(np.var(levels)))


def root(excess: Callable[[float], float], most: float) -> float:
    """The variance at which the scatter is as expected, between 0 and `most`; 0 if it is less without."""
    from scipy.optimize import brentq

    if excess(0.0) <= 0.0:
        return 0.0
    return most if excess(most) >= 0.0 else float(brentq(excess, 0.0, most, rtol=1e-6, xtol=1e-9 * most))
