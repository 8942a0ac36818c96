"""Levels of the residual tests: one clean log in twenty has a false alarm, whatever is tested."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.checks.family_level import levels
from dynid.checks.fault_columns import Suspect


def suspect(test: str, size: float = 1.0, wald: float = 1.0) -> Suspect:
    """A tested suspect with one column."""
    return Suspect(test, "x", (0,), "rad", size=np.array([size]), sigma=np.ones(1), wald=wald)


def level_of_zeros(columns: np.ndarray, others: int = 0) -> float:
    """Level of zeros with these columns beside other tests."""
    bases = [column[:, None] / np.linalg.norm(column) for column in columns.T]
    suspects = [suspect("zero")] * len(bases) + [suspect("delay")] * others
    bases += [np.eye(len(columns))[:, :1]] * others
    return levels(suspects, bases, lambda one: True)(suspect("zero"))


@pytest.mark.parametrize(("count", "others"), [(10, 0), (30, 0), (30, 20)])
def test_separate_columns_share_what_is_left_of_five_percent(count: int, others: int) -> None:
    """1 - (1 - a)^n = 0.05 - 0.001 n_other; 8 %: the share of 10 000 draws beyond it scatters by 4.4 %."""
    exact = 1.0 - (1.0 - 0.05 + 1e-3 * others) ** (1.0 / count)
    assert level_of_zeros(np.eye(count), others) == pytest.approx(exact, rel=0.12 if others else 0.08)


def test_columns_that_are_alike_count_once() -> None:
    """Thirty columns in a plane are less than thirty tests; one alone is tested at no more than 1 %."""
    angles = np.linspace(0.0, np.pi, 30, endpoint=False)
    plane = np.stack([np.cos(angles), np.sin(angles)])
    assert level_of_zeros(plane) > 2.0 * level_of_zeros(np.eye(30))
    assert level_of_zeros(np.ones((3, 30))) == 0.01


def test_what_noise_cannot_flag_does_not_count() -> None:
    """A suspect that is too small to matter where it is just significant raises no false alarm."""
    suspects = [suspect("zero", size=1.0), *[suspect("zero", size=1e-3)] * 29]
    bases = [np.eye(30)[:, [k]] for k in range(30)]
    level = levels(suspects, bases, lambda one: bool(abs(one.size[0]) > 1.0))
    assert level(suspects[0]) == 0.01  # alone: the highest level
    assert level(suspect("delay")) == 1e-3


def test_a_log_without_zeros_and_dimensions_keeps_the_level_of_the_others() -> None:
    level = levels([suspect("gain")] * 100, [np.ones((1, 1))] * 100, lambda one: True)
    assert level(suspect("gain")) == pytest.approx(0.5 * 0.05 / 100)
