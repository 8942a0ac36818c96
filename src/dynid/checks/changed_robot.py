"""The equations of a problem for a robot with other values of its description: same logs, filters, masks.

Estimates at two values of a quantity x give the total derivative of the estimate,

    d chi / dx  =  (chi(x + h) - chi(x - h)) / 2h

with everything that depends on x: W, Y, weights, and what an estimator does with its rows; only the noise
that an estimator draws for its columns stays that of x. For least squares it is
-(W^T W)^-1 (W^T D - dW^T rho), D = d(W chi - Y)/dx at fixed chi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.estimator.estimator import estimator_named, solve_weighted
from dynid.fit import Fit
from dynid.kinematics.assembly import assembly_of
from dynid.log_pass import KeptNoise, LogPass, NearPass
from dynid.mechanism.description import at_values, current
from dynid.problem import Problem, build_system, prepare
from dynid.statistics.essential import restrict
from dynid.unknown import Task

STEP = 1e-5  # m or rad, of rows: they are smooth over far more, and rounding stays at 1e-9 of them
# Of estimates: their weights are iterated to a part in a thousand, which a shorter step would multiply.
_ESTIMATE_STEP = 5e-4


def changed_problem(task: Task, problem: Problem, values: Mapping[str, float]) -> Problem:
    """The problem of the robot at other values; refused where its loops do not close there.

    Args:
        task: Robot, logs and settings at the values at hand.
        problem: Its problem, with the plans and loads that stay.
        values: Quantity -> value, see `dynid.mechanism.description`.
    """
    robot = at_values(task.mechanism, values)
    if robot.is_closed:
        assembly_of(robot, near=task.mechanism)
    other = prepare(robot, task.logs, task.experiment, problem.plans, like=problem)
    if problem.load_parameters is None:
        return other
    other = other.with_load_parameters(problem.load_parameters)
    if other.directions.moving is None:
        return other
    # Directions that a motion chooses itself must be those of the problem, not another basis.
    pairs = zip(other.sources, problem.sources, strict=True)
    return replace(other, sources=tuple(other.rows_along(source.motion, like) for source, like in pairs))


def estimate_slopes(
    fit: Fit, names: Sequence[str], step: float = _ESTIMATE_STEP
) -> tuple[Float[Array, "v k"], tuple[str, ...]]:
    """Total derivative of every parameter listed with respect to quantities of the description.

    Args:
        fit: The estimate.
        names: Quantities.
        step: Half the distance between two values of each, in [m] or [rad].

    Returns:
        Slopes, shape (v, k), SI, zero for parameters that were removed; and quantities at whose changed
        values the robot cannot be built or does not close, whose slopes are zero.
    """
    slopes = np.zeros((len(fit.data.system.parameters), len(names)))
    noise = KeptNoise(LogPass(fit.problem, fit.seen))
    failed = []
    for k, name in enumerate(names):
        middle = current(fit.task.mechanism, name)
        try:
            high, low = (_estimate_at(fit, {name: middle + sign * step}, noise) for sign in (1.0, -1.0))
        except InputError:
            failed.append(name)
            continue
        slopes[:, k] = (high - low) / (2.0 * step)
    return slopes, tuple(failed)


def _estimate_at(fit: Fit, values: Mapping[str, float], noise: KeptNoise) -> Float[Array, "v"]:
    """The estimate of the parameters listed for the robot at other values, by the estimator of the fit."""
    problem = changed_problem(fit.task, fit.problem, values)
    seen = fit.seen.of(build_system(problem))
    experiment = fit.experiment
    estimator = estimator_named(experiment.estimator, experiment.estimator_options)
    linear = estimator.linear(seen.system, NearPass(problem, seen, noise) if estimator.rework else None)
    if fit.reduced is None:
        return linear.chi
    equations = seen if linear.equations is None else seen.with_equations(linear.equations)
    kept = list(fit.reduced.kept)
    chi = np.zeros(len(linear.chi))
    chi[kept] = solve_weighted(restrict(equations.system, kept), linear.weights).chi
    return chi
