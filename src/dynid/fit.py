"""Fit: from a task to parameters with their uncertainty; what identification, comparison and folds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dynid.base.grouping import Symbols
from dynid.base.system import BaseSystem, base_system
from dynid.case import with_defaults
from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice
from dynid.estimator.estimator import estimator_named
from dynid.estimator.solution import CONVERGED, Solution
from dynid.estimator.wls import group_factors, residual_norms
from dynid.experiment.experiment import Experiment
from dynid.linear_fit import LinearFit, base_of
from dynid.log_pass import LogPass
from dynid.mechanism.parameters import prior_values
from dynid.problem import Problem, build_system
from dynid.projection.projection import System
from dynid.realise import check_reduction, realise
from dynid.statistics.assemble import EstimateParts, estimate_parameters
from dynid.statistics.covariance import blocks_of
from dynid.statistics.essential import (
    Reduced,
    essential_parameters,
    keep_parameters,
    restrict,
)
from dynid.statistics.estimate_parts import Description
from dynid.statistics.known_errors import KnownErrors
from dynid.statistics.standard import StandardSet
from dynid.unknown import Settled, Task, settle

if TYPE_CHECKING:
    from dynid.refinement.joints import Refinement

_Part = TypeVar("_Part")


@dataclass(frozen=True, eq=False)
class Fit:
    """A solution with everything it came from.

    Attributes:
        task: Robot, logs and settings with every unknown settled.
        settled: What was found for each unknown.
        system: All rows over the standard parameters.
        measured: The same over the base parameters that these data see.
        data: The rows whose least-squares solution `solution` is; covariance and residuals are theirs.
        linear: Of the estimator, before physical consistency.
        solution: Over all parameters seen: the linear one, or the consistent one of the estimator.
        standard: The full set of consistent bodies, if requested.
        physics: What was noticed about physical consistency.
        reduced: A fit of fewer parameters, if requested.
        linear_chi: Standard parameters that give the same efforts (others zero or known), shape (p,), SI.
        symbols: Finds names of dimensions for the groupings, which takes a while; None: numbers only.
    """

    task: Task
    settled: tuple[Settled, ...]
    system: System
    measured: BaseSystem
    data: BaseSystem
    linear: Solution
    solution: Solution
    standard: StandardSet | None
    physics: tuple[Notice, ...]
    reduced: Reduced | None
    linear_chi: Float[Array, "p"]
    symbols: Callable[[Problem, Experiment], Symbols] | None = None

    @property
    def problem(self) -> Problem:
        """Mechanism, logs and filters."""
        return self.task.problem

    @property
    def experiment(self) -> Experiment:
        """Settings, with what had to be settled first."""
        return self.task.experiment

    @property
    def failure(self) -> str:
        """Why there is no result, if the estimator did not converge; empty if it did."""
        return self.not_converged and (self.no_consistent_set or self.not_converged)

    @property
    def not_converged(self) -> str:
        """That the iterations of the estimator did not end; empty if they did."""
        if self.solution.status == CONVERGED:
            return ""
        name, passes = self.experiment.estimator, self.solution.iterations
        return f"'{name}' has not converged after {passes} iterations"

    @property
    def no_consistent_set(self) -> str:
        """Why a requested set of consistent bodies does not exist; empty if none is missing."""
        return "" if self.standard is None else self.standard.failure

    @property
    def choices(self) -> dict[str, str]:
        """What was found for the unknowns, in words."""
        return {name: text for unknown in self.settled for name, text in unknown.choices.items()}

    @cached_property
    def description(self) -> Description | None:
        """What was found about the description of the robot; None where it is taken as exact."""
        found = [unknown.description(self) for unknown in self.settled if unknown.description is not None]
        return _only(found, "description")

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was noticed while unknowns were settled."""
        return tuple(notice for unknown in self.settled for notice in unknown.notices)

    @cached_property
    def linear_parts(self) -> EstimateParts:
        """Parameters, uncertainty and fit, with what every unknown costs; before any refinement."""
        problem, case = self.problem, self.problem.case
        counting = [unknown.counted_errors for unknown in self.settled if unknown.counted_errors is not None]
        parts = estimate_parameters(
            self.data,
            self.solution,
            essential=self.reduced,
            priors=case.values(prior_values(problem.mechanism), problem.parameters),
            symbols={} if self.symbols is None else self.symbols(problem, self.experiment),
            settings=self.experiment.uncertainty,
            counted=_only([errors(self) for errors in counting], "counted_errors"),
        )
        for quantity in self.settled:
            parts = parts if quantity.widen is None else quantity.widen(parts, self)
        return case.finished(parts, self)

    @cached_property
    def refined(self) -> Refinement | None:
        """The estimate refined by output error, if requested."""
        settings, data = self.experiment.refine, self.data
        if settings is None:
            return None
        from dynid.refinement.joints import refine  # only few results are refined

        used, simulated = self.linear_parts.solution, self.problem.case.simulated
        refined = refine if simulated is None else simulated.refine
        return refined(self.problem, data.S, data.base.c, used.chi, used.covariance, settings)

    @cached_property
    def parts(self) -> EstimateParts:
        """Parameters, uncertainty and fit of the result."""
        parts = self.linear_parts
        if self.refined is not None:
            from dynid.refinement.joints import refined_parts

            parts = refined_parts(parts, self.refined)
        for unknown in self.settled:
            parts = parts if unknown.add_values is None else unknown.add_values(parts)
        return parts

    @property
    def as_linear(self) -> LinearFit:
        """Rows, settings and parameters of the result, as tests of residuals read those of any fit."""
        errors = _known_errors(self.settled)
        return LinearFit(self.problem, self.experiment, self.data, self.solution, self.chi, errors)

    @cached_property
    def chi(self) -> Float[Array, "p"]:
        """Standard parameters of the result, shape (p,), SI."""
        if self.refined is None:
            return self.linear_chi
        return np.asarray(self.data.S @ self.refined.chi + self.data.base.c)

    def true_values(self, truth: Mapping[str, float]) -> dict[str, float]:
        """True values of the parameters listed, where all that they hold are known."""
        case = self.problem.case
        values = self.data.values_of(case.values(truth, self.problem.parameters))
        return case.shown_values({name: value for name, value in values.items() if value is not None})


def _known_errors(settled: Sequence[Settled]) -> KnownErrors | None:
    found = [unknown.known_errors for unknown in settled if unknown.known_errors is not None]
    return _only(found, "known_errors")


def _only(found: Sequence[_Part], part: str) -> _Part | None:
    """The entry of the one unknown that has this part."""
    if len(found) > 1:
        raise TypeError(f"{len(found)} unknowns have the part '{part}', which only one of them may have")
    return found[0] if found else None


def fit_task(
    task: Task,
    *,
    refit: bool = False,
    symbols: Callable[[Problem, Experiment], Symbols] | None = None,
) -> Fit:
    """Settle unknowns, stream the logs, find base parameters and solve, as the experiment asks.

    Args:
        task: Robot, logs and settings.
        refit: Robot and logs have their unknowns already, as in a fold or a comparison.
        symbols: Finds names of dimensions for the groupings; None: numbers only.
    """
    task = replace(task, experiment=with_defaults(task.mechanism, task.experiment))
    estimator = estimator_named(task.experiment.estimator, task.experiment.estimator_options)
    check_reduction(task.experiment, estimator.constraint)
    task, settled = settle(task, refit=refit)
    problem, experiment = task.problem, task.experiment
    system = build_system(problem, task.progress, keep=True)
    measured = problem.case.named(base_system(system, base_of(problem, experiment)))
    linear = estimator.linear(measured.system, LogPass(problem, measured) if estimator.rework else None)
    errors = _known_errors(settled)
    root = None if errors is None else errors.in_estimate(system, measured.S, linear.weights)
    solution, standard, physics = realise(problem, experiment, measured, linear, estimator.constraint, root)
    equations = solution.equations
    data = measured if equations is None else measured.with_equations(equations)
    reduced = _reduced(experiment, data, solution, problem.case.influence_percent)
    reduced = reduced and _with_measured_residuals(measured, reduced)
    if standard is not None and standard.is_estimate:
        chi = standard.nearest.chi
    else:
        chi = _standard_values(data, solution, reduced)
    rows = (system, measured, data)
    return Fit(task, settled, *rows, linear, solution, standard, physics, reduced, chi, symbols)


def _reduced(
    experiment: Experiment, data: BaseSystem, solution: Solution, influence: float | None
) -> Reduced | None:
    if experiment.keep is not None:
        return keep_parameters(data.system, solution, experiment.keep, partial(experiment.where, "keep"))
    if experiment.essential is not None:
        rule = experiment.essential.changed(influence_percent=influence)
        settings = experiment.uncertainty
        blocks = blocks_of(data.blocked(), solution, settings, data.system)
        return essential_parameters(data.system, solution, rule, blocks)
    return None


def _with_measured_residuals(measured: BaseSystem, reduced: Reduced) -> Reduced:
    """The fit of fewer parameters, with residuals of the measured rows, not of the rewritten equations."""
    rows = group_factors(restrict(measured.system, reduced.kept))
    norms = residual_norms(rows, reduced.solution.chi)
    return replace(reduced, solution=replace(reduced.solution, residual_norms=norms))


def _standard_values(data: BaseSystem, solution: Solution, reduced: Reduced | None) -> Float[Array, "p"]:
    chi = np.zeros(len(data.indices))
    if reduced is None:
        chi[:] = solution.chi
    else:
        chi[list(reduced.kept)] = reduced.solution.chi
    return np.asarray(data.S @ chi + data.base.c)
