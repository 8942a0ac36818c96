"""Tables of instants (model `wrench`): six equations per body, no time series.

Tables of bodies as problems: bodies whose equations can be formed, and settings that do not apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from dynid.case import Case
from dynid.cases.wrench_table.checks import (
    check_signs,
    direction_masses,
    mass_tests,
    mass_words,
    motion_notices,
)
from dynid.cases.wrench_table.reader import read_wrench_table
from dynid.cases.wrench_table.readings import check_reading
from dynid.cases.wrench_table.uncertainty import column_noise, hidden_parameters, with_rounding
from dynid.checks.check import Answer, Check, Finished
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.estimator import estimator_named
from dynid.experiment.experiment import Experiment, MaskSettings
from dynid.fit import Fit
from dynid.mechanism.mechanism import Body, Mechanism
from dynid.motion.body_table import TableLog
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import FilterSettings, WrenchSettings, entry_of
from dynid.motion.table import DataFrame
from dynid.problem import Problem
from dynid.projection.model import Model
from dynid.projection.projection import Group, System
from dynid.projection.wrench import WrenchRows, children
from dynid.statistics.assemble import EstimateParts

_BALANCED = 0.05  # of the wrenches, that measured data may leave too


def _tables(problem: Problem) -> list[WrenchRows]:
    return [source for source in problem.sources if isinstance(source, WrenchRows)]


# Checks of a fitted table: right conventions, one mass in all directions, motion that fits the joints.


def table_checks(finished: Finished) -> list[Answer]:
    """Tests, warnings and words about a fit to tables; a table that was misread is refused."""
    problem, chi = finished.fit.problem, finished.fit.chi
    sources = [source for source in problem.sources if isinstance(source, WrenchRows)]
    left = [check_reading(source) for source in sources]
    index = {parameter.name: i for i, parameter in enumerate(problem.parameters)}
    directions = direction_masses(sources, chi)
    masses = {entry.body: float(chi[index[f"M_{entry.body}"]]) for entry in directions}
    if masses:
        check_signs(sources, masses)
    tests, notices = mass_tests(directions, masses)
    words = [("mass by direction", mass_words(directions, masses))] if directions else []
    motion = [notice for source in sources for notice in motion_notices(source)]
    if max(left) > _BALANCED:
        motion.insert(0, notice("no-balance", percent=100 * max(left)))
    return [*notices, *motion, *words, *tests]


PRINCIPAL = ("XX", "YY", "ZZ", "M")
_LEAST_INSTANTS = 2
_SHOWN = 4
# What needs recordings in time, and what to do instead.
_REFUSED = {
    "drives": "leave it out: a table has no signals of drives",
    "efforts": "choose bodies: wrench: {bodies: [...]}",
    "cross_validate": "give another table under `validate:`",
    "gate": "give another table under `validate:`, and compare with the priors in the report",
    "refine": "leave it out: a table of single instants cannot be simulated",
    "gains": "leave it out: a table has no drives",
    "stribeck": "leave it out: the equations of the bodies have no friction",
    "drive": "leave it out: the equations of the bodies have no friction",
}


def table_robot(mechanism: Mechanism, experiment: Experiment, logs: Sequence[Log]) -> Mechanism:
    """The robot with the bodies and parameters to identify from its tables, without drives.

    Args:
        mechanism: With the payloads that are mounted.
        experiment: The settings.
        logs: Tables; anything else is refused.
    """
    settings = experiment.wrench
    tables = [_as_table(log) for log in logs]
    refuse_options(experiment)
    notices: list[Notice] = []
    chosen = _chosen(mechanism, settings, tables, notices)
    asked = PRINCIPAL if settings.parameters == "principal" else None
    bodies: dict[str, Body] = {}
    for name, body in mechanism.bodies.items():
        kept = tuple(s for s in body.parameters if asked is None or s in asked) if name in chosen else ()
        bodies[name] = replace(body, parameters=kept)
    payloads = {name: payload for name, payload in mechanism.payloads.items() if payload.body in chosen}
    return replace(
        mechanism,
        bodies=bodies,
        payloads=payloads,
        drive={},
        stribeck={},
        terms=(),
        rebuild=None,
        notices=(*mechanism.notices, *notices),
    )


def _as_table(log: Log) -> TableLog:
    if not isinstance(log, TableLog):
        raise InputError(
            f"log '{log.name}' is a recording of joints, and model 'wrench' needs a table with a row per body"
            " and instant",
            file=log.file,
            remedy="read it with `read_wrench_table`, or choose another model",
        )
    if len(log.t) < _LEAST_INSTANTS:
        raise InputError(
            f"the table has {len(log.t)} instant: too few to estimate parameters and their errors",
            file=log.file,
            remedy="give three instants or more, with different orientations and motions",
        )
    return log


def refuse_options(experiment: Experiment) -> None:
    """Refuse what needs recordings in time; filters and masks would have no effect."""
    settings = experiment.filter
    filtered = settings.cutoff is not None or settings.rows is not None or (settings.decimate or 1) > 1
    for name, asked in (("filter", filtered), ("mask", experiment.mask != MaskSettings())):
        if asked:
            raise _refusal(name, experiment, "leave it out: instants are neither filtered nor dropped")
    if experiment.uncertainty.method == "hac" or experiment.uncertainty.block is not None:
        remedy = "use cluster (over the instants), classical, bootstrap or leave-one-out, without block"
        raise _refusal("uncertainty", experiment, remedy)
    if estimator_named(experiment.estimator, experiment.estimator_options).needs_time:
        remedy = "use wls, ols, robust, tls or consistent"
        raise _refusal(f"estimator: {experiment.estimator}", experiment, remedy)


def _refusal(name: str, experiment: Experiment, remedy: str) -> InputError:
    return InputError(
        f"'{name}' has no meaning for a table of instants", file=experiment.file, place=name, remedy=remedy
    )


def _chosen(
    robot: Mechanism, settings: WrenchSettings, tables: Sequence[TableLog], notices: list[Notice]
) -> list[str]:
    """Bodies to identify: those requested, else all whose equations can be formed."""
    massive = [name for name, body in robot.bodies.items() if body.parameters]
    reasons = {name: why for name in massive if (why := _why_not(robot, name, tables))}
    file = tables[0].file
    for name in settings.bodies or ():
        if name in reasons:
            raise InputError(
                f"the equations of body '{name}' cannot be formed: {reasons[name]}",
                file=file,
                place="wrench.bodies",
                remedy=f"add the missing rows, or leave '{name}' out",
            )
    if settings.bodies is not None:
        return list(settings.bodies)
    usable = [name for name in massive if name not in reasons]
    if not usable:
        first = next(iter(reasons))
        raise InputError(
            f"the equations of no body can be formed; '{first}': {reasons[first]}",
            file=file,
            remedy="give a row for each body and for all its child bodies",
        )
    if reasons:
        shown = [f"'{name}' ({why})" for name, why in reasons.items()]
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        names = f"{', '.join(shown[:_SHOWN])}{more}"
        notices.append(notice("body-left-out", names=names, are="is" if len(shown) == 1 else "are"))
    return usable


def _why_not(robot: Mechanism, name: str, tables: Sequence[TableLog]) -> str:
    """Why the equations of a body cannot be formed; empty if they can."""
    for loop in robot.loops:
        if name in (loop.body_a, loop.body_b):
            return f"loop '{loop.name}' acts on it with forces that are not in the table"
    for cable in robot.cables:
        if name in (cable.body_from, cable.body_to):
            return f"cable '{cable.name}' acts on it with forces that are not in the table"
    for log in tables:
        table = log.rows
        number = {body: i for i, body in enumerate(table.bodies)}
        if not table.present[:, number[name]].any():
            return f"no row in {log.name}"
        for child in children(robot, name):
            if not table.present[:, number[child]].any():
                return f"no row of its child '{child}' in {log.name}"
            both = table.present[:, number[name]] & table.present[:, number[child]]
            if not both.any():
                return f"no row of its child '{child}' at the same t in {log.name}"
    return ""


class WrenchTable(Case):
    """Model `wrench` of tables."""

    checks: ClassVar[Mapping[str, Check]] = {"Do the wrenches of every body balance?": table_checks}
    measures_efforts: ClassVar[bool] = False
    measures_signals: ClassVar[bool] = False
    is_series: ClassVar[bool] = False

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """As set in the experiment; what no table has is refused."""
        for name in _REFUSED:
            if getattr(experiment, name):
                raise _refusal(name, experiment, _REFUSED[name])
        return experiment

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """The bodies and parameters to identify from the tables."""
        return table_robot(robot, experiment, logs)

    def read(self, source: LogSource, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A row per body and instant."""
        if isinstance(source, Log):
            return source
        if isinstance(source, Mapping | DataFrame):
            raise InputError("wrench tables are read from files only", remedy="save the columns as .csv")
        return read_wrench_table(entry_of(source), mechanism, experiment.wrench, experiment.columns)

    def plans(
        self,
        logs: Sequence[Log],
        robot: Mechanism,
        experiment: Experiment,
        chosen: FilterSettings | None = None,
    ) -> tuple[MotionPlan, ...]:
        """Nothing is filtered."""
        return tuple(MotionPlan.as_it_is(log) for log in logs)

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """How the table is read."""
        return {"settings": experiment.wrench}

    def system(self, problem: Problem, groups: tuple[Group, ...], known: dict[int, float]) -> System:
        """With what rounding does to each column."""
        tables = _tables(problem)
        return System(problem.parameters, groups, known, column_noise(tables), hidden_parameters(tables))

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Deviations that rounding explains."""
        return with_rounding(parts, fit)


WRENCH_TABLE = WrenchTable()
