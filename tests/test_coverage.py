"""Do 95 % intervals cover the truth in 95 % of all experiments?

Drawn on the triangles: for a block of rows W = Q R with noise e, Q^T e and the norm of what is left
of e are all that a factor keeps. With white noise these are normal numbers and the root of a
chi-squared one, so an experiment of any length costs a few random numbers and nothing is
approximated; coloured noise is drawn row by row and projected.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dynid.estimator.estimator import ESTIMATORS
from dynid.estimator.wls import group_weights
from dynid.projection.factor import Factor, triangle
from dynid.projection.projection import Group, System
from dynid.statistics.clusters import clusters_of
from dynid.statistics.covariance import covariance_of
from dynid.statistics.sandwich import autocorrelated, calibrated, chosen_lags
from dynid.statistics.uncertainty import UncertaintySettings, interval95
from tests.systems import parameters

DRAWS = 2000
P = 4
CHI_TRUE = np.array([1.0, -0.5, 2.0, 0.1])
CLASSICAL, DEFAULT = UncertaintySettings("classical"), UncertaintySettings()


def drawn_factor(rng, R_W, n_rows, sigma) -> Factor:
    """The factor of [W, W chi_true + noise] for one draw of the noise."""
    R = np.zeros((P + 1, P + 1))
    R[:P, :P] = R_W
    R[:P, P] = R_W @ CHI_TRUE + sigma * rng.standard_normal(P)
    R[P, P] = sigma * np.sqrt(rng.chisquare(n_rows - P))
    return Factor(R, n_rows)


def coverage(estimator, rows, sigmas, seed, blocks=1, methods=(CLASSICAL,)) -> list[float]:
    """Part of intervals, over all parameters and draws, that hold the truth, for each method."""
    rng = np.random.default_rng(seed)
    scale = np.array([1.0, 30.0, 0.1, 5.0])
    triangles = [[triangle(rng.standard_normal((n, P)) * scale) for _ in range(blocks)] for n in rows]
    covered = np.zeros(len(methods))
    for _ in range(DRAWS):
        groups = tuple(
            Group(f"joint_{i}", "a", "N m", np.arange(P), tuple(drawn_factor(rng, R, n, sigma) for R in some))
            for i, (some, n, sigma) in enumerate(zip(triangles, rows, sigmas, strict=True))
        )
        system = System(parameters(P), groups)
        solution = estimator(system)
        covered += [held(solution.chi, covariance_of(system, solution, method)) for method in methods]
    return (covered / (DRAWS * P)).tolist()


def held(chi, spread) -> int:
    """How many intervals hold the truth."""
    low, high = interval95(chi, spread.covariance, spread.dof).T
    return int(np.sum((low <= CHI_TRUE) & (high >= CHI_TRUE)))


# 8000 intervals tell 95 % to 0.25 %; the promise of 93 to 97 % leaves room for the weights of wls
# and for the care of the jackknife.
def test_ols_intervals_cover_classical_and_default():
    for part in coverage(ESTIMATORS["ols"], (12,), (0.3,), 1, 16, (CLASSICAL, DEFAULT)):
        assert 0.93 <= part <= 0.97


def test_ols_intervals_cover_with_few_rows():
    """Six degrees of freedom: Student's t, not the normal distribution (that covers 90 %)."""
    assert 0.93 <= coverage(ESTIMATORS["ols"], (10,), (0.3,), seed=2)[0] <= 0.97


def test_default_intervals_cover_with_few_blocks():
    """Eight blocks: the freedoms of the jackknife, not those of 96 rows (they cover 91 %)."""
    assert 0.93 <= coverage(ESTIMATORS["ols"], (12,), (0.3,), 4, 8, (DEFAULT,))[0] <= 0.97


def test_wls_intervals_cover_classical_and_default():
    # 1e-6 on the weights is far below what 8000 intervals can tell, and saves half of the time.
    wls = replace(ESTIMATORS["wls"], weighting=partial(group_weights, rtol=1e-6))
    for part in coverage(wls, (12, 8), (0.05, 0.3), 3, 16, (CLASSICAL, DEFAULT)):
        assert 0.93 <= part <= 0.97


SECONDS, RATE = 20, 50.0


def remembering(time_constant, rng, draws):
    """AR(1) noise of unit deviation at 50 Hz in two joints that share half of it, (2 n, draws)."""
    from scipy.signal import lfilter

    n = int(SECONDS * RATE)
    c = np.exp(-1.0 / (RATE * time_constant)) if time_constant else 0.0
    w = rng.standard_normal((3, n + 500, draws))
    one, two, both = lfilter([np.sqrt(1 - c * c)], [1.0, -c], w, axis=1)[:, 500:]
    return np.concatenate([one + both, two + both]) / np.sqrt(2.0)


def motion_rows():
    """Two joints that follow sums of sines, with an inertia, a gravity term and frictions."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    rows = []
    for phase in (0.0, 1.0):
        v = np.sin(2 * np.pi * 0.25 * t + phase) + np.sin(2 * np.pi * 0.6 * t + 2 * phase)
        a = np.gradient(v, t)
        rows.append(np.column_stack([a, np.cos(np.cumsum(v) / RATE + phase), v, np.sign(v)]))
    return np.concatenate(rows)


def coverage_of(sandwich, time_constant, seconds, seed, draws=DRAWS) -> tuple[float, float]:
    """Coverage of classical intervals and of those of `sandwich`, on one factorisation."""
    rng = np.random.default_rng(seed)
    W = motion_rows()
    n = len(W) // 2
    groups = tuple(_blocks(f"joint_{i}", W[i * n : (i + 1) * n]) for i in range(2))
    system = System(parameters(P), groups)
    ones = np.ones(2)
    clusters = clusters_of(system, np.zeros(P), ones, seconds)
    e = remembering(time_constant, rng, draws)
    Z = W @ clusters.root
    z = Z.T @ e
    rho = e - Z @ z
    b = len(clusters)
    labels = np.tile(np.arange(n) * b // n, 2)
    s = np.stack([Z[labels == k].T @ rho[labels == k] for k in range(b)])
    squares = np.sum(rho**2, axis=0) / (len(W) - P)
    plain = robust = 0
    for i in range(draws):
        chi = CHI_TRUE + clusters.root @ z[:, i]
        found = sandwich(replace(clusters, s=s[:, :, i]))
        robust += held(chi, found)
        flat = replace(found, covariance=squares[i] * clusters.root @ clusters.root.T, dof=np.full(P, 1e4))
        plain += held(chi, flat)
    return plain / (draws * P), robust / (draws * P)


def _blocks(name, W) -> Group:
    parts = np.array_split(W, int(SECONDS * 4))
    factors = tuple(Factor(triangle(np.column_stack([one, np.zeros(len(one))])), len(one)) for one in parts)
    return Group(name, "a", "N m", np.arange(P), factors, seconds=0.25)


@pytest.mark.parametrize("time_constant", [0.0, 0.02, 0.1, 0.3])
def test_default_intervals_cover_noise_that_remembers(time_constant):
    """AR(1) as friction errors and drive filters make it, correlated between the joints; blocks of
    a second hold memories of up to a third of it. 8000 intervals tell 95 % to a quarter percent."""
    plain, robust = coverage_of(lambda clusters: calibrated(clusters)[0], time_constant, 1.0, seed=6)
    if time_constant == 0.0:
        assert 0.93 <= robust <= 0.97
    else:
        assert 0.90 <= robust <= 0.98
        assert plain < 0.85
    if time_constant >= 0.1:
        assert plain < 0.65


def test_default_intervals_of_wls_cover_noise_that_remembers():
    """The whole way, weights and all; the second joint is four times as noisy. 2000 intervals tell
    95 % to half a percent."""
    rng = np.random.default_rng(8)
    wls = replace(ESTIMATORS["wls"], weighting=partial(group_weights, rtol=1e-6))
    W, draws = motion_rows(), 500
    n = len(W) // 2
    e = remembering(0.1, rng, draws) * np.repeat([0.1, 0.4], n)[:, None]
    parts = np.array_split(np.arange(n), SECONDS)
    Q, R = zip(*(np.linalg.qr(W[part + i * n]) for i in range(2) for part in parts), strict=True)
    rows = [part + i * n for i in range(2) for part in parts]
    covered = np.zeros(2)
    for draw in e.T:
        factors = [_factor(q, r, draw[part]) for q, r, part in zip(Q, R, rows, strict=True)]
        halves = (tuple(factors[:SECONDS]), tuple(factors[SECONDS:]))
        groups = tuple(Group(f"j{i}", "a", "N m", np.arange(P), half) for i, half in enumerate(halves))
        system = System(parameters(P), groups)
        solution = wls(system)
        covered += [held(solution.chi, covariance_of(system, solution, one)) for one in (CLASSICAL, DEFAULT)]
    plain, robust = covered / (draws * P)
    assert plain < 0.65
    assert 0.90 <= robust <= 0.98


def _factor(Q, R, e) -> Factor:
    """The factor of rows Q R with the measured side Q R chi_true + e."""
    z = Q.T @ e
    whole = np.zeros((P + 1, P + 1))
    whole[:P] = np.column_stack([R, R @ CHI_TRUE + z])
    whole[P, P] = np.linalg.norm(e - Q @ z)
    return Factor(whole, len(e))


def test_hac_intervals_cover_noise_that_remembers():
    def hac(clusters):
        return autocorrelated(clusters, chosen_lags(clusters))

    plain, robust = coverage_of(hac, 0.1, 0.25, seed=7, draws=500)
    assert plain < 0.65
    assert 0.88 <= robust <= 0.98
