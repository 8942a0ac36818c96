"""Shapes of calls are checked while tests run, not of all calls: that would double the time of the suite."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest

from dynid.common.batched import solve
from dynid.pipeline import identify_logs


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        solve(np.eye(2), np.zeros((3, 1), dtype=np.float64))


def test_modules_that_conftest_imports_are_sampled_too() -> None:
    assert identify_logs.__code__.co_filename.endswith("typechecker.py")
