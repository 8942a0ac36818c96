"""Desired trajectories: of the measured joints, or of the pose of a body.

A pose is a trajectory of joints too: of a massless chain of sliders and hinges that ends in the body
(`posed_robot`). The loop that this closes is solved like any other, so every robot can follow a pose
that its description can reach, whether the body has coordinates of its own or not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.mechanism.measured_pose import POSE
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.columns import match, slots
from dynid.motion.differentiate import differentiate
from dynid.motion.filters import low_pass
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays, read_log, read_table
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import LogEntry
from dynid.prediction.posed import QUATERNION, pose_angles, posed_robot
from dynid.projection.turns import nearest_turns

_SPOILED = ("not-finite", "short-segments", "time-missing", "gap")
_MOST_OFF = 0.2  # of the rates' own size: rates that do not belong to the positions
_PLATFORM = "platform"
_FAST = 0.1  # of the sampling rate: a trajectory that is worth its samples has little there
_MOST_FAST = 0.7  # of the rms of an acceleration: half of its power
_LONG_ENOUGH = 128


@dataclass(frozen=True, eq=False)
class PoseTrajectory:
    """The desired pose of a body over time.

    Attributes:
        t: Times, shape (n,), in [s].
        pose: Some of x, y, z [m] and roll, pitch, yaw [rad] or qw, qx, qy, qz, of the body frame in the
            base frame -> values, each of shape (n,). What is left out keeps its value of the start pose.
        body: Whose pose it is.
        angles: Order of the turns, as in an experiment file: `xyz` or `zyx`.
        name: For messages.
    """

    t: Float[Array, "n"]
    pose: Mapping[str, Float[Array, "n"]]
    body: str = _PLATFORM
    angles: str = "xyz"
    name: str = "pose"


TrajectorySource = str | os.PathLike[str] | LogEntry | Log | PoseTrajectory


def desired_motion(
    source: TrajectorySource,
    mechanism: Mechanism,
    *,
    payloads: Sequence[str] = (),
    body: str | None = None,
    angles: str = "xyz",
) -> tuple[Mechanism, Motion]:
    """The robot that follows a trajectory (see `posed_robot`), and its motion with exact or derived rates.

    Args:
        source: A file with columns as in a log, or pose columns; or a `Log` or `PoseTrajectory`.
        mechanism: The robot.
        payloads: Mounted on it.
        body: Whose pose the columns of a file give; default `platform`.
        angles: Order of roll, pitch and yaw.
    """
    if not isinstance(source, Log | PoseTrajectory):
        source = _read(source, mechanism, body, angles)
    if isinstance(source, PoseTrajectory):
        mechanism, source = _of_pose(source, mechanism)
    _refuse_spoiled(source)
    log = replace(_with_rates(nearest_turns(mechanism, source)), payloads=tuple(payloads) or source.payloads)
    return mechanism, Motion(log, MotionPlan.as_it_is(log))


def _read(
    source: str | os.PathLike[str] | LogEntry, mechanism: Mechanism, body: str | None, angles: str
) -> Log | PoseTrajectory:
    """Joints if the file has them, else a pose."""
    entry = source if isinstance(source, LogEntry) else LogEntry(os.fspath(source))
    path = Path(entry.file)
    table = read_table(path)
    own = entry.columns or {}
    chosen = match(tuple(table.columns), slots(mechanism), own, path)
    prefixes = ("", f"{body or _PLATFORM}_")
    pose = {
        name: np.asarray(table.columns[prefix + name], float)
        for name in (*POSE, *QUATERNION)
        for prefix in prefixes
        if prefix + name in table.columns
    }
    if any(key.startswith("q_") for key in chosen) or not pose:
        if body is not None and not pose:
            raise InputError(
                f"the trajectory gives joints, not the pose of '{body}'",
                file=path,
                remedy="leave --body out, or give columns x y z roll pitch yaw",
            )
        return read_log(entry, mechanism, angles=angles, need_effort=False)
    if "t" not in chosen:
        text = f"no time column 't'; columns are {', '.join(table.columns)}"
        raise InputError(text, file=path, place="header", remedy="name the time t, in s")
    t = np.asarray(table.columns[chosen["t"].name], float)
    return PoseTrajectory(t, pose, body or _PLATFORM, angles, path.stem)


def _of_pose(source: PoseTrajectory, mechanism: Mechanism) -> tuple[Mechanism, Log]:
    """The robot with its guiding chain, and the motion of that chain."""
    values = pose_angles(source.pose, source.angles)
    robot = posed_robot(mechanism, source.body, tuple(values), source.angles)
    q = np.column_stack(list(values.values()))
    return robot, log_from_arrays(robot, source.t, q, None, name=source.name)


def _refuse_spoiled(log: Log) -> None:
    """A controller needs every sample: what a log may lose, a trajectory may not."""
    for one in log.notices:
        if one.code in _SPOILED:
            raise InputError(
                f"the trajectory has gaps: {one.text}", file=log.file, remedy="give every sample"
            )


def _with_rates(log: Log) -> Log:
    """Positions with both rates; those not given are slopes of the quintic spline, ends included."""
    rates = {"dq": np.zeros_like(log.q), "ddq": np.zeros_like(log.q)}
    for start, stop in log.segments:
        part = slice(start, stop)
        q = np.asarray(log.q[part], float)
        slope = differentiate(q, log.dt, "spline")
        rates["dq"][part] = _fitting(log, "dq", log.dq, part, slope)
        curve = differentiate(q, log.dt, "spline", order=2)
        if log.dq is not None:
            curve = differentiate(rates["dq"][part], log.dt, "spline")
        rates["ddq"][part] = _fitting(log, "ddq", log.ddq, part, curve)
    return replace(log, **rates, notices=(*log.notices, *_rough(log, rates["ddq"])))  # type: ignore[arg-type]


def _rough(log: Log, ddq: Float[Array, "n m"]) -> tuple[Notice, ...]:
    """Whether accelerations are mostly noise: a recorded log is no desired trajectory."""
    start, stop = max(log.segments, key=lambda one: one[1] - one[0])
    if stop - start < _LONG_ENOUGH:
        return ()
    part = ddq[start:stop]
    smooth = low_pass("butterworth", _FAST / log.dt, 4, log.dt)(part)
    inner = slice(_LONG_ENOUGH // 4, -_LONG_ENOUGH // 4)
    share = np.linalg.norm((part - smooth)[inner], axis=0) / np.maximum(
        np.linalg.norm(part[inner], axis=0), np.finfo(float).tiny
    )
    names = [name for name, one in zip(log.position_names, share, strict=True) if one > _MOST_FAST]
    if not names:
        return ()
    return (notice("rough-trajectory", names=", ".join(names), frequency=_FAST / log.dt),)


def _fitting(
    log: Log, name: str, given: Float[Array, "n m"] | None, part: slice, derived: Float[Array, "k m"]
) -> Float[Array, "k m"]:
    """Given rates, if they are those of the positions; else the derived ones."""
    if given is None:
        return derived
    own = np.asarray(given[part], float)
    size = np.sqrt(np.mean(derived**2, axis=0))
    off = np.sqrt(np.mean((own - derived) ** 2, axis=0))
    wrong = np.flatnonzero(off > _MOST_OFF * np.maximum(size, size.max(initial=0.0) * 1e-3))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"{name} of '{log.position_names[i]}' differs by {100 * off[i] / max(size[i], 1e-300):.0f} % from"
            " the derivative of its positions",
            file=log.file,
            remedy="check its unit and sign, or leave the column out",
        )
    return own
