"""From logs to standard parameters: what an identification, a comparison and a cross-validation share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from dynid.base.system import BaseSystem, base_system
from dynid.cases.force_sensor.mounting import settle_sensor
from dynid.cases.free_motion.unit_mass import named
from dynid.common.arrays import Array
from dynid.estimator.estimator import estimator_named, residual_norms
from dynid.estimator.solution import CONVERGED, Solution
from dynid.estimator.wls import group_factors
from dynid.experiment.defaults import with_model_defaults
from dynid.experiment.experiment import Experiment
from dynid.linear import base_of
from dynid.log_pass import LogPass
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.problem import Problem, Progress, build_system, prepare
from dynid.projection.model import model_for
from dynid.projection.projection import System
from dynid.realise import Realised, check_reduction, realise
from dynid.statistics.covariance import blocks_of
from dynid.statistics.essential import (
    EssentialRule,
    Reduced,
    essential_parameters,
    keep_parameters,
    restrict,
)
from dynid.unknowns.friction import Settled, settle_friction

if TYPE_CHECKING:
    from dynid.unknowns.unloaded import Unloaded

# Percent of the mass column that a parameter per unit mass must be able to make before it may be judged
# by its relative deviation: one known to be near zero is no weak one.
_INFLUENCE = 1.0


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution with everything it came from.

    Attributes:
        settled: Friction that had to be settled first; its experiment holds what was found.
        system: All rows over the standard parameters.
        seen: The same over the base parameters that these data see.
        data: What is computed from rows reads these: the rows whose least-squares solution it is.
        linear: Of the estimator, before physical consistency.
        reduced: A fit of fewer parameters, where it was asked for.
        chi: Standard parameters that give the same efforts (others zero or known), shape (p,), SI.
    """

    settled: Settled
    system: System
    seen: BaseSystem
    data: BaseSystem
    linear: Solution
    real: Realised
    reduced: Reduced | None
    chi: Float[Array, "p"]

    @property
    def problem(self) -> Problem:
        """Mechanism, logs and filters."""
        return self.settled.problem

    @property
    def solution(self) -> Solution:
        """Over all parameters seen."""
        return self.real.solution

    @property
    def failure(self) -> str:
        """Why the parameters are not those that were asked for; empty if they are."""
        if self.solution.status == CONVERGED:
            return ""
        name, passes = self.settled.experiment.estimator, self.solution.iterations
        return self.real.failure or f"'{name}' has not converged after {passes} iterations"


def solve_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    experiment: Experiment,
    progress: Progress | None = None,
    plans: Sequence[MotionPlan] | None = None,
    unloaded: Unloaded | None = None,
) -> Solved:
    """Prepare, stream, find base parameters and solve, as the experiment asks.

    Args:
        mechanism: The robot.
        logs: To identify from.
        experiment: Settings.
        progress: Called with a stage and the fraction of it done.
        plans: Filters and masks of each log where they are chosen already; default: from the data.
        unloaded: The robot without load, where its parameters are known from a result.
    """
    experiment = with_model_defaults(experiment, model_for(mechanism, experiment.model, experiment.file))
    estimator = estimator_named(experiment.estimator, experiment.estimator_options)
    check_reduction(experiment, estimator.constraint)
    settled = settle_friction(prepare(mechanism, logs, experiment, plans), experiment)
    settled = settle_sensor(settled, experiment)
    problem = settled.problem
    system = build_system(problem, progress)
    seen = named(base_system(system, base_of(problem, experiment)), problem.reference)
    linear = estimator.linear(seen.system, LogPass(problem, seen))
    carried = None if unloaded is None else unloaded.carried(system, seen.S, linear.weights)
    real = realise(problem, experiment, seen, linear, estimator.constraint, carried)
    equations = real.solution.equations
    data = seen if equations is None else seen.with_equations(equations)
    reduced = _reduced(experiment, data, real.solution, None if problem.reference is None else _INFLUENCE)
    reduced = reduced and _judged_on(seen, reduced)
    chi = _standard_values(data, real.solution, reduced) if real.chi is None else real.chi
    return Solved(settled, system, seen, data, linear, real, reduced, chi)


def _reduced(
    experiment: Experiment, data: BaseSystem, solution: Solution, influence: float | None
) -> Reduced | None:
    if experiment.keep is not None:
        return keep_parameters(data.system, solution, experiment.keep, partial(experiment.where, "keep"))
    if experiment.essential is not None:
        rule = EssentialRule(**experiment.essential, influence_percent=influence)
        settings = experiment.uncertainty
        blocks = blocks_of(data.blocked(), solution, settings, data.system)
        return essential_parameters(data.system, solution, rule, blocks)
    return None


def _judged_on(seen: BaseSystem, reduced: Reduced) -> Reduced:
    """The fit of fewer parameters with residuals of the rows as measured, whatever equations it solves."""
    rows = group_factors(restrict(seen.system, reduced.kept))
    norms = residual_norms(rows, reduced.solution.chi)
    return replace(reduced, solution=replace(reduced.solution, residual_norms=norms))


def _standard_values(data: BaseSystem, solution: Solution, reduced: Reduced | None) -> Float[Array, "p"]:
    chi = np.zeros(len(data.indices))
    if reduced is None:
        chi[:] = solution.chi
    else:
        chi[list(reduced.kept)] = reduced.solution.chi
    return np.asarray(data.S @ chi + data.base.c)
