"""A force/torque sensor (`force_sensor:`): its load is identified from its six components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.case import Case
from dynid.cases.force_sensor.checks import rotation
from dynid.cases.force_sensor.compensation_export import compensation_files
from dynid.cases.force_sensor.mounting import MOUNTING, settled_sensor, shown_entries, shown_parts
from dynid.cases.force_sensor.robot import check_loads, with_force_sensor, with_runs
from dynid.checks.check import Check
from dynid.common.arrays import Array, Bool, Float
from dynid.experiment.experiment import Experiment
from dynid.fit import Fit
from dynid.mechanism.force_sensor import Run
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.problem import Problem
from dynid.projection.model import Model, RowSource
from dynid.projection.projection import Directions
from dynid.statistics.assemble import EstimateParts
from dynid.unknown import Unknown


class ForceSensorCase(Case):
    """Model `wrench` of a robot with a force sensor."""

    def chooses(self, experiment: Experiment) -> bool:
        """Readings of a sensor have no drive terms, and the load is one consistent body already."""
        return False

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Angles of the sensor, and of gravity."""
        return (MOUNTING,)

    def mounted(self, mechanism: Mechanism, experiment: Experiment) -> Mechanism:
        """The robot with the experiment's sensor on it."""
        sensor = experiment.force_sensor
        if sensor is not None and mechanism.force_sensor is not None:
            mechanism = replace(mechanism, force_sensor=sensor)
        elif sensor is not None:
            mechanism = with_force_sensor(mechanism, sensor)
        check_loads(mechanism, experiment.payloads, experiment.file)
        return mechanism

    def robot(self, robot: Mechanism, logs: Sequence[Log], experiment: Experiment) -> Mechanism:
        """One bias per run, if requested."""
        return with_runs(robot, _runs_of(logs))

    def defaults(self, experiment: Experiment, model: Model, mechanism: Mechanism) -> Experiment:
        """As set in the experiment."""
        return experiment

    def without_effort(self, directions: Directions) -> Bool[Array, "k"]:
        """Every row has a measured side."""
        return np.zeros(len(directions.names), dtype=bool)

    def loaded_bodies(self, mechanism: Mechanism) -> tuple[str, ...]:
        """The tool, and payloads."""
        sensor = mechanism.force_sensor
        return (*(() if sensor is None else (sensor.tool,)), *mechanism.payloads)

    def effort_rows(self, problem: Problem, chi: Float[Array, "p"]) -> tuple[RowSource, ...]:
        """Rows are what was measured."""
        return problem.with_load_parameters(chi).sources

    def finished(self, parts: EstimateParts, fit: Fit) -> EstimateParts:
        """Whole angles instead of corrections."""
        return shown_parts(fit.problem, parts)

    @property
    def checks(self) -> Mapping[str, Check]:
        """Whether the sensor was turned enough."""
        return {"Was the sensor rotated enough?": rotation}

    def entries(
        self, problem: Problem, entries: Sequence[Mapping[str, Any]]
    ) -> tuple[Mapping[str, Any], ...]:
        """Whole angles instead of corrections."""
        return shown_entries(problem, entries)

    def recorded(self, experiment: Experiment, problem: Problem, chi: Float[Array, "p"]) -> Experiment:
        """With the runs of the biases, and the angles found."""
        return experiment.changed(force_sensor=settled_sensor(problem, chi))

    def files(self, fit: Fit) -> dict[str, str]:
        """The program that takes the tool out of the readings."""
        unseen = list(fit.parts.not_identifiable)
        return compensation_files(fit.problem, fit.chi, unseen)

    def hides(self, choice: str) -> bool:
        """There is no friction whose sign would matter."""
        return choice in ("reversals", "rest")


def _runs_of(logs: Sequence[Log]) -> list[Run]:
    """All segments of the logs."""
    return [
        Run(log.name, i + 1, float(log.t[start])) for log in logs for i, (start, _) in enumerate(log.segments)
    ]


FORCE_SENSOR = ForceSensorCase()
