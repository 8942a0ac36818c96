"""The low-pass and the power spectrum against SciPy's, which are the reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from dynid.motion.filters import both_ways, design
from dynid.motion.spectrum import welch


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("part", [0.003, 0.02, 0.2, 0.4])
def test_sections_are_those_of_a_butterworth_filter(order: int, part: float) -> None:
    sections, poles = design(part * 500.0, order, 0.002)
    f, expected = signal.freqz_sos(signal.butter(order, part * 500.0, fs=500.0, output="sos"), fs=500.0)
    found = signal.freqz_sos(sections, f, fs=500.0)[1]
    # Rounding of a coefficient moves the gain by its share of (1 - pole)^2; each of the order / 2 sections
    # has six, and the two designs round apart, differently on each CPU.
    assert np.max(np.abs(found - expected)) < 12 * (order // 2 + 1) * np.finfo(float).eps / part**2
    assert np.max(np.abs(poles)) < 1.0


@pytest.mark.parametrize("order", [1, 3, 4])
@pytest.mark.parametrize("width", [0, 1, 60])
def test_both_ways_equals_the_reference(order: int, width: int) -> None:
    rng = np.random.default_rng(4)
    x = np.cumsum(rng.normal(size=(700, 3)), axis=0) + 5.0
    sections = signal.butter(order, 9.0, fs=500.0, output="sos")
    expected = signal.sosfiltfilt(sections, x, axis=0, padlen=width)
    found = both_ways(x, design(9.0, order, 0.002)[0], width)
    # Only rounding of the sections differs.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.max(np.abs(x)))


def test_a_constant_passes_both_ways() -> None:
    x = np.full((100, 2), 3.0)
    np.testing.assert_allclose(both_ways(x, design(5.0, 4, 0.002)[0], 20), x, rtol=1e-11)


@pytest.mark.parametrize(("n", "window"), [(5000, 400), (5000, 401), (400, 400), (999, 64)])
def test_power_density_equals_the_reference(n: int, window: int) -> None:
    x = np.random.default_rng(5).normal(size=(n, 3)) + np.linspace(0.0, 3.0, n)[:, None]
    f, power = welch([x], 0.002, window)
    reference_f, expected = signal.welch(x, 500.0, nperseg=window, axis=0, detrend=False)
    np.testing.assert_allclose(f, reference_f, rtol=1e-14)
    np.testing.assert_allclose(power, expected, rtol=1e-9, atol=1e-16)  # sums in another order
