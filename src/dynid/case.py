"""Case: what one kind of robot or data needs beyond the plain flow.

The plain flow measures joints, logs efforts and compares N^T W chi with N^T B tau. A special case (free
motion on locked cables, a force sensor, a table of instants, windows of energy) overrides the steps that
differ, in one folder of `cases/`, and is registered in one line of `CASES`. It is imported only if a
model needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Bool, Float
from dynid.common.notices import Notice
from dynid.common.registry import Registry
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.experiment.estimator_choice import filter_for, with_noisy_columns
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, owners_of
from dynid.motion.log import Log
from dynid.motion.logs import log_from_columns, read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.motion.position_faults import refuse_steps
from dynid.motion.servo import servo_log
from dynid.motion.settings import FilterSettings, LogEntry, entry_of
from dynid.motion.table import DataFrame
from dynid.problem_checks import not_logged, refuse_silent
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.model import MODELS, Model, RowSource, model_for
from dynid.projection.projection import Directions, Group, System, choose_rows
from dynid.statistics.estimate import Estimate, RunFit

if TYPE_CHECKING:
    from dynid.checks.check import Answer, Check
    from dynid.fit import Fit
    from dynid.problem import Problem
    from dynid.refinement.joints import Refinement
    from dynid.statistics.assemble import EstimateParts
    from dynid.unknown import Unknown

# Name of a case -> where its instance is. A model names its case; an experiment key may mount one.
CASES: Registry[Case] = Registry(
    "dynid.cases",
    {
        "energy": "dynid.cases.energy:ENERGY",
        "free_motion": "dynid.cases.free_motion.case:FREE_MOTION",
        "force_sensor": "dynid.cases.force_sensor.case:FORCE_SENSOR",
        "wrench_table": "dynid.cases.wrench_table.case:WRENCH_TABLE",
    },
    gives=("dynid.case:Case",),
)
_WHOLE = 0.99  # of a row filter's kernel: its last taps are rounding
# Keys of an experiment that put a case onto the robot itself.
_MOUNTED = {"force_sensor": "force_sensor"}

LogInput = str | os.PathLike[str] | LogEntry | Mapping[str, Any] | DataFrame


@dataclass(frozen=True, eq=False)
class Case:
    """The plain flow; special cases override what differs.

    A base class with behaviour, not a set of callbacks: most cases change three or four of these steps, and
    each override is next to the code that only this case needs.
    """

    locks_cables: ClassVar[bool] = False  # whether cables keep their lengths within a run

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Unknowns that only this case has."""
        return ()

    # Settings and robot.
    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """The experiment with what this case prefers where the user has chosen nothing."""
        return with_noisy_columns(experiment, model, mechanism)

    def chooses(self, experiment: Experiment) -> bool:
        """Whether settings that are left open are chosen by the error of held-out efforts."""
        searched = experiment.gains or experiment.unloaded or experiment.unknown
        return not searched and not (experiment.pd and experiment.pd.open)

    def mounted(self, mechanism: Mechanism, experiment: Experiment) -> Mechanism:
        """The robot with what the experiment's key of this case adds to it."""
        return mechanism

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """The robot whose parameters the equations hold."""
        return robot

    def refuse(self, experiment: Experiment) -> None:
        """Refuse options that make no sense here, before any work is done."""

    def ready(self, problem: Problem, logs: Sequence[Log]) -> Problem:
        """The problem, not yet joined with its logs, with a measured side in its equations."""
        return problem

    def log_notices(
        self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[Notice, ...]:
        """Efforts that logs lack, or that never change, are noticed or refused."""
        steps = [notice for log in logs for notice in refuse_steps(log)] if self.is_series else []
        return (*steps, *not_logged(robot, logs, experiment), *refuse_silent(logs, experiment))

    def loaded_bodies(self, mechanism: Mechanism) -> tuple[str, ...]:
        """Bodies whose mass and centre of mass are summarised in words."""
        return tuple(mechanism.payloads)

    def free_scale(
        self, robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]]
    ) -> Any:
        """How parameters without a scale are shown by `dynid info`; None: they have one."""
        return None

    # Logs and filters.

    def read(self, source: LogInput | Log, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A log that is one already, or read from a file with the experiment's columns."""
        law = experiment.pd
        options = {} if law is None else {"need_effort": False}
        log = source if isinstance(source, Log) else read_source(source, mechanism, experiment, **options)
        return log if law is None else servo_log(log, mechanism, law)

    def plans(self, logs: Sequence[Log], robot: Mechanism, experiment: Experiment) -> tuple[MotionPlan, ...]:
        """Filters and masks of logs, chosen from the data."""
        model = model_for(robot, experiment.model, experiment.file)
        return plan_motions(logs, robot, filter_for(logs, experiment, model, robot), experiment.mask)

    def held_out_plans(
        self, problem: Problem, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[MotionPlan, ...]:
        """The filters of a fit for logs that it has not seen."""
        asked = self.filter_of(problem, logs, experiment)
        if self.predicts_otherwise(problem):
            asked = asked.changed(kind=FilterSettings().kind, cutoff=None)
        return plan_motions(logs, problem.mechanism, asked, experiment.mask)

    def predicts_otherwise(self, problem: Problem) -> bool:
        """Whether a fit filters rows, not coordinates: efforts are predicted from smooth coordinates."""
        return problem.plans[0].kind == "none" and bool(np.any(problem.directions.homogeneous))

    def filter_of(self, problem: Problem, logs: Sequence[Log], experiment: Experiment) -> FilterSettings:
        """The filter that a fit has chosen; measured velocities only where every log has them."""
        plan = problem.plans[0]
        return experiment.filter.changed(
            cutoff=plan.cutoff,
            decimate=plan.decimate,
            derivative=plan.derivative,
            velocity=plan.velocity if all(log.dq is not None for log in logs) else "derived",
            kind=plan.kind,
        )

    @property
    def plan_kind(self) -> str:
        """Models of one kind share filters and masks."""
        return "efforts"

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Low-pass and decimation of the rows of each log; whole kernels where columns are noisy."""
        filters = row_filters(plans, experiment)
        noisy = experiment.estimator == "gtls" and all(plan.cutoff is None for plan in plans)
        return whole_kernels(filters) if noisy else filters

    # Equations.

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """What the rows of the model want to know besides."""
        return {}

    def rows(self, problem: Problem, motion: Motion, like: RowSource | None = None) -> RowSource:
        """The equations along a motion; `like`: rows along nearly the same one, whose directions serve."""
        if like is not None:
            kinematics_along(problem.mechanism, motion, checked=True)
        rows = problem.model.rows(
            problem.mechanism,
            problem.parameters,
            problem.directions,
            motion,
            load_parameters=problem.load_parameters,
            **problem.row_options,
        )
        if like is not None:
            rows.align_to(like)
        return rows

    def effort_rows(self, problem: Problem, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """The same logs by the inverse model, to be compared with efforts as logged."""
        inverse = MODELS["inverse"]
        if problem.model is inverse and not owners_of(problem.mechanism, "Fl"):
            return problem.sources
        rows = problem.directions if problem.model is inverse else _all_efforts(problem, inverse)
        motions = (source.motion for source in problem.sources)
        return tuple(
            inverse.rows(problem.mechanism, problem.parameters, rows, motion, load_parameters=chi)
            for motion in motions
        )

    def contradictions(
        self, problem: Problem, i: int, parts: Sequence[tuple[int, int]]
    ) -> list[Float[Array, "n m"]] | None:
        """What redundant sensors miss at parts (first sample, one after the last) of log i; None: nothing.

        Weighted, in [rad] or [m], one array for each part.
        """
        source = problem.sources[i]
        kinematics = kinematics_along(problem.mechanism, source.motion)
        if not isinstance(kinematics, ClosedKinematics) or not kinematics.redundant:
            return None
        misses = []
        for start, stop in parts:
            measured = source.motion.states(start, stop)
            states = kinematics.states(start, measured)
            miss = kinematics.sensors.miss(states.q, measured[0]) * kinematics.sensors.weight
            misses.append(np.asarray(np.where(states.fine[:, None], miss, np.nan)))
        return misses

    def without_effort(self, directions: Directions) -> Bool[Array, "k"]:
        """Rows in which no effort acts: 0 = W chi."""
        return directions.homogeneous

    @property
    def repeats(self) -> bool:
        """Whether motions that repeat carry the same model error."""
        return True

    def groups(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Groups of rows, marked where they are no time series."""
        return groups

    def system(self, problem: Problem, groups: tuple[Group, ...], known: dict[int, float]) -> System:
        """Groups of rows as one system."""
        return System(problem.parameters, groups, known)

    # Names and values.

    def named(self, data: BaseSystem) -> BaseSystem:
        """The base system with the names and units that a result shows."""
        return data

    def values(self, values: Mapping[str, float], parameters: Sequence[Parameter]) -> Mapping[str, float]:
        """Standard values by name, as the equations of this case have them."""
        return values

    def shown_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """Base values by the names that a result lists."""
        return dict(values)

    @property
    def influence_percent(self) -> float | None:
        """Percent of the measured side that a parameter must be able to make to be judged by its sigma."""
        return None

    @property
    def has_scale(self) -> bool:
        """Whether efforts set the scale of the parameters."""
        return True

    @property
    def has_motors(self) -> bool:
        """Whether rows are compared with efforts of motors, which may be exchanged, late or scaled."""
        return True

    @property
    def is_series(self) -> bool:
        """Whether samples follow each other in time."""
        return True

    @property
    def weighs_bodies(self) -> bool:
        """Whether the mass of every body is found for itself, not as a sum with others."""
        return False

    # Results.

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """The parameters as a result lists them."""
        return parts

    @property
    def refine(self) -> Callable[..., Refinement] | None:
        """Output-error refinement of its own; None: windows of joint motion are simulated."""
        return None

    @property
    def checks(self) -> Mapping[str, Check]:
        """What only this case must be questioned about: question -> check, as in `dynid.checks`."""
        return {}

    def residual_tests(self, fit: Fit) -> list[Answer] | None:
        """Tests of the residuals that replace those of time series; None: the usual ones."""
        return None

    def entries(
        self, problem: Problem, entries: Sequence[Mapping[str, Any]]
    ) -> tuple[Mapping[str, Any], ...]:
        """The table of a standard set, as a result lists it."""
        return tuple(entries)

    def recorded(self, experiment: Experiment, problem: Problem, chi: Float[Array, "p"]) -> Experiment:
        """The experiment as its result records it."""
        return experiment

    def files(self, fit: Fit) -> dict[str, str]:
        """Further files of the result's folder, name -> text."""
        return {}

    def drawn(self, fit: Fit) -> dict[str, Any]:
        """What pages draw of this case besides, as a tree (`dynid.display`)."""
        return {}

    def hides(self, choice: str) -> bool:
        """Whether a choice of the filters means nothing here."""
        return False

    def runs(
        self, problem: Problem, log: int, chi: Float[Array, "p"], runs: Callable[[], Sequence[RunFit]]
    ) -> tuple[RunFit, ...]:
        """Every run of a predicted log on its own, where runs are judged."""
        return ()

    def simulated_squares(self, problem: Problem, chi: Float[Array, "p"]) -> Any:
        """Squares that simulated motion misses, and of the motion, by name; None: efforts are compared."""
        return None

    @property
    def logs_efforts(self) -> bool:
        """Whether logs hold efforts that a prediction can be compared with."""
        return True

    def predicting(
        self, problem: Problem, estimate: Estimate, mechanism: Mechanism
    ) -> tuple[Problem, Float[Array, "p"]] | None:
        """The equations with the values of a result where they are not standard ones; None: they are."""
        return None


PLAIN = Case()


def case_of(model: Model) -> Case:
    """The case of a model."""
    return CASES[model.case] if model.case else PLAIN


def task_case(mechanism: Mechanism, experiment: Experiment) -> Case:
    """The case of what an experiment asks of a robot."""
    return case_of(model_for(mechanism, experiment.model, experiment.file))


def with_defaults(mechanism: Mechanism, experiment: Experiment) -> Experiment:
    """The experiment with what its case prefers where the user has chosen nothing."""
    model = model_for(mechanism, experiment.model, experiment.file)
    return case_of(model).defaults(experiment, model, mechanism)


def with_mounted(mechanism: Mechanism, experiment: Experiment) -> Mechanism:
    """The robot with what special keys of the experiment add to it."""
    for key, name in _MOUNTED.items():
        if getattr(experiment, key) is not None or getattr(mechanism, key) is not None:
            mechanism = CASES[name].mounted(mechanism, experiment)
    return mechanism


def read_source(source: LogInput, mechanism: Mechanism, experiment: Experiment, **options: Any) -> Log:
    """A log file or columns in memory, read with settings of the experiment and `options` of `read_log`."""
    options |= {"columns": experiment.columns, "angles": experiment.angles, "drives": experiment.drives}
    options["cutoff"] = experiment.filter.cutoff
    if isinstance(source, Mapping | DataFrame):
        return log_from_columns(source, mechanism, **options)
    return read_log(entry_of(source), mechanism, drop_bad_rows=experiment.drop_bad_rows, **options)


def row_filters(plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
    """Low-pass and decimation of the rows of each log."""
    settings = experiment.filter
    # A cutoff given for rows means the same filter as on coordinates; the default one only prevents
    # aliasing by decimation, and a sharp sinc does that better.
    order = settings.order if settings.rows is not None and settings.kind == "butterworth" else None
    return tuple(row_filter(plan.dt, plan.decimate, plan.rows_cutoff, butterworth=order) for plan in plans)


def whole_kernels(filters: Sequence[RowFilter]) -> tuple[RowFilter, ...]:
    """The same filters without rows from a cut kernel, which would pass the noise of accelerations."""
    return tuple(replace(kernel_filter, support=_WHOLE) for kernel_filter in filters)


def _all_efforts(problem: Problem, inverse: Model) -> Directions:
    """Rows of the inverse model for every effort that all logs have."""
    present = np.all([log.effort_present for log in problem.logs], axis=0)
    return choose_rows(inverse.directions(problem.mechanism), None, present)
