"""Iterated weights: equations near a factorisation give what a new factorisation gives."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimator.ols import least_squares
from dynid.estimator.wls import _Near, group_factors, group_weights, weighted
from tests.systems import joint_system


@pytest.fixture
def rows():
    """Rows of three efforts with noise of very different sizes, and columns of very different units."""
    rng = np.random.default_rng(4)
    units = 10.0 ** rng.uniform(-4, 4, 12)
    chi = rng.normal(size=12) / units
    Ws = [rng.normal(size=(400, 12)) * units for _ in range(3)]
    Ys = [W @ chi + sigma * rng.normal(size=400) for W, sigma in zip(Ws, (1e-3, 0.1, 5.0), strict=True)]
    return joint_system(Ws, Ys, blocks=5)


def test_other_weights_need_no_new_factorisation(rows) -> None:
    factors, weights = group_factors(rows), np.array([40.0, 1.0, 0.2])
    near = _Near(factors, np.ones(3), least_squares)
    assert near.reaches(weights)
    chi, root, paid = near.solved(weights)
    exact, exact_root, _ = least_squares(weighted(factors, weights))
    # Condition number 4e4 of the normal equations, 1e-16 rounding.
    assert chi == pytest.approx(exact, rel=1e-10)
    C, exact_C = root @ root.T, exact_root @ exact_root.T
    size = np.sqrt(np.outer(np.diag(exact_C), np.diag(exact_C)))
    assert np.abs((C - exact_C) / size).max() < 1e-10  # the same
    assert paid.sum() == pytest.approx(12.0, rel=1e-10)  # the h_g add up to p


def test_weights_are_one_over_the_noise(rows) -> None:
    weights, _, step = group_weights(rows, group_factors(rows), least_squares)
    assert step < 1e-6
    # Standard deviations of 400 rows scatter by 1 / sqrt(800): four of these.
    assert 1.0 / weights == pytest.approx([1e-3, 0.1, 5.0], rel=0.14)


def test_stretches_are_the_blocks_of_a_label(rows) -> None:
    group = rows.groups[1]
    labels = {(group.log, *place): k // 2 for k, place in enumerate(group.places)}
    R, parts = group.stretches(labels)
    assert [label for label, _, _ in parts] == [0, 1, 2]
    for label, at, count in parts:
        blocks = group.blocks[2 * label : 2 * label + 2]
        assert np.array_equal(R[at], np.concatenate([block.R for block in blocks]))
        assert count == sum(block.n_rows for block in blocks)
