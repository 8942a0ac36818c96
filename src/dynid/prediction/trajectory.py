"""Desired trajectories: of the measured joints, or of the pose of a body.

A pose is a trajectory of joints too: of a massless chain of sliders and hinges that ends in the body
(`posed_robot`). The loop that this closes is solved like any other, so every robot can follow a pose
that its description can reach, whether the body has coordinates of its own or not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from dynid.common.arrays import Array, Float
from dynid.common.catalogue import codes_with
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.experiment.experiment import Experiment
from dynid.mechanism.measured_pose import POSE
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.choose import position_spectrum
from dynid.motion.columns import match, of_positions
from dynid.motion.differentiate import differentiate
from dynid.motion.filters import LowPass, low_pass
from dynid.motion.log import Log, runs_by_content
from dynid.motion.logs import log_from_arrays, log_from_columns, read_log, read_table
from dynid.motion.motion import Motion
from dynid.motion.plan import MotionPlan
from dynid.motion.settings import ColumnMap, DriveSettings, LogEntry
from dynid.motion.slots import slots
from dynid.motion.spectrum import cutoff_of
from dynid.motion.table import DataFrame, Table, table_from_columns
from dynid.prediction.posed_robot import QUATERNION, pose_angles, posed_robot
from dynid.projection.turns import nearest_turns

_SPOILED = codes_with("samples lost")
_MOST_OFF = 0.2  # of the rates' own size: rates that do not belong to the positions
_PLATFORM = "platform"
_FAST = 0.1  # of the sampling rate: a trajectory that is worth its samples has little there
_MOST_FAST = 0.7  # of the rms of an acceleration: half of its power
_LONG_ENOUGH = 128
_PERIODS = 2.0  # of the cutoff, to which the polynomials that continue the ends are fitted
_DEGREE = 5
_FITTED = 12  # samples at either end of a smooth motion; they halve the noise of accelerations inside
_PLACES = np.arange(_FITTED) / _FITTED
_ENDS = 2  # samples at which a spline multiplies noise by more than inside
_SIXTH_DIFFERENCE = 0.6745 * np.sqrt(924.0)  # median of its size, for white noise of deviation 1
_MOST_NOISE = 3.0  # deviations; the residual of six samples scatters
_ROUNDING = 1e3 * float(np.finfo(float).eps)  # of a position: a second difference of a spline multiplies it


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


Columns = Mapping[str, Any] | DataFrame
TrajectorySource = str | os.PathLike[str] | LogEntry | Log | PoseTrajectory | Columns


def desired_motion(
    source: TrajectorySource,
    mechanism: Mechanism,
    *,
    payloads: Sequence[str] = (),
    body: str | None = None,
    angles: str = "xyz",
    columns: Mapping[str, ColumnMap] | None = None,
    recorded: Experiment | None = None,
) -> tuple[Mechanism, Motion]:
    """The robot that follows a trajectory (see `posed_robot`), and its motion with exact or derived rates.

    Args:
        source: A file, data frame or mapping with columns as in a log, or pose columns; or a `Log` or
            `PoseTrajectory`.
        payloads: Mounted on it.
        body: Whose pose the columns of a file give; default `platform`.
        angles: Order of roll, pitch and yaw.
        columns: Where names, units or zeros differ; default: as in the logs of `recorded`.
        recorded: Whose `columns` and `drives` are used where the file has them; default: of none.
    """
    if not isinstance(source, Log | PoseTrajectory):
        source = _read(source, mechanism, body, angles, columns, recorded)
    if isinstance(source, PoseTrajectory):
        mechanism, source = _of_pose(source, mechanism)
    for remark in source.notices:  # a controller needs every sample
        if remark.code in _SPOILED:
            raise InputError(
                f"the trajectory has gaps: {remark.text}", file=source.file, remedy="give every sample"
            )
    log = replace(_with_rates(nearest_turns(mechanism, source)), payloads=tuple(payloads) or source.payloads)
    return mechanism, Motion(log, MotionPlan.as_it_is(log))


def _read(
    source: str | os.PathLike[str] | LogEntry | Columns,
    mechanism: Mechanism,
    body: str | None,
    angles: str,
    columns: Mapping[str, ColumnMap] | None,
    recorded: Experiment | None,
) -> Log | PoseTrajectory:
    """Joints if the file or the columns in memory have them, else a pose."""
    in_memory = source if isinstance(source, Mapping | DataFrame) else None
    if isinstance(source, Mapping | DataFrame):
        entry, table = LogEntry("trajectory"), table_from_columns(source, "trajectory")
    else:
        entry = source if isinstance(source, LogEntry) else LogEntry(os.fspath(source))
        table = read_table(Path(entry.file))
    drives: Mapping[str, DriveSettings] = {}
    remarks: tuple[Notice, ...] = ()
    if columns is None and recorded is not None:
        columns = of_positions(recorded.columns, table, slots(mechanism), entry.file)
        drives = recorded.drives
        plain = _has_plain_names(table, mechanism, entry.file)
        remarks = _read_as_logs(columns, drives, plain)
        columns, drives = ({}, {}) if plain else (columns, drives)
    columns = {**(columns or {}), **(entry.columns or {})}
    pose = _pose(table, mechanism, body, angles, columns, Path(entry.file))
    if pose is not None:
        return pose
    if in_memory is not None:
        log = log_from_columns(
            in_memory,
            mechanism,
            name=entry.file,
            columns=columns,
            angles=angles,
            need_effort=False,
            drives=drives,
        )
    else:
        log = read_log(entry, mechanism, columns=columns, angles=angles, need_effort=False, drives=drives)
    return replace(log, notices=(*log.notices, *remarks))


def _has_plain_names(table: Table, mechanism: Mechanism, file: str) -> bool:
    """Whether q_1.. of all measured joints are there: these are in rad and m, whatever the logs were."""
    known = slots(mechanism)
    found = match(tuple(table.columns), known, {}, file)
    positions = [slot.key for slot in known if slot.quantity == "q"]
    return bool(positions) and all(key in found for key in positions)


def _read_as_logs(
    columns: Mapping[str, ColumnMap], drives: Mapping[str, DriveSettings], plain: bool
) -> tuple[Notice, ...]:
    """A note of the factors and zeros of the logs of a result that are used for a trajectory, or not."""
    changed = [key for key, entry in columns.items() if entry.changed(name="") != ColumnMap()]
    changed += [f"drive {name}" for name, drive in drives.items() if drive.scale("q", None) != 1.0]
    if not changed:
        return ()
    names = ", ".join(changed)
    if plain:
        return (notice("trajectory-as-logs", "plain", names=names),)
    return (notice("trajectory-as-logs", names=names),)


def _pose(
    table: Table,
    mechanism: Mechanism,
    body: str | None,
    angles: str,
    mapping: Mapping[str, ColumnMap],
    file: str | Path,
) -> PoseTrajectory | None:
    """The pose that the columns give; None if they give joints."""
    chosen = match(tuple(table.columns), slots(mechanism), table.mapped(mapping), file)
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
                file=file,
                remedy="leave --body out, or give columns x y z roll pitch yaw",
            )
        return None
    if "t" not in chosen:
        text = f"no time column 't'; columns are {', '.join(table.columns)}"
        raise InputError(text, file=file, place="header", remedy="name the time t, in s")
    t = np.asarray(table.columns[chosen["t"].name], float)
    return PoseTrajectory(t, pose, body or _PLATFORM, angles, Path(file).stem)


def _of_pose(source: PoseTrajectory, mechanism: Mechanism) -> tuple[Mechanism, Log]:
    """The robot with its guiding chain, and the motion of that chain."""
    values = pose_angles(source.pose, source.angles)
    robot = posed_robot(mechanism, source.body, tuple(values), source.angles)
    q = np.column_stack(list(values.values()))
    return robot, log_from_arrays(robot, source.t, q, None, name=source.name)


def _with_rates(log: Log) -> Log:
    """Positions with both rates, those of a recorded motion without its noise."""
    found = _derived(log)
    rough = _rough(log, np.asarray(found.ddq))
    if not rough:
        return found
    smooth, frequency = _smoothed(log), _FAST / log.dt
    if smooth is None:
        remark = notice("rough-trajectory", names=rough, frequency=frequency)
    else:
        found = _derived(smooth[0])
        remark = notice(
            "rough-trajectory",
            "smoothed",
            names=rough,
            frequency=frequency,
            cutoff=smooth[1],
            end=1.0 / smooth[1],
        )
    return replace(found, notices=(*log.notices, remark))


def _derived(log: Log) -> Log:
    """Positions with both rates; those not given are slopes of the quintic spline, ends included."""
    dq, ddq = np.zeros_like(log.q), np.zeros_like(log.q)
    for start, stop in log.segments:
        part = slice(start, stop)
        q = np.asarray(log.q[part], float)
        dq[part] = _fitting(log, "dq", log.dq, part, _slopes(q, log.dt))
        curve = _slopes(q, log.dt, 2) if log.dq is None else _slopes(dq[part], log.dt)
        ddq[part] = _fitting(log, "ddq", log.ddq, part, curve)
    return replace(log, dq=dq, ddq=ddq)


def _slopes(x: Float[Array, "n m"], dt: float, order: int = 1) -> Float[Array, "n m"]:
    """Derivatives of the quintic spline, shape (n, m), per s^order.

    At its ends it multiplies noise and rounding by nine times as much as inside. A polynomial of the same
    degree through more samples is used there, if it is as near to them as their noise allows.
    """
    found = differentiate(x, dt, "spline", order=order)
    if len(x) < 2 * _FITTED:
        return found
    noise = np.median(np.abs(np.diff(x, 6, axis=0)), axis=0) / _SIXTH_DIFFERENCE
    for end, sign in ((slice(None), 1.0), (slice(None, None, -1), (-1.0) ** order)):
        first = x[end][:_FITTED]
        fit = polynomial.polyfit(_PLACES, first, 5)
        off = np.sqrt(np.sum((first - polynomial.polyval(_PLACES, fit).T) ** 2, axis=0) / (_FITTED - 6))
        steady = np.flatnonzero(off < _MOST_NOISE * noise)
        bend = polynomial.polyval(_PLACES[:_ENDS], polynomial.polyder(fit, order)).T / (_FITTED * dt) ** order
        found[end][:_ENDS, steady] = sign * bend[:, steady]
    return found


def _smoothed(log: Log) -> tuple[Log, float] | None:
    """A recorded motion without its noise, by the rule of an identification, and the cutoff in [Hz].

    None where accelerations are given, where turns are quaternions, or where a part is too short.
    """
    turned = any(name.endswith("_qw") for name in log.position_names)
    if log.ddq is not None or turned or min(stop - start for start, stop in log.segments) < _LONG_ENOUGH:
        return None
    cutoff = cutoff_of([position_spectrum(log)], log.dt)
    if cutoff >= _FAST / log.dt:
        return None
    smooth = low_pass("butterworth", cutoff, 4, log.dt)[0]
    values = {"q": log.q, "dq": log.dq}
    made = {name: np.array(x, float) for name, x in values.items() if x is not None}
    for x in made.values():
        for start, stop in log.segments:
            x[start:stop] = _continued(x[start:stop], cutoff * log.dt, smooth)
    return replace(log, **made), cutoff  # type: ignore[arg-type]


def _continued(x: Float[Array, "n m"], cutoff: float, smooth: LowPass) -> Float[Array, "n m"]:
    """A filtered motion whose ends are continued by a polynomial: an odd continuation has no acceleration.

    Args:
        x: Positions or rates, shape (n, m).
        cutoff: Of the filter, in parts of the sampling rate.
        smooth: The filter.
    """
    width = min(len(x), ceil(_PERIODS / cutoff))
    inside = np.vander(np.arange(width) / width, _DEGREE + 1)
    outside = np.vander(-np.arange(width, 0, -1) / width, _DEGREE + 1)
    before, after = (outside @ np.linalg.lstsq(inside, end[:width], rcond=None)[0] for end in (x, x[::-1]))
    return smooth(np.concatenate([before, x, after[::-1]]))[width:-width]


def _rough(log: Log, ddq: Float[Array, "n m"]) -> str:
    """Names of joints whose accelerations are mostly noise: a recorded log is no desired trajectory."""
    _, start, stop = runs_by_content([log])[0]
    if stop - start < _LONG_ENOUGH:
        return ""
    part = ddq[start:stop]
    smooth = low_pass("butterworth", _FAST / log.dt, 4, log.dt)[0](part)
    inner = slice(_LONG_ENOUGH // 4, -_LONG_ENOUGH // 4)
    size, fast = (np.sqrt(np.mean(x[inner] ** 2, axis=0)) for x in (part, part - smooth))
    # The accelerations of a joint at rest are rounding errors of its positions.
    rounding = _ROUNDING * np.abs(log.q[start:stop]).max(axis=0) / log.dt**2
    rough = (fast > _MOST_FAST * size) & (size > rounding)
    return ", ".join(
        name for name, is_rough in zip(log.position_names, rough.tolist(), strict=True) if is_rough
    )


def _fitting(
    log: Log, name: str, given: Float[Array, "n m"] | None, part: slice, derived: Float[Array, "k m"]
) -> Float[Array, "k m"]:
    """Given rates, if they are those of the positions; else the derived ones."""
    if given is None:
        return derived
    supplied = np.asarray(given[part], float)
    size = np.sqrt(np.mean(derived**2, axis=0))
    off = np.sqrt(np.mean((supplied - derived) ** 2, axis=0))
    wrong = np.flatnonzero(off > _MOST_OFF * np.maximum(size, size.max(initial=0.0) * 1e-3))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"{name} of '{log.position_names[i]}' differs by {100 * off[i] / max(size[i], 1e-300):.0f} % from"
            " the derivative of its positions",
            file=log.file,
            remedy="check its unit and sign, or leave the column out",
        )
    return supplied


# A robot guided by the pose of one of its bodies: a massless chain leads the body through space.
#
# base - x - y - z - roll - pitch - yaw - (weld) - body: sliders and hinges for the coordinates that are
# given, fixed turns and offsets of the start pose for those that are not.
