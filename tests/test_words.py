"""Small promises of messages: signs of ones, logs given as targets, folds without refinement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.estimator.estimator import ESTIMATORS
from dynid.statistics.correlation import Correlation, correlated
from dynid.statistics.covariance import covariance_of
from dynid.validation.crossvalidation import CrossValidation, HeldOut
from dynid.validation.targets import read_targets
from tests.systems import system


@pytest.mark.parametrize(
    ("factor", "text"), [(1.0004, "A_x + B_x is"), (-1.0, "A_x - B_x is"), (0.5, "+ 0.5 B_x")]
)
def test_a_coefficient_of_one_is_not_printed(factor: float, text: str) -> None:
    (told,) = correlated([Correlation("A_x", "B_x", -0.999, factor, 30.0)])
    assert text in told.text


def test_a_log_is_no_target_of_a_comparison() -> None:
    with pytest.raises(InputError, match="is a log") as caught:
        read_targets([Path("one.csv")])
    assert "--log one.csv" in caught.value.remedy


def test_folds_say_that_they_do_not_refine() -> None:
    one = np.ones(1)
    held = HeldOut(("a",), ("N m",), 0.01 * one, one, 0.02 * one, one)
    assert "refine" not in CrossValidation(("last",), (held,)).words
    assert CrossValidation(("last",), (held,), "without refine").words.endswith("; without refine")


def test_few_blocks_are_told_where_it_matters_only() -> None:
    """A burst in one block tells the second parameter: well, badly, or not at all."""
    for size, told in ((1000.0, False), (2.0, True), (0.001, False)):
        rng = np.random.default_rng(1)
        W = rng.standard_normal((120, 2))
        W[:, 1] = 0.0
        W[20:40, 1] = size * rng.standard_normal(20)
        W[60, 1] = 1e-3 * size
        Y = W @ np.array([1.0, 1.0]) + 1.0 * rng.standard_normal(120)
        data = system(W, Y, blocks=12)
        spread = covariance_of(data, ESTIMATORS["ols"](data))
        assert ("few-blocks" in [one.code for one in spread.notices]) == told
