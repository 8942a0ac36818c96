"""Tables of instants (model `wrench`): six equations per body, no time series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.case import Case, LogInput
from dynid.cases.wrench_table.checks import (
    check_signs,
    direction_masses,
    mass_tests,
    mass_words,
    motion_notices,
)
from dynid.cases.wrench_table.reader import read_wrench_table
from dynid.cases.wrench_table.readings import check_reading
from dynid.cases.wrench_table.tables import refuse_options, table_robot
from dynid.cases.wrench_table.uncertainty import column_noise, hidden_parameters, with_rounding
from dynid.checks.check import Answer
from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import entry_of
from dynid.motion.table import DataFrame
from dynid.problem import Problem
from dynid.projection.model import Model, RowSource
from dynid.projection.projection import Directions, Group, System
from dynid.projection.wrench import WrenchRows
from dynid.statistics.assemble import EstimateParts

_BALANCED = 0.05  # of the wrenches, that measured data may leave too


class WrenchTable(Case):
    """Model `wrench` of tables."""

    def chooses(self, experiment: Experiment) -> bool:
        """A table of instants has no filters, masks or drive terms."""
        return False

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """As set in the experiment."""
        return experiment

    def without_effort(self, directions: Directions) -> Bool[Array, "k"]:
        """Every row has a measured side."""
        return np.zeros(len(directions.names), dtype=bool)

    @property
    def repeats(self) -> bool:
        """Instants repeat nothing."""
        return False

    def refuse(self, experiment: Experiment) -> None:
        """What needs recordings in time."""
        refuse_options(experiment)

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """The bodies and parameters to identify from the tables."""
        return table_robot(robot, experiment, logs)

    def log_notices(
        self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[Notice, ...]:
        """A table has no motors whose efforts could be missing."""
        return ()

    def read(self, source: LogInput | Log, mechanism: Mechanism, experiment: Experiment) -> Log:
        """A row per body and instant."""
        if isinstance(source, Log):
            return source
        if isinstance(source, Mapping | DataFrame):
            raise InputError("wrench tables are read from files only", remedy="save the columns as .csv")
        return read_wrench_table(entry_of(source), mechanism, experiment.wrench, experiment.columns)

    def plans(self, logs: Sequence[Log], robot: Mechanism, experiment: Experiment) -> tuple[MotionPlan, ...]:
        """Nothing is filtered."""
        return tuple(MotionPlan.as_it_is(log) for log in logs)

    @property
    def plan_kind(self) -> str:
        """No filters."""
        return "table"

    def held_out_plans(
        self, problem: Problem, logs: Sequence[Log], experiment: Experiment
    ) -> tuple[MotionPlan, ...]:
        """Nothing is filtered."""
        return self.plans(logs, problem.mechanism, experiment)

    def row_options(self, experiment: Experiment) -> dict[str, Any]:
        """How the table is read."""
        return {"settings": experiment.wrench}

    def effort_rows(self, problem: Problem, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """Rows are what was measured."""
        return problem.with_load_parameters(chi).sources

    def groups(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Instants, no time series."""
        return tuple(replace(group, instants=True) for group in groups)

    def system(self, problem: Problem, groups: tuple[Group, ...], known: dict[int, float]) -> System:
        """With what rounding does to each column."""
        tables = _tables(problem)
        return System(problem.parameters, groups, known, column_noise(tables), hidden_parameters(tables))

    @property
    def has_motors(self) -> bool:
        """Wrenches at joints are no efforts of motors."""
        return False

    @property
    def is_series(self) -> bool:
        """Instants have no order."""
        return False

    @property
    def weighs_bodies(self) -> bool:
        """Every body is weighed on its own."""
        return True

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Deviations that rounding explains."""
        return with_rounding(parts, fit)

    def residual_tests(self, fit: Fit) -> list[Answer]:
        """Tests of balances."""
        return table_checks(fit.problem, fit.chi)

    def hides(self, choice: str) -> bool:
        """There is no friction whose sign would matter."""
        return choice in ("reversals", "rest")


def _tables(problem: Problem) -> list[WrenchRows]:
    return [source for source in problem.sources if isinstance(source, WrenchRows)]


WRENCH_TABLE = WrenchTable()


# Checks of a fitted table: right conventions, one mass in all directions, motion that fits the joints.


def table_checks(problem: Problem, chi: Float[Array, "p"]) -> list[Answer]:
    """Tests, warnings and words about a fit to tables; a table that was misread is refused.

    Args:
        problem: Of the model `wrench`.
        chi: Standard parameters that give the same wrenches, shape (p,), SI.
    """
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
        motion.insert(0, _unbalanced(max(left)))
    return [*notices, *motion, *words, *tests]


def _unbalanced(left: float) -> Notice:
    return notice("no-balance", percent=100 * left)
