"""Shapes of some calls are checked while tests run: checking all would double the time of the suite."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.pipeline import identify_logs
from tests.typechecker import check


def test_wrong_shapes_are_refused() -> None:
    @jaxtyping.jaxtyped(typechecker=check)
    def first(M: Float[Array, "d d"], y: Float[Array, "d"]) -> Float[Array, "d"]:
        return np.asarray(M[0] * y[0])

    first(np.eye(2), np.zeros(2))
    with pytest.raises(jaxtyping.TypeCheckError):
        first(np.eye(2), np.zeros(3))


def test_functions_inside_a_function_count_as_one() -> None:
    def size(y: object) -> int:
        @jaxtyping.jaxtyped(typechecker=check)
        def inside(y: Float[Array, "d"]) -> int:
            return np.size(y)

        return inside(y)

    for _ in range(8):
        size(np.zeros(3))
    assert size(3.0) == 1
    for _ in range(6):
        size(np.zeros(3))
    with pytest.raises(jaxtyping.TypeCheckError):  # call 16
        size(3.0)


def test_modules_that_conftest_imports_are_sampled_too() -> None:
    assert identify_logs.__code__.co_filename.endswith("typechecker.py")
