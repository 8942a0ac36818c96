"""How much each robot scatters from day to day in each parameter, as the others suggest.

    log(variance of robot r in parameter p) = mu + a_r + b_p + e_rp

over all robots and parameters, with Var(a) = between robots, Var(b) = between parameters, Var(e) = the rest;
the observed logarithm has the variance `usual(n).variance` of n days more. A robot on a bad mains, or a
parameter that temperature changes, has a variance of its own; where all are alike, each is known from all.
The others give a prior for one series: its variance is `variance` with `freedom` degrees of freedom, as an
inverse gamma law with the same mean and variance of the logarithm (Smyth 2004). With the n - 2 degrees of
freedom of its own days it is averaged (moderated): the freedom is infinite where all robots are alike, and
zero where the others say nothing. Parameters of a robot may share what is special about a day, and so may
robots of one place: then they scatter by the same chance, and say less of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dynid.campaign.trend import LEAST, Series, fits, residuals, root, usual
from dynid.common.arrays import Array, Float, Int
from dynid.common.distributions import digamma, inverse_trigamma

_TRUST = 2.0  # how far below that of its own days the variance of a robot may be
_MOST_SHARED = 0.95  # of squared correlations: some of the scatter is always their own
_ROUNDS = 10  # of variances and effects in turn
_TABLE = np.geomspace(1e-5, 5.0, 300)  # variances of a logarithm; beyond, the others say nothing


@dataclass(frozen=True, eq=False)
class Prior:
    """Variance of the values of each robot in one parameter, in that of its weights, before its own days.

    Attributes:
        variance: Shape (r,).
        freedom: Shape (r,).
        least: What the deviations of the fits alone explain; no variance is smaller.
    """

    variance: Float[Array, "r"]
    freedom: Float[Array, "r"]
    least: float

    def rows(self, chosen: Array) -> Prior:
        """Some of the robots."""
        return Prior(self.variance[chosen], self.freedom[chosen], self.least)

    def moderated(self, squares: Float[Array, "r"], own: Float[Array, "r"]) -> Float[Array, "r"]:
        """Variance of each robot with its own weighted squares, which have `own` degrees of freedom.

        Others make a robot quieter by no more than `_TRUST`: one day far off never looks like a change.
        """
        certain = np.isinf(self.freedom)
        freedom = np.where(certain, 0.0, self.freedom)
        mixed = (freedom * self.variance + squares) / np.maximum(freedom + own, 1e-9)
        seen = squares / np.maximum(_TRUST * own, 1.0)
        return np.maximum(np.maximum(np.where(certain, self.variance, mixed), seen), self.least)


def priors(
    every: Sequence[Series], extras: Sequence[float], owners: Sequence[Sequence[object]]
) -> list[Prior]:
    """Of each parameter; `extras` is its variance from day to day, `owners` are its robots."""
    number: dict[object, int] = {}
    levels, noises, robots, parameters, units = [], [], [], [], []
    for k, (series, extra, names) in enumerate(zip(every, extras, owners, strict=True)):
        level, noise = _levels(series, extra)
        unit = series.typical**2 + extra
        levels.append(level + np.log(unit / series.typical**2))
        noises.append(noise)
        robots.append([number.setdefault(name, len(number)) for name in names])
        parameters.append(np.full(len(names), k))
        units.append(np.full(len(names), unit / series.typical**2))
    shared = _shared_days(every, extras, owners)
    level, noise, robot, parameter = map(np.concatenate, (levels, noises, robots, parameters))
    mean, variance = _others(level, noise, robot, parameter, shared)
    freedom, shift = _as_inverse_gamma(variance)
    known = np.concatenate(units)
    prior = np.exp(mean + shift) / known
    ends = np.cumsum([len(part) for part in levels])[:-1]
    return [
        Prior(np.maximum(one, 1.0 / unit[0]), own, float(1.0 / unit[0]))
        for one, own, unit in zip(np.split(prior, ends), np.split(freedom, ends), units, strict=True)
    ]


def _levels(series: Series, extra: float) -> tuple[Float[Array, "r"], Float[Array, "r"]]:
    """Logarithm of the variance of each robot, in that of its weights, and the variance of the logarithm."""
    made = fits(series, extra)
    counts = series.counts
    left = np.where(counts >= LEAST, np.minimum(made.line, made.step), made.size)
    level, noise = np.zeros(len(left)), np.full(len(left), np.inf)
    for n in np.unique(counts[counts > 1]).tolist():
        law, those = usual(n), counts == n
        level[those], noise[those] = law.logarithm(left[those]) - law.mean, law.variance
    return level, noise


def _shared_days(
    every: Sequence[Series], extras: Sequence[float], owners: Sequence[Sequence[object]]
) -> tuple[float, float]:
    """Squared correlation of the same days, of the parameters of a robot and of the robots of a parameter."""
    alike: dict[object, list[Float[Array, "r n"]]] = {}
    robots = []
    for series, extra, names in zip(every, extras, owners, strict=True):
        long = series.counts >= LEAST
        if not np.any(long):
            continue
        chosen = series.rows(long)
        e = residuals(chosen, extra)
        alike.setdefault((*names, chosen.t.tobytes(), chosen.used.tobytes()), []).append(e)
        if len(e) > 1 and np.all(chosen.used) and np.all(chosen.t == chosen.t[0]):
            robots.append(_squared_correlation(e[None], chosen.counts[:1]))
    parameters = []
    for members in alike.values():
        if len(members) > 1:
            e = np.stack(members, axis=1)
            parameters.append(_squared_correlation(e, np.count_nonzero(e[:, 0], axis=1)))
    return _mean_of(parameters), _mean_of(robots)


def _squared_correlation(e: Float[Array, "m k n"], days: Int[Array, "m"]) -> float:
    """Mean over all pairs of k residuals of a line, beyond that of chance."""
    size = np.sqrt((e**2).sum(axis=2, keepdims=True))
    e = e / np.where(size > 0.0, size, 1.0)
    k = e.shape[1]
    pairs = (np.sum((e @ e.transpose(0, 2, 1)) ** 2, axis=(1, 2)) - k) / (k * (k - 1.0))
    chance = 1.0 / np.maximum(days - 2.0, 1.0)
    return float(np.mean((pairs - chance) / np.maximum(1.0 - chance, 0.1)))


def _mean_of(correlations: Sequence[float]) -> float:
    return min(max(float(np.mean(correlations)), 0.0), _MOST_SHARED) if correlations else 0.0


def _others(
    level: Float[Array, "s"],
    noise: Float[Array, "s"],
    robot: Int[Array, "s"],
    parameter: Int[Array, "s"],
    shared: tuple[float, float],
) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
    """Mean and variance of the logarithm of each series, from all others."""
    known = np.isfinite(noise)
    level = np.where(known, level, 0.0)
    count = int(known.sum())
    sizes = int(robot.max()) + 1, int(parameter.max()) + 1
    a, b = np.zeros(sizes[0]), np.zeros(sizes[1])
    mu, rest = 0.0, 0.0
    many = [len(np.unique(of[known])) for of in (robot, parameter)]
    if count < 2:
        return np.zeros_like(level), np.full_like(level, np.inf)
    own = (1.0 - shared[0]) * (1.0 - shared[1])  # what is left of the scatter of a level beside both effects
    free = count - many[0] - many[1] + 1.0
    for _ in range(_ROUNDS):
        weight = np.where(known, 1.0 / (noise + rest), 0.0)
        totals = [np.bincount(of, weight, size) for of, size in zip((robot, parameter), sizes, strict=True)]
        for _ in range(_ROUNDS):
            mu = float(np.average(level - a[robot] - b[parameter], weights=weight))
            a = np.bincount(robot, weight * (level - mu - b[parameter]), sizes[0]) / np.maximum(
                totals[0], 1e-12
            )
            b = np.bincount(parameter, weight * (level - mu - a[robot]), sizes[1]) / np.maximum(
                totals[1], 1e-12
            )
        left = weight * (level - mu - a[robot] - b[parameter]) ** 2
        if free > 2.0:  # two less than there are: a variance that is too small by chance costs more
            steep = max(float(weight @ left), 1e-12)
            rest = max(0.0, rest + float(left.sum() - own * (free - 2.0)) / steep)
    most = (1.0 + many[1] * shared[0]) * (1.0 + many[0] * shared[1]) / own
    mean, variance = np.full_like(level, mu), np.full_like(level, rest + most / float(weight.sum()))
    for of, other, effects, total, share in (
        (robot, b[parameter], a, totals[0], shared[0]),
        (parameter, a[robot], b, totals[1], shared[1]),
    ):
        there = total > 0.0
        members = np.bincount(of, known, len(total))
        chance = (1.0 + (members[there] - 1.0) * share) / total[there]
        between = variance_between(effects[there], chance)
        # What others say beyond the chance that they share with the series itself.
        less = (1.0 + np.maximum(members - 1.0, 1.0) * share) / (1.0 - share)
        part, uncertain = _shrunk(weight, level - mu - other, of, total, between, less)
        mean, variance = mean + part, variance + uncertain
    return mean, variance


def _shrunk(
    weight: Float[Array, "s"],
    y: Float[Array, "s"],
    of: Int[Array, "s"],
    total: Float[Array, "e"],
    between: float,
    less: Float[Array, "e"],
) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
    """Effect of each robot (or parameter) from its other series, and its variance.

    An effect is drawn towards the mean of all, but one of much scatter by no more than its deviation (limited
    translation, Efron and Morris 1972): few noisy robots among many are not thought to be quiet.
    """
    left = total[of] - weight
    seen = left > 1e-9 * total[of]
    plain = np.where(seen, 1.0 / np.where(seen, left, 1.0), np.inf)
    noise = less[of] * plain
    raw = np.where(
        seen, (np.bincount(of, weight * y, len(total))[of] - weight * y) * np.where(seen, plain, 0.0), 0.0
    )
    if np.isinf(between):
        return raw, noise
    share = between / (between + noise)
    drawn = share * raw
    least = np.where(seen, raw - np.sqrt(noise), -np.inf)
    limited = (raw > 0.0) & (drawn < least)
    uncertain = np.where(limited, noise, between * (1.0 - share))
    return np.where(limited, least, drawn), uncertain


def variance_between(effects: Float[Array, "e"], noise: Float[Array, "e"]) -> float:
    """Variance between effects beyond their own (Paule and Mandel), cautious for few; infinite for three."""
    if len(effects) <= 3:
        return np.inf if len(effects) > 1 else 0.0

    def excess(between: float) -> float:
        weights = 1.0 / (noise + between)
        return float(weights @ (effects - np.average(effects, weights=weights)) ** 2) - (len(effects) - 3.0)

    return root(excess, float(np.sum((effects - np.mean(effects)) ** 2)) + 1e-9)


def _as_inverse_gamma(variance: Float[Array, "s"]) -> tuple[Float[Array, "s"], Float[Array, "s"]]:
    """Degrees of freedom with that variance of the logarithm, and by how much the scale exceeds its mean."""
    halves, shifts = _table()
    inside = np.clip(variance, _TABLE[0], _TABLE[-1])
    half = np.exp(np.interp(np.log(inside), np.log(_TABLE), np.log(halves)))
    shift = np.interp(np.log(inside), np.log(_TABLE), shifts)
    freedom = np.where(variance > _TABLE[-1], 0.0, np.where(variance < _TABLE[0], np.inf, 2.0 * half))
    return freedom, np.where(freedom > 0.0, shift, 0.0)


@lru_cache(maxsize=1)
def _table() -> tuple[Float[Array, "v"], Float[Array, "v"]]:
    halves = [inverse_trigamma(x) for x in _TABLE.tolist()]
    return np.array(halves), np.array([digamma(x) - np.log(x) for x in halves])
