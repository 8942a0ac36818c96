"""One start of an optimisation: a random motion, optimised, perturbed, and made to satisfy every limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.excitation.optimal.problem import Information, Point, Problem
from dynid.excitation.optimal.search import COARSE, descend, hop
from dynid.excitation.optimal.soft import SoftLimits, fine_motion, worst_between

_DRAWS = 12
_SMALLER = 0.75
_REPAIRS = 6
_FIRST, _FIRST_TOLERANCE = 60, 0.3  # steps of a first descent, and its tolerance: starts differ by more
_REGROWTH = 60  # steps of the descent from a motion that was made smaller
_STEP = 0.08  # largest share by which limits are narrowed at a time
_KEPT = 1e-9  # share of a limit: rounding
_LEFT = 0.01  # share of a limit that a repair may leave unused


@dataclass(frozen=True, eq=False)
class Start:
    """Result of one start.

    Attributes:
        number: Of the start.
        z: Variables of the motion.
        value: Of the criterion as reported; NaN if no motion satisfies the limits, or the start was dropped.
        first: Value after the first descent.
        random: Value of the initial random motion.
        iterations: Steps of all descents.
        worst: Largest excess of a limit between samples, in shares; satisfied if at most 0.
        missed: The limit that could not be met; empty: none.
        dropped: Whether only its first descent was run: others were better.
    """

    number: int
    z: tuple[float, ...]
    value: float
    first: float
    random: float
    iterations: int
    worst: float
    missed: str = ""
    dropped: bool = False


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
        starts = [feasible_start(self.problem, rng) for _ in range(draws)]
        sign = -1.0 if self.problem.criterion.larger_is_better else 1.0
        values = [sign * self.value(self.problem.evaluate(z)) for z in starts]
        return starts[int(np.argmin(np.where(np.isnan(values), np.inf, values)))]

    def run(self, number: int, begun: Start | None = None) -> Start:
        """The first descent of the start of that number; with its result, the search that follows.

        The first descent shows which starts are worth a search: its value and that of the whole search differ
        by a few parts in a hundred, values of different starts by much more.
        """
        return self._first(number) if begun is None else self._searched(number, begun)

    def promising(self, done: Mapping[int, Start]) -> list[tuple[int, Start]]:
        """Tasks of the starts to be searched: those with the best first descents, until enough are feasible.

        Args:
            done: First descents by number, and searches by number plus the number of starts.
        """
        count = len(self._streams)
        sign = -1.0 if self.problem.criterion.larger_is_better else 1.0
        values = [sign * done[k].first for k in range(count)]
        order = sorted(range(count), key=lambda k: np.inf if np.isnan(values[k]) else values[k])
        waiting = [k for k in order if count + k not in done]
        feasible = sum(bool(np.isfinite(done[count + k].value)) for k in order if count + k in done)
        return [(count + k, done[k]) for k in waiting[: max(0, searches(count) - feasible)]]

    def results(self, done: Mapping[int, Start]) -> tuple[Start, ...]:
        """Every start with what was reached: by its search, or by its first descent if it was dropped."""
        count = len(self._streams)
        return tuple(replace(done.get(count + k, done[k]), number=k) for k in range(count))

    def _first(self, number: int) -> Start:
        rng = np.random.default_rng(self._streams[number])
        z = feasible_start(self.problem, rng)
        begin = self.problem.evaluate(z)
        descent = descend(self.problem, z, iterations=_FIRST, tolerance=_FIRST_TOLERANCE)
        return Start(
            number,
            tuple(descent.point.z.tolist()),
            np.nan,
            self.value(descent.point),
            self.value(begin),
            descent.iterations,
            np.nan,
            dropped=True,
        )

    def _searched(self, number: int, begun: Start) -> Start:
        rng = np.random.default_rng(self._streams[begun.number].generate_state(8))
        mend = None if self.problem.linear else self._mended
        first = self.problem.evaluate(np.array(begun.z))
        hopped = hop(self.problem, first, rng, hops=self.hops, keep=mend)
        worst, missed = self.excess(hopped.point.z)
        kept = worst <= _KEPT
        return replace(
            begun,
            number=number,
            z=tuple(hopped.point.z.tolist()),
            value=self.value(hopped.point) if kept else np.nan,
            iterations=begun.iterations + hopped.iterations,
            worst=worst,
            missed="" if kept else missed,
            dropped=False,
        )

    def value(self, point: Point) -> float:
        """The criterion as reported; NaN if the motion is not feasible."""
        if point.tape is None:
            return np.nan
        value = self.problem.criterion.value(self.plain.gram_of(point.tape.states)[0])
        if self.problem.criterion.name == "logdet":  # reported in SI, independent of the column scaling
            value += 2.0 * float(np.log(self.plain.scale).sum())
        return value

    def _mended(self, point: Point) -> Point | None:
        """The motion made to satisfy every limit between samples: narrower limits, then a smaller motion.

        Limits are narrowed by what they are exceeded by, and widened again by what is left over: the peak
        between two samples differs from motion to motion.
        """
        over = self._between(point.z)
        best = point if over.max(initial=0.0) <= _KEPT else None
        spare = np.zeros(len(over))
        for _ in range(_REPAIRS):
            if self.problem.soft is None or not np.any((over > _KEPT) | ((spare > 0.0) & (over < -_LEFT))):
                break
            spare = np.maximum(spare + np.clip(1.2 * over, -0.6 * spare, _STEP), 0.0)
            narrowed = descend(self.problem.narrowed(spare), point.z, iterations=40, tolerance=COARSE)
            # Compared with other motions by the limits themselves, not by the narrower ones.
            point = self.problem.evaluate(narrowed.point.z)
            over = self._between(point.z)
            if over.max(initial=0.0) <= _KEPT:
                if best is not None and point.value > best.value - COARSE:
                    break
                best = point
        return self._reduced(point) if best is None else best

    def _reduced(self, point: Point) -> Point | None:
        """The motion made smaller until it satisfies every limit, then optimised again from there."""
        size, worst = 1.0, np.inf
        while worst > _KEPT and size > 0.02:
            size *= 0.93
            point = self.problem.evaluate(self.problem.blocks.towards_rest(point.z, 0.93))
            worst = self.excess(point.z)[0] if point.tape is not None else np.inf
        return self._regrown(point) if worst <= _KEPT else None

    def _regrown(self, point: Point) -> Point:
        """A motion that had to be reduced, optimised again from there with narrower limits.

        If the loops open or become singular between samples, starting from the large motion often meets the
        next failure; starting from a small motion seldom does.
        """
        if self.problem.soft is None:
            return point
        for spare in (_STEP, 2.0 * _STEP):
            narrowed = self.problem.narrowed(np.full(len(self.problem.soft.sides), spare))
            regrown = self.problem.evaluate(descend(narrowed, point.z, iterations=_REGROWTH).point.z)
            if regrown.value < point.value and self.excess(regrown.z)[0] <= _KEPT:
                return regrown
        return point

    def excess(self, z: Float[Array, "v"]) -> tuple[float, str]:
        """Largest excess of a soft limit, also between the samples, in shares, and its name."""
        over = self._between(z)
        if not len(over):
            return 0.0, ""
        if np.isinf(over).all():
            return np.inf, "loop closure"
        at = int(np.argmax(over))
        return float(over[at]), self.exact.sides[at].text if self.exact is not None else ""

    def _between(self, z: Float[Array, "v"]) -> Float[Array, "s"]:
        """Excess of every soft limit, also between the samples, in shares; infinite if the loops open."""
        blocks = self.problem.blocks
        path = self.problem.information.path
        if self.exact is None and not path.mechanism.is_closed:
            return np.zeros(0)
        sides = () if self.exact is None else self.exact.sides
        motion = fine_motion(path, blocks.family, blocks.coefficients(z), len(self.problem.t), self.exact)
        if motion is None:
            return np.full(max(1, len(sides)), np.inf)
        return np.zeros(0) if self.exact is None or not sides else worst_between(self.exact, motion)


def searches(starts: int) -> int:
    """How many starts are searched after their first descents: a quarter, at least two."""
    return min(starts, max(2, starts // 4))


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
