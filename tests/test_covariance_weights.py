"""Weights by trajectory and by the covariance between joints, and the rows they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.conditioning.lowpass import row_filter
from dynid.conditioning.rewritten import MixedRows, half_differences, joined_rows, replaced_rows
from dynid.conditioning.stream import series
from dynid.estimator.estimator import ESTIMATORS, estimator_named
from dynid.experiment.experiment import Experiment, read_experiment
from dynid.pipeline import identify_logs
from dynid.projection.projection import System
from dynid.regressor.layout import ABSENT
from dynid.simulation.demo import built_in_experiment
from tests.systems import DensePass, group, parameters
from tests.test_stream import RandomRows

SIGMA = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.2], [0.0, 0.2, 0.25]])


def correlated(rng, n=400):
    """Three joints whose errors of one instant have the covariance SIGMA."""
    chi = np.array([1.0, -2.0, 0.5, 3.0])
    Ws = [rng.standard_normal((n, 4)) for _ in range(3)]
    noise = rng.standard_normal((n, 3)) @ np.linalg.cholesky(SIGMA).T
    return Ws, [W @ chi + e for W, e in zip(Ws, noise.T, strict=True)], chi


def test_covariance_weights_are_generalised_least_squares():
    Ws, Ys, _ = correlated(np.random.default_rng(0))
    again = DensePass(Ws, Ys)
    solution = estimator_named("wls", {"weights": "covariance"})(again.blocked(), again)
    rho = np.stack([Y - W @ solution.chi for W, Y in zip(Ws, Ys, strict=True)])
    inverse = np.linalg.inv(rho @ rho.T)
    W, Y = np.stack(Ws), np.stack(Ys)
    A = np.einsum("jnp,jk,knq->pq", W, inverse, W)
    chi = np.linalg.solve(A, np.einsum("jnp,jk,kn->p", W, inverse, Y))
    # Iterated to 1e-4 of sigma (0.03), and the parameters' share of each joint differs a little.
    np.testing.assert_allclose(solution.chi, chi, atol=3e-4)
    found = rho @ rho.T / 400
    np.testing.assert_allclose(found, SIGMA, atol=0.2)  # 400 instants: 7 % of the largest, three sigma


def test_covariance_weights_pay_where_joints_err_together():
    errors = {"wls": [], "covariance": []}
    for seed in range(25):
        Ws, Ys, chi = correlated(np.random.default_rng(seed), n=100)
        again = DensePass(Ws, Ys)
        for name, estimator in (
            ("wls", ESTIMATORS["wls"]),
            ("covariance", estimator_named("wls", {"weights": "covariance"})),
        ):
            errors[name].append(np.linalg.norm(estimator(again.blocked(), again).chi - chi))
    assert np.mean(errors["covariance"]) < 0.8 * np.mean(errors["wls"])


def test_weights_by_trajectory():
    rng = np.random.default_rng(3)
    W1, W2 = rng.standard_normal((400, 3)), rng.standard_normal((900, 3))
    Y1, Y2 = 0.1 * rng.standard_normal(400), 0.3 * rng.standard_normal(900)
    data = System(parameters(3), (group(W1, Y1, log="a"), group(W2, Y2, log="b")))
    own = estimator_named("wls", {"weights": "trajectory"})(data)
    np.testing.assert_allclose(1 / own.weights, [0.1, 0.3], rtol=0.12)  # 400 rows: 3.5 %, three sigma


def test_options_in_a_file_are_checked_at_their_place(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("robot: ur5\nlogs: [a.csv]\nestimator: {name: wls, weights: covariance}\n")
    experiment = read_experiment(file)
    assert (experiment.estimator, experiment.estimator_options) == ("wls", {"weights": "covariance"})
    file.write_text("robot: ur5\nlogs: [a.csv]\nestimator: {name: wls, weight: covariance}\n")
    with pytest.raises(InputError, match=r"line 3.*'weight'; did you mean 'weights'"):
        read_experiment(file)
    file.write_text("robot: ur5\nlogs: [a.csv]\nestimator: {weights: covariance}\n")
    with pytest.raises(InputError, match=r"line 3.*needs its name"):
        read_experiment(file)


def filtered(source, rows):
    """Entries behind the filter and their validity, all pieces together."""
    parts = list(series(source, rows))
    return np.concatenate([p[1] for p in parts], axis=1), np.concatenate([p[2] for p in parts], axis=1)


def test_mixed_rows_are_combinations_with_independent_errors():
    """Without a filter: each mixed row is L^-1 times the rows of its instant, of the valid ones alone."""
    source = RandomRows(200, [(0, 200)], slice(50, 90))
    covariance = np.array([[4.0, 1.0], [1.0, 2.0]])
    mixed = MixedRows(source, covariance)
    found, valid = filtered(mixed, row_filter(source.dt, 1))
    plain, same = filtered(source, row_filter(source.dt, 1))
    np.testing.assert_array_equal(valid, same)
    W, Y = source.layout.dense(plain, 3), plain[source.layout.start[1:] - 1].T
    dense, Y_mixed = mixed.layout.dense(found, 3), found[mixed.layout.start[1:] - 1].T
    for i in (10, 60, 150):
        use = np.flatnonzero(valid[:, i])[::-1]  # the row with fewer columns (the second) comes first
        L = np.linalg.inv(np.linalg.cholesky(covariance[np.ix_(use, use)]))
        np.testing.assert_allclose(dense[i][use], L @ W[i][use], atol=1e-13)
        np.testing.assert_allclose(Y_mixed[i][use], L @ Y[i][use], atol=1e-13)


def test_rewritten_rows_stay_equations():
    source = RandomRows(200, [(0, 200)])
    chi = np.array([1.0, 2.0, 3.0])
    rows = row_filter(source.dt, 1)
    plain, _ = filtered(source, rows)
    W, Y = source.layout.dense(plain, 3), plain[source.layout.start[1:] - 1].T
    halved, _ = filtered(replaced_rows(source, chi, lambda k, rho: 0.5 * rho), rows)
    predicted = np.einsum("nkp,p->nk", W, chi)
    expected = predicted + 0.5 * (Y - predicted)
    np.testing.assert_allclose(halved[source.layout.start[1:] - 1].T, expected, atol=1e-13)
    joined = joined_rows(source, source, 3)
    both, _ = filtered(joined, rows)
    assert np.count_nonzero(joined.layout.columns == ABSENT) == 2
    np.testing.assert_allclose(joined.layout.dense(both, 6), np.concatenate([W, W], axis=2), atol=1e-13)
    none, _ = filtered(half_differences(source, source), rows)
    np.testing.assert_array_equal(none, 0.0)


def test_covariance_weights_on_an_arm():
    demo = built_in_experiment("ur5", seed=2)
    errors = {}
    for weights in ("joint", "covariance"):
        chosen = Experiment(robot="ur5", estimator_options={"weights": weights})
        estimate = identify_logs(demo.mechanism, demo.logs[:1], (demo.validation,), chosen, truth=demo.truth)
        errors[weights] = estimate.validation[0].residual_percent
    # The simulated errors are independent: nothing to gain, and next to nothing lost.
    assert errors["covariance"] == pytest.approx(errors["joint"], rel=0.05)
