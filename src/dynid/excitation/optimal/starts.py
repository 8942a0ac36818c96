"""One start of an optimisation: a random motion, optimised, perturbed, and made to satisfy every limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.excitation.optimal.problem import Information, Point, Problem
from dynid.excitation.optimal.search import descend, hop
from dynid.excitation.optimal.soft import SoftLimits, fine_motion, worst_between

_DRAWS = 12
_SMALLER = 0.75
_REPAIRS = 6
_REGROWTH = 60  # steps of the descent from a motion that was made smaller
_STEP = 0.08  # largest share by which limits are narrowed at a time
_KEPT = 1e-9  # share of a limit: rounding


@dataclass(frozen=True, eq=False)
class Start:
    """Result of one start.

    Attributes:
        number: Of the start.
        z: Variables of the motion.
        value: Of the criterion as reported; NaN if no motion satisfies the limits.
        first: Value after the first descent.
        random: Value of the initial random motion.
        iterations: Steps of all descents.
        worst: Largest excess of a limit between samples, in shares; satisfied if at most 0.
        missed: The limit that could not be met; empty: none.
    """

    number: int
    z: tuple[float, ...]
    value: float
    first: float
    random: float
    iterations: int
    worst: float
    missed: str = ""


class Starter:
    """Runs starts of one problem.

    Args:
        problem: With margins.
        plain: Information with exact friction, used to report the result.
        exact: Limits without smoothed friction and margin, used to check the result.
        hops: Perturbations of every start.
        seed: Of all starts: each has its own stream, independent of the process that runs it.
    """

    def __init__(
        self,
        problem: Problem,
        plain: Information,
        exact: SoftLimits | None,
        hops: int,
        seed: int,
        starts: int,
    ) -> None:
        self.problem, self.plain, self.exact, self.hops = problem, plain, exact, hops
        self._seed = seed
        self._streams = np.random.SeedSequence(seed).spawn(starts)

    def best_random(self, draws: int) -> Float[Array, "v"]:
        """The best of some random motions: the reference before optimisation."""
        rng = np.random.default_rng([self._seed, draws])
        found = [feasible_start(self.problem, rng) for _ in range(draws)]
        sign = -1.0 if self.problem.criterion.larger_is_better else 1.0
        values = [sign * self.value(self.problem.evaluate(z)) for z in found]
        return found[int(np.argmin(np.where(np.isnan(values), np.inf, values)))]

    def run(self, number: int, watch: Callable[[Point], bool] | None = None) -> Start:
        """Run the start of that number."""
        rng = np.random.default_rng(self._streams[number])
        z = feasible_start(self.problem, rng)
        begin = self.problem.evaluate(z)
        mend = None if self.problem.linear else self._mended
        found = hop(self.problem, z, rng, hops=self.hops, watch=watch, keep=mend)
        point = found.point
        worst, missed = self.excess(point.z)
        value = self.value(point) if worst <= _KEPT else np.nan
        return Start(
            number,
            tuple(point.z.tolist()),
            value,
            self.value(found.first),
            self.value(begin),
            found.iterations,
            worst,
            missed if worst > _KEPT else "",
        )

    def value(self, point: Point) -> float:
        """The criterion as reported; NaN if the motion is not feasible."""
        if point.tape is None:
            return np.nan
        value = self.problem.criterion.value(self.plain.gram_of(point.tape.states)[0])
        if self.problem.criterion.name == "logdet":  # reported in SI, independent of the column scaling
            value += 2.0 * float(np.log(self.plain.scale).sum())
        return value

    def _mended(self, point: Point) -> Point:
        """The motion made to satisfy every limit between samples: narrower limits, then a smaller motion."""
        worst, _ = self.excess(point.z)
        spare = 0.0
        for _ in range(_REPAIRS):
            if worst <= _KEPT or self.problem.soft is None:
                break
            spare += min(1.2 * worst, _STEP)
            narrowed = self.problem.narrowed(spare)
            point = descend(narrowed, point.z, iterations=40).point
            worst, _ = self.excess(point.z)
        size = 1.0
        while worst > _KEPT and size > 0.02:
            size *= 0.93
            point = self.problem.evaluate(self.problem.blocks.towards_rest(point.z, 0.93))
            worst, _ = self.excess(point.z) if point.tape is not None else (np.inf, "")
        return self._regrown(point) if size < 1.0 and worst <= _KEPT else point

    def _regrown(self, point: Point) -> Point:
        """A motion that had to be reduced, optimised again from there with narrower limits.

        If the loops open or become singular between samples, starting from the large motion often meets the
        next failure; starting from a small motion seldom does.
        """
        if self.problem.soft is None:
            return point
        for spare in (_STEP, 2.0 * _STEP):
            found = descend(self.problem.narrowed(spare), point.z, iterations=_REGROWTH).point
            if found.value < point.value and self.excess(found.z)[0] <= _KEPT:
                return found
        return point

    def excess(self, z: Float[Array, "v"]) -> tuple[float, str]:
        """Largest excess of a soft limit, also between the samples, in shares, and its name."""
        blocks = self.problem.blocks
        path = self.problem.information.path
        if self.exact is None and not path.mechanism.is_closed:
            return 0.0, ""
        motion = fine_motion(path, blocks.family, blocks.coefficients(z), len(self.problem.t), self.exact)
        if motion is None:
            return np.inf, "loop closure"
        if self.exact is None or not self.exact.sides:
            return 0.0, ""
        found = worst_between(self.exact, motion)
        at = int(np.argmax(found))
        return float(found[at]), self.exact.sides[at].text


def feasible_start(problem: Problem, rng: np.random.Generator) -> Float[Array, "v"]:
    """A feasible random motion, as large as some attempts allow; else the smallest tried."""
    z = problem.blocks.rest
    for _ in range(_DRAWS):
        drawn = problem.blocks.random(rng, rng.uniform(0.5, 0.95))
        for k in range(_DRAWS):
            z = problem.blocks.towards_rest(drawn, _SMALLER**k)
            states = problem.states(z)
            if states is None:
                continue
            if problem.soft is None or not np.any(problem.soft.excess(states) > 0.0):
                return np.asarray(z)
    return np.asarray(z)
