"""Instrumental variables: noise in W does not bias, and a wrong filter is told."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dynid.common.errors import InputError, NoResultError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.wls import group_weights
from dynid.experiment.experiment import Experiment, FilterSettings
from dynid.motion.logs import read_log
from dynid.pipeline import identify_logs
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.uncertainty import interval95
from tests import arms
from tests.systems import DensePass

CHI_TRUE = np.array([1.0, -0.5, 2.0])


def noisy_regressor(rng, n=200, sigma=0.4):
    """W with noise, Y, and instruments that are the exact regressor, up to a filter of their own."""
    X = rng.standard_normal((n, 3)) + 0.5
    W = X + sigma * rng.standard_normal((n, 3))
    return W, X @ CHI_TRUE + 0.3 * rng.standard_normal(n), 0.9 * X


def solved(W, Y, Z, estimator=ESTIMATORS["iv"]):
    again = DensePass([W], [Y], Zs=[Z])
    return estimator(again.blocked(), again)


def test_solution_is_the_textbook_one():
    W, Y, Z = noisy_regressor(np.random.default_rng(0))
    solution = solved(W, Y, Z)
    chi = np.linalg.solve(Z.T @ W, Z.T @ Y)
    np.testing.assert_allclose(solution.chi, chi, rtol=1e-10)  # rounding, of products here
    rho = Y - W @ chi
    W_hat = Z @ np.linalg.lstsq(Z, W, rcond=None)[0]
    expected = rho @ rho / (200 - 3) * np.linalg.inv(W_hat.T @ W_hat)
    np.testing.assert_allclose(solution.covariance, expected, rtol=1e-8)
    assert solution.residual_norms[0] == pytest.approx(np.linalg.norm(rho), rel=1e-12)


def test_w_as_its_own_instrument_is_weighted_least_squares():
    W, Y, _ = noisy_regressor(np.random.default_rng(1))
    again = DensePass([W[:150], W[150:]], [Y[:150], Y[150:]])
    solution, plain = (ESTIMATORS[name](again.blocked(), again) for name in ("iv", "wls"))
    np.testing.assert_allclose(solution.chi, plain.chi, rtol=1e-8)  # the weights are iterated to 1e-8
    assert not solution.notices


def test_noise_of_w_does_not_bias():
    rng = np.random.default_rng(2)
    found = {"iv": [], "wls": []}
    for _ in range(100):
        W, Y, Z = noisy_regressor(rng)
        again = DensePass([W], [Y], Zs=[Z])
        for name, estimates in found.items():
            estimates.append(ESTIMATORS[name](again.blocked(), again).chi)
    bias = {name: np.linalg.norm(np.mean(one, axis=0) - CHI_TRUE) for name, one in found.items()}
    assert bias["iv"] < bias["wls"] / 5


def test_intervals_cover():
    rng = np.random.default_rng(3)
    # 1e-4 on the weights is far below what 6000 intervals can tell.
    estimator = replace(ESTIMATORS["iv"], weighting=partial(group_weights, rtol=1e-4))
    covered, draws = 0, 2000
    for _ in range(draws):
        W, Y, Z = noisy_regressor(rng)
        solution = solved(W, Y, Z, estimator)
        ci95 = interval95(solution.chi, solution.covariance, solution.dof)
        covered += int(np.sum((ci95[:, 0] <= CHI_TRUE) & (ci95[:, 1] >= CHI_TRUE)))
    assert 0.93 <= covered / (3 * draws) <= 0.97


def test_difference_from_least_squares_is_told_and_only_then():
    rng = np.random.default_rng(4)
    told = [bool(solved(*noisy_regressor(rng)).notices) for _ in range(20)]
    # Exact W, instruments with noise of their own: both estimate the same.
    quiet = []
    for _ in range(20):
        W, Y, _ = noisy_regressor(rng, sigma=0.0)
        quiet.append(bool(solved(W, Y, W + 0.4 * rng.standard_normal(W.shape)).notices))
    assert all(told)
    assert sum(quiet) <= 1  # one in a thousand by chance


def test_instruments_that_tell_nothing_are_refused():
    W, Y, Z = noisy_regressor(np.random.default_rng(5))
    Z[:, 2] = Z[:, 0]
    with pytest.raises(NoResultError, match="are linearly dependent"):
        solved(W, Y, Z)
    with pytest.raises(InputError, match="needs the rows of its instruments"):
        ESTIMATORS["iv"](DensePass([W], [Y]).blocked())
    with pytest.raises(InputError, match="is not between 0 and 1"):
        estimator_named("iv", {"cutoff": 2.0})


def test_reference_is_read_from_the_log(tmp_path):
    robot, columns = arms.arm(2), arms.recording()
    asked = {f"q_ref_{j}": columns[f"q_{j}"] + 0.01 for j in (1, 2)}
    log = read_log(arms.write_csv(tmp_path / "a.csv", {**columns, **asked}), robot)
    np.testing.assert_allclose(log.q_ref, log.q + 0.01, atol=1e-11)  # text of twelve digits
    missing = read_log(arms.write_csv(tmp_path / "b.csv", {**columns, "q_ref_1": columns["q_1"]}), robot)
    assert missing.q_ref is None
    assert "rates-incomplete" in [notice.code for notice in missing.notices]


@pytest.fixture(scope="module")
def arm():
    """An arm whose encoders have noise of 1e-4 rad, and the trajectory it was asked to follow."""
    demo = built_in_experiment("serial6", seed=3)
    rng = np.random.default_rng(7)
    log = demo.logs[0]
    return demo, replace(log, q=log.q + 1e-4 * rng.standard_normal(log.q.shape), q_ref=log.q)


def identified(arm, log, estimator, **options):
    demo, _ = arm
    chosen = Experiment(
        robot="serial6", estimator=estimator, estimator_options=options, filter=FilterSettings(cutoff=10.0)
    )
    return identify_logs(demo.mechanism, (log,), (demo.validation,), chosen, truth=demo.truth)


def test_an_arm_under_a_mild_low_pass(arm):
    plain = identified(arm, arm[1], "wls")
    for instruments in ("smoothed", "reference"):
        estimate = identified(arm, arm[1], "iv", instruments=instruments)
        error, before = (one.validation[0].residual_percent for one in (estimate, plain))
        assert error < 0.6 * before
        assert "iv-differs" in [notice.code for notice in estimate.warnings]


def test_a_clean_arm_is_left_in_peace(arm):
    demo, _ = arm
    estimate = identified(arm, demo.logs[0], "iv")
    assert "iv-differs" not in [notice.code for notice in estimate.warnings]
    with pytest.raises(InputError, match="no reference trajectory"):
        identified(arm, demo.logs[0], "iv", instruments="reference")
