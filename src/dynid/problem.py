"""Problem: a mechanism joined with its logs, and its condensation into a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.case import PLAIN, Case, case_of, task_case, with_mounted
from dynid.common.arrays import Array, Float
from dynid.common.brief import one_line
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice
from dynid.conditioning.lowpass import RowFilter
from dynid.conditioning.stream import Block, grouped, run_begins, stream
from dynid.experiment.experiment import Experiment
from dynid.mechanism.drive_terms import LOADED
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, known_columns, owners_of, parameter_table, with_known
from dynid.mechanism.variant import own_symbols, variant, with_friction, with_still_joints
from dynid.motion.log import Log, named_apart
from dynid.motion.logs import LogSource
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.motion.repeats import path_along
from dynid.motion.servo import with_servos
from dynid.motion.sources import each_log
from dynid.problem_checks import log_notices, refuse_passive, refuse_single_motors, refuse_unknown
from dynid.projection.kinematics import kinematics_along
from dynid.projection.model import Model, PackedRows, RowSource, effort_model, model_for
from dynid.projection.projection import Directions, Group, System, choose_rows
from dynid.projection.turns import nearest_turns
from dynid.regressor.layout import ABSENT

Progress = Callable[[str, float], None]
Streamed = tuple[list[list[Block]], float]  # as `stream` gives it
_STREAMED: WeakKeyDictionary[PackedRows, tuple[RowFilter, Streamed]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Problem:
    """A mechanism with its logs, ready to be condensed into a system.

    Attributes:
        sources: Rows of the model along each log.
        filters: The row filter of each log.
        load_parameters: Parameters used to predict the loads of load-dependent friction, shape (p,), SI; None
            if there is no such friction, or not yet.
        row_options: Options of the model's rows.
        case: What this kind of robot or data needs beyond the plain flow.
    """

    mechanism: Mechanism
    model: Model
    parameters: tuple[Parameter, ...]
    directions: Directions
    plans: tuple[MotionPlan, ...] = ()
    sources: tuple[RowSource, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    load_parameters: Float[Array, "p"] | None = None
    row_options: Mapping[str, Any] = field(default_factory=dict)
    case: Case = PLAIN
    notices: tuple[Notice, ...] = ()

    __repr__ = one_line

    @property
    def logs(self) -> tuple[Log, ...]:
        """The logs, in the order of the sources."""
        return tuple(source.motion.log for source in self.sources)

    @property
    def loads(self) -> tuple[tuple[str, ...], ...]:
        """Payloads mounted in each log."""
        return tuple(log.payloads for log in self.logs)

    def base(self, ties: tuple[str, ...] = ()) -> BaseSet:
        """Structural base parameters, with these ties on standard parameters; computed once."""
        if ties not in self._bases:
            robot, model, table = self.mechanism, self.model, self.parameters
            base = structural_base(robot, model, table, self.directions, ties=ties, loads=self.loads)
            self._bases[ties] = base
        return self._bases[ties]

    @cached_property
    def _bases(self) -> dict[tuple[str, ...], BaseSet]:
        """Known base parameters, by ties."""
        return {}

    def by_efforts(self, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """The same logs in the form that is compared with efforts as logged.

        Args:
            chi: Standard parameters that predict the loads of load-dependent friction, shape (p,), SI.
        """
        inverse = effort_model()
        if not self.case.measures_efforts:
            return self.with_load_parameters(chi).sources
        if self.model is inverse and not owners_of(self.mechanism, *LOADED):
            return self.sources
        rows = self.directions if self.model is inverse else _all_efforts(self, inverse)
        motions = (source.motion for source in self.sources)
        return tuple(
            inverse.rows(self.mechanism, self.parameters, rows, motion, load_parameters=chi)
            for motion in motions
        )

    def with_load_parameters(self, chi: Float[Array, "p"]) -> Problem:
        """The same equations, loads of load-dependent friction predicted by these parameters."""
        changed = replace(self, load_parameters=chi)
        if not owners_of(self.mechanism, *LOADED):
            return changed
        return replace(changed, sources=tuple(changed.rows_along(source.motion) for source in self.sources))

    def rows_along(self, motion: Motion, aligned_to: RowSource | None = None) -> RowSource:
        """The equations along a motion.

        Args:
            motion: Of one log.
            aligned_to: Rows along nearly the same motion: its loops close, and its directions are taken.
        """
        if aligned_to is not None:
            kinematics_along(self.mechanism, motion, checked=True)
        return self.case.rows(self, motion, aligned_to)

    def on(self, logs: Sequence[Log], plans: Sequence[MotionPlan], experiment: Experiment) -> Problem:
        """The same equations along other logs, which may carry no payload that these logs do not."""
        for log in logs:
            for name in log.payloads:
                if name not in self.mechanism.payloads:
                    raise InputError(
                        f"payload '{name}' of log '{log.name}' is in no log used for identification",
                        file=log.file,
                        remedy="identify from a log with this payload too, or leave this log out",
                    )
        return replace(self, load_parameters=None, notices=()).along(logs, plans, experiment)

    def along(
        self,
        logs: Sequence[Log],
        plans: Sequence[MotionPlan],
        experiment: Experiment,
        aligned_to: Problem | None = None,
    ) -> Problem:
        """The equations along logs whose filters have been chosen; `aligned_to`: see `prepare`."""
        case = self.case
        logs = [nearest_turns(self.mechanism, log) for log in logs] if case.is_series else logs
        motions = [Motion(log, plan) for log, plan in zip(logs, plans, strict=True)]
        filters, options = case.filters(plans, experiment), case.row_options(experiment)
        problem = replace(self, plans=tuple(plans), sources=(), filters=filters, row_options=options)
        near = [None] * len(motions) if aligned_to is None else aligned_to.sources
        rows = (problem.rows_along(motion, source) for motion, source in zip(motions, near, strict=True))
        return replace(problem, sources=tuple(rows))


def prepare(
    mechanism: Mechanism,
    logs: Sequence[Log],
    experiment: Experiment,
    plans: Sequence[MotionPlan] | None = None,
    aligned_to: Problem | None = None,
) -> Problem:
    """Choose rows and filters, and join mechanism and motion.

    Filters are chosen from the spectra of the logs, and poses of closed robots are computed; rows are not.

    Args:
        mechanism: The robot.
        logs: To identify from.
        experiment: Settings.
        plans: Filters and masks of each log where they are chosen already; default: from the data.
        aligned_to: The problem of nearly the same robot along the same logs: directions of closed robots are
            taken from it, and its loops are known to close.
    """
    if not logs:
        raise InputError("no log to identify from", file=experiment.file, remedy="list files under `logs:`")
    refuse_unknown(mechanism, logs, experiment)
    model = model_for(mechanism, experiment.model, experiment.file)
    case = case_of(model)
    robot = variant(mechanism, payloads=tuple(dict.fromkeys(p for log in logs for p in log.payloads)))
    robot = case.robot(robot, logs, experiment)
    parameters = parameter_table(robot)
    if aligned_to is not None and aligned_to.case is case and aligned_to.directions.moving is not None:
        # Of a closed robot: its motion gives N, and the choice of rows must be the same for all values.
        directions = aligned_to.directions
    else:
        directions = _directions(robot, model, logs, experiment)
    plans = case.plans(logs, robot, experiment) if plans is None else plans
    problem = case.with_measured_side(Problem(robot, model, parameters, directions, case=case), logs)
    problem = problem.along(logs, plans, experiment, aligned_to)
    notices = log_notices(robot, logs, experiment) if problem.case.measures_signals else ()
    return replace(problem, notices=problem.notices + notices)


def _directions(robot: Mechanism, model: Model, logs: Sequence[Log], experiment: Experiment) -> Directions:
    """Rows of a model that the logs have the efforts for."""
    directions = model.directions(robot)
    refuse_passive(robot, directions, experiment)
    refuse_single_motors(robot, directions, experiment)
    present = np.all([log.effort_present for log in logs], axis=0)
    directions = choose_rows(directions, experiment.efforts, present)
    if directions.names:
        return directions
    raise InputError(
        "no equation can be used: the logs share no effort",
        file=experiment.file,
        remedy="map the effort columns under `columns:`",
    )


def build_system(
    problem: Problem, progress: Progress | None = None, threads: int | None = None, keep: bool = False
) -> System:
    """Stream every log into triangular factors: W chi = Y over the standard parameters.

    Args:
        problem: Mechanism and logs.
        progress: Called with a stage and the fraction of it done.
        threads: None: as many as there are cores.
        keep: The rows are needed again, see `stream`.
    """
    groups = row_groups(problem, problem.sources, progress, threads, keep)
    if not groups:
        raise InputError(
            "no samples are left: the robot is at rest in these logs, or masks and decimation remove all",
            remedy="check the speeds, `mask:` and `filter: {decimate: ...}`",
        )
    known = known_columns(problem.mechanism, problem.parameters)
    return problem.case.system(problem, groups, known)


def row_groups(
    problem: Problem,
    sources: Sequence[PackedRows],
    progress: Progress | None = None,
    threads: int | None = None,
    keep: bool = False,
    most: int | None = None,
) -> tuple[Group, ...]:
    """Stream rows along the logs of a problem, its own or others; `keep` and `most`: see `stream`."""
    groups = []
    case, homogeneous = problem.case, problem.directions.homogeneous
    for source, log, rows in zip(sources, problem.logs, problem.filters, strict=True):
        stage = _stage(progress, f"equations of {log.name}")
        blocks, seconds = _streamed(source, rows, threads, stage, keep, most)
        path = None
        if case.is_series and not case.moves_freely:  # how the robot moved along the runs of a log
            path = path_along(log.q, source.pieces(), source.dt, run_begins(source, rows))
        for k, members in grouped(blocks, problem.directions.group_names):
            entries = source.layout.columns[source.layout.start[k] : source.layout.start[k + 1]]
            columns = entries[entries != ABSENT]
            name, unit = problem.directions.group_names[k], problem.directions.units[k]
            if members:
                runs, times, factors = zip(*members, strict=True)
                group = Group(
                    name,
                    log.name,
                    unit,
                    columns,
                    factors,
                    rows.inflation,
                    times=np.array(times, dtype=int),
                    runs=np.array(runs, dtype=int),
                    seconds=seconds,
                    instants=not case.is_series,
                    path=path,
                    homogeneous=bool(homogeneous[k]) and case.measures_efforts,
                )
                groups.append(group)
    return tuple(groups)


def _streamed(
    source: PackedRows,
    rows: RowFilter,
    threads: int | None,
    stage: Callable[[float], None] | None,
    keep: bool,
    most: int | None,
) -> Streamed:
    """As `stream`: the choice of settings often ends with rows that it has streamed already."""
    known = _STREAMED.get(source)
    if known is not None and known[0] is rows and most is None:
        return known[1]
    streamed = stream(source, rows, threads, stage, keep, most)
    if keep and most is None:
        _STREAMED[source] = rows, streamed
    return streamed


def _all_efforts(problem: Problem, inverse: Model) -> Directions:
    """Rows of the inverse model for every effort that all logs have."""
    present = np.all([log.effort_present for log in problem.logs], axis=0)
    return choose_rows(inverse.directions(problem.mechanism), None, present)


def as_asked(mechanism: Mechanism, experiment: Experiment) -> Mechanism:
    """The robot with the payloads, drive terms and still joints that only the experiment knows."""
    still = {name: x for name, x in experiment.known.items() if name in mechanism.positions}
    mechanism = with_mounted(with_still_joints(mechanism, still), experiment)
    changes: dict[str, Any] = {}
    if experiment.payloads:
        changes["payloads"] = {**mechanism.payloads, **experiment.payloads}
    if experiment.drive is not None:
        drive = _asked_drive(mechanism, experiment.drive)
        drive_terms = {owner: own_symbols(symbols) for owner, symbols in drive.items()}
        changes["drive"] = {owner: symbols for owner, symbols in drive_terms.items() if symbols}
        mechanism = with_friction(mechanism, drive)
    if experiment.stribeck:
        changes["stribeck"] = {**mechanism.stribeck, **experiment.stribeck}
    mechanism = replace(mechanism, **changes) if changes else mechanism
    if experiment.pd is not None:
        mechanism = with_servos(mechanism, experiment.pd)
    known = {name: x for name, x in experiment.known.items() if name not in still}
    return with_known(mechanism, known) if known else mechanism


def _asked_drive(
    mechanism: Mechanism, asked: Sequence[str] | Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Owner -> its drive terms: those asked of all owners, or of single ones, others as they are.

    A name or glob that matches no owner may match other joints, such as passive ones.
    """
    owners = tuple(mechanism.drive) or tuple(actuator.name for actuator in mechanism.actuators)
    if not isinstance(asked, Mapping):
        return dict.fromkeys(owners, asked)
    single: dict[str, Sequence[str]] = {}
    others = tuple(name for name in mechanism.coordinates if name not in owners)
    known = (*owners, *others)
    for name, symbols in sorted(asked.items(), key=lambda entry: entry[0] in known):  # exact names last
        matched = [name] if name in known else _matching(name, owners) or _matching(name, others)
        if not matched:
            raise InputError(
                f"'{name}' is no joint and no motor" + nearest(name, known),
                place=f"drive.{name}",
                remedy=f"use {', '.join(owners)}, another joint, or a glob",
            )
        single |= dict.fromkeys(matched, symbols)
    left = [owner for owner in owners if owner not in single]
    if left and any(term.friction for term in mechanism.terms):
        raise InputError(
            f"{', '.join(left)}: no drive terms are given, and the robot has friction of other packages",
            place="drive",
            remedy="list all terms of every joint or motor",
        )
    return {**mechanism.drive, **single}


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if fnmatchcase(name, pattern)]


def several(logs: LogSource | Sequence[LogSource]) -> Sequence[LogSource]:
    """One log as a list of it; several as they are."""
    return logs if isinstance(logs, Sequence) and not isinstance(logs, str) else [logs]


def as_log(source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
    """A log that is one already, or read from a file with the experiment's columns."""
    return task_case(mechanism, experiment).read(source, mechanism, experiment)


def as_logs(sources: Iterable[LogSource], mechanism: Mechanism, experiment: Experiment) -> list[Log]:
    """Logs of several sources; a folder or a pattern means all logs in it."""
    return named_apart([as_log(source, mechanism, experiment) for source in each_log(sources)])


def _stage(progress: Progress | None, stage: str) -> Callable[[float], None] | None:
    return None if progress is None else lambda fraction: progress(stage, fraction)
