"""Whether robots differ in one parameter, how much, and which ones stand apart.

    m_r = mu + u_r + e_r,    Var(u_r) = between^2,    Var(e_r) = v_r

m_r is the mean of robot r. That all u are zero is tested by Welch's analysis of variance, which lets each
robot have a variance of its own, known from few days. Which robots stand apart is asked of the median and the
median distance from it too: several unusual robots change these little and do not hide each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dynid.campaign.trend import root
from dynid.common.arrays import Array, Float
from dynid.common.distributions import f_tail, student_tails

LEAST_ROBOTS = 5  # of which one can be said to stand apart
_MIDDLE = 0.6745  # median of |z|
_FREEDOM = 0.35  # of the median distance, of each robot


@dataclass(frozen=True)
class Compared:
    """Robots of one parameter.

    Attributes:
        mean, sigma: Of all robots, and its deviation.
        between: Deviation between robots.
        p: Probability of such differences if all were equal; None: the scatter of a robot is not known.
        apart: Probability of each robot to be as far from the others by chance; empty if there are too few.
    """

    mean: float
    sigma: float
    between: float
    p: float | None
    apart: tuple[float, ...]


def compared(means: Float[Array, "r"], variances: Float[Array, "r"], freedom: Float[Array, "r"]) -> Compared:
    """Robots with these means; each variance has its degrees of freedom."""
    spread = _between(means, variances)
    weights = 1.0 / (variances + spread)
    mean, sigma = float(np.average(means, weights=weights)), 1.0 / math.sqrt(float(np.sum(weights)))
    if np.any(freedom <= 0.0):
        return Compared(mean, sigma, math.sqrt(spread), None, ())
    return Compared(
        mean, sigma, math.sqrt(spread), _welch(means, variances, freedom), _apart(means, variances)
    )


def _welch(means: Float[Array, "r"], variances: Float[Array, "r"], freedom: Float[Array, "r"]) -> float:
    """Probability of a larger spread of equal robots (Welch 1951)."""
    r, w = len(means), 1.0 / variances
    middle = float(np.average(means, weights=w))
    unsure = float(np.sum((1.0 - w / w.sum()) ** 2 / freedom))
    f = float(w @ (means - middle) ** 2) / (r - 1.0) / (1.0 + 2.0 * (r - 2.0) / (r * r - 1.0) * unsure)
    return f_tail(r - 1.0, (r * r - 1.0) / (3.0 * unsure) if unsure > 0.0 else math.inf, f)


def _apart(means: Float[Array, "r"], variances: Float[Array, "r"]) -> tuple[float, ...]:
    """Both tests: against all others, which sees one robot among few, and against most of them."""
    if len(means) < LEAST_ROBOTS:
        return ()
    pairs = zip(_from_others(means, variances), _from_most(means, variances), strict=True)
    return tuple(min(1.0, 2.0 * min(pair)) for pair in pairs)


def _from_others(means: Float[Array, "r"], variances: Float[Array, "r"]) -> list[float]:
    """Distance of each robot from the mean of the others, which several unusual robots widen."""
    p = []
    for k in range(len(means)):
        rest = np.arange(len(means)) != k
        spread = _between(means[rest], variances[rest])
        weights = 1.0 / (variances[rest] + spread)
        middle = float(np.average(means[rest], weights=weights))
        z = (means[k] - middle) / math.sqrt(variances[k] + spread + 1.0 / float(np.sum(weights)))
        p.append(student_tails(len(means) - 2.0, float(z)))
    return p


def _from_most(means: Float[Array, "r"], variances: Float[Array, "r"]) -> list[float]:
    """Distance from the median in units of the median distance, which fewer than half do not change."""
    distance = np.abs(means - np.median(means))

    def excess(between: float) -> float:
        return float(np.median(distance / np.sqrt(variances + between))) - _MIDDLE

    between = root(excess, float(np.max(distance) ** 2) / _MIDDLE**2)
    z = distance / np.sqrt(variances + between)
    return [student_tails(_FREEDOM * len(means), value) for value in z.tolist()]


def _between(means: Float[Array, "r"], variances: Float[Array, "r"]) -> float:
    """Variance between robots at which the scatter of their means is as expected: chi^2 = r - 1."""

    def excess(between: float) -> float:
        weights = 1.0 / (variances + between)
        mean = weights @ means / np.sum(weights)
        return float(weights @ (means - mean) ** 2) - (len(means) - 1.0)

    return root(excess, float(np.var(means)) * len(means)) if len(means) > 1 else 0.0
