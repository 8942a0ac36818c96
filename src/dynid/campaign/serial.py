"""What neighbouring days of a robot share: how much worse a line or a step is known than from separate days.

    corr(e_j, e_k) = rho^|j - k|,    j and k: numbers of the days in their order

The correlation of neighbouring residuals of a line is below that of the errors, as a line follows them. Its
expectation is known for each rho and number of days, which gives rho. With centred days x and correlations S,
Var(slope) = x' S x / (x' x)^2, while residuals, with M S M, suggest too small a variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dynid.campaign.spread import variance_between
from dynid.campaign.trend import LEAST, Series, fits
from dynid.common.arrays import Array, Float

_RHO = np.linspace(0.0, 0.95, 39)
_LONG = 100  # days beyond which the factor changes little
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
    made, w = fits(long, extra), long.weights(extra)
    t = long.t - ((w * long.t).sum(axis=1) / w.sum(axis=1))[:, None]
    e = np.where(long.used, np.sqrt(w) * (long.y - made.mean[:, None] - made.slope[:, None] * t), 0.0)
    squares = (e**2).sum(axis=1)
    seen = (e[:, 1:] * e[:, :-1]).sum(axis=1) / np.where(squares > 0.0, squares, 1.0)
    return np.asarray(seen - [_expected(min(n, _LONG))[0][0] for n in long.counts.tolist()])


@lru_cache(maxsize=_LONG)
def _expected(n: int) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
    """Correlation of neighbouring residuals, and the factor, of n days for each rho."""
    x = np.arange(float(n)) - 0.5 * (n - 1.0)
    base = np.linalg.qr(np.stack((np.ones(n), x), axis=1))[0]
    M = np.eye(n) - base @ base.T
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    seen, factor = [], []
    for rho in _RHO.tolist():
        S = rho**apart
        left = M @ S @ M
        squares = float(np.trace(left))
        seen.append(float(np.trace(left, offset=1)) / squares)
        factor.append(max(1.0, float(x @ S @ x / (x @ x)) * (n - 2.0) / squares))
    return np.array(seen), np.array(factor)
