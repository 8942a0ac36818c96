"""The suite that every estimator passes: `check_estimator(ESTIMATORS[name])`.

Each gets the triangles and a second pass over the rows they come from; those that read only the
triangles do not look at it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from dynid.base.base import base_set
from dynid.base.system import base_system
from dynid.common.errors import InputError, NoResultError
from dynid.estimator.estimator import Estimator
from dynid.estimator.solution import Solution
from dynid.estimator.tls import PlainTotal
from dynid.projection.factor import Factor, factor_rows
from dynid.projection.projection import Group, System
from tests.systems import DensePass, joint_system, parameters

RTOL = 1e-10  # what row order, row blocks and threads may change
ROWS = (150, 60, 300)  # groups of different length: weights must not be sliced by a common count
SIGMAS = (0.05, 1.0, 0.2)


def noisy_rows(seed=0, p=6, rows=ROWS, sigmas=SIGMAS):
    """W, Y and chi_true of three joints with noise of their own."""
    rng = np.random.default_rng(seed)
    chi_true = rng.uniform(0.5, 2.0, p) * rng.choice([-1, 1], p)
    Ws = [rng.standard_normal((n, p)) for n in rows]
    Ys = [W @ chi_true + s * rng.standard_normal(len(W)) for W, s in zip(Ws, sigmas, strict=True)]
    return Ws, Ys, chi_true


def solve(estimator: Estimator, Ws, Ys, blocks: int = 1) -> Solution:
    """The estimate from dense rows."""
    return estimator(joint_system(Ws, Ys, blocks=blocks), DensePass(Ws, Ys, blocks=blocks))


def check_estimator(estimator: Estimator) -> None:
    """Every promise of the contract that holds for linear estimators."""
    for check in (
        check_refusals,
        check_input_untouched_and_repeatable,
        check_row_order_and_blocks,
        check_column_scale,
        check_duplicated_rows,
        check_zero_column,
        check_exact_data,
        check_result_is_complete,
    ):
        if check is not check_column_scale or estimator.rework != PlainTotal():
            check(estimator)  # the plain form of total least squares depends on the units of the columns


def check_refusals(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows()
    good = joint_system(Ws, Ys)
    for bad in (np.nan, np.inf):
        R = good.groups[1].blocks[0].R.copy()
        R[2, 3] = bad
        with pytest.raises(InputError, match="not finite"):
            estimator(with_factor(good, Factor(R, ROWS[1])))
    with pytest.raises(InputError, match="empty"):
        estimator(System(good.parameters, ()))
    with pytest.raises(InputError, match="without rows"):
        estimator(with_factor(good, Factor(np.zeros((0, 7)), 0)))
    # A shape-checked test run refuses it even before the estimator does.
    with pytest.raises((InputError, TypeCheckError), match=r"shape|checking the parameters"):
        estimator(with_factor(good, Factor(np.ones(7), 7)))
    with pytest.raises(InputError, match="shape"):
        estimator(with_factor(good, Factor(np.ones((3, 5)), 3)))
    with pytest.raises(InputError, match="6 rows cannot determine 6"):
        solve(estimator, [Ws[0][:6]], [Ys[0][:6]])
    doubled = [np.column_stack([W[:, :5], W[:, 0]]) for W in Ws]
    with pytest.raises(NoResultError, match="rank 5 for 6"):
        solve(estimator, doubled, Ys)


def check_input_untouched_and_repeatable(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows()
    system = joint_system(Ws, Ys)
    before = [block.R.copy() for group in system.groups for block in group.blocks]
    again = DensePass(Ws, Ys)
    kept = [array.copy() for array in (*Ws, *Ys)]
    first, second = estimator(system, again), estimator(system, again)
    after = [block.R for group in system.groups for block in group.blocks]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(kept, (*Ws, *Ys), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(first.chi, second.chi)
    np.testing.assert_array_equal(first.covariance, second.covariance)


def check_row_order_and_blocks(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows()
    plain = solve(estimator, Ws, Ys)
    rng = np.random.default_rng(1)
    orders = [rng.permutation(len(Y)) for Y in Ys]
    shuffled = solve(
        estimator,
        [W[o] for W, o in zip(Ws, orders, strict=True)],
        [Y[o] for Y, o in zip(Ys, orders, strict=True)],
    )
    for other in (shuffled, solve(estimator, Ws, Ys, blocks=5)):
        np.testing.assert_allclose(other.chi, plain.chi, rtol=RTOL)
        size = np.sqrt(np.diag(plain.covariance))
        np.testing.assert_allclose(
            other.covariance / np.outer(size, size), plain.covariance / np.outer(size, size), atol=RTOL
        )


def check_column_scale(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows()
    scale = 10.0 ** np.array([6, -6, 0, 6, -6, 3])
    plain = solve(estimator, Ws, Ys)
    scaled = solve(estimator, [W * scale for W in Ws], Ys)
    # "Beyond rounding": the decimal factors themselves are rounded, so a few units of 1e-16 times
    # the number of rows; 1e-11 is far above that and far below any effect.
    np.testing.assert_allclose(scaled.chi * scale, plain.chi, rtol=1e-11)
    sigma = np.sqrt(np.diag(plain.covariance))
    np.testing.assert_allclose(np.sqrt(np.diag(scaled.covariance)) * scale, sigma, rtol=1e-10)
    assert scaled.condition_scaled == pytest.approx(plain.condition_scaled, rel=1e-9)


def check_duplicated_rows(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows(rows=(1500, 600, 3000))
    once = solve(estimator, Ws, Ys)
    twice = solve(estimator, [np.vstack([W, W]) for W in Ws], [np.concatenate([Y, Y]) for Y in Ys])
    ratio = np.sqrt(np.diag(once.covariance) / np.diag(twice.covariance))
    # sqrt(2) up to degrees of freedom: p = 6 parameters in 600 rows and more change it by < 1 %;
    # for the same reason iterated weights, and with them chi, move by a hundredth of sigma.
    np.testing.assert_allclose(ratio, np.sqrt(2), rtol=0.01)
    sigma = np.sqrt(np.diag(once.covariance))
    np.testing.assert_allclose(twice.chi, once.chi, atol=0.01 * sigma.min())


def check_zero_column(estimator: Estimator) -> None:
    Ws, Ys, _ = noisy_rows()
    rng = np.random.default_rng(2)
    table = parameters(7)
    base = base_set(table, factor_rows(rng.standard_normal((50, 7)), np.zeros(50)), range(7))
    padded = [np.insert(W, 4, 0.0, axis=1) for W in Ws]
    reduced = base_system(joint_system(padded, Ys, table=table), base)
    assert list(reduced.unseen) == ["P4_link4"]
    # The zero column leaves no trace in the others, beyond rounding.
    without = estimator(reduced.system, DensePass(Ws, Ys))
    np.testing.assert_allclose(without.chi, solve(estimator, Ws, Ys).chi, rtol=RTOL)


def check_exact_data(estimator: Estimator) -> None:
    Ws, _, chi_true = noisy_rows()
    solution = solve(estimator, Ws, [W @ chi_true for W in Ws])
    assert np.all(solution.residual_norms <= 1e-9)
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.chi, chi_true, rtol=1e-12)  # condition of order one
    assert np.all(np.isfinite(solution.covariance))
    nothing = solve(estimator, Ws, [np.zeros(len(W)) for W in Ws])
    np.testing.assert_array_equal(nothing.chi, 0.0)


def check_result_is_complete(estimator: Estimator) -> None:
    Ws, Ys, chi_true = noisy_rows()
    solution = solve(estimator, Ws, Ys)
    n, p = sum(ROWS), len(chi_true)
    # Plain total least squares counts the measured side among its columns, as its paper does.
    assert solution.dof == n - p - (estimator.name == "tls")
    assert solution.rank == p
    assert solution.names == tuple(f"P{i}_link{i}" for i in range(p))
    assert 1 <= solution.condition_scaled <= solution.condition * 1.5  # random columns are scaled already
    assert solution.normal_residual < 1e-13  # rounding of the small triangle
    rms = solution.residual_norms / np.sqrt(ROWS)
    # Unit rows turn an error of chi into residuals of the same size: what the noise of one exact
    # joint does not explain, the noise of the others does. 60 rows tell a deviation to 10 %.
    expected = np.hypot(SIGMAS, np.linalg.norm(solution.chi - chi_true))
    np.testing.assert_allclose(rms, expected, rtol=0.3)
    np.testing.assert_allclose(solution.chi, chi_true, atol=6 * np.sqrt(solution.covariance.max()))


def with_factor(system: System, factor: Factor) -> System:
    """The system with the block of its second group replaced."""
    groups: list[Group] = list(system.groups)
    groups[1] = replace(groups[1], blocks=(factor,))
    return replace(system, groups=tuple(groups))
