"""What neighbouring days of a robot share: how much worse a line or a step is known than from separate days.

    corr(e_j, e_k) = rho^|j - k|,    j and k: numbers of the days in their order

The correlation of neighbouring residuals of a line is below that of the errors, as a line follows them. Its
expectation is known for each rho and number of days, which gives rho. With centred days x and correlations S,
Var(slope) = x' S x / (x' x)^2 (of a step in the same way), while residuals suggest too small a variance: how
much too small is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dynid.campaign.spread import variance_between
from dynid.campaign.trend import LEAST, Series, fits, residuals, usual
from dynid.common.arrays import Array, Float

_RHO = np.array([0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9])
_LONG = 40  # days beyond which the factor changes little
_DRAWS = 1500
_FEW = 3  # parameters that share one correlation in any case


def serial_factors(every: Sequence[Series], extras: Sequence[float]) -> list[Float[Array, "r"]]:
    """Factor of the variance of a slope or step of each robot, of each parameter; one without correlation."""
    excess = [_excess(series, extra) for series, extra in zip(every, extras, strict=True)]
    sizes = np.array([len(one) for one in excess])
    if not np.any(sizes):
        return [np.ones(len(series.robots)) for series in every]
    there = np.concatenate(excess)
    noise = float(np.mean(there**2)) / np.maximum(sizes, 1)
    means = np.array([float(np.mean(one)) if len(one) else 0.0 for one in excess])
    usual = float(np.mean(there))
    # Parameters share one correlation as far as theirs do not differ by more than chance.
    several = np.count_nonzero(sizes) > _FEW
    between = variance_between(means[sizes > 0], noise[sizes > 0]) if several else 0.0
    share = np.where(sizes > 0, between / (between + noise), 0.0)
    factors = []
    for series, beyond in zip(every, (usual + share * (means - usual)).tolist(), strict=True):
        counts = np.clip(series.counts, LEAST, _LONG)
        seen, _ = _expected(int(np.median(counts)))
        rho = float(np.interp(beyond, seen - seen[0], _RHO))
        factors.append(np.array([float(np.interp(rho, _RHO, _expected(n)[1])) for n in counts.tolist()]))
    return factors


def _excess(series: Series, extra: float) -> Float[Array, "r"]:
    """Correlation of neighbouring residuals of each robot with enough days, above that of separate days."""
    long = series.rows(series.counts >= LEAST)
    if not long.robots:
        return np.array([])
    seen = _neighbours(residuals(long, extra))
    return np.asarray(seen - [_expected(min(n, _LONG))[0][0] for n in long.counts.tolist()])


def _neighbours(e: Float[Array, "r n"]) -> Float[Array, "r"]:
    """Correlation of neighbouring residuals of each robot."""
    squares = (e**2).sum(axis=1)
    return np.asarray((e[:, 1:] * e[:, :-1]).sum(axis=1) / np.where(squares > 0.0, squares, 1.0))


@lru_cache(maxsize=_LONG)
def _expected(n: int) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
    """Correlation of neighbouring residuals, and the factor, of n days for each rho."""
    x = np.arange(float(n)) - 0.5 * (n - 1.0)
    places = np.arange(2, n - 1)[:, None]
    steps = np.where(np.arange(n) < places, -1.0 / places, 1.0 / (n - places))
    shapes = np.concatenate((x[None], steps))
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    white = np.random.default_rng(n).standard_normal((_DRAWS, n))
    t = np.broadcast_to(np.arange(float(n)), white.shape)
    names, ones = ("",) * _DRAWS, np.ones_like(white)
    seen, factor = [], []
    for rho in _RHO.tolist():
        S = rho**apart
        drawn = Series(names, (), t, white @ np.linalg.cholesky(S).T, ones, ones > 0.0, 1.0)
        made = fits(drawn, 0.0)
        seen.append(float(np.mean(_neighbours(residuals(drawn, 0.0)))))
        level = float(np.mean(usual(n).logarithm(np.minimum(made.line, made.step)))) - usual(n).mean
        most = float(np.max(np.sum((shapes @ S) * shapes, axis=1)))
        factor.append(most / math.exp(level))
    # The draws of `usual` are others: without correlation the factor is one.
    return np.array(seen), np.maximum.accumulate(np.array(factor) / factor[0])
