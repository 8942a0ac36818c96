"""The kernels' own cosine and sine are as exact as the library's."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dynid.kinematics.kernels import cos_sin
from dynid.kinematics.tile import LANES


@njit
def _call(x):
    cos_sin(x)


def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    buffer = np.zeros(2 * LANES, x.dtype)
    buffer[:LANES] = x
    _call(buffer)
    return buffer[:LANES], buffer[LANES:]


@pytest.mark.parametrize("size", [1e-8, 1.0, 10.0, 1e3, 9e5, 1e12])
def test_equal_to_the_library(size: float) -> None:
    rng = np.random.default_rng(int(size) % 97)
    for _ in range(200):
        x = rng.uniform(-size, size, LANES)
        c, s = both(x)
        # Two units in the last place of 1; the library itself is exact to half a unit.
        np.testing.assert_allclose(c, np.cos(x), rtol=0, atol=5e-16)
        np.testing.assert_allclose(s, np.sin(x), rtol=0, atol=5e-16)


def test_quarter_turns_and_small_angles() -> None:
    x = np.resize(np.arange(-8, 9) * np.pi / 2, LANES)
    c, s = both(x)
    np.testing.assert_allclose(c, np.cos(x), rtol=0, atol=5e-16)
    np.testing.assert_allclose(s, np.sin(x), rtol=0, atol=5e-16)
    tiny = np.full(LANES, 1e-300)
    assert np.all(both(tiny)[1] == tiny)


def test_not_finite_stays_not_finite() -> None:
    x = np.zeros(LANES)
    x[3] = np.nan
    c, s = both(x)
    assert np.isnan(c[3])
    assert np.isnan(s[3])
    assert np.all(c[:3] == 1.0)


def test_complex_numbers_by_the_library() -> None:
    x = np.linspace(-3, 3, LANES) + 0.5j
    c, s = both(x)
    np.testing.assert_allclose(c, np.cos(x), rtol=1e-15)
    np.testing.assert_allclose(s, np.sin(x), rtol=1e-15)
