"""Tests and correlations with the reported covariance: sizes, coverage and exactness with few blocks."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.checks.tie_test import wald_test
from dynid.estimator.estimator import ESTIMATORS
from dynid.statistics.clusters import clusters_of
from dynid.statistics.covariance import covariance_of
from dynid.statistics.essential import EssentialRule, essential_parameters, restrict
from dynid.statistics.sandwich import calibrated, jackknife, with_full_rank
from tests.systems import system


def coloured_rows(rng, n: int, p: int, colour: float = 0.9):
    """Smooth columns and noise with a memory of some ten rows: classical sigma is far too small."""
    from scipy.signal import lfilter

    W = lfilter([1.0], [1.0, -colour], rng.standard_normal((n + 200, p)), axis=0)[200:]
    e = lfilter([1.0], [1.0, -colour], rng.standard_normal(n + 200))[200:]
    return W, e


def test_clusters_of_some_parameters_are_those_of_a_new_fit() -> None:
    rng = np.random.default_rng(0)
    W, e = coloured_rows(rng, 400, 6)
    data = system(W, W @ np.arange(1.0, 7.0) + e, blocks=20)
    full = ESTIMATORS["ols"](data)
    kept = [0, 2, 3, 5]
    part = restrict(data, kept)
    again = ESTIMATORS["ols"](part)
    found, chi = clusters_of(data, full.chi, full.weights, 1.0).restricted(kept, full.chi)
    expected = jackknife(clusters_of(part, again.chi, again.weights, 1.0))
    np.testing.assert_allclose(chi, again.chi, rtol=1e-9)
    # The same moves by other coordinates: rounding.
    np.testing.assert_allclose(jackknife(found).covariance, expected.covariance, rtol=1e-8)
    np.testing.assert_allclose(jackknife(found).dof, expected.dof, rtol=1e-8)


def test_essential_parameters_are_chosen_by_the_sigma_that_is_reported() -> None:
    """A parameter that only seems well known under white noise goes, one that is well known stays."""
    rng = np.random.default_rng(3)
    W, e = coloured_rows(rng, 800, 3)
    W[:, 2] = rng.standard_normal(800)  # fast: its sigma is no larger than white noise says
    W[:, 2] *= 3.0
    Y = W @ np.array([5.0, 0.35, 0.3]) + e
    data = system(W, Y, blocks=40)
    full = ESTIMATORS["ols"](data)
    rule = EssentialRule(sigma_percent=25.0, growth_percent=100.0)
    clusters = clusters_of(data, full.chi, full.weights, 1.0)
    assert essential_parameters(data, full, rule).removed == ()
    assert essential_parameters(data, full, rule, clusters).removed == (1,)


@pytest.mark.parametrize(("q", "blocks"), [(1, 24), (2, 40), (6, 12)])
def test_a_true_restriction_is_rejected_as_often_as_promised(q: int, blocks: int) -> None:
    """400 draws of coloured noise: level 5 %; the white F-test rejects most of them."""
    p, wrong, white = 7, [], []
    L = np.eye(q, p) - np.eye(q, p, k=1)
    for seed in range(400):
        rng = np.random.default_rng([7, seed])
        W, e = coloured_rows(rng, 25 * blocks, p)
        data = system(W, W @ np.ones(p) + e, blocks=blocks)
        full = ESTIMATORS["ols"](data)
        clusters = clusters_of(data, full.chi, full.weights, 1.0)
        found = wald_test(clusters, full.chi, L, full.covariance)
        wrong.append(found.p < 0.05)
        value = L @ full.chi
        white.append(value @ np.linalg.solve(L @ full.covariance @ L.T, value) / q > 3.8)
    # 400 draws: 5 % +- 1.1 %. Bonferroni and the least of the freedoms stay below, short blocks (25 rows
    # of a memory of ten) above.
    assert np.mean(wrong) < 0.085
    assert np.mean(white) > 0.3


def test_a_false_restriction_is_rejected() -> None:
    for q, blocks in ((1, 24), (6, 12)):
        rng = np.random.default_rng(5)
        W, e = coloured_rows(rng, 25 * blocks, 7)
        chi = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        data = system(W, W @ chi + e, blocks=blocks)
        full = ESTIMATORS["ols"](data)
        clusters = clusters_of(data, full.chi, full.weights, 1.0)
        L = np.eye(q, 7) - np.eye(q, 7, k=1)
        found = wald_test(clusters, full.chi, L, full.covariance)
        assert found.p < 1e-3
        assert found.joint == (q == 1)


def test_combinations_of_parameters_are_covered_with_fewer_blocks_than_parameters() -> None:
    """Predictions of rows not seen: 12 parameters from 10 blocks; single parameters keep their sigma."""
    p, n, hits, raw, single, blind = 12, 260, [], [], [], []
    for seed in range(200):
        rng = np.random.default_rng([9, seed])
        W, e = coloured_rows(rng, n, p, 0.8)
        chi = rng.standard_normal(p)
        data = system(W, W @ chi + e, blocks=10)
        full = ESTIMATORS["ols"](data)
        spread = covariance_of(data, full)
        block, _ = calibrated(clusters_of(data, full.chi, full.weights, 0.5))
        np.testing.assert_allclose(np.diag(spread.covariance), np.diag(block.covariance), rtol=1e-9)
        assert np.linalg.matrix_rank(spread.covariance) == p
        rows = rng.standard_normal((20, p))
        error = rows @ (full.chi - chi)
        for covariance, found in ((spread.covariance, hits), (block.covariance, raw)):
            sigma = np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
            found.append(np.mean(np.abs(error) < 2.26 * sigma))
        # The combination that the blocks alone would call exact.
        size = np.sqrt(np.diag(block.covariance))
        u = np.linalg.eigh(block.covariance / np.outer(size, size))[1][:, 0] / size
        assert u @ block.covariance @ u < 1e-12
        blind.append(abs(u @ (full.chi - chi)) < 2.26 * np.sqrt(u @ spread.covariance @ u))
        single.append(np.mean(np.abs(full.chi - chi) < 2.26 * np.sqrt(np.diag(spread.covariance))))
    # CR3 of ten blocks with Student's t of nine freedoms is on the safe side.
    assert np.mean(hits) >= 0.93
    assert np.mean(single) >= 0.93
    # The blocks alone would hold none of them.
    assert np.mean(blind) >= 0.9
    assert "classical_correlations" in spread.facts
    assert "fewer blocks than parameters" in spread.words


def test_enough_blocks_leave_the_correlations_alone() -> None:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((5, 5))
    covariance = A @ A.T
    same, weight = with_full_rank(covariance, np.eye(5), 5.0)
    assert weight == 0.0
    assert same is covariance
    other, weight = with_full_rank(covariance, np.eye(5), 4.0)
    assert 0.05 <= weight <= 1.0
    np.testing.assert_allclose(np.diag(other), np.diag(covariance))
