"""Logs of free motion: their coordinates, the locked lengths, and checks of both.

A log contains the full pose, or free coordinates with the locked lengths l0 of every cable. What the model
uses is decided here once, so that later stages only see measured coordinates: the pose, or free
coordinates and constant lengths from which the closure solver finds the others [CableRobot, eq. 44].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.cases.free_motion.locked_lengths import check_given, check_spread, estimated
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.strict_number import is_count
from dynid.experiment.sections import (
    AUTO,
    BY_FREE,
    ESTIMATE,
    GIVEN,
    MEASURED,
    PROJECTED,
    REFINE,
    InternalSettings,
)
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.elimination import best_coordinates
from dynid.kinematics.locked_motion import free_names, locked_motion_of
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.cable import driven_cables
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.columns import match
from dynid.motion.log import Log
from dynid.motion.settings import ColumnMap
from dynid.motion.slots import ANGLES, slots

_SAMPLES = 400  # poses of a log at which free coordinates are judged
# Of a measured pose over the same of a length: lengths are met, poses are bent.
_TRUST = 1e3


def reading_robot(
    mechanism: Mechanism,
    settings: InternalSettings,
    names: Sequence[str],
    columns: Mapping[str, ColumnMap | str],
) -> Mechanism:
    """The robot that measures what a file with these columns holds: the pose, lengths, free coordinates."""
    lengths = tuple(cable.name for cable in driven_cables(mechanism))
    named = named_free(mechanism, settings)
    named = named if set(named) <= set(mechanism.positions) else ()
    for measured in dict.fromkeys(choice for choice in (mechanism.measured, named) if choice):
        robot = replace(
            mechanism, measured=(*measured, *(length for length in lengths if length not in measured))
        )
        known = slots(robot)
        known_keys = {spelled for slot in known for spelled in slot.spellings}
        matched = match(
            names, known, {key: column for key, column in columns.items() if key in known_keys}, None
        )
        present = _present(robot, matched)
        if set(replace(mechanism, measured=measured).measured_positions) <= present:
            _check_lengths_present(lengths, present)
            more = [length for length in lengths if length in present and length not in measured]
            return replace(robot, measured=(*measured, *more))
    return mechanism


def _check_lengths_present(lengths: Sequence[str], present: set[str]) -> None:
    missing = [length for length in lengths if length not in present]
    if missing and len(missing) < len(lengths):
        raise InputError(
            f"{len(lengths) - len(missing)} locked lengths for {len(lengths)} cables:"
            f" {', '.join(missing)} missing",
            place="header",
            remedy=f"give l0_1 to l0_{len(lengths)}, one for every cable in file order",
        )


def _present(robot: Mechanism, matched: Mapping[str, ColumnMap]) -> set[str]:
    """Measured positions given by the chosen columns; three angles give a quaternion."""
    positions = robot.measured_positions
    present = {positions[int(key[2:]) - 1] for key in matched if key.startswith("q_") and is_count(key[2:])}
    for joint in robot.joints:
        if joint.has_quaternion and all(f"{joint.name}_{angle}" in matched for angle in ANGLES):
            present |= set(joint.positions[-4:])
    return present


def named_free(mechanism: Mechanism, settings: InternalSettings) -> tuple[str, ...]:
    """Free coordinates by name, in full; empty where they are to be chosen."""
    free = settings.free or mechanism.free
    return () if not free or free == (AUTO,) else tuple(free_names(mechanism, free))


def free_motion_log(log: Log, mechanism: Mechanism, settings: InternalSettings) -> Log:
    """The log with the coordinates that the model uses, its lengths found and judged.

    Args:
        log: With the whole pose, or free coordinates and lengths, or all of them.
        mechanism: With the cables as coordinates.
        settings: Of the model.
    """
    cables = [cable.name for cable in driven_cables(mechanism)]
    has_lengths = all(name in log.position_names for name in cables)
    whole = _whole(log, mechanism, cables)
    usual = PROJECTED if settings.lengths == REFINE else MEASURED
    way = settings.pose or (usual if whole else BY_FREE)
    if way != BY_FREE and not whole:
        raise InputError(
            f"pose: {way} needs the full pose, but log '{log.name}' has {', '.join(log.position_names)}",
            file=log.file,
            remedy="log x, y, z and the orientation, or use pose: free",
        )
    source = settings.lengths or (GIVEN if has_lengths else ESTIMATE)
    if ((source == GIVEN and way != MEASURED) or not whole) and not has_lengths:
        raise InputError(
            f"log '{log.name}' has no locked lengths",
            file=log.file,
            remedy="add columns l0_1.. in the order of the cables"
            + (", or use lengths: estimate" if whole else ": free coordinates do not determine the pose"),
        )
    spread = None
    if whole:
        spread = estimated(log, mechanism, [name for name in log.position_names if name not in cables])
        origins = {a: pose for (a, _), pose in zip(log.segments, spread.first, strict=True)}
        log = replace(
            log, origins=origins, notices=(*log.notices, *spread.notices, *check_spread(log, spread, cables))
        )
    if has_lengths:
        log = check_given(log, mechanism, cables, spread)
    if spread is not None and (source == ESTIMATE or not has_lengths):
        lengths = spread.mean
    elif has_lengths:
        lengths = given_lengths(log, cables)
    else:
        lengths = None
    if has_lengths and way == MEASURED:
        log = replace(log, lengths=given_lengths(log, cables))
    return _arranged(log, mechanism, settings, way, lengths)


def given_lengths(log: Log, cables: Sequence[str]) -> Float[Array, "s c"]:
    """Locked lengths of each run as the log has them, shape (s, c), in [m]."""
    columns = [log.position_names.index(name) for name in cables]
    return np.array([np.median(log.q[a:b, columns], axis=0) for a, b in log.segments])


def with_lengths(log: Log, mechanism: Mechanism, lengths: Float[Array, "s c"]) -> Log:
    """The same log with other locked lengths in each run: what a refinement changes.

    Args:
        log: As `free_motion_log` made it, with lengths among its coordinates.
        mechanism: The robot.
        lengths: Of each run and each cable that has a coordinate, in file order, in [m].
    """
    q = np.array(log.q)
    for i, cable in enumerate(driven_cables(mechanism)):
        column = log.position_names.index(cable.name)
        for run, (a, b) in enumerate(log.segments):
            q[a:b, column] = lengths[run, i]
    return replace(log, q=q)


def measuring_robot(mechanism: Mechanism, logs: Sequence[Log], settings: InternalSettings) -> Mechanism:
    """The robot whose measured coordinates are those of the first log, its free coordinates chosen.

    Logs may hold different coordinates (the whole pose in one, free coordinates and lengths in another):
    each is solved from its own. Only the trust in lengths and poses is shared, by name.

    Args:
        mechanism: With `free` and `nullspace` as set.
        logs: As `free_motion_log` made them.
        settings: Of the model.
    """
    robot = replace(measuring(mechanism, logs[0]), nullspace=settings.nullspace)
    for names in dict.fromkeys(log.position_names for log in logs):
        if settings.pose == PROJECTED or set(names) > {cable.name for cable in driven_cables(robot)}:
            robot = _trusting(robot, names)
    free = named_free(mechanism, settings)
    if settings.nullspace != "free" or free:
        return replace(robot, free=free)
    motion = locked_motion_of(robot)
    chosen = motion.free_indices(AUTO, motion.basis(_tangents(robot, logs)))
    return replace(robot, free=tuple(robot.coordinates[i] for i in chosen))


def measuring(mechanism: Mechanism, log: Log) -> Mechanism:
    """The robot that measures what one log holds."""
    return replace(mechanism, measured=_joints_of(mechanism, log.position_names))


def _tangents(robot: Mechanism, logs: Sequence[Log]) -> Float[Array, "n v d"]:
    """Tangent directions at some poses of the logs."""
    assembly, sensors = assembly_of(robot), sensors_of(robot, logs[0].position_names)
    logs = [log for log in logs if log.position_names == logs[0].position_names]
    sampled = [log.q[log.valid][:: max(1, int(log.valid.sum()) * len(logs) // _SAMPLES)] for log in logs]
    q = assembly.follow(np.concatenate(sampled), sensors)
    return assembly.tangent(assembly.closure.values(q).A)


def _trusting(robot: Mechanism, names: Sequence[str]) -> Mechanism:
    """More coordinates than freedoms are met in least squares: lengths far better than poses."""
    cables = {cable.name for cable in driven_cables(robot)}
    if robot.measured_sigma or not cables & set(names) or not _several(robot, names):
        return robot
    return replace(robot, measured_sigma={name: 1.0 / _TRUST if name in cables else 1.0 for name in names})


def _several(robot: Mechanism, names: Sequence[str]) -> bool:
    return sensors_of(robot, names).count > assembly_of(robot).dof


def _joints_of(mechanism: Mechanism, names: Sequence[str]) -> tuple[str, ...]:
    """Measured joints, or single coordinates of those that are not measured whole."""
    labels = []
    for name in names:
        joint = mechanism.joint_of_position[name]
        labels.append(joint.name if set(joint.positions) <= set(names) else name)
    return tuple(dict.fromkeys(labels))


def _whole(log: Log, mechanism: Mechanism, cables: Sequence[str]) -> bool:
    """Whether the log gives the pose without any length."""
    pose_names = [name for name in log.position_names if name not in cables]
    assembly = assembly_of(mechanism)
    return bool(pose_names) and assembly.tracker(sensors_of(mechanism, pose_names)) is not None


def _arranged(
    log: Log, mechanism: Mechanism, settings: InternalSettings, way: str, lengths: Float[Array, "s c"] | None
) -> Log:
    """The log with the columns of one way to use it."""
    cables = [cable.name for cable in driven_cables(mechanism)]
    pose_names = [name for name in log.position_names if name not in cables]
    if way == BY_FREE:
        named = named_free(mechanism, settings) or _best_columns(log, mechanism, pose_names)
        pose_names = list(named) if set(named) <= set(pose_names) else pose_names
    wanted = pose_names if way == MEASURED else [*pose_names, *cables]
    columns = [log.position_names.index(name) for name in pose_names]
    constant = np.zeros((len(log.t), len(wanted) - len(pose_names)))
    if constant.shape[1] and lengths is not None:
        for run, (a, b) in enumerate(log.segments):
            constant[a:b] = lengths[run]
    rates = [
        None if x is None else np.column_stack([x[:, columns], np.zeros_like(constant)])
        for x in (log.dq, log.ddq)
    ]
    return replace(
        log,
        q=np.column_stack([log.q[:, columns], constant]),
        dq=rates[0],
        ddq=rates[1],
        q_ref=None,
        position_names=tuple(wanted),
        choices={**log.choices, "pose": _words(way, pose_names)},
    )


def _best_columns(log: Log, mechanism: Mechanism, pose_names: Sequence[str]) -> tuple[str, ...]:
    """Of the columns of a whole pose those that describe its free motion best; all where it is not whole.

    Entries of a quaternion do not count: none of them is a coordinate.
    """
    motion = locked_motion_of(mechanism)
    if len(pose_names) <= motion.count:
        return tuple(pose_names)
    names = mechanism.coordinates
    scalar = [i for i, name in enumerate(names) if name in pose_names and i in motion.carrying]
    if len(scalar) < motion.count:
        raise InputError(
            f"log '{log.name}' has no {motion.count} columns that could be free coordinates:"
            f" {', '.join(pose_names)}",
            file=log.file,
            place="internal",
            remedy="name them under `internal: {free: ...}`, or use pose: projected",
        )
    alone = replace(
        log,
        q=log.q[:, [log.position_names.index(name) for name in pose_names]],
        position_names=tuple(pose_names),
    )
    B = motion.basis(_tangents(mechanism, [alone]))
    return tuple(names[i] for i in best_coordinates(B, scalar))


def _words(way: str, pose_names: Sequence[str]) -> str:
    words = {
        MEASURED: "as measured",
        BY_FREE: f"solved from {', '.join(pose_names)} and the locked lengths",
        PROJECTED: "the measured pose projected onto the locked lengths",
    }
    return words[way]
