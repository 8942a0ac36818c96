"""A payload from joint efforts: library function of the difference method (see `unloaded`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.experiment.experiment import LogEntry, UnloadedModel, experiment_from
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.mechanism import Payload
from dynid.motion.log import Log
from dynid.motion.logs import LogSource
from dynid.motion.sources import each_log
from dynid.pipeline import identify_logs
from dynid.prediction.result_values import saved
from dynid.problem import as_log
from dynid.statistics.estimate import Estimate


def payload_from_torques(
    result: str | os.PathLike[str],
    log: LogSource | Sequence[LogSource],
    body: str,
    *,
    name: str = "payload",
    xyz: Sequence[float] = (0.0, 0.0, 0.0),
    rpy: Sequence[float] = (0.0, 0.0, 0.0),
    free: Sequence[str] = (),
    **options: Any,
) -> Estimate:
    """The ten parameters of a payload: a loaded log minus the efforts predicted by a result without load.

    Args:
        result: `result.json` of the robot without load, or its folder.
        log: One loaded log or several.
        body: That carries the payload.
        name: Of the payload: its parameters are `M_<name>`, ...
        xyz, rpy: Frame of its parameters in the body, in [m] and [rad].
        free: Names or globs of the robot's parameters that are identified again, e.g. `["Off_*"]`.
        options: `filter`, `mask`, `estimator`, ... as for `identify`.
    """
    _, before, robot = saved(result)
    if body not in robot.bodies:
        raise InputError(
            f"no body '{body}' in robot '{robot.name}'" + nearest(body, robot.bodies),
            remedy="name the body that carries the payload",
        )
    roll, pitch, yaw = (float(angle) for angle in rpy)
    frame = Frame(rpy_matrix((roll, pitch, yaw)), np.array(xyz, float))
    loaded = replace(robot, payloads={**robot.payloads, name: Payload(name, body, frame)})
    given = {"columns": before.columns, "angles": before.angles, **options}
    given["unloaded"] = UnloadedModel(os.fspath(result), tuple(free))
    experiment = experiment_from({"robot": loaded, **given})
    logs = log if isinstance(log, Sequence) and not isinstance(log, str) else [log]
    read = [_mounted(as_log(_entry(source, name), loaded, experiment), name) for source in each_log(logs)]
    return identify_logs(loaded, read, experiment=experiment)


def _entry(log: LogSource, name: str) -> LogSource:
    return LogEntry(os.fspath(log), (name,)) if isinstance(log, str | os.PathLike) else log


def _mounted(log: Log, name: str) -> Log:
    return log if name in log.payloads else replace(log, payloads=(*log.payloads, name))
