"""A start that had to be made smaller to satisfy its limits grows again, or stays as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynid.excitation.optimal import starts
from dynid.excitation.optimal.problem import Point, Tape
from dynid.excitation.optimal.search import Descent
from dynid.excitation.optimal.starts import Starter

LIMIT = 0.6


def point(size: float) -> Point:
    """A motion of one variable: the larger, the better; `tape` only says that it is feasible."""
    return Point(np.array([size]), -size, np.zeros((1, 1)), None, object.__new__(Tape))


def starter_with(monkeypatch: pytest.MonkeyPatch, regrown: float) -> tuple[Starter, list[tuple[Any, int]]]:
    """A starter whose descents from large motions fail; from a small one they reach `regrown`."""
    calls: list[tuple[Any, int]] = []

    def descend(problem: Any, z: np.ndarray, *, iterations: int, tolerance: float = 0.0) -> Descent:
        calls.append((float(problem[0]), iterations))
        return Descent(point(float(z[0]) if z[0] > LIMIT else regrown), iterations)

    monkeypatch.setattr(starts, "descend", descend)
    monkeypatch.setattr(Starter, "_between", lambda self, z: np.array([max(float(z[0]) - LIMIT, 0.0)]))
    starter = object.__new__(Starter)
    starter.exact = None
    starter.problem = SimpleNamespace(  # type: ignore[assignment]
        soft=SimpleNamespace(sides=("position",)),
        narrowed=lambda spare: spare,
        blocks=SimpleNamespace(towards_rest=lambda z, part: part * z),
        evaluate=lambda z: point(float(z[0])),
    )
    return starter, calls


def test_a_reduced_motion_is_optimised_again_within_narrower_limits(monkeypatch) -> None:
    starter, calls = starter_with(monkeypatch, regrown=0.599)
    found = starter._mended(point(1.0))
    assert found.z[0] == 0.599
    # The last descent starts from the reduced motion; narrower limits, more steps than a repair.
    assert calls[-1] == (starts._STEP, starts._REGROWTH)


@pytest.mark.parametrize("regrown", [0.3, 0.7])
def test_a_worse_motion_or_one_beyond_a_limit_is_not_taken(monkeypatch, regrown: float) -> None:
    starter, calls = starter_with(monkeypatch, regrown)
    found = starter._mended(point(1.0))
    # Steps of 7 % below the limit.
    assert 0.93 * LIMIT < found.z[0] <= LIMIT
    assert [spare for spare, _ in calls[-2:]] == [starts._STEP, 2.0 * starts._STEP]


def test_a_motion_within_its_limits_is_left_alone(monkeypatch) -> None:
    starter, calls = starter_with(monkeypatch, regrown=0.599)
    own = point(0.5)
    assert starter._mended(own) is own
    assert not calls
