"""Drive gains of an identification: efforts as logged in, efforts with gains applied out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from dynid.case import task_case
from dynid.common.arrays import Array, Float
from dynid.linear import base_of
from dynid.prediction.result_values import applied, nominal_factors
from dynid.problem import prepare
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.joined import joined
from dynid.unknown import Settled, Task
from dynid.unknowns.gain_rows import DriveGains, check_gains, find_gains


class DriveGainsUnknown:
    """Drive gains as an unknown of the data: found from rows in which every motor has its own column."""

    of_equations = False

    def settle(self, task: Task) -> Settled:
        """Find the gains that an experiment leaves open, and apply them to its logs."""
        settings, mechanism = task.experiment.gains, task.mechanism
        if settings is None:
            return Settled(task)
        task_case(mechanism, task.experiment).refuse(task.experiment)
        motors = tuple(actuator.name for actuator in mechanism.actuators)
        nominal = nominal_factors(motors, settings)
        if settings.checks_only:
            return Settled(_scaled(task, nominal))
        check_gains(task.experiment)
        problem = prepare(mechanism, _scaled(task, nominal).logs, task.experiment)
        found = find_gains(problem, base_of(problem, task.experiment), task.experiment, task.progress)
        return Settled(_scaled(task, found.factors), found.choices, joins=partial(_joined, found))


DRIVE_GAINS = DriveGainsUnknown()


def _scaled(task: Task, factors: Float[Array, "a"]) -> Task:
    """The task with factors on the efforts of all its logs."""
    logs = tuple(applied(log, factors) for log in task.logs)
    held_out = tuple(applied(log, factors) for log in task.held_out)
    return replace(task, logs=logs, held_out=held_out)


def _joined(gains: DriveGains, parts: EstimateParts) -> EstimateParts:
    """The parameters and the gains, with their joint uncertainty."""
    u = len(gains.nominal)
    scale = np.concatenate([np.ones(len(gains.parameters) - u), gains.nominal])
    spread = replace(gains.spread, covariance=gains.spread.covariance * np.outer(scale, scale))
    names = [one.name for one in gains.parameters]
    priors = dict(zip(names, scale.tolist(), strict=True))
    return joined(parts, gains.parameters, gains.chi * scale, spread, gains.notices, priors)
