"""One weighted linear fit of a problem: the step that searches, comparisons and cross-validation repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.base.base import BaseSet, tie_regrouped
from dynid.base.structural import tie_groups
from dynid.base.system import BaseSystem, base_system
from dynid.common.arrays import Array, Float
from dynid.estimator.estimator import estimator_named
from dynid.estimator.solution import Solution
from dynid.estimator.wls import group_weights
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table, speed_map
from dynid.problem import Problem, build_system
from dynid.projection.kinematics import kinematics_along
from dynid.statistics.known_errors import KnownErrors

_LOOKED_AT = 20_000  # samples used for the range of speeds of a joint
# Iterations of weights: good fits need ten; poor ones a hundred, for changes that decide nothing.
_COMPARED = 20
_LEAST = 0.01  # of the peak speed: slower is standstill to any encoder


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Weighted least squares over the base parameters of a problem.

    Attributes:
        chi: Standard parameters that give the same rows, shape (p,), SI.
        known_errors: Errors of values taken as known, which are in its residuals; None: they are exact.
    """

    problem: Problem
    experiment: Experiment
    data: BaseSystem
    solution: Solution
    chi: Float[Array, "p"]
    known_errors: KnownErrors | None = None

    @classmethod
    def of(cls, problem: Problem, experiment: Experiment, data: BaseSystem, solution: Solution) -> LinearFit:
        """The fit of a solution, with the standard parameters that give the same rows."""
        return cls(problem, experiment, data, solution, np.asarray(data.S @ solution.chi + data.base.c))

    @property
    def values(self) -> dict[str, float]:
        """Standard name -> value."""
        names = (parameter.name for parameter in self.problem.parameters)
        return dict(zip(names, self.chi.tolist(), strict=True))


def linear_fit(
    problem: Problem,
    experiment: Experiment,
    base: BaseSet | None = None,
    keep: bool = False,
    comparing: bool = False,
) -> LinearFit:
    """Stream the logs of a problem and solve by `wls`, for any later estimator.

    Args:
        problem: Mechanism, logs and filters.
        experiment: Its ties count.
        base: Structural base parameters where they are known already.
        keep: The rows are needed again, see `stream`.
        comparing: The fit is compared with another one only: its weights need not converge where it is poor.
    """
    system = build_system(problem, keep=keep)
    data = base_system(system, base_of(problem, experiment) if base is None else base)
    wls = estimator_named("wls")
    if comparing:
        wls = replace(wls, weighting=partial(group_weights, max_iterations=_COMPARED))
    return LinearFit.of(problem, experiment, data, wls(data.system))


def base_of(problem: Problem, experiment: Experiment) -> BaseSet:
    """Structural base parameters, with the requested ties."""
    base, after = problem.base(experiment.tie_names()), experiment.tie_names("regrouped")
    return tie_regrouped(base, tie_groups(problem.mechanism, problem.parameters, after)) if after else base


def with_mechanism(problem: Problem, mechanism: Mechanism, values: Mapping[str, float]) -> Problem:
    """The same logs and filters with other drive terms or extra columns.

    Args:
        problem: Whose directions and filters stay.
        mechanism: The same bodies and joints.
        values: Standard parameters by name, used to predict loads; those without a value count as zero.
    """
    parameters = parameter_table(mechanism)
    load_parameters = vector(parameters, values)
    other = replace(problem, mechanism=mechanism, parameters=parameters, load_parameters=load_parameters)
    return replace(other, sources=tuple(other.rows_along(source.motion) for source in problem.sources))


def vector(parameters: Sequence[Parameter], values: Mapping[str, float]) -> Float[Array, "p"]:
    """Values in the order of a table, zero where there is none."""
    return np.array([values.get(parameter.name, 0.0) for parameter in parameters])


def speed_bounds(problem: Problem, owners: Sequence[str]) -> list[tuple[float, float]]:
    """Slowest and fastest speed of each owner that its rows show, in [rad/s] or [m/s]."""
    S, peaks = speed_map(problem.mechanism, owners), np.zeros(len(owners))
    slowest = np.zeros(len(owners))
    for source, plan in zip(problem.sources, problem.plans, strict=True):
        kinematics = kinematics_along(problem.mechanism, source.motion)
        for start, stop in source.pieces():
            stop = min(stop, start + _LOOKED_AT)
            states = kinematics.states(start, source.motion.states(start, stop))
            speeds = np.abs(states.dq @ S.T)
            peaks = np.maximum(peaks, np.quantile(speeds, 0.995, axis=0))
        masked = dict(zip(source.motion.log.position_names, plan.reversal_speed, strict=True))
        slowest = np.maximum(slowest, [masked.get(owner, 0.0) for owner in owners])
    least = np.maximum(slowest, _LEAST * peaks)
    tiny = np.finfo(float).tiny  # an owner that never moves
    return [(max(a, tiny), max(b, 2.0 * a, 2.0 * tiny)) for a, b in zip(least, peaks, strict=True)]
