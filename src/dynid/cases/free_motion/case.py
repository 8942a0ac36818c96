"""Free motion on locked cables (model `internal`): no effort acts, parameters are per unit mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from dynid.base.system import BaseSystem
from dynid.case import Case, SimulatedMotion, read_source, row_filters, whole_kernels
from dynid.cases.free_motion.cable_lengths import settle_lengths
from dynid.cases.free_motion.checks import energy_grows
from dynid.cases.free_motion.locked_lengths import length_changes
from dynid.cases.free_motion.log import free_motion_log, measuring, measuring_robot, reading_robot
from dynid.cases.free_motion.reference_mass import FreeScale, free_scale, referred, referred_values
from dynid.cases.free_motion.refinement import refine_free
from dynid.cases.free_motion.swings import drawn_swings
from dynid.cases.free_motion.unit_mass import named, predicting, shown_values, with_mass
from dynid.cases.free_motion.validation import simulated_squares, with_simulations
from dynid.checks.check import Check
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.conditioning.lowpass import RowFilter
from dynid.experiment.estimator_choice import free_motion_defaults, noisy_column_filter
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.motion.settings import FilterSettings
from dynid.problem import Problem
from dynid.projection.internal import NormalisedRows, Reference, is_homogeneous, per_mass_rows
from dynid.projection.model import Model, RowSource
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.estimate import Estimate
from dynid.unknown import Unknown

if TYPE_CHECKING:
    from dynid.excitation.case_motions import CaseMotions

# Percent of the mass column that a parameter per unit mass must be able to make before it may be judged
# by its relative deviation: one known to be near zero is no weak one.
_INFLUENCE = 1.0


@dataclass(frozen=True, eq=False)
class _OnCables(Case):
    """Robots on cables, whether or not efforts of joint motors act too."""

    unknowns: ClassVar[tuple[Unknown, ...]] = (Unknown(settle_lengths),)
    moves_freely: ClassVar[bool] = True

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

    def read(self, source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A log with the coordinates that the experiment wants of it."""
        if not mechanism.cables:
            raise InputError(
                f"model 'internal' is for robots on locked cables, but '{mechanism.name}' has no cable",
                file=experiment.file or mechanism.file,
                place="model",
                remedy="choose model: inverse, power or energy, or describe `cables:`",
            )
        settings = experiment.internal
        choose = partial(reading_robot, mechanism, settings)
        read = read_source(source, mechanism, experiment, need_effort=False, choose=choose)
        return free_motion_log(read, mechanism, settings)

    def plans(
        self,
        logs: Sequence[Log],
        robot: Mechanism,
        experiment: Experiment,
        chosen: FilterSettings | None = None,
    ) -> tuple[MotionPlan, ...]:
        """Coordinates as logged; rows thinned; logs with the same coordinates are planned together."""
        settings = chosen or noisy_column_filter(logs, experiment.filter)
        by_log: dict[int, MotionPlan] = {}
        for names in dict.fromkeys(log.position_names for log in logs):
            indices = [i for i, log in enumerate(logs) if log.position_names == names]
            group = [logs[i] for i in indices]
            plans = plan_motions(group, measuring(robot, group[0]), settings, experiment.mask)
            by_log |= dict(zip(indices, plans, strict=True))
        return tuple(by_log[i] for i in range(len(logs)))

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Whole kernels only: all columns are noisy."""
        return whole_kernels(row_filters(plans, experiment))

    def contradictions(
        self, problem: Problem, i: int, parts: Sequence[tuple[int, int]]
    ) -> list[Float[Array, "n m"]] | None:
        """What locked lengths change within a run, in [m], where the pose is used as measured."""
        return length_changes(problem, i, parts)

    def motions(self, mechanism: Mechanism) -> CaseMotions | None:
        """Releases on locked cables."""
        from dynid.cases.free_motion.motions import FREE_MOTIONS  # none of it is needed to identify

        return FREE_MOTIONS if mechanism.cables else None

    def with_measured_side(self, problem: Problem, logs: Sequence[Log]) -> Problem:
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

    checks: ClassVar[Mapping[str, Check]] = {"Does the energy of a run increase?": energy_grows}
    measures_efforts: ClassVar[bool] = False
    measures_signals: ClassVar[bool] = False
    simulated: ClassVar[SimulatedMotion | None] = SimulatedMotion(
        refine_free, with_simulations, simulated_squares, drawn_swings
    )
    influence_percent: ClassVar[float | None] = _INFLUENCE

    reference: Reference

    def rows(self, problem: Problem, motion: Motion, aligned_to: RowSource | None = None) -> RowSource:
        """The mass column is the measured side; rows along a neighbouring motion keep its directions."""
        plain = aligned_to.source if isinstance(aligned_to, NormalisedRows) else aligned_to
        return NormalisedRows(super().rows(problem, motion, plain), self.reference)

    def named(self, data: BaseSystem) -> BaseSystem:
        """Names per unit mass."""
        return named(data, self.reference)

    def values(self, values: Mapping[str, float], parameters: Sequence[Parameter]) -> Mapping[str, float]:
        """Per unit of the reference mass."""
        return referred_values(values, self.reference, parameters)

    def shown_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """The mass itself for 1/m."""
        return shown_values(values, self.reference)

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Figures of a homogeneous system, and the mass where it was found."""
        return with_mass(parts, self.reference, fit.measured.system)

    def predicting(
        self, problem: Problem, estimate: Estimate, mechanism: Mechanism
    ) -> tuple[Problem, Float[Array, "p"]] | None:
        """Values per unit mass are no standard ones."""
        return None if self.reference.given else predicting(problem, estimate, mechanism)


FREE_MOTION = _OnCables()
