"""Case: what one kind of robot or data needs beyond the plain flow.

The plain flow measures joints, logs efforts and compares N^T W chi with N^T B tau. A special case (free
motion on locked cables, a force sensor, a table of instants, windows of energy) is one folder of `cases/`: it
states by data what is different about its measurements, and overrides the steps that differ. One line of
`CASES` registers it, and it is imported only if it is named: by `case=` of a model. The model is chosen by
name, by `mounted_model` of a robot, or by `identified_by` of a setting of the experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dynid.base.system import BaseSystem
from dynid.common.arrays import Array, Float
from dynid.common.registry import Registry
from dynid.conditioning.lowpass import RowFilter, row_filter
from dynid.estimator.estimator import estimator_named
from dynid.experiment.estimator_choice import filter_for, with_noisy_columns
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.in_memory import has_columns
from dynid.motion.log import Log
from dynid.motion.logs import LogSource, log_from_columns, read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.motion.servo import servo_log
from dynid.motion.settings import FilterSettings, entry_of
from dynid.projection.model import MODELS, Model, RowSource, model_for
from dynid.projection.projection import Group, System
from dynid.statistics.estimate import Estimate, RunFit

if TYPE_CHECKING:
    from dynid.checks.check import Check
    from dynid.excitation.case_motions import CaseMotions
    from dynid.fit import Fit
    from dynid.problem import Problem
    from dynid.refinement.joints import Refinement
    from dynid.statistics.assemble import EstimateParts
    from dynid.unknown import Unknown

# Name of a case -> where its instance is.
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


@dataclass(frozen=True)
class SimulatedMotion:
    """Motion that is simulated and compared with the log, where no effort could be.

    Attributes:
        refine: Output-error refinement, as `dynid.refinement.joints.refine`.
        runs: Problem, number of a log, parameters and the runs of that log -> the runs, with what was missed.
        squares: Problem and parameters -> names, squares missed, squares of the motion.
        drawn: What pages draw of a fit, as a tree (`dynid.display`).
    """

    refine: Callable[..., Refinement]
    runs: Callable[[Problem, int, Float[Array, "p"], Sequence[RunFit]], tuple[RunFit, ...]]
    squares: Callable[
        [Problem, Float[Array, "p"]], tuple[tuple[str, ...], Float[Array, "k"], Float[Array, "k"]]
    ]
    drawn: Callable[[Fit], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Case:
    """The plain flow; special cases state what is different, and override steps.

    A base class with behaviour, not a set of callbacks: most cases change three or four of these steps, and
    each override is next to the code that only this case needs.

    Attributes:
        unknowns: Nonlinear unknowns that only this case has.
        checks: What only this case must be questioned about: question -> check, as in `dynid.checks`.
        measures_efforts: Rows are compared with efforts of the robot's motors; False: the measured side is
            something else (readings, wrenches, a mass), which is in every row and knows no friction.
        measures_signals: Rows are compared with signals, of motors or of a sensor: they may be exchanged,
            late or scaled.
        is_series: Samples follow each other in time.
        moves_freely: Motors do not lead the motion: efforts set no scale, oscillations are no repeats, and
            cables keep their lengths within a run.
        simulated: Motion is simulated and compared, not efforts; None: efforts are.
        influence_percent: A parameter that contributes less than this to the measured side, in percent, is
            not judged by its relative sigma; None: all are.
    """

    unknowns: ClassVar[tuple[Unknown, ...]] = ()
    checks: ClassVar[Mapping[str, Check]] = {}
    measures_efforts: ClassVar[bool] = True
    measures_signals: ClassVar[bool] = True
    is_series: ClassVar[bool] = True
    moves_freely: ClassVar[bool] = False
    simulated: ClassVar[SimulatedMotion | None] = None
    influence_percent: ClassVar[float | None] = None

    # Settings and robot.

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """The experiment with what this case prefers where nothing is chosen; meaningless options refused."""
        return with_noisy_columns(experiment, model, mechanism)

    def mount(self, mechanism: Mechanism, experiment: Experiment) -> Mechanism:
        """The robot with what the experiment's key of this case adds to it."""
        return mechanism

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """The robot whose parameters the equations hold."""
        return robot

    def with_measured_side(self, problem: Problem, logs: Sequence[Log]) -> Problem:
        """The problem with what stands on the measured side of its equations, before logs are joined."""
        return problem

    def free_scale(
        self, robot: Mechanism, parameters: Sequence[Parameter], loads: Sequence[tuple[str, ...]]
    ) -> Any:
        """How parameters without a scale are shown by `dynid info`; None: they have one."""
        return None

    # Logs and filters.

    def read(self, source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A log that is one already, or read from a file with the experiment's columns."""
        law = experiment.pd
        options = {} if law is None else {"need_effort": False}
        log = read_source(source, mechanism, experiment, **options)
        return log if law is None else servo_log(log, mechanism, law)

    def plans(
        self,
        logs: Sequence[Log],
        robot: Mechanism,
        experiment: Experiment,
        chosen: FilterSettings | None = None,
    ) -> tuple[MotionPlan, ...]:
        """Filters and masks of logs; `chosen`: the filter of a fit, for logs that it has not seen."""
        if chosen is None:
            model = model_for(robot, experiment.model, experiment.file)
            chosen = filter_for(logs, experiment, model, robot)
        return plan_motions(logs, robot, chosen, experiment.mask)

    def filters(self, plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
        """Low-pass and decimation of the rows of each log; whole kernels where columns are noisy."""
        filters = row_filters(plans, experiment)
        estimator = estimator_named(experiment.estimator, experiment.estimator_options)
        noisy = estimator.noisy_columns and all(plan.cutoff is None for plan in plans)
        return whole_kernels(filters) if noisy else filters

    # Equations.

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """What the rows of the model want to know besides."""
        return {}

    def rows(self, problem: Problem, motion: Motion, aligned_to: RowSource | None = None) -> RowSource:
        """The equations along a motion; `aligned_to`: as in `Problem.rows_along`."""
        rows = problem.model.rows(
            problem.mechanism,
            problem.parameters,
            problem.directions,
            motion,
            load_parameters=problem.load_parameters,
            **problem.row_options,
        )
        if aligned_to is not None:
            rows.align_to(aligned_to)
        return rows

    def system(self, problem: Problem, groups: tuple[Group, ...], known: dict[int, float]) -> System:
        """Groups of rows as one system."""
        return System(problem.parameters, groups, known)

    def contradictions(
        self, problem: Problem, i: int, parts: Sequence[tuple[int, int]]
    ) -> list[Float[Array, "n m"]] | None:
        """Misfits in log i that an error of the description causes, besides those of redundant sensors.

        None: there are none.
        Parts are (first sample, one after the last); an array for each, in [rad] or [m].
        """
        return None

    # Names, values and results.

    def named(self, data: BaseSystem) -> BaseSystem:
        """The base system with the names and units that a result shows."""
        return data

    def motions(self, mechanism: Mechanism) -> CaseMotions | None:
        """How motions are designed and simulated that no motor leads; None: motors lead them."""
        return None

    def values(self, values: Mapping[str, float], parameters: Sequence[Parameter]) -> Mapping[str, float]:
        """Standard values by name, as the equations of this case have them."""
        return values

    def shown_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """Base values by the names that a result lists."""
        return dict(values)

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """The parameters as a result lists them."""
        return parts

    def recorded(
        self, fit: Fit, standard: tuple[Mapping[str, Any], ...]
    ) -> tuple[Experiment, tuple[Mapping[str, Any], ...], dict[str, str]]:
        """What a result records: the experiment, the table `standard`, and further files, name -> text."""
        return fit.experiment, standard, {}

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
    """The robot with what settings of the experiment mount on it, or what is mounted already."""
    models = [setting.identified_by for setting in experiment.mounting.values()]
    for name in dict.fromkeys(name for name in (*models, mechanism.mounted_model) if name):
        mechanism = case_of(MODELS[name]).mount(mechanism, experiment)
    return mechanism


def read_source(source: LogSource, mechanism: Mechanism, experiment: Experiment, **options: Any) -> Log:
    """A log; a file or columns in memory, read with settings of the experiment and options of `read_log`."""
    if isinstance(source, Log):
        return source
    options |= {"columns": experiment.columns, "angles": experiment.angles, "drives": experiment.drives}
    options["cutoff"] = experiment.filter.cutoff
    if has_columns(source):
        log = log_from_columns(source, mechanism, **options)
    else:
        log = read_log(entry_of(source), mechanism, drop_bad_rows=experiment.drop_bad_rows, **options)
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    if experiment.gains is None or not experiment.gains.scales(motors):
        return log
    return replace(log, notices=tuple(item for item in log.notices if item.code != "effort-from-current"))


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
