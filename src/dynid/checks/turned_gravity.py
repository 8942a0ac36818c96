"""Wrong gravity in the description: its true direction, estimated around the linear fit.

    g <- g + s,    s the sizes of the test `gravity` at g, from the linear step and from gravity upside down

If the base is inclined or mounted on the ceiling, first moments, joint zeros and gains become biased and
compensate it. The other tests are repeated with the estimated gravity, so that they do not report its
effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.checks.pose_columns import LARGER, TILTED, clock_notice, degrees_between, gravity_axes
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, eased, notice
from dynid.conditioning.stream import keep_sum
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import LinearFit, linear_fit
from dynid.problem import Problem
from dynid.statistics.estimate import ResidualTest

if TYPE_CHECKING:
    from dynid.checks.fault_columns import Suspect

_ROUNDS = 3
_ROUNDING = 1e-9  # [m/s^2]
_STEP = 0.01  # [m/s^2]: 0.06 degrees
_UPSIDE_DOWN = 120.0  # degrees
# Part of the residual that may remain if gravity is the cause: other faults resemble it to first order. Its
# size is known, so that another size needs more evidence than another direction.
_CONFIRMED, _SCALED = 0.85, 0.5


@dataclass(frozen=True, eq=False)
class TurnedGravity:
    """What was found.

    Attributes:
        g: Gravity in the base frame, shape (3,), in [m/s^2].
        fit: The linear fit with it.
        left: Rms of the residuals, relative to that with the gravity of the description.
        others: Suspects that are flagged with this gravity too.
    """

    g: Float[Array, "3"]
    fit: LinearFit
    left: float
    others: tuple[Suspect, ...]

    def confirmed(self, test: ResidualTest) -> ResidualTest:
        """The linear test of gravity, with what the fit at this gravity explains."""
        vector = tuple(float(x) for x in self.g + 0.0)
        shown = ", ".join(f"{x:.3g}" for x in vector)
        note = f"gravity [{shown}]" + (f"; {test.note}" if test.note else "")
        return replace(test, explains=max(1.0 - self.left**2, 0.0), note=note, vector=vector)

    def notice(self, described: Float[Array, "3"], alike: str, sensor: bool) -> Notice:
        """The warning.

        Args:
            described: Gravity of the description, shape (3,), in [m/s^2].
            alike: What cannot be separated from it.
            sensor: Whether a force sensor measured it, which can also estimate gravity.
        """
        size, before = float(np.linalg.norm(self.g)), float(np.linalg.norm(described))
        vector = ", ".join(f"{x:.3g}" for x in self.g)
        degrees = 0.0
        clock = None if sensor else clock_notice(described, self.g)
        if clock is not None:
            return clock
        if before == 0.0:
            text = f"the efforts contain gravity, but the description has none: with ({vector}) m/s^2"
        else:
            degrees = degrees_between(described, self.g)
            turned = f"rotated by {degrees:.3g} degrees"
            turned += ", upside down" if degrees > _UPSIDE_DOWN else ""
            scaled = f", and {size / before:.3g} times as large (or the clock of the log is wrong)"
            turned += scaled if abs(size / before - 1.0) > LARGER else ""
            text = f"gravity seems to be {turned}: with ({vector}) m/s^2 in the base frame"
        message = notice(
            "gravity-off",
            found=text,
            vector=vector,
            percent=100 * self.left,
            alike=alike,
            sensor="; or estimate it: force_sensor: {gravity: estimate}" if sensor else "",
        )
        return message if self.left < _SCALED and (before == 0.0 or degrees > TILTED) else eased(message)


def find_gravity(
    described: LinearFit,
    suspect: Suspect,
    judge: Callable[[LinearFit], tuple[list[Suspect], list[Suspect]]],
) -> TurnedGravity | None:
    """The gravity with the smallest residuals; None if none is much better than that of the description.

    Args:
        described: With the gravity of the description.
        suspect: `gravity`, tested with the description's.
        judge: Flagged suspects of a fit, and first results of all.
    """
    problem, before = described.problem, _squares(described)
    g = np.asarray(problem.mechanism.gravity, float)
    starts = [_moved(g, suspect), -g] if np.any(g) else [_moved(g, suspect)]
    fits = [(start, fit_under(described, start)) for start in starts]
    g, fit = min(fits, key=lambda item: _left(item[1], before))
    left = _left(fit, before)
    flagged, every = judge(fit)
    for _ in range(_ROUNDS):
        step = next((result for result in every if result.test == "gravity"), None)
        if step is None or float(np.linalg.norm(step.size)) < _STEP:
            break
        further = _moved(g, step)
        again = fit_under(described, further)
        if _left(again, before) >= left:
            break
        g, fit, left = further, again, _left(again, before)
        flagged, every = judge(fit)
    others = tuple(result for result in flagged if result.test != "gravity")
    size, before_size = float(np.linalg.norm(g)), float(np.linalg.norm(problem.mechanism.gravity))
    heavier = before_size > 0.0 and abs(size / before_size - 1.0) > LARGER
    return TurnedGravity(g, fit, left, others) if left < (_SCALED if heavier else _CONFIRMED) else None


def _moved(g: Float[Array, "3"], suspect: Suspect) -> Float[Array, "3"]:
    """Gravity after a step; of unchanged size where only its direction is identifiable."""
    axes = np.array(gravity_axes(g))
    moved = g + suspect.size @ axes[list(suspect.places)]
    size = float(np.linalg.norm(g))
    return np.asarray(moved if 2 in suspect.places or size == 0.0 else moved * size / np.linalg.norm(moved))


def fit_under(fit: LinearFit, g: Float[Array, "3"]) -> LinearFit:
    """The linear fit of the same logs with another gravity in the base frame, shape (3,), in [m/s^2]."""
    turned = linear_fit(_under(fit.problem, g), fit.experiment)
    return replace(turned, known_errors=fit.known_errors)


def _under(problem: Problem, g: Float[Array, "3"]) -> Problem:
    mechanism = replace(problem.mechanism, gravity=g)
    sources = tuple(source.under(mechanism) for source in problem.sources)
    return replace(problem, mechanism=mechanism, sources=sources)


def fits_under(problem: Problem, experiment: Experiment) -> Callable[[Float[Array, "3"]], LinearFit]:
    """A function that gives the linear fit of a problem with another gravity, shape (3,), in [m/s^2].

    Rows are affine in gravity: those of g = sum of w_i g_i with sum of w_i = 1 are the sum of w_i times those
    of g_i. So the logs are streamed for at most three gravities beside that of the problem.

    Args:
        problem: Mechanism and logs, whose rows are kept.
        experiment: The settings.
    """
    known = [problem]

    def fit(g: Float[Array, "3"]) -> LinearFit:
        turned = _under(problem, g)
        new = not _summed(turned, known)
        if new:
            known.append(turned)
        return linear_fit(turned, experiment, keep=new, comparing=True)

    return fit


def _summed(turned: Problem, known: Sequence[Problem]) -> bool:
    """Whether the rows of all logs follow from those of other gravities, which are kept."""
    points = np.array([(*problem.mechanism.gravity, 1.0) for problem in (*known, turned)]).T
    weights = np.linalg.lstsq(points[:, :-1], points[:, -1], rcond=None)[0]
    if not np.allclose(points[:, :-1] @ weights, points[:, -1], atol=_ROUNDING):
        return False
    others = list(zip(*(problem.sources for problem in known), strict=True))
    pairs = zip(turned.sources, turned.filters, others, strict=True)
    return all(
        keep_sum(source, rows, list(zip(weights.tolist(), of, strict=True))) for source, rows, of in pairs
    )


def _squares(fit: LinearFit) -> dict[tuple[str, str], float]:
    """Sum of the squared residuals of each effort in each log."""
    return {(group.log, group.name): group.squares(fit.chi)[0] for group in fit.data.source.groups}


def _left(fit: LinearFit, before: dict[tuple[str, str], float]) -> float:
    """Rms of the residuals in parts of what they were, every effort alike."""
    now = _squares(fit)
    return float(np.sqrt(np.mean([now[key] / max(earlier, 1e-300) for key, earlier in before.items()])))
