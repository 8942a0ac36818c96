"""Fits on other rows, on which doubts of the residual tests are asked again.

Joint zeros and dimensions: with the validation logs, which have the fault too. First moments compensate it:
what is left is small, while these parameters are wrong by many sigma.

Delays: without the rows around reversals. A joint that sticks at its reversals turns its effort before it
moves, its acceleration jumps, which the filter smears, and its friction grows over a distance s of presliding
before it slides: all look like a delay. A real one is in all rows. After s with acceleration a the speed is
sqrt(2 a s), for a milliradian 4 to 20 % of the peak speed of most motions.

Joint zeros and dimensions of closed robots: without poses near singular ones, if nothing was found with them.
There a description that is off by 10 mm or 10 mrad has other poses than a derivative says, or none.

Gains: with the efforts corrected. Parameters absorb a part of a gain, so that its first size is too small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.checks.fault_columns import Suspect
from dynid.common.errors import InputError, NoResultError
from dynid.linear_fit import LinearFit, linear_fit
from dynid.mechanism.description import ZERO, zero_names
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem
from dynid.projection.kinematics import ClosedKinematics, kinematics_along

# Periods of the cutoff around a reversal: so far the filter smears the jump of an acceleration.
_AROUND = 0.75
_SLOW = 5.0  # times the speed below which rows near reversals are masked: about a quarter of the peak speed
_ROUNDS = 3
_DOUBT = 0.01  # m or rad: errors of a description that are to be found
_LARGEST = 0.5  # gain beyond which an effort is not that of its motor


def with_held_out(fit: LinearFit, held_out: Sequence[Log]) -> LinearFit | None:
    """The fit to the validation logs too; None where the experiment has none."""
    logs, plans = fit.problem.logs, fit.problem.plans
    return _again(fit, fit.problem, (*logs, *held_out), [*plans, *plans[:1] * len(held_out)])


def away_from_reversals(fit: LinearFit) -> LinearFit | None:
    """The fit without rows around the reversals of their joints; None where the experiment has none."""
    return _again(fit, fit.problem, fit.problem.logs, list(map(_wider, fit.problem.plans)))


def away_from_singular(fit: LinearFit) -> LinearFit | None:
    """The fit to poses that change linearly with the description; None where all do, or hardly any."""
    problem, robot = fit.problem, fit.problem.mechanism
    doubt = {f"{ZERO}{name}": _DOUBT for name in zero_names(robot)}
    along = [kinematics_along(robot, source.motion) for source in problem.sources] if doubt else []
    if not any(isinstance(entry, ClosedKinematics) and entry.nears_singular(_DOUBT) for entry in along):
        return None
    doubted = replace(problem, mechanism=replace(robot, uncertain={**robot.uncertain, **doubt}))
    again = _again(fit, doubted, problem.logs, problem.plans)
    if again is None:
        return None
    rows, left = (sum(group.n_rows for group in part.data.source.groups) for part in (fit, again))
    return again if 0.5 * rows < left < rows else None


def settled_gains(
    fit: LinearFit,
    flagged: Sequence[Suspect],
    judge: Callable[[LinearFit], Mapping[tuple[int, ...], Suspect]],
) -> tuple[Suspect, ...]:
    """The flagged suspects, gains of single efforts with the size at which the corrected efforts have none.

    Args:
        judge: Results of all suspects of a fit, by their columns.
    """
    logs, efforts = fit.problem.logs, fit.problem.logs[0].effort_names
    gains = {gain.columns: gain for gain in flagged if gain.test == "gain" and gain.about in efforts}
    if any(gain.measured or abs(float(gain.size[0])) > _LARGEST for gain in gains.values()):
        return tuple(flagged)
    factors = {columns: 1.0 + float(gain.size[0]) for columns, gain in gains.items()}
    for _ in range(_ROUNDS if gains else 0):
        scale = np.ones(len(efforts))
        for columns, factor in factors.items():
            scale[efforts.index(gains[columns].about)] = factor
        scaled = [log if log.tau is None else replace(log, tau=log.tau / scale) for log in logs]
        again = _again(fit, fit.problem, scaled, fit.problem.plans)
        left = judge(again) if again is not None else {}
        if not set(factors) <= set(left):
            return tuple(flagged)
        for columns, factor in factors.items():
            factors[columns] = factor = factor * (1.0 + float(left[columns].size[0]))
            gains[columns] = replace(
                gains[columns], size=np.array([factor - 1.0]), sigma=factor * left[columns].sigma
            )
        if all(abs(float(left[columns].size[0])) < 0.1 * left[columns].half for columns in factors):
            break
    doubtful = _doubtful(gains)
    return tuple(
        gains.get(suspect.columns, suspect) for suspect in flagged if suspect.columns not in doubtful
    )


def _doubtful(gains: Mapping[tuple[int, ...], Suspect]) -> set[tuple[int, ...]]:
    """Gains that may be 1 beside others that cannot: what they explained alone, the others explain."""
    unsure = {columns for columns, one in gains.items() if abs(float(one.size[0])) <= one.half}
    return unsure if len(unsure) < len(gains) else set()


def _wider(plan: MotionPlan) -> MotionPlan:
    around = 0 if plan.cutoff is None else round(_AROUND / (plan.cutoff * plan.dt))
    slow = tuple(_SLOW * speed for speed in plan.reversal_speed)
    return replace(plan, reversal_around=max(plan.reversal_around, around), reversal_speed=slow)


def _again(
    fit: LinearFit, problem: Problem, logs: Sequence[Log], plans: Sequence[MotionPlan]
) -> LinearFit | None:
    if not problem.case.is_series or fit.experiment.gains is not None:
        return None
    try:
        other = problem.on(tuple(logs), plans, fit.experiment)
        if problem.load_parameters is not None:
            other = other.with_load_parameters(problem.load_parameters)
        return replace(linear_fit(other, fit.experiment), known_errors=fit.known_errors)
    except (InputError, NoResultError):  # an unusable validation log is reported when it is predicted
        return None
