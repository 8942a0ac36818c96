"""From logs to parameters with their uncertainty: what an identification and a rehearsal share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.base.grouping import Symbols
from dynid.cases.force_sensor.angles import shown_parts
from dynid.cases.free_motion.cable_lengths import refined_lengths
from dynid.cases.free_motion.reference_mass import referred_values
from dynid.cases.free_motion.refinement import refine_free
from dynid.cases.free_motion.unit_mass import shown_values, with_mass
from dynid.cases.wrench_table.uncertainty import with_rounding
from dynid.common.arrays import Array
from dynid.experiment.defaults import with_model_defaults
from dynid.experiment.experiment import Experiment
from dynid.experiment.refine_settings import RefineSettings
from dynid.linear import prior_values
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.problem import Problem, Progress
from dynid.projection.model import model_for
from dynid.refinement.joints import Refinement, refine, refined_parts
from dynid.solve import Solved, solve_logs
from dynid.statistics.assemble import EstimateParts, estimate_parameters
from dynid.unknowns.drive_gains import GainStage, gain_stage
from dynid.unknowns.unloaded import Unloaded, check_loaded, unloaded_model


@dataclass(frozen=True, eq=False)
class Fitted:
    """Parameters, and everything that a report says about them comes from.

    Attributes:
        mechanism: The robot; without its load where that was identified before.
        experiment: Settings, with what had to be settled first.
        logs, held_out: As fitted: gains applied, loads taken off.
        unloaded: The robot without load, where one was identified before.
        stage: Drive gains, where they were found.
        solved: The solution with its system.
        parts: Parameters, uncertainty and fit.
        refined: By output error, where that was asked for.
        chi: Standard parameters that give the same efforts, shape (p,), SI.
    """

    mechanism: Mechanism
    experiment: Experiment
    logs: tuple[Log, ...]
    held_out: tuple[Log, ...]
    unloaded: Unloaded | None
    stage: GainStage
    solved: Solved
    parts: EstimateParts
    refined: Refinement | None
    chi: Float[Array, "p"]

    @property
    def problem(self) -> Problem:
        """Mechanism, logs and filters."""
        return self.solved.problem

    def true_values(self, truth: Mapping[str, float]) -> dict[str, float]:
        """True values of the parameters listed, where all that they hold are known."""
        problem = self.problem
        values = self.solved.data.values_of(referred_values(truth, problem.reference, problem.parameters))
        known = {name: value for name, value in values.items() if value is not None}
        return shown_values(known, problem.reference)


def fit_logs(
    mechanism: Mechanism,
    logs: Sequence[Log],
    held_out: Sequence[Log] = (),
    experiment: Experiment | None = None,
    progress: Progress | None = None,
    *,
    symbols: Callable[[Problem, Experiment], Symbols] | None = None,
) -> Fitted:
    """Find parameters and their uncertainty.

    Args:
        mechanism: The robot.
        logs: To identify from.
        held_out: To be predicted later; gains and loads are applied to them too.
        experiment: Settings; default all chosen from the data.
        progress: Called with a stage and the fraction of it done.
        symbols: Finds names of dimensions for the groupings, which takes a while; None: none are told.
    """
    experiment = experiment or Experiment(robot=mechanism)
    experiment = with_model_defaults(experiment, model_for(mechanism, experiment.model, experiment.file))
    unloaded = None
    if experiment.unloaded is not None:
        check_loaded(logs, experiment)
        unloaded = unloaded_model(mechanism, experiment)
        mechanism, logs, held_out = unloaded.robot, unloaded.logs(logs), unloaded.logs(held_out)
    stage = gain_stage(mechanism, logs, held_out, experiment, progress)
    lengths = refined_lengths(mechanism, stage.logs, experiment, progress)
    logs = lengths.logs
    solved = solve_logs(mechanism, logs, experiment, progress, unloaded=unloaded)
    problem, data, experiment = solved.problem, solved.data, solved.settled.experiment
    parts = estimate_parameters(
        data,
        solved.solution,
        essential=solved.reduced,
        priors=referred_values(prior_values(problem.mechanism), problem.reference, problem.parameters),
        symbols={} if symbols is None else symbols(problem, experiment),
        settings=experiment.uncertainty,
    )
    parts = lengths.widened(with_rounding(parts, solved, experiment), data.S)
    if solved.settled.speeds is not None:
        parts = solved.settled.speeds.widened(parts, problem, data.S, solved.chi)
    parts = with_mass(parts, problem.reference, solved.seen.system)
    parts = shown_parts(problem, parts if unloaded is None else unloaded.widened(parts, solved))
    refined = _refined(solved, experiment, parts)
    chi = solved.chi if refined is None else np.asarray(data.S @ refined.chi + data.base.c)
    parts = stage.joined(parts if refined is None else refined_parts(parts, refined))
    return Fitted(mechanism, experiment, logs, stage.held_out, unloaded, stage, solved, parts, refined, chi)


def _refined(solved: Solved, experiment: Experiment, parts: EstimateParts) -> Refinement | None:
    """The estimate refined by output error, where that is asked for."""
    if not isinstance(experiment.refine, RefineSettings):
        return None
    data = solved.data
    solution = parts.solution
    refined = refine if solved.problem.reference is None else refine_free
    return refined(solved.problem, data.S, data.base.c, solution.chi, solution.covariance, experiment.refine)
