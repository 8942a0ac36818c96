"""Robust covariances against brute force: refits of dense rows, dense quadratic forms."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS, solve_weighted
from dynid.projection.factor import factor_rows
from dynid.projection.projection import Group, System
from dynid.statistics import sandwich
from dynid.statistics.clusters import clusters_of
from dynid.statistics.covariance import CountedErrors, block_seconds, covariance_of
from dynid.statistics.sandwich import autocorrelated, calibrated, chosen_lags, jackknife
from dynid.statistics.uncertainty import Method, UncertaintySettings
from tests.systems import joint_system, parameters

P = 4
CHI = np.array([1.0, -2.0, 0.5, 3.0])
WEIGHTS = np.array([1.0, 0.3])


class Dense:
    """Two joints in one log per run, 12 blocks of half a second each; joint 2 misses some blocks."""

    def __init__(self, seed=0, runs=1, blocks=12, rows=9, effect=0.0):
        rng = np.random.default_rng(seed)
        self.rows, groups = [], []
        for joint in range(2):
            factors, times, of_run = [], [], []
            for run in range(runs):
                shift = effect * np.random.default_rng([seed, run]).standard_normal(P)
                for k in range(blocks):
                    if joint == 1 and k in (3, 4, blocks - 1):
                        continue
                    W = rng.standard_normal((rows, P)) * [1.0, 20.0, 0.1, 3.0]
                    Y = W @ (CHI + shift) + rng.standard_normal(rows) * (1.0 + k % 3)
                    self.rows.append((joint, run, k, W, Y))
                    factors.append(factor_rows(W, Y))
                    times.append(run * blocks + k)
                    of_run.append(run)
            groups.append(
                Group(
                    f"joint_{joint}",
                    "a.csv",
                    "N m",
                    np.arange(P),
                    tuple(factors),
                    times=np.array(times),
                    runs=np.array(of_run),
                    seconds=0.5,
                )
            )
        self.system = System(parameters(P), tuple(groups))
        self.solution = solve_weighted(self.system, WEIGHTS)

    def weighted(self, use=lambda joint, run, k: True):
        """Dense weighted rows of the blocks that `use` admits."""
        some = [(WEIGHTS[j] * W, WEIGHTS[j] * Y) for j, run, k, W, Y in self.rows if use(j, run, k)]
        return np.concatenate([W for W, _ in some]), np.concatenate([Y for _, Y in some])


def refit(W, Y):
    return np.linalg.lstsq(W, Y, rcond=None)[0]


def test_jackknife_is_the_fit_without_each_block():
    data = Dense()
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    assert len(clusters) == 12
    np.testing.assert_allclose(clusters.M.sum(axis=0), np.eye(P), atol=1e-12)  # orthonormal
    moves = [data.solution.chi - refit(*data.weighted(lambda j, r, k, b=b: k != b)) for b in range(12)]
    expected = 11 / 12 * sum(np.outer(move, move) for move in moves)
    found = jackknife(clusters).covariance
    size = np.sqrt(np.diag(expected))
    # Both solve a well-conditioned problem: rounding only.
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=1e-10)
    spread = covariance_of(data.system, data.solution, UncertaintySettings(block=0.5))
    np.testing.assert_array_equal(spread.covariance, calibrated(clusters)[0].covariance)
    assert set(spread.methods) == {"cluster"}
    assert "12 blocks of 0.5 s" in spread.words
    assert spread.facts["blocks"] == 12


def test_what_columns_beside_the_estimate_explain_is_no_noise():
    """Rows off by D x: with D beside, the covariance is that of rows that are not off."""
    data = Dense(blocks=60)
    rng = np.random.default_rng(5)
    x = np.array([40.0, -25.0])
    groups: list[list] = [[], []]
    wider: list[list] = [[], []]
    for joint, _, k, W, Y in data.rows:
        D = rng.standard_normal((len(Y), 2)) + np.sin(0.4 * k)
        groups[joint].append(factor_rows(W, Y + D @ x))
        wider[joint].append(factor_rows(np.column_stack([W, D]), Y + D @ x))

    def system(p, blocks):
        pairs = zip(data.system.groups, blocks, strict=True)
        made = [replace(group, columns=np.arange(p), blocks=tuple(some)) for group, some in pairs]
        return System(parameters(p), tuple(made))

    off = system(P, groups)
    solution = solve_weighted(off, WEIGHTS)
    counted = CountedErrors(system(P + 2, wider), np.array([100.0, 100.0]))
    deviations = [
        np.sqrt(np.diag(covariance_of(off, solution, settings, None, columns).covariance))
        for settings in (None, UncertaintySettings("bootstrap"))
        for columns in (None, counted)
    ]
    clean = np.sqrt(np.diag(covariance_of(data.system, data.solution).covariance))
    for twice, once in (deviations[:2], deviations[2:]):
        assert np.all(twice > 5.0 * clean)
        # The two columns take 2 of some 1000 rows; 500 resampled fits scatter by a few percent.
        np.testing.assert_allclose(once, clean, rtol=0.15)


def test_longer_blocks_are_sums_of_shorter_ones():
    data = Dense()
    short = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    long = clusters_of(data.system, data.solution.chi, WEIGHTS, 1.5)
    joined = short.joined(np.arange(12) // 3)
    assert len(long) == 4
    assert long.seconds == joined.seconds == pytest.approx(1.5)
    np.testing.assert_allclose(joined.M, long.M, atol=1e-14)
    np.testing.assert_allclose(joined.s, long.s, atol=1e-12)
    np.testing.assert_array_equal(joined.rows, long.rows)


def test_degrees_of_freedom_are_those_of_the_quadratic_form():
    """sigma_j^2 = e^T G G^T e: the eigenvalues of G^T G, made densely, give mean and variance."""
    data = Dense()
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    W, _ = data.weighted()
    block = np.concatenate([np.full(len(Y), k) for _, _, k, _, Y in data.rows])
    Q, R = np.linalg.qr(W)
    residual = np.eye(len(W)) - Q @ Q.T
    for j, dof in enumerate(jackknife(clusters).dof):
        c = np.linalg.solve(R.T, np.eye(P)[j])
        columns = []
        for b in range(12):
            own = np.flatnonzero(block == b)
            d = np.linalg.solve(residual[np.ix_(own, own)], Q[own] @ c)
            columns.append(residual[:, own] @ d)
        gram = np.array(columns) @ np.array(columns).T
        assert dof == pytest.approx(np.trace(gram) ** 2 / np.sum(gram**2), rel=1e-9)


def test_hac_weighs_products_of_neighbours():
    data = Dense(runs=2)
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    plain, none = jackknife(clusters), autocorrelated(clusters, 0.0)
    np.testing.assert_allclose(none.covariance, plain.covariance, rtol=1e-12)
    np.testing.assert_allclose(none.dof, plain.dof)
    moves = [
        data.solution.chi - refit(*data.weighted(lambda j, r, k, at=(run, b): (r, k) != at))
        for run in range(2)
        for b in range(12)
    ]
    expected = np.zeros((P, P))
    for a, first in enumerate(moves):
        for b, second in enumerate(moves):
            if a // 12 == b // 12 and abs(a - b) <= 2:  # inside one run
                expected += (1 - abs(a - b) / 3.0) * np.outer(first, second)
    found = autocorrelated(clusters, 2.0)
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        24 / 23 * found.covariance / np.outer(size, size), expected / np.outer(size, size), atol=1e-10
    )
    # Weights 1, 2/3, 1/3 on both sides: 1 + 2 (4/9 + 1/9) squared weights share the freedoms.
    np.testing.assert_allclose(found.dof, np.maximum(plain.dof / (1 + 10 / 9), 1.0))


def test_hac_reaches_further_when_scores_remember():
    from scipy.signal import lfilter

    data = Dense(blocks=40)
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    rng = np.random.default_rng(3)
    white = rng.standard_normal((40, P))
    slow = lfilter([1.0], [1.0, -0.8], white, axis=0)
    reaches = [chosen_lags(replace(clusters, s=s)) for s in (white, slow)]
    assert reaches[0] < 3.0 < reaches[1]
    assert chosen_lags(replace(clusters, s=np.zeros((40, P)))) == 0.0


def test_bootstrap_repeats_the_fit_on_drawn_blocks(monkeypatch):
    data = Dense()
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, 0.5)
    found, fitted = sandwich.moving_blocks(clusters, width=3, draws=200, seed=7)
    again, _ = sandwich.moving_blocks(clusters, width=3, draws=200, seed=7)
    np.testing.assert_array_equal(found, again)
    windows, chosen = sandwich._drawn(clusters, 3, 200, 7)
    counts = windows[chosen].sum(axis=1)
    assert np.all(counts.sum(axis=1) == 12)  # four windows of three
    estimates = []
    for draw in counts:
        W, Y = zip(*(data.weighted(lambda j, r, k, b=b: k == b) for b in range(12)), strict=True)
        root = np.sqrt(draw)
        rows = np.concatenate([r * one for r, one in zip(root, W, strict=True)])
        estimates.append(refit(rows, np.concatenate([r * one for r, one in zip(root, Y, strict=True)])))
    assert fitted == 200
    expected = np.cov(np.array(estimates).T)
    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(found / np.outer(size, size), expected / np.outer(size, size), atol=1e-9)
    monkeypatch.setattr(sandwich, "_DRAWS", 64)  # a part of the draws in each thread
    parts, _ = sandwich.moving_blocks(clusters, width=3, draws=200, seed=7)
    np.testing.assert_allclose(parts / np.outer(size, size), found / np.outer(size, size), atol=1e-9)


def test_runs_that_differ_are_the_larger_spread():
    """A parameter that changes from run to run: blocks inside runs do not see it, runs do."""
    data = Dense(runs=5, effect=0.5)
    spread = covariance_of(data.system, data.solution)
    clusters = clusters_of(data.system, data.solution.chi, WEIGHTS, block_seconds(30.0))
    plain = np.sqrt(np.diag(jackknife(clusters.by_run()).covariance))
    without = [data.solution.chi - refit(*data.weighted(lambda j, r, k, o=o: r != o)) for o in range(5)]
    np.testing.assert_allclose(plain, np.sqrt(4 / 5 * np.sum(np.square(without), axis=0)), rtol=1e-9)
    # Each without what so few blocks or runs make the jackknife overstate.
    blocks = np.sqrt(np.diag(calibrated(clusters)[0].covariance))
    runs = np.sqrt(np.diag(calibrated(clusters.by_run())[0].covariance))
    np.testing.assert_allclose(np.sqrt(np.diag(spread.covariance)), np.maximum(blocks, runs), rtol=1e-12)
    larger = [method == "leave-one-out" for method in spread.methods]
    np.testing.assert_array_equal(larger, runs > blocks)
    assert any(larger)
    assert np.all(spread.dof[larger] <= 4.0 + 1e-9)
    assert f"({sum(larger)} of 4 parameters)" in spread.words
    alone = covariance_of(data.system, data.solution, UncertaintySettings("leave-one-out"))
    np.testing.assert_allclose(np.sqrt(np.diag(alone.covariance)), runs, rtol=1e-12)
    three = Dense(runs=3, effect=0.5)
    assert set(covariance_of(three.system, three.solution).methods) == {"cluster"}


def test_a_parameter_told_by_one_block_is_named():
    data = Dense()
    groups = []
    for group in data.system.groups:
        blocks = []
        for time, block in zip(group.times, group.blocks, strict=True):
            R = block.R.copy()
            R[:, 2] *= time == 5  # P2 acts in block 5 only
            blocks.append(replace(block, R=R))
        groups.append(replace(group, blocks=tuple(blocks)))
    system = System(data.system.parameters, tuple(groups))
    solution = ESTIMATORS["wls"](system)
    spread = covariance_of(system, solution, UncertaintySettings(block=0.5))
    assert spread.notices[0].code == "from-one-block"
    assert "P2_link2" in spread.notices[0].text
    assert np.all(np.isfinite(spread.covariance))
    assert spread.covariance[2, 2] >= solution.covariance[2, 2] * (1 - 1e-12)
    assert np.all(spread.dof >= 1)


def test_a_parameter_of_one_run_keeps_the_spread_of_its_blocks():
    """A payload mounted in one run of four: without that run there is nothing to compare."""
    data = Dense(runs=4)
    groups = []
    for group in data.system.groups:
        scale = [np.array([1.0, 1.0, run == 2, 1.0, 1.0]) for run in group.runs]
        blocks = [replace(b, R=b.R * own) for b, own in zip(group.blocks, scale, strict=True)]
        groups.append(replace(group, blocks=tuple(blocks)))
    system = System(data.system.parameters, tuple(groups))
    solution = solve_weighted(system, WEIGHTS)
    spread = covariance_of(system, solution)
    assert spread.methods[2] == "cluster"
    assert "leave-one-out" in spread.methods  # the others have four runs to compare
    assert not spread.notices
    only = covariance_of(system, solution, UncertaintySettings("leave-one-out"))
    assert only.notices[0].code == "from-one-block"


def test_short_logs_have_shorter_blocks():
    assert block_seconds(300.0) == 1.0
    assert block_seconds(12.0) == 0.75
    assert block_seconds(3.0) == 0.5


def test_one_block_falls_back_and_says_so():
    system = joint_system([Dense().weighted()[0]], [Dense().weighted()[1]])
    solution = ESTIMATORS["ols"](system)
    spread = covariance_of(system, solution)
    assert set(spread.methods) == {"classical"}
    assert [notice.code for notice in spread.notices] == ["one-block"]
    np.testing.assert_array_equal(spread.covariance, solution.covariance)
    with pytest.raises(InputError, match="needs several runs, and there is one"):
        covariance_of(system, solution, UncertaintySettings("leave-one-out"))


def test_few_blocks_are_reported():
    data = Dense(blocks=6)
    spread = covariance_of(data.system, data.solution, UncertaintySettings(block=1.5))
    assert [notice.code for notice in spread.notices] == ["few-blocks"]
    assert " blocks of 1.5 s" in spread.notices[0].text


def test_few_runs_are_called_runs():
    data = Dense(runs=2)
    spread = covariance_of(data.system, data.solution, UncertaintySettings("leave-one-out"))
    assert any("of the 2 runs" in notice.text for notice in spread.notices)


@pytest.mark.parametrize("method", get_args(Method))
def test_every_method_is_deterministic_and_scales_with_the_columns(method):
    data = Dense(runs=4, blocks=8)
    settings = UncertaintySettings(method)
    first = covariance_of(data.system, data.solution, settings)
    second = covariance_of(data.system, data.solution, settings)
    np.testing.assert_array_equal(first.covariance, second.covariance)
    scale = 2.0 ** np.array([20, -20, 0, 10])  # exact in binary
    groups = [
        replace(group, blocks=tuple(replace(b, R=b.R * [*scale, 1.0]) for b in group.blocks))
        for group in data.system.groups
    ]
    other = System(data.system.parameters, tuple(groups))
    scaled = covariance_of(other, solve_weighted(other, WEIGHTS), settings)
    sigma = np.sqrt(np.diag(first.covariance))
    np.testing.assert_allclose(np.sqrt(np.diag(scaled.covariance)) * scale, sigma, rtol=1e-8)
    np.testing.assert_allclose(scaled.dof, first.dof, rtol=1e-8)
    assert first.facts["method"] == method


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "clustre"}, "did you mean 'cluster'"),
        ({"method": "classical", "block": 1.0}, "'classical' has no block"),
        ({"method": "cluster", "bandwidth": 1.0}, "'cluster' has no bandwidth"),
        ({"method": "cluster", "block": -1.0}, "block: -1 is not positive"),
        ({"method": "bootstrap", "draws": 5}, "draws: expected an integer of at least 100, found .5."),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        UncertaintySettings(**options)
