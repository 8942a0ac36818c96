"""Job: a mechanism joined with its logs, and its condensation into a system."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from dynid.cases.force_sensor.robot import check_loads, with_force_sensor, with_runs
from dynid.cases.free_motion.log import free_motion_log, measuring_robot, reading_robot
from dynid.cases.free_motion.reference_mass import referred
from dynid.cases.wrench_table.noise import column_noise, untold
from dynid.cases.wrench_table.reader import read_wrench_table
from dynid.cases.wrench_table.tables import table_robot
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.conditioning.lowpass import RowFilter, row_filter, window_filter
from dynid.conditioning.stream import grouped, stream
from dynid.experiment.defaults import free_motion_filter
from dynid.experiment.experiment import Experiment, LogEntry
from dynid.experiment.internal_settings import internal_settings
from dynid.info import known_columns, variant
from dynid.mechanism.force_sensor import Run
from dynid.mechanism.friction import owners_of
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, Mechanism
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.motion.log import Log
from dynid.motion.logs import read_log
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan, plan_motions
from dynid.motion.wrench_settings import wrench_settings
from dynid.problem_checks import (
    not_logged,
    refuse_passive,
    refuse_silent,
    refuse_single_motors,
    refuse_unknown,
)
from dynid.projection.internal import InternalRows, is_homogeneous
from dynid.projection.model import MODELS, Model, PackedRows, RowSource, model_for
from dynid.projection.normalised import NormalisedRows, Reference, per_mass_rows
from dynid.projection.projection import Directions, Group, System, choose_rows
from dynid.projection.quadrature import DEFAULT, quadrature_named
from dynid.projection.wrench import WrenchRows
from dynid.regressor.layout import ABSENT

_WHOLE = 0.99  # of a row filter's kernel: its last taps are rounding

Progress = Callable[[str, float], None]
LogSource = str | os.PathLike[str] | LogEntry | Log


@dataclass(frozen=True, eq=False)
class Problem:
    """A mechanism with its logs, ready to be condensed into a system.

    Attributes:
        sources: Rows of the model along each log.
        filters: The row filter of each log.
        foretold: Parameters by which the loads of load-dependent friction are found, shape (p,), SI; None
            where there is none (yet).
        row_options: Options of the model's rows.
        reference: The mass that stands on the measured side where no effort acts; None: efforts do.
    """

    mechanism: Mechanism
    model: Model
    parameters: tuple[Parameter, ...]
    directions: Directions
    plans: tuple[MotionPlan, ...]
    sources: tuple[RowSource, ...]
    filters: tuple[RowFilter, ...]
    load_parameters: Float[Array, "p"] | None = None
    row_options: Mapping[str, Any] = field(default_factory=dict)
    reference: Reference | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def logs(self) -> tuple[Log, ...]:
        """The logs, in the order of the sources."""
        return tuple(source.motion.log for source in self.sources)

    @property
    def loads(self) -> tuple[tuple[str, ...], ...]:
        """Payloads mounted in each log."""
        return tuple(log.payloads for log in self.logs)

    @property
    def loaded_bodies(self) -> tuple[str, ...]:
        """What the robot carries: the tool behind a force sensor, and payloads."""
        sensor = self.mechanism.force_sensor
        return (*(() if sensor is None else (sensor.tool,)), *self.mechanism.payloads)

    def by_efforts(self, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """The same logs by the inverse model, to be compared with efforts as logged.

        Args:
            chi: Standard parameters that foretell the loads of load-dependent friction, shape (p,), SI.
        """
        if self.model.direct or self.reference is not None:
            return self.with_load_parameters(chi).sources
        inverse = MODELS["inverse"]
        loaded = bool(owners_of(self.mechanism, "Fl"))
        if self.model is inverse and not loaded:
            return self.sources
        rows = self.directions if self.model is inverse else self._effort_rows(inverse)
        motions = (source.motion for source in self.sources)
        return tuple(
            inverse.rows(self.mechanism, self.parameters, rows, motion, load_parameters=chi)
            for motion in motions
        )

    def with_load_parameters(self, chi: Float[Array, "p"]) -> Problem:
        """The same equations, loads of load-dependent friction foretold by these parameters."""
        if not owners_of(self.mechanism, "Fl"):
            return replace(self, load_parameters=chi)
        told = replace(self, load_parameters=chi)
        return replace(told, sources=tuple(told.rows_along(source.motion) for source in self.sources))

    def rows_along(self, motion: Motion, like: RowSource | None = None) -> RowSource:
        """The equations along a motion; `like`: rows along nearly the same one, whose directions serve."""
        rows = self.model.rows(
            self.mechanism,
            self.parameters,
            self.directions,
            motion,
            load_parameters=self.load_parameters,
            **self.row_options,
        )
        plain = like.source if isinstance(like, NormalisedRows) else like
        if isinstance(rows, InternalRows) and isinstance(plain, InternalRows):
            rows.align_to(plain)
        return rows if self.reference is None else NormalisedRows(rows, self.reference)

    def _effort_rows(self, inverse: Model) -> Directions:
        """Rows of the inverse model for every effort that all logs have."""
        present = np.all([log.effort_present for log in self.logs], axis=0)
        return choose_rows(inverse.directions(self.mechanism), None, present)

    def on(self, logs: Sequence[Log], plans: Sequence[MotionPlan], experiment: Experiment) -> Problem:
        """The same equations along other logs, which may carry no payload that these logs do not."""
        for log in logs:
            for name in log.payloads:
                if name not in self.mechanism.payloads:
                    raise InputError(
                        f"payload '{name}' of log '{log.name}' is in no log to identify from",
                        file=log.file,
                        remedy="identify from a log with this payload too, or leave this log out",
                    )
        return join(
            self.mechanism,
            self.model,
            self.parameters,
            self.directions,
            plans,
            logs,
            experiment,
            self.reference,
        )


def prepare(
    mechanism: Mechanism,
    logs: Sequence[Log],
    experiment: Experiment,
    plans: Sequence[MotionPlan] | None = None,
) -> Problem:
    """Choose rows and filters, and join mechanism and motion; nothing is computed yet.

    Args:
        mechanism: The robot.
        logs: To identify from.
        experiment: Settings.
        plans: Filters and masks of each log where they are chosen already; default: from the data.
    """
    if not logs:
        raise InputError("no log to identify from", file=experiment.file, remedy="list files under `logs:`")
    refuse_unknown(mechanism, logs, experiment)
    model = model_for(mechanism, experiment.model, experiment.file)
    robot = variant(mechanism, payloads=tuple(dict.fromkeys(p for log in logs for p in log.payloads)))
    if model.homogeneous:
        robot = measuring_robot(robot, logs, internal_settings(experiment.internal))
    if model.tabular:
        robot = table_robot(robot, experiment, logs)
    robot = with_runs(robot, runs_of(logs))
    parameters = parameter_table(robot)
    present = np.all([log.effort_present for log in logs], axis=0)
    directions = model.directions(robot)
    refuse_passive(robot, directions, experiment)
    refuse_single_motors(robot, directions, experiment)
    directions = choose_rows(directions, experiment.efforts, present)
    if not directions.names:
        raise InputError(
            "no equation can be used: the logs share no effort",
            file=experiment.file,
            remedy="map the effort columns under `columns:`",
        )
    plans = plans_for(model, logs, robot, experiment) if plans is None else plans
    if not (model.homogeneous and is_homogeneous(directions)):
        problem = join(robot, model, parameters, directions, plans, logs, experiment)
        if model.tabular:
            return problem
        told = (*not_logged(robot, logs, experiment), *refuse_silent(logs, experiment))
        return replace(problem, notices=told)
    unit = referred(robot, parameters, [log.payloads for log in logs])
    directions = per_mass_rows(directions, unit.reference)
    problem = join(unit.robot, model, parameters, directions, plans, logs, experiment, unit.reference)
    return replace(problem, notices=unit.notices)


def plans_for(
    model: Model, logs: Sequence[Log], robot: Mechanism, experiment: Experiment
) -> tuple[MotionPlan, ...]:
    """Filters and masks of logs, chosen from the data; tables stay as they are."""
    if model.tabular:
        return tuple(MotionPlan.as_it_is(log) for log in logs)
    settings = free_motion_filter(logs, experiment.filter) if model.homogeneous else experiment.filter
    return plan_motions(logs, robot, settings, experiment.mask)


def runs_of(logs: Sequence[Log]) -> list[Run]:
    """All segments of the logs."""
    return [
        Run(log.name, i + 1, float(log.t[start])) for log in logs for i, (start, _) in enumerate(log.segments)
    ]


def join(
    robot: Mechanism,
    model: Model,
    parameters: tuple[Parameter, ...],
    directions: Directions,
    plans: Sequence[MotionPlan],
    logs: Sequence[Log],
    experiment: Experiment,
    reference: Reference | None = None,
) -> Problem:
    """A job whose every choice has been made."""
    motions = [Motion(log, plan) for log, plan in zip(logs, plans, strict=True)]
    options = _row_options(model, experiment)
    if model.windowed:
        filters = tuple(_windows(plan, experiment) for plan in plans)
    else:
        filters = row_filters(plans, experiment)
    if model.homogeneous:
        # A cut kernel passes the noise of accelerations: whole ones only, where all columns are noisy.
        filters = tuple(replace(one, support=_WHOLE) for one in filters)
    problem = Problem(
        robot, model, parameters, directions, tuple(plans), (), filters, None, options, reference
    )
    return replace(problem, sources=tuple(problem.rows_along(motion) for motion in motions))


def _row_options(model: Model, experiment: Experiment) -> dict[str, Any]:
    """What the rows of a model want to know besides."""
    if model.windowed:
        return {"integration": _integration(experiment)}
    return {"settings": wrench_settings(experiment.wrench)} if model.tabular else {}


def row_filters(plans: Sequence[MotionPlan], experiment: Experiment) -> tuple[RowFilter, ...]:
    """Low-pass and decimation of the rows of each log."""
    settings = experiment.filter
    # A cutoff asked for rows is meant as the same filter as on coordinates; the default one only
    # guards the decimation, and a sharp sinc does that better.
    order = settings.order if settings.rows is not None and settings.kind == "butterworth" else None
    return tuple(row_filter(plan.dt, plan.decimate, plan.rows_cutoff, butterworth=order) for plan in plans)


def _windows(plan: MotionPlan, experiment: Experiment) -> RowFilter:
    """Windows as asked, else as long as two kept rows."""
    window = experiment.energy.get("window") or 2.0 * plan.decimate * plan.dt
    overlap = bool(experiment.energy.get("overlap", False))
    return window_filter(plan.dt, float(window), overlap, quadrature_named(_integration(experiment)))


def _integration(experiment: Experiment) -> str:
    return str(experiment.energy.get("integration", DEFAULT))


def build_system(problem: Problem, progress: Progress | None = None, threads: int | None = None) -> System:
    """Stream every log into triangular factors: W chi = Y over the standard parameters."""
    groups = row_groups(problem, problem.sources, progress, threads)
    if not groups:
        raise InputError(
            "no row is left: the robot stands still in these logs, or masks and decimation leave nothing",
            remedy="check the speeds, `mask:` and `filter: {decimate: ...}`",
        )
    known = known_columns(problem.mechanism, problem.parameters)
    tables = [source for source in problem.sources if isinstance(source, WrenchRows)]
    if tables:
        return System(problem.parameters, groups, known, column_noise(tables), untold(tables))
    return System(problem.parameters, groups, known)


def row_groups(
    problem: Problem,
    sources: Sequence[PackedRows],
    progress: Progress | None = None,
    threads: int | None = None,
) -> tuple[Group, ...]:
    """Stream rows along the logs of a job: its own, or what a second pass makes of them."""
    groups = []
    for source, log, rows in zip(sources, problem.logs, problem.filters, strict=True):
        blocks, seconds = stream(source, rows, threads, _stage(progress, f"rows of {log.name}"))
        for k, own in grouped(blocks, problem.directions.group_names):
            entries = source.layout.columns[source.layout.start[k] : source.layout.start[k + 1]]
            columns = entries[entries != ABSENT]
            name, unit = problem.directions.group_names[k], problem.directions.units[k]
            if own.factors:
                factors, times, runs = own.factors, own.times, own.runs
                inflation = rows.inflation
                groups.append(Group(name, log.name, unit, columns, factors, inflation, times, runs, seconds))
    if problem.model.tabular:
        return tuple(replace(group, instants=True) for group in groups)
    return tuple(groups)


def as_asked(mechanism: Mechanism, experiment: Experiment) -> Mechanism:
    """The robot with the payloads and drive terms that only the experiment knows."""
    if experiment.force_sensor is not None:
        there = mechanism.force_sensor is not None
        sensor = experiment.force_sensor
        mechanism = replace(mechanism, force_sensor=sensor) if there else with_force_sensor(mechanism, sensor)
    changes: dict[str, Any] = {}
    if experiment.payloads:
        check_loads(mechanism, experiment.payloads, experiment.file)
        changes["payloads"] = {**mechanism.payloads, **experiment.payloads}
    if experiment.drive is not None:
        symbols = tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in experiment.drive)
        owners = mechanism.drive or [actuator.name for actuator in mechanism.actuators]
        changes["drive"] = dict.fromkeys(owners, symbols) if symbols else {}
    if experiment.stribeck:
        changes["stribeck"] = {**mechanism.stribeck, **experiment.stribeck}
    return replace(mechanism, **changes) if changes else mechanism


def as_log(source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
    """A log that is one already, or read from a file with the experiment's columns."""
    model = model_for(mechanism, experiment.model, experiment.file)
    if model.homogeneous:
        return _free_log(source, mechanism, experiment)
    if isinstance(source, Log):
        return source
    if model.tabular:
        settings = wrench_settings(experiment.wrench)
        return read_wrench_table(_entry(source), mechanism, settings, experiment.columns)
    return _read(source, mechanism, experiment)


def _free_log(source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
    """A log of free motion, with the coordinates that the experiment wants of it."""
    if not mechanism.cables:
        raise InputError(
            f"model 'internal' is for robots that swing on locked cables, and '{mechanism.name}' has none",
            file=experiment.file or mechanism.file,
            place="model",
            remedy="choose model: inverse, power or energy, or describe `cables:`",
        )
    settings = internal_settings(experiment.internal)
    if isinstance(source, Log):
        return free_motion_log(source, mechanism, settings)
    choose = partial(reading_robot, mechanism, settings)
    read = _read(source, mechanism, experiment, need_effort=False, choose=choose)
    return free_motion_log(read, mechanism, settings)


def _read(
    source: str | os.PathLike[str] | LogEntry, mechanism: Mechanism, experiment: Experiment, **options: Any
) -> Log:
    """A log file, read as the experiment says; `options` of `read_log` come on top."""
    return read_log(
        _entry(source),
        mechanism,
        columns=experiment.columns,
        angles=experiment.angles,
        cutoff=experiment.filter.cutoff,
        drop_bad_rows=experiment.drop_bad_rows,
        **options,
    )


def _entry(source: str | os.PathLike[str] | LogEntry) -> LogEntry:
    return source if isinstance(source, LogEntry) else LogEntry(os.fspath(source))


def _stage(progress: Progress | None, stage: str) -> Callable[[float], None] | None:
    return None if progress is None else lambda fraction: progress(stage, fraction)
