"""Robust estimation: gross errors lose their say, good rows keep theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.robust import Winsorised, huber, tukey
from dynid.estimator.wls import unit_weights
from dynid.experiment.experiment import Experiment
from dynid.pipeline import identify_logs
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.uncertainty import interval95
from tests.systems import DensePass

CHI_TRUE = np.array([1.0, -0.5, 2.0, 0.1])


def rows(seed: int, n: int = 400, spoilt: float = 0.0):
    """W and Y with normal errors of deviation 0.3, a part of the rows far off and to one side."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, 4))
    Y = W @ CHI_TRUE + 0.3 * rng.standard_normal(n)
    out = rng.choice(n, round(spoilt * n), replace=False)
    Y[out] += 30.0 * np.sign(W[out, 0])
    return W, Y


def solved(estimator, W, Y):
    again = DensePass([W], [Y])
    return estimator(again.blocked(), again)


@pytest.mark.parametrize(("function", "tuning"), [("huber", 1.345), ("tukey", 4.685)])
def test_solution_is_a_zero_of_its_estimating_equation(function, tuning):
    """Brute force: sum W psi(rho / s) = 0 with s the median of |rho|, computed from all rows."""
    W, Y = rows(1, spoilt=0.1)
    estimator = replace(ESTIMATORS["robust"], rework=Winsorised(function, tuning, rtol=1e-9))
    chi = solved(estimator, W, Y).chi
    rho = Y - W @ chi
    scale = 1.4826 * np.median(np.abs(rho)) / np.sqrt(1 - 4 / 400)
    psi, _ = {"huber": huber, "tukey": tukey}[function](tuning)
    score = W.T @ psi(rho / scale)
    # The scale is told by bins of 0.5 %: that moves a score of size sqrt(400) by about a hundredth.
    assert np.abs(score).max() < 0.05 * np.sqrt(400)


def test_functions_have_the_slopes_they_promise():
    u = np.linspace(-8, 8, 1601) + 1e-3
    for psi, slope in (huber(1.345), tukey(4.685)):
        steps = (psi(u + 1e-6) - psi(u - 1e-6)) / 2e-6
        inside = np.abs(np.abs(u) - 1.345) > 1e-2  # where huber bends it has no slope
        np.testing.assert_allclose(steps[inside], slope(u)[inside], atol=1e-8)  # rounding over the step


def test_gross_errors_do_not_move_it():
    W, Y = rows(2, spoilt=0.1)
    good, bad = solved(ESTIMATORS["robust"], W, Y), solved(ESTIMATORS["wls"], W, Y)
    sigma = np.sqrt(np.diag(good.covariance))
    assert np.abs(good.chi - CHI_TRUE).max() < 4 * sigma.max()
    assert np.abs(bad.chi - CHI_TRUE).max() > 1.0
    assert [notice.code for notice in good.notices] == ["outliers"]
    # Errors of the good rows are 0.3, and 360 of them tell the parameters to 0.3 / sqrt(360).
    np.testing.assert_allclose(sigma, 0.3 / np.sqrt(360), rtol=0.15)


def test_clean_rows_lose_little():
    errors = [
        (solved(ESTIMATORS["robust"], W, Y).chi - CHI_TRUE, solved(ESTIMATORS["ols"], W, Y).chi - CHI_TRUE)
        for W, Y in (rows(seed, 100) for seed in range(30))
    ]
    robust, plain = (np.sqrt(np.mean(np.square(one))) for one in zip(*errors, strict=True))
    assert robust / plain == pytest.approx(1 / np.sqrt(0.95), abs=0.04)  # 95 % efficiency; 120 errors


@pytest.mark.parametrize(("function", "draws"), [("tukey", 2000), ("huber", 400)])
def test_intervals_cover(function, draws):
    tuning = {"huber": 1.345, "tukey": 4.685}[function]
    # Five hundredths of sigma are far below what 8000 (1600) intervals can tell.
    rework = Winsorised(function, tuning, rtol=0.05)
    estimator = replace(ESTIMATORS["robust"], weighting=unit_weights, rework=rework)
    rng = np.random.default_rng(5)
    W = rng.standard_normal((60, 4)) * [1.0, 30.0, 0.1, 5.0]
    covered = 0
    for _ in range(draws):
        solution = solved(estimator, W, W @ CHI_TRUE + 0.3 * rng.standard_normal(60))
        ci95 = interval95(solution.chi, solution.covariance, solution.dof)
        covered += int(np.sum((ci95[:, 0] <= CHI_TRUE) & (ci95[:, 1] >= CHI_TRUE)))
    assert 0.93 <= covered / (4 * draws) <= 0.97


def test_triangles_alone_are_refused():
    W, Y = rows(3)
    with pytest.raises(InputError, match="weighs single samples"):
        ESTIMATORS["robust"](DensePass([W], [Y]).blocked())


def test_options_are_checked():
    assert estimator_named("robust", {"function": "huber", "tuning": 2}).rework == Winsorised("huber", 2.0)
    with pytest.raises(InputError, match="did you mean 'tukey'"):
        estimator_named("robust", {"function": "tuckey"})
    with pytest.raises(InputError, match="no option 'tunning'; did you mean 'tuning'"):
        estimator_named("robust", {"tunning": 2})
    with pytest.raises(InputError, match="not a positive number"):
        estimator_named("robust", {"tuning": -1})


def spoilt_log(log, seed):
    """5 spikes in 1000 samples, and 2 % of the efforts lost (zero), in every joint."""
    rng, tau = np.random.default_rng(seed), log.tau.copy()
    n = len(tau)
    for j in range(tau.shape[1]):
        spikes = rng.choice(n, n * 5 // 1000, replace=False)
        tau[spikes, j] += 10 * np.abs(tau[:, j]).max() * rng.choice([-1, 1], len(spikes))
        tau[rng.choice(n, n * 2 // 100, replace=False), j] = 0.0
    return replace(log, tau=tau)


def test_spikes_and_lost_efforts_no_longer_ruin_an_arm():
    demo = built_in_experiment("serial6", seed=3)
    bad = spoilt_log(demo.logs[0], 0)
    errors = {}
    for name, log in (("wls", bad), ("robust", bad), ("clean", demo.logs[0])):
        chosen = Experiment(robot="serial6", estimator="wls" if name == "clean" else name)
        estimate = identify_logs(demo.mechanism, (log,), (demo.validation,), chosen, truth=demo.truth)
        errors[name] = estimate.validation[0].residual_percent
        if name == "robust":
            assert "outliers" in [notice.code for notice in estimate.warnings]
            z = [(one.value - estimate.truth[one.name]) / one.sigma for one in estimate.parameters]
            # 36 parameters; the sigma of 20 s of correlated rows is itself known to some ten per cent.
            assert np.sqrt(np.mean(np.square(z))) < 1.8
    # As good as without any spoilt sample (2.5 % of the samples are gone), where wls is ruined.
    assert errors["robust"] < 1.1 * errors["clean"]
    assert errors["wls"] > 20 * errors["clean"]


def test_acceleration_finds_a_fixed_point_that_plain_steps_creep_to() -> None:
    """A linear map with rates up to 0.99: a thousand plain steps, eight freedoms, some twenty here."""
    from dynid.estimator.robust import Acceleration

    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    A = Q @ np.diag(np.linspace(0.0, 0.99, 8)) @ Q.T
    goal = rng.standard_normal(8)
    x, steps, acceleration = np.zeros(8), 0, Acceleration()
    while np.linalg.norm(x - goal) > 1e-9 and steps < 100:
        g = goal + A @ (x - goal)
        x = acceleration.next(x, g, np.ones(8))
        steps += 1
    assert steps <= 20


def test_a_column_that_few_bad_samples_tell_does_not_keep_it_from_converging() -> None:
    """Like Stribeck friction: told at low speed only, where a third of the samples are wrong."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n = 3000
        v = np.sin(np.linspace(0.0, 40.0, n))
        slow = np.exp(-((v / 0.05) ** 2))
        W = np.column_stack([np.sign(v), v, np.sqrt(np.abs(v)) * np.sign(v), slow * np.sign(v)])
        Y = W @ np.array([1.0, 2.0, 0.5, 0.3]) + 0.05 * rng.standard_normal(n)
        bad = (slow > 0.3) & (rng.random(n) < 0.33)
        Y[bad] += 0.4 * rng.choice([-1.0, 1.0], bad.sum())
        again = DensePass([W], [Y], blocks=20)
        solution = ESTIMATORS["robust"](again.blocked(), again)
        assert solution.status == "converged"
        # The first three are told by clean samples.
        assert np.all(
            np.abs(solution.chi - [1.0, 2.0, 0.5, 0.3])[:3] < 5 * np.sqrt(np.diag(solution.covariance))[:3]
        )
