from __future__ import annotations

import numpy as np
import pytest

from dynid.base.rank import confirmed_columns, independent_columns
from dynid.projection.factor import triangle


def dependent_matrix(rng, n=200):
    """Columns 0, 1, 3, 4 free; 2 = col0 - 0.5 col1; 5 zero; 6 = 3 col4 + col2."""
    W = rng.standard_normal((n, 7))
    W[:, 2] = W[:, 0] - 0.5 * W[:, 1]
    W[:, 5] = 0.0
    W[:, 6] = 3 * W[:, 4] + W[:, 2]
    return W


def test_finds_dependent_and_zero_columns_with_their_combination():
    W = dependent_matrix(np.random.default_rng(1))
    rank = independent_columns(triangle(W), range(7))
    assert rank.kept == (0, 1, 3, 4)
    assert rank.dependent == (2, 6)
    assert rank.zero == (5,)
    expected = np.array([[1, 1], [-0.5, -0.5], [0, 0], [0, 3.0]])
    np.testing.assert_allclose(rank.K, expected, atol=1e-13)  # a few roundings of well-conditioned columns
    assert rank.decided
    assert rank.gap > 1e10
    assert rank.clearest_rank == rank.rank == 4


@pytest.mark.parametrize("order", [range(7), [6, 2, 0, 1, 3, 4, 5], [5, 4, 3, 2, 1, 0]])
def test_a_decision_is_confirmed_on_another_matrix(order):
    first, second = (dependent_matrix(np.random.default_rng(seed)) for seed in (1, 2))
    like = independent_columns(first, order)
    expected, found = independent_columns(second, order), confirmed_columns(second, order, like)
    assert found is not None
    assert (found.kept, found.dependent, found.zero) == (expected.kept, expected.dependent, expected.zero)
    np.testing.assert_allclose(found.K, expected.K, atol=1e-13)  # a few roundings, as above
    np.testing.assert_allclose(found.residuals, expected.residuals, atol=1e-13)


def test_another_decision_is_not_confirmed():
    W = dependent_matrix(np.random.default_rng(1))
    like = independent_columns(W, range(7))
    noise = np.random.default_rng(2).standard_normal(len(W))
    for column in (2, 5):  # a dependent and a zero column that are neither
        other = W.copy()
        other[:, column] += 1e-3 * noise
        assert confirmed_columns(other, range(7), like) is None
    other = W.copy()
    other[:, 3] = W[:, 0]  # a kept column that depends on others
    assert confirmed_columns(other, range(7), like) is None


def test_order_decides_who_survives():
    W = dependent_matrix(np.random.default_rng(1))
    rank = independent_columns(triangle(W), [6, 2, 0, 1, 3, 4, 5])
    assert rank.kept == (6, 2, 0, 3)
    assert rank.dependent == (1, 4)


def test_columns_left_out_take_no_part():
    W = dependent_matrix(np.random.default_rng(1))
    rank = independent_columns(W, [1, 2, 3])
    assert rank.kept == (1, 2, 3)


@pytest.mark.parametrize("seed", range(5))
def test_column_scale_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    W = dependent_matrix(rng)
    scale = 10.0 ** rng.choice([-6, 0, 6], 7)
    plain = independent_columns(triangle(W), range(7))
    scaled = independent_columns(triangle(W * scale), range(7))
    assert plain.kept == scaled.kept
    assert plain.zero == scaled.zero
    kept, dependent = list(plain.kept), list(plain.dependent)
    back = scaled.K * scale[kept, None] / scale[dependent]
    np.testing.assert_allclose(back, plain.K, atol=1e-12)  # roundings of the scaling


def test_rounding_noise_is_a_zero_column_not_a_parameter():
    rng = np.random.default_rng(2)
    W = rng.standard_normal((50, 3))
    W[:, 1] *= 1e-16  # what cos(pi/2) leaves of a column
    rank = independent_columns(W, range(3))
    assert rank.zero == (1,)


def test_a_column_near_the_threshold_is_not_decided():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((100, 5))
    W[:, 3] = W[:, 0] + 3e-8 * W[:, 3]
    W[:, 4] = W[:, 1] + 5e-9 * W[:, 4]
    rank = independent_columns(W, range(5), rtol=1e-8)
    assert rank.rank == 4
    assert not rank.decided
    assert 1 < rank.gap < 10
    # The sorted residuals jump most from 1 to 1e-8: below rank 4.
    assert rank.clearest_rank in (3, 5)
    assert rank.clearest_gap > 1e6


def test_fewer_rows_than_columns_and_no_rows_at_all():
    W = np.random.default_rng(4).standard_normal((3, 6))
    assert independent_columns(W, range(6)).kept == (0, 1, 2)
    empty = independent_columns(np.zeros((0, 4)), range(4))
    assert empty.zero == (0, 1, 2, 3)
    assert empty.K.shape == (0, 0)


def test_orthogonality_survives_nearly_dependent_columns():
    """A later column that depends on a nearly dependent one must still be found dependent."""
    rng = np.random.default_rng(5)
    W = rng.standard_normal((300, 60))
    W[:, 1] = W[:, 0] + 1e-6 * W[:, 1]
    W[:, 50] = W[:, 1] - W[:, 0] + 1e-6 * W[:, 7]
    rank = independent_columns(triangle(W), range(60))
    assert rank.dependent == (50,)
    assert rank.decided


def test_seven_hundred_columns_of_rank_four_hundred():
    rng = np.random.default_rng(6)
    W = rng.standard_normal((701, 400)) @ rng.standard_normal((400, 700))
    rank = independent_columns(W, range(700))
    assert rank.rank == 400
    assert rank.decided
