"""Levenberg-Marquardt: damped least-squares steps, of which only those that gain are taken.

The caller linearises at a point and tries a damping; how unknowns are eliminated is its own matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

Point = TypeVar("Point")


@runtime_checkable
class Linearised(Protocol):
    """A problem linearised at a point."""

    @property
    def cost(self) -> float:
        """Sum of squares at the point."""

    def trial(self, damping: float) -> tuple[Any, float]:
        """The point after a step with this damping, and its cost; infinite where there is no such point."""


Model = TypeVar("Model", bound=Linearised)


@dataclass(frozen=True)
class Schedule:
    """How a search goes on and when it ends.

    Attributes:
        damping: Of the first step.
        factor: By which damping grows after a trial without gain, and shrinks after a step.
        least: Damping never falls below this.
        steps: At most so many linearisations.
        trials: At most so many dampings for each.
        still: Gain of a step, relative to the cost before it, below which the minimum is reached.
    """

    damping: float
    factor: float
    least: float
    steps: int
    trials: int
    still: float


@dataclass(frozen=True, eq=False)
class Found(Generic[Point, Model]):
    """Where a search ended.

    Attributes:
        linearised: The last linearisation: at the point before the last step.
        costs: At the start and after every step that was taken.
        gain: Of the last linearisation, relative to its cost; zero where no trial gained.
    """

    point: Point
    linearised: Model
    costs: tuple[float, ...]
    gain: float


def least_squares(
    start: Point,
    linearise: Callable[[Point], Model],
    schedule: Schedule,
    progress: Callable[[float], None] | None = None,
) -> Found[Point, Model]:
    """The point of least cost that damped steps reach from `start`.

    Args:
        progress: Called with the fraction of all steps after each.
    """
    point, damping = start, schedule.damping
    costs: list[float] = []
    for k in range(schedule.steps):
        model = linearise(point)
        costs = costs or [model.cost]
        gain = 0.0
        for _ in range(schedule.trials):
            tried, cost = model.trial(damping)
            if cost < model.cost:
                point, gain = tried, 1.0 - cost / model.cost
                damping = max(damping / schedule.factor, schedule.least)
                costs.append(cost)
                break
            damping *= schedule.factor
        if progress is not None:
            progress((k + 1) / schedule.steps)
        if gain < schedule.still:
            break
    return Found(point, model, tuple(costs), gain)
