"""Correlated pairs: the combination named is the one that is known best."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.statistics.correlation import correlated, strongest

NAMES = ("M_a", "M_b", "Fv_c")


def covariance(r: float) -> np.ndarray:
    sigma = np.array([2.0, 0.5, 1.0])
    correlation = np.array([[1.0, r, 0.2], [r, 1.0, 0.0], [0.2, 0.0, 1.0]])
    return correlation * np.outer(sigma, sigma)


@pytest.mark.parametrize("r", [0.95, -0.999])
def test_the_combination_known_best_is_found(r: float) -> None:
    C = covariance(r)
    (pair,) = strongest(NAMES, C)
    assert (pair.a, pair.b) == ("M_a", "M_b")
    assert pair.value == pytest.approx(r)
    c = np.array([1.0, pair.factor, 0.0])
    best = np.sqrt(c @ C @ c)
    assert best == pytest.approx(2.0 / pair.gain)
    for step in (-1e-3, 1e-3):  # a minimum over the factor
        other = c + np.array([0.0, step, 0.0])
        assert other @ C @ other > best**2


def test_only_close_pairs_warn() -> None:
    assert not strongest(NAMES, covariance(0.5))
    assert not correlated(strongest(NAMES, covariance(0.95)))
    (notice,) = correlated(strongest(NAMES, covariance(-0.999)))
    assert notice.code == "correlated"
    assert "M_a and M_b (correlation -0.9990); their combination M_a + 4 M_b is" in notice.text
    assert "22 times better" in notice.text


def test_exact_fits_have_no_pairs() -> None:
    assert not strongest(NAMES, np.zeros((3, 3)))
