from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.estimator.wls import group_weights
from dynid.projection.projection import System
from tests.contract import ROWS, SIGMAS, check_estimator, noisy_rows
from tests.systems import group, joint_system, parameters, system


@pytest.mark.parametrize("name", ESTIMATORS)
def test_contract(name):
    check_estimator(ESTIMATORS[name])


def test_unknown_estimator_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'wls'"):
        estimator_named("wsl")


def test_ols_equals_the_textbook():
    rng = np.random.default_rng(0)
    W, noise = rng.standard_normal((80, 4)), rng.standard_normal(80)
    Y = W @ [1.0, 2.0, 3.0, 4.0] + 0.1 * noise
    solution = ESTIMATORS["ols"](system(W, Y, blocks=3))
    chi = np.linalg.solve(W.T @ W, W.T @ Y)  # well conditioned: the textbook formula is exact enough
    rho = Y - W @ chi
    np.testing.assert_allclose(solution.chi, chi, rtol=1e-12)
    np.testing.assert_allclose(solution.covariance, rho @ rho / 76 * np.linalg.inv(W.T @ W), atol=1e-15)
    assert solution.sigma_rho == pytest.approx(np.sqrt(rho @ rho / 76), rel=1e-12)
    assert solution.residual_norms[0] == pytest.approx(np.linalg.norm(rho), rel=1e-12)


def test_wls_finds_the_deviation_of_groups_of_different_length():
    """Weights sliced by a common row count would mix joints: 150, 60 and 300 rows here."""
    Ws, Ys, _ = noisy_rows(rows=(15000, 6000, 30000))
    solution = ESTIMATORS["wls"](joint_system(Ws, Ys))
    np.testing.assert_allclose(1 / solution.weights, SIGMAS, rtol=0.03)  # 6000 rows: 1 %, three sigma
    assert solution.sigma_rho == pytest.approx(1.0, abs=1e-6)  # by construction, at convergence


def test_wls_equals_dense_weighted_rows():
    Ws, Ys, _ = noisy_rows()
    solution = ESTIMATORS["wls"](joint_system(Ws, Ys))
    scale = np.repeat(solution.weights, ROWS)
    W, Y = np.vstack(Ws) * scale[:, None], np.concatenate(Ys) * scale
    chi = np.linalg.lstsq(W, Y, rcond=None)[0]
    np.testing.assert_allclose(solution.chi, chi, rtol=1e-10)
    hat = W @ np.linalg.inv(W.T @ W) @ W.T
    for rows, norm, weight in zip(
        np.split(np.arange(510), np.cumsum(ROWS)[:-1]), solution.residual_norms, solution.weights, strict=True
    ):
        dof = len(rows) - np.trace(hat[np.ix_(rows, rows)])
        # At the fixed point each deviation reproduces itself; the iteration ends at 1e-10.
        assert norm / np.sqrt(dof) == pytest.approx(1 / weight, rel=1e-8)


def test_wls_beats_ols_when_joints_differ():
    worse = 0
    for seed in range(20):
        Ws, Ys, chi_true = noisy_rows(seed)
        data = joint_system(Ws, Ys)
        errors = [np.linalg.norm(ESTIMATORS[name](data).chi - chi_true) for name in ("ols", "wls")]
        worse += errors[1] > errors[0]
    assert worse <= 2  # the efficiency of ols is about a tenth here


def test_one_joint_in_two_logs_shares_its_weight_unless_asked():
    rng = np.random.default_rng(3)
    W1, W2 = rng.standard_normal((400, 3)), rng.standard_normal((900, 3))
    Y1, Y2 = 0.1 * rng.standard_normal(400), 0.3 * rng.standard_normal(900)
    data = System(parameters(3), (group(W1, Y1, log="a"), group(W2, Y2, log="b")))
    shared = ESTIMATORS["wls"](data)
    assert shared.weights[0] == shared.weights[1]
    own = replace(ESTIMATORS["wls"], weighting=partial(group_weights, per_log=True))(data)
    np.testing.assert_allclose(1 / own.weights, [0.1, 0.3], rtol=0.12)  # 400 rows: 3.5 %, three sigma


def test_a_group_without_residual_does_not_break_the_others():
    Ws, Ys, chi_true = noisy_rows()
    Ws[1][:], Ys[1][:] = 0.0, 0.0  # a locked joint
    solution = ESTIMATORS["wls"](joint_system(Ws, Ys))
    assert np.all(np.isfinite(solution.weights))
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.chi, chi_true, atol=0.05)  # ten sigma of the first joint's fit
    np.testing.assert_allclose(1 / solution.weights[[0, 2]], [0.05, 0.2], rtol=0.2)


def contested_rows():
    """Two joints that contradict each other about one parameter: reweighting creeps by a tenth a round."""
    n, spread = 200, np.sqrt(0.31)
    wave = np.sqrt(2.0) * np.sin(2.0 * np.pi * 5.0 * (np.arange(n) + 0.5) / n)
    return [np.ones((n, 1))] * 2, [spread * wave - 0.5, 1.001 * spread * wave + 0.5]


def test_weights_that_creep_far_below_sigma_have_converged():
    solution = ESTIMATORS["wls"](joint_system(*contested_rows()))
    assert solution.status == "converged"
    assert not solution.notices
    # Where the rounds run out, the last step counts: 1e-4 sigma is far below what the rows tell.
    few = replace(ESTIMATORS["wls"], weighting=partial(group_weights, rtol=0.0, max_iterations=60))
    stopped = few(joint_system(*contested_rows()))
    assert stopped.status == "converged"
    sigma = np.sqrt(np.diag(solution.covariance))
    # The step shrinks by a tenth a round: ten times the last one is left, at most 1e-2 sigma.
    assert np.all(np.abs(stopped.chi - solution.chi) <= 1e-2 * sigma)


def test_no_convergence_is_said():
    Ws, Ys, _ = noisy_rows()
    hasty = replace(ESTIMATORS["wls"], weighting=partial(group_weights, max_iterations=2))
    solution = hasty(joint_system(Ws, Ys))
    assert solution.status == "not converged"
    assert [notice.code for notice in solution.notices] == ["weights-not-converged"]


def test_ill_conditioned_rows_are_reported():
    rng = np.random.default_rng(4)
    W = rng.standard_normal((50, 3))
    W[:, 2] = W[:, 0] + 1e-9 * W[:, 2]
    solution = ESTIMATORS["ols"](system(W, W.sum(axis=1)))
    assert [notice.code for notice in solution.notices] == ["ill-conditioned"]
    assert solution.condition_scaled > 1e8
