"""Filters of servo logs: both sides of the equations alike, because friction jumps."""

from __future__ import annotations

import numpy as np

from dynid.case import task_case
from dynid.experiment.experiment import Experiment
from dynid.unknown import Task

_SHARPER, _SMOOTHER = 2.5, 0.4  # low-pass of coordinates and of rows, times the cutoff for coordinates alone
_MOST_RATE = 0.2  # of the sampling rate: a low-pass on coordinates above is none
_SIGMAS = 3.0  # of the noise of a speed


def with_filters(task: Task) -> Experiment:
    """Settings that filter the rows more than the coordinates, where the user has chosen neither.

    Coulomb friction jumps. If only coordinates are filtered, its jumps are smooth in W and sharp in the
    efforts, and this difference is larger than the noise of an encoder; a filter of both sides keeps them
    equal. The sign of a speed below its noise is not known: these samples are masked.
    """
    experiment, filters = task.experiment, task.experiment.filter
    if task.plans is not None or filters.cutoff or filters.rows or filters.kind == "none":
        return experiment
    case = task_case(task.mechanism, experiment)
    chosen = min(case.plans(task.logs, task.mechanism, experiment), key=lambda plan: plan.cutoff or np.inf)
    if chosen.cutoff is None:
        return experiment
    cutoff = min(_SHARPER * chosen.cutoff, _MOST_RATE / chosen.dt)
    rows = min(_SMOOTHER * chosen.cutoff, 0.8 * cutoff)
    experiment = experiment.changed(filter=filters.changed(cutoff=cutoff, rows=rows))
    if experiment.mask.speed is not None:
        return experiment
    plans = case.plans(task.logs, task.mechanism, experiment)
    speed = _SIGMAS * max(max(plan.noise, default=0.0) for plan in plans)
    return experiment.changed(mask=experiment.mask.changed(speed=float(speed)))
