from __future__ import annotations

import numpy as np
import pytest

from dynid.base.base import base_set
from dynid.base.system import base_system
from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import factor_rows
from dynid.projection.projection import System
from dynid.statistics.assemble import estimate_parameters, percent
from dynid.statistics.essential import EssentialRule, essential_parameters, keep_parameters
from dynid.statistics.uncertainty import interval95, relative_percent, student_t95
from tests.systems import group, joint_system, parameters, system

CHI = np.array([2.0, -1.0, 0.5, 1e-4, 0.0])


def noisy(seed=0, chi=CHI, n=400, sigma=0.1):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, len(chi)))
    return W, W @ chi + sigma * rng.standard_normal(n)


def reduced_of(data, table):
    rng = np.random.default_rng(99)
    p = len(table)
    base = base_set(table, factor_rows(rng.standard_normal((3 * p, p)), np.zeros(3 * p)), range(p))
    return base_system(data, base)


def test_uncertainty_is_one_source():
    chi, covariance = np.array([2.0, 0.0]), np.array([[0.04, 0.0], [0.0, 0.01]])
    np.testing.assert_allclose(relative_percent(chi, covariance), [10.0, np.inf])
    t = 2.228138851964939  # Student's t, 10 degrees of freedom, 97.5 %, from printed tables
    assert student_t95(10) == pytest.approx(t, rel=1e-9)
    np.testing.assert_allclose(interval95(chi, covariance, 10)[0], [2 - 0.2 * t, 2 + 0.2 * t], rtol=1e-9)
    with pytest.raises(InputError, match="0 degrees of freedom"):
        interval95(np.zeros(1), np.eye(1), 0)


@pytest.mark.parametrize("rule", [EssentialRule(ratio=10.0), EssentialRule(sigma_percent=15.0)])
@pytest.mark.parametrize("name", ["ols", "wls"])
def test_essential_removes_what_data_tell_badly(rule, name):
    W, Y = noisy()
    data = system(W, Y)
    full = ESTIMATORS[name](data)
    reduced = essential_parameters(data, full, rule)
    assert reduced.kept == (0, 1, 2)
    assert set(reduced.removed) == {3, 4}
    assert 0 <= reduced.growth_percent < 1
    assert [notice.code for notice in reduced.notices] == ["essential-bias"]
    assert reduced.notices[0].text.startswith("set to zero: ")
    # Fitted again without the removed columns, not merely cut out of the full solution.
    again = np.linalg.lstsq(W[:, :3], Y, rcond=None)[0]
    np.testing.assert_allclose(reduced.solution.chi, again, rtol=1e-10)


def test_guard_stops_before_the_residual_grows():
    """A parameter with a poor relative sigma that the rows need all the same."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((60, 3))
    Y = W @ [5.0, 5.0, 0.08] + 0.2 * rng.standard_normal(60)
    data = system(W, Y)
    full = ESTIMATORS["ols"](data)
    reduced = essential_parameters(data, full, EssentialRule(sigma_percent=5.0))
    assert reduced.removed == ()
    assert reduced.solution is full
    assert not reduced.notices
    wide = essential_parameters(data, full, EssentialRule(sigma_percent=5.0, growth_percent=50.0))
    assert wide.removed == (2,)
    assert 1 < wide.growth_percent < 50


def test_exact_data_lose_nothing_that_counts():
    W, _ = noisy()
    chi = np.array([2.0, -1.0, 0.5, 1e-4, 0.0])
    data = system(W, W @ chi)
    reduced = essential_parameters(data, ESTIMATORS["wls"](data), EssentialRule(ratio=10.0))
    assert set(reduced.removed) <= {4}


def test_rule_wants_exactly_one_number():
    for arguments in ({}, {"ratio": 10.0, "sigma_percent": 5.0}, {"ratio": -1.0}):
        with pytest.raises(InputError, match="essential"):
            EssentialRule(**arguments)


def test_keep_fits_exactly_these():
    W, Y = noisy()
    data = system(W, Y)
    full = ESTIMATORS["ols"](data)
    reduced = keep_parameters(data, full, ["P0_link0", "P[24]_*"])
    assert reduced.kept == (0, 2, 4)
    again = np.linalg.lstsq(W[:, [0, 2, 4]], Y, rcond=None)[0]
    np.testing.assert_allclose(reduced.solution.chi, again, rtol=1e-10)
    with pytest.raises(InputError, match="did you mean 'P0_link0'"):
        keep_parameters(data, full, ["P0_link"])
    with pytest.raises(InputError, match="empty"):
        keep_parameters(data, full, [])


def test_keep_on_rows_that_see_some_columns_only():
    rng = np.random.default_rng(2)
    W1, W2 = rng.standard_normal((50, 4)), rng.standard_normal((50, 2))
    chi = np.array([1.0, 2.0, 3.0, 4.0])
    groups = (group(W1, W1 @ chi), group(W2, W2 @ chi[2:], name="joint_2", columns=[2, 3]))
    data = System(parameters(4), groups)
    reduced = keep_parameters(data, ESTIMATORS["ols"](data), ["P0_*", "P1_*"])
    assert reduced.solution.residual_norms[1] == pytest.approx(np.linalg.norm(W2 @ chi[2:]))


def test_fit_by_effort_joins_logs_and_knows_the_mean_through_an_offset():
    rng = np.random.default_rng(3)
    table = (*parameters(2), Parameter("Off_joint_1", "Off", "joint_1", "N m", "drive"))
    Ws = [np.column_stack([rng.standard_normal((n, 2)), np.ones(n)]) for n in (80, 120)]
    Ys = [W @ [1.0, 2.0, 50.0] + rng.standard_normal(len(W)) for W in Ws]
    logs = tuple(group(W, Y, log=f"log{i}") for i, (W, Y) in enumerate(zip(Ws, Ys, strict=True)))
    W3 = np.column_stack([rng.standard_normal((60, 2)), np.zeros(60)])
    Y3 = W3 @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    data = System(table, (*logs, group(W3, Y3, name="joint_2")))
    reduced = reduced_of(data, table)
    solution = ESTIMATORS["ols"](reduced.system)
    fit = estimate_parameters(reduced, solution).fit
    assert [one.name for one in fit.groups] == ["joint_1", "joint_2"]
    Y = np.concatenate(Ys)
    rho = Y - np.vstack(Ws) @ solution.chi
    first, second = fit.groups
    assert (first.n_rows, second.n_rows, fit.n_rows) == (200, 60, 260)
    assert first.rms == pytest.approx(np.sqrt(np.mean(rho**2)))
    assert first.residual_percent == pytest.approx(100 * np.linalg.norm(rho) / np.linalg.norm(Y))
    parts = [one - one.mean() for one in Ys]  # each log about its own mean
    assert first.r2 == pytest.approx(1 - rho @ rho / sum(part @ part for part in parts))
    assert second.r2 == pytest.approx(1 - (second.residual_percent / 100) ** 2)
    assert percent(0.0, 0.0) == 0.0
    assert percent(1.0, 0.0) == 100.0


def test_parts_of_an_estimate():
    rng = np.random.default_rng(4)
    table = parameters(4)
    W = rng.standard_normal((300, 4))
    W[:, 3] = 0.0
    chi = np.array([3.0, -2.0, 1e-3, 7.0])
    Y = W @ chi + 0.05 * rng.standard_normal(300)
    rows = joint_system([W[:100], W[100:]], [Y[:100], Y[100:]], table=table, blocks=20)
    reduced = reduced_of(rows, table)
    solution = ESTIMATORS["wls"](reduced.system)
    essential = essential_parameters(reduced.system, solution, EssentialRule(ratio=10.0))
    parts = estimate_parameters(reduced, solution, essential=essential, priors={"P0_link0": 3.1}, symbols={})
    names = [one.name for one in parts.parameters]
    assert names == ["P0_link0", "P1_link1", "P2_link2"]
    first, _, removed = parts.parameters
    assert first.ci95[0] < 3.0 < first.ci95[1]
    assert first.sigma_rel_percent == pytest.approx(100 * first.sigma / abs(first.value))
    assert first.prior == 3.1
    assert not removed.essential
    assert (removed.value, removed.sigma, removed.ci95) == (0.0, None, None)
    assert parts.covariance.shape == (2, 2)
    assert parts.covariance[0, 0] == pytest.approx(first.sigma**2)
    assert list(parts.not_identifiable) == ["P3_link3"]
    assert {notice.code for notice in parts.warnings} == {"not-excited", "essential-bias"}
    assert parts.fit.n_parameters == 2
    assert parts.fit.rank_gap > 1e6
