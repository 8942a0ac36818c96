"""Free motion on locked cables (model `internal`): no effort acts, parameters are per unit mass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dynid.base.system import BaseSystem
from dynid.case import Case, LogInput, read_source, row_filters, whole_kernels
from dynid.cases.free_motion.cable_lengths import CABLE_LENGTHS
from dynid.cases.free_motion.checks import energy_grows
from dynid.cases.free_motion.locked_lengths import length_changes
from dynid.cases.free_motion.log import free_motion_log, measuring, measuring_robot, reading_robot
from dynid.cases.free_motion.reference_mass import FreeScale, free_scale, referred, referred_values
from dynid.cases.free_motion.refinement import refine_free
from dynid.cases.free_motion.swings import drawn_swings
from dynid.cases.free_motion.unit_mass import named, predicting, shown_values, with_mass
from dynid.cases.free_motion.validation import simulated_squares, with_simulations
from dynid.checks.check import Check
from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.conditioning.lowpass import RowFilter
from dynid.experiment.estimator_choice import free_motion_defaults, noisy_column_filter
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.log import Log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.motion.settings import FilterSettings
from dynid.problem import Problem
from dynid.projection.internal import NormalisedRows, Reference, is_homogeneous, per_mass_rows
from dynid.projection.model import Model, RowSource
from dynid.projection.projection import Directions
from dynid.refinement.joints import Refinement
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate import Estimate, RunFit
from dynid.unknown import Unknown

# Percent of the mass column that a parameter per unit mass must be able to make before it may be judged
# by its relative deviation: one known to be near zero is no weak one.
_INFLUENCE = 1.0


@dataclass(frozen=True, eq=False)
class _OnCables(Case):
    """Robots on cables, whether or not efforts of joint motors act too."""

    locks_cables: ClassVar[bool] = True

    def chooses(self, experiment: Experiment) -> bool:
        """Free motion has no efforts to hold out."""
        return False

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Locked lengths, with `lengths: refine`."""
        return (CABLE_LENGTHS,)

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """`gtls` with a bootstrap: the noise is in the columns."""
        return free_motion_defaults(experiment)

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """The robot that measures what the logs hold."""
        return measuring_robot(robot, logs, experiment.internal)

    def free_scale(
        self, robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]]
    ) -> FreeScale:
        """Parameters per unit mass."""
        return free_scale(robot, parameters, loads)

    def read(self, source: LogInput | Log, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A log with the coordinates that the experiment wants of it."""
        if not mechanism.cables:
            raise InputError(
                f"model 'internal' is for robots on locked cables, but '{mechanism.name}' has no cable",
                file=experiment.file or mechanism.file,
                place="model",
                remedy="choose model: inverse, power or energy, or describe `cables:`",
            )
        settings = experiment.internal
        if isinstance(source, Log):
            return free_motion_log(source, mechanism, settings)
        choose = partial(reading_robot, mechanism, settings)
        read = read_source(source, mechanism, experiment, need_effort=False, choose=choose)
        return free_motion_log(read, mechanism, settings)

    def plans(self, logs: Sequence[Log], robot: Mechanism, experiment: Experiment) -> tuple[MotionPlan, ...]:
        """Coordinates as logged; rows thinned."""
        return free_motion_plans(logs, robot, noisy_column_filter(logs, experiment.filter), experiment)

    @property
    def plan_kind(self) -> str:
        """Other filters than those of efforts."""
        return "free motion"

    def predicts_otherwise(self, problem: Problem) -> bool:
        """Efforts are not predicted."""
        return False

    def held_out_plans(
        self, problem: Problem, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[MotionPlan, ...]:
        """The filters of a fit; logs with the same coordinates are planned together."""
        return free_motion_plans(
            logs, problem.mechanism, self.filter_of(problem, logs, experiment), experiment
        )

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Whole kernels only: all columns are noisy."""
        return whole_kernels(row_filters(plans, experiment))

    def contradictions(
        self, problem: Problem, i: int, parts: Sequence[tuple[int, int]]
    ) -> list[Float[Array, "n m"]] | None:
        """What locked lengths change within a run, in [m], where the pose is used as measured."""
        missed = super().contradictions(problem, i, parts)
        return length_changes(problem, i, parts) if missed is None else missed

    @property
    def repeats(self) -> bool:
        """Free motion is what its noise makes of it."""
        return False

    @property
    def has_scale(self) -> bool:
        """Parameters of free motion have none."""
        return False

    def ready(self, problem: Problem, logs: Sequence[Log]) -> Problem:
        """Without any effort, one mass takes the measured side."""
        if not is_homogeneous(problem.directions):
            return problem
        unit = referred(problem.mechanism, problem.parameters, [log.payloads for log in logs])
        problem = replace(problem, mechanism=unit.robot, notices=unit.notices)
        if unit.reference is None:
            return problem
        rows = per_mass_rows(problem.directions, unit.reference)
        return replace(problem, directions=rows, case=FreeMotion(unit.reference))


@dataclass(frozen=True, eq=False)
class FreeMotion(_OnCables):
    """Rows on which no effort acts.

    Attributes:
        reference: The mass on the measured side.
    """

    reference: Reference

    def log_notices(
        self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[Notice, ...]:
        """No effort is needed."""
        return ()

    def rows(self, problem: Problem, motion: Motion, like: RowSource | None = None) -> RowSource:
        """The mass column is the measured side; rows along a like motion keep its directions."""
        plain = like.source if isinstance(like, NormalisedRows) else like
        return NormalisedRows(super().rows(problem, motion, plain), self.reference)

    def without_effort(self, directions: Directions) -> Bool[Array, "k"]:
        """The reference mass is on the measured side of every row."""
        return np.zeros(len(directions.names), dtype=bool)

    def effort_rows(self, problem: Problem, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """No effort was logged: the rows themselves."""
        return problem.with_load_parameters(chi).sources

    def named(self, data: BaseSystem) -> BaseSystem:
        """Names per unit mass."""
        return named(data, self.reference)

    def values(self, values: Mapping[str, float], parameters: Sequence[Parameter]) -> Mapping[str, float]:
        """Per unit of the reference mass."""
        return referred_values(values, self.reference, parameters)

    def shown_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """The mass itself for 1/m."""
        return shown_values(values, self.reference)

    @property
    def influence_percent(self) -> float | None:
        """A parameter per unit mass near zero is no weak one."""
        return _INFLUENCE

    @property
    def has_motors(self) -> bool:
        """No effort acts."""
        return False

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Figures of a homogeneous system, and the mass where it was found."""
        return with_mass(parts, self.reference, fit.seen.system)

    @property
    def refine(self) -> Callable[..., Refinement] | None:
        """Runs of free motion are simulated."""
        return refine_free

    @property
    def checks(self) -> Mapping[str, Check]:
        """Whether the energy of a log grows."""
        return {"Does the energy of a run increase?": energy_grows}

    def hides(self, choice: str) -> bool:
        """There is no friction whose sign would matter."""
        return choice in ("reversals", "rest")

    def drawn(self, fit: Fit) -> dict[str, Any]:
        """Modes and cable tensions of the runs."""
        return drawn_swings(fit)

    def runs(
        self, problem: Problem, log: int, chi: Float[Array, "p"], runs: Callable[[], Sequence[RunFit]]
    ) -> tuple[RunFit, ...]:
        """How far simulated motions stay from the measured ones."""
        return with_simulations(problem, log, chi, runs())

    def simulated_squares(self, problem: Problem, chi: Float[Array, "p"]) -> Any:
        """What simulated motions miss, and how much there was to be met."""
        return simulated_squares(problem, chi)

    @property
    def logs_efforts(self) -> bool:
        """Nothing is logged that efforts could be compared with."""
        return False

    def predicting(
        self, problem: Problem, estimate: Estimate, mechanism: Mechanism
    ) -> tuple[Problem, Float[Array, "p"]] | None:
        """Values per unit mass are no standard ones."""
        return None if self.reference.given else predicting(problem, estimate, mechanism)


def free_motion_plans(
    logs: Sequence[Log], robot: Mechanism, settings: FilterSettings, experiment: Experiment
) -> tuple[MotionPlan, ...]:
    """Plans of logs of free motion; those with the same coordinates are planned together."""
    by_log: dict[int, MotionPlan] = {}
    for names in dict.fromkeys(log.position_names for log in logs):
        indices = [i for i, log in enumerate(logs) if log.position_names == names]
        group = [logs[i] for i in indices]
        plans = plan_motions(group, measuring(robot, group[0]), settings, experiment.mask)
        by_log |= dict(zip(indices, plans, strict=True))
    return tuple(by_log[i] for i in range(len(logs)))


FREE_MOTION = _OnCables()
