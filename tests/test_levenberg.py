"""Damped least-squares steps: only steps that gain are taken, and the search ends."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.common.levenberg import Schedule, least_squares

SCHEDULE = Schedule(damping=1e-3, factor=10.0, least=1e-9, steps=60, trials=8, still=1e-12)


class Valley:
    """Rosenbrock's function as a sum of squares, r = (1 - x, 10 (y - x^2))."""

    def __init__(self, x):
        self.x = x
        self.r = np.array([1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)])
        self.cost = float(self.r @ self.r)

    def trial(self, damping):
        J = np.array([[-1.0, 0.0], [-20.0 * self.x[0], 10.0]])
        H = J.T @ J
        step = np.linalg.solve(H + damping * np.diag(np.diag(H)), -J.T @ self.r)
        return self.x + step, Valley(self.x + step).cost


def test_the_minimum_of_a_curved_valley():
    fractions = []
    found = least_squares(np.array([-1.2, 1.0]), Valley, SCHEDULE, fractions.append)
    np.testing.assert_allclose(found.point, [1.0, 1.0], atol=1e-6)  # the last gain is below 1e-12 of the cost
    assert list(found.costs) == sorted(found.costs, reverse=True)
    assert fractions == sorted(fractions)


@pytest.mark.parametrize("worse", [np.inf, np.nan, 2.0])
def test_no_step_is_taken_that_does_not_gain(worse):
    tried = []

    class Wall:
        cost = 1.0

        def trial(self, damping):
            tried.append(damping)
            return "elsewhere", worse

    found = least_squares("here", lambda _: Wall(), SCHEDULE)
    assert (found.point, found.costs, found.gain) == ("here", (1.0,), 0.0)
    np.testing.assert_allclose(tried, 1e-3 * 10.0 ** np.arange(8))
