"""Total least squares: the paper's formulas, errors in variables, and honest intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from dynid.common.errors import InputError, NoResultError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.gtls import GeneralisedTotal
from dynid.estimator.tls import homogeneous_fit
from dynid.estimator.total import total_least_squares
from dynid.experiment.experiment import Experiment, FilterSettings
from dynid.pipeline import identify_logs
from dynid.projection.projection import System
from dynid.simulation.demo import built_in_experiment
from dynid.statistics.uncertainty import interval95
from tests.contract import check_column_scale
from tests.systems import DensePass, system

CHI_TRUE = np.array([1.0, -0.5, 2.0])
SIGMAS = np.array([0.05, 0.4, 0.01, 0.2])  # noise of the columns of [W Y]


def errors_in_variables(rng, n=400, sigmas=SIGMAS):
    """W and Y of exact columns of size one, each with noise of its own deviation."""
    X = rng.standard_normal((n, 3)) + 0.5
    noise = rng.standard_normal((n, 4)) * sigmas
    return X + noise[:, :3], X @ CHI_TRUE + noise[:, 3]


def given(sigmas=SIGMAS):
    return estimator_named("gtls", {"covariance": np.diag(sigmas**2).tolist()})


def test_plain_is_the_svd_of_the_paper():
    """(28)-(34) by dense SVD: solution, sigma_W and covariance."""
    rng = np.random.default_rng(0)
    W, Y = errors_in_variables(rng, sigmas=np.full(4, 0.1))
    solution = ESTIMATORS["tls"](system(W, Y, blocks=3))
    U, s, Vt = np.linalg.svd(np.column_stack([W, Y]), full_matrices=False)
    chi = -Vt[-1, :-1] / Vt[-1, -1]
    np.testing.assert_allclose(solution.chi, chi, rtol=1e-11)  # rounding of a small triangle
    W_hat = W - s[-1] * np.outer(U[:, -1], Vt[-1, :-1])
    sigma_W = s[-1] / np.sqrt(400 - 4)  # (31): a freedom for every column, Y among them
    expected = sigma_W**2 * (1 + chi @ chi) * np.linalg.inv(W_hat.T @ W_hat)
    np.testing.assert_allclose(solution.covariance, expected, rtol=1e-9, atol=1e-16)
    assert solution.dof == 396


@pytest.mark.parametrize("share", [0.97, 1.0, 1.1])
def test_without_efforts_noise_that_is_nearly_right_is_scaled_to_the_residual(share):
    """What a sample of the noise falls short by chance is not noise of Y, where no effort is measured.

    Taken as such, it would pull the solution towards least squares: always that way, never back.
    """
    rng = np.random.default_rng(5)
    sigmas = np.append(SIGMAS[:3], 0.0)
    W, Y = errors_in_variables(rng, n=2000, sigmas=sigmas)
    again = DensePass([W], [Y], sigmas=[share * sigmas], blocks=20)
    found = estimator_named("gtls", {"excess": 3.0})(again.blocked(), again)
    exact = total_least_squares(np.column_stack([W, Y]), np.diag(sigmas))
    # The scale of the noise drops out but for the floor of the measured side's noise.
    np.testing.assert_allclose(found.chi, exact.chi, rtol=1e-4)


def test_an_error_of_the_equations_beyond_chance_is_noise_of_the_measured_side():
    rng = np.random.default_rng(6)
    sigmas = np.append(SIGMAS[:3], 1.0)
    W, Y = errors_in_variables(rng, n=2000, sigmas=sigmas)
    again = DensePass([W], [Y], sigmas=[np.append(SIGMAS[:3], 0.0)], blocks=20)
    found = estimator_named("gtls", {"excess": 3.0})(again.blocked(), again)
    exact = total_least_squares(np.column_stack([W, Y]), np.diag(sigmas))
    # The noise of Y is found from the same rows: some percent of it, and of what it bends.
    np.testing.assert_allclose(found.chi, exact.chi, rtol=0.02)


def test_homogeneous_system_is_the_same_problem():
    """W chi = 0 with the first entry of chi set to one, as the internal model of a cable robot has it."""
    rng = np.random.default_rng(1)
    v = np.array([1.0, 0.3, -0.2, 0.7])
    X = rng.standard_normal((300, 4))
    X -= np.outer(X @ v, v) / (v @ v)  # rows orthogonal to v: rank 3
    W = X + 0.02 * rng.standard_normal(X.shape)
    ordinary = system(W[:, 1:], -W[:, 0])
    solution = ESTIMATORS["tls"](ordinary)
    s, Vt = np.linalg.svd(W)[1:]
    np.testing.assert_allclose(solution.chi, Vt[-1, 1:] / Vt[-1, 0], rtol=1e-11)
    sigma = np.sqrt(np.diag(solution.covariance))
    assert np.all(np.abs(solution.chi - v[1:]) < 4 * sigma)
    found = homogeneous_fit(ordinary)
    assert found.sigma_W == pytest.approx(0.02, rel=0.1)  # 300 rows: 4 %
    assert found.sigma_W == pytest.approx(s[-1] / np.sqrt(296), rel=1e-12)  # (31)
    assert found.cost_C == pytest.approx((s[0] + 1) / s[2], rel=1e-12)  # (40)
    generalised = estimator_named("gtls", {"covariance": np.eye(4).tolist()})(ordinary)
    np.testing.assert_allclose(generalised.chi, solution.chi, rtol=1e-10)


def test_unit_columns_do_not_mind_units():
    check_column_scale(estimator_named("tls", {"columns": "unit"}))


def test_generalised_is_the_smallest_generalised_eigenvalue():
    rng = np.random.default_rng(2)
    W, Y = errors_in_variables(rng)
    A = np.column_stack([W, Y])
    root = rng.standard_normal((4, 4))
    found = total_least_squares(A, root)
    values, vectors = scipy.linalg.eigh(A.T @ A, root.T @ root)
    v = vectors[:, 0]
    np.testing.assert_allclose(found.chi, -v[:-1] / v[-1], rtol=1e-9)  # products lose half the digits
    assert found.ratio == pytest.approx(values[0], rel=1e-9)


def test_noise_in_the_measured_side_alone_is_least_squares():
    rng = np.random.default_rng(3)
    W, Y = errors_in_variables(rng, sigmas=np.array([0.0, 0.0, 0.0, 0.3]))
    solution = given(np.array([0.0, 0.0, 0.0, 0.3]))(system(W, Y))
    plain = ESTIMATORS["ols"](system(W, Y))
    np.testing.assert_allclose(solution.chi, plain.chi, rtol=1e-10)
    np.testing.assert_allclose(solution.covariance, plain.covariance, rtol=1e-8, atol=1e-14)


def test_generalised_has_a_fifth_of_the_bias_of_plain():
    rng = np.random.default_rng(4)
    draws = [errors_in_variables(rng) for _ in range(100)]
    bias = {}
    for name, estimator in (("tls", ESTIMATORS["tls"]), ("gtls", given()), ("wls", ESTIMATORS["wls"])):
        mean = np.mean([estimator(system(W, Y)).chi for W, Y in draws], axis=0)
        bias[name] = np.linalg.norm(mean - CHI_TRUE)
    assert bias["gtls"] < bias["tls"] / 5
    assert bias["gtls"] < bias["wls"] / 5


@pytest.mark.parametrize(("known", "draws"), [(False, 2000), (True, 500)])
def test_intervals_cover(known, draws):
    """With the whole covariance given, and with the noise of the measured side found from the rows."""
    rng = np.random.default_rng(5)
    covered = 0
    # 1e-4 of sigma is far below what 6000 intervals can tell.
    found = replace(ESTIMATORS["gtls"], rework=GeneralisedTotal(rtol=1e-4))
    estimator = given() if known else found
    columns = [np.append(SIGMAS[:3], 0.0)]
    for _ in range(draws):
        W, Y = errors_in_variables(rng, n=150)
        again = DensePass([W], [Y], sigmas=columns)
        solution = estimator(again.blocked(), again)
        ci95 = interval95(solution.chi, solution.covariance, solution.dof)
        covered += int(np.sum((ci95[:, 0] <= CHI_TRUE) & (ci95[:, 1] >= CHI_TRUE)))
    assert 0.93 <= covered / (3 * draws) <= 0.97


@pytest.mark.parametrize(("estimator", "sigmas"), [(ESTIMATORS["tls"], np.full(4, 0.1)), (given(), SIGMAS)])
def test_sigma_by_theory_and_by_bootstrap_agree(estimator, sigmas):
    """Blocks of rows drawn with replacement, and the whole estimate made anew each time."""
    rng = np.random.default_rng(6)
    W, Y = errors_in_variables(rng, n=2000, sigmas=sigmas)
    whole = system(W, Y, blocks=100)
    blocks = whole.groups[0].blocks
    found = []
    for _ in range(300):
        drawn = tuple(blocks[i] for i in rng.integers(len(blocks), size=len(blocks)))
        found.append(estimator(System(whole.parameters, (replace(whole.groups[0], blocks=drawn),))).chi)
    sigma = np.sqrt(np.diag(estimator(whole).covariance))
    # 300 draws tell a deviation to 4 %, 100 blocks to 7 %.
    np.testing.assert_allclose(np.std(found, axis=0), sigma, rtol=0.25)


def test_position_noise_of_an_arm_no_longer_biases():
    """Encoder noise of 1e-4 rad under a mild low-pass: it reaches W through the accelerations."""
    demo = built_in_experiment("serial6", seed=3)
    rng = np.random.default_rng(7)
    log = demo.logs[0]
    noisy = replace(log, q=log.q + 1e-4 * rng.standard_normal(log.q.shape))
    errors = {}
    for name in ("wls", "tls", "gtls"):
        chosen = Experiment(robot="serial6", estimator=name, filter=FilterSettings(cutoff=10.0))
        estimate = identify_logs(demo.mechanism, (noisy,), (demo.validation,), chosen, truth=demo.truth)
        errors[name] = estimate.validation[0].residual_percent
    assert errors["gtls"] < 0.6 * errors["wls"] < 0.6 * errors["tls"]


def test_what_cannot_be_solved_is_said():
    rng = np.random.default_rng(8)
    Q = np.linalg.qr(rng.standard_normal((50, 3)))[0]
    W, Y = Q[:, :2] * [1.0, 1e-3], 100.0 * Q[:, 2]  # the least column is one of W, and not seen in Y
    with pytest.raises(NoResultError, match="does not contain Y"):
        ESTIMATORS["tls"](system(W, Y))
    with pytest.raises(InputError, match="shape"):
        estimator_named("gtls", {"covariance": [[1.0]]})(system(W, Y))
    with pytest.raises(InputError, match="needs the noise of its columns"):
        ESTIMATORS["gtls"](system(W, Y))
    with pytest.raises(InputError, match="not a positive number"):
        estimator_named("gtls", {"position": 0})
