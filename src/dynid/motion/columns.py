"""Which column of a file contains which quantity: `q_1`, `dq_motor1`, `tau3`, `x`, `roll`, ...

Positions and efforts are numbered as the measured joints and the actuators of the mechanism, or
carry their names; the underscore is optional. The user's mapping has priority.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dynid.common.errors import InputError, nearest
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.settings import ColumnMap

ANGLES = ("roll", "pitch", "yaw")
QUATERNION = ("qw", "qx", "qy", "qz")
_OF_POSE = ("x", "y", "z", *ANGLES, *QUATERNION)


@dataclass(frozen=True)
class Slot:
    """A quantity the log may have.

    Attributes:
        key: Canonical column name, e.g. `q_1`.
        quantity: t, segment, q, dq, ddq, q_ref, tau, or roll, pitch, yaw of a quaternion joint.
        index: Column of the quantity's array; for angles the column of the joint's `qw`.
        spellings: Column names accepted for it.
        label: What it is, for messages.
    """

    key: str
    quantity: str
    index: int
    spellings: tuple[str, ...]
    label: str


def quaternion_starts(mechanism: Mechanism) -> dict[str, int]:
    """Measured joints with a quaternion -> column of their `qw` among the positions."""
    joints = {joint.name: joint for joint in mechanism.joints}
    names = mechanism.measured_positions
    turning = [name for name in mechanism.measured if name in joints and joints[name].has_quaternion]
    return {name: names.index(f"{name}_qw") for name in turning}


def pose_names(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything measured whose columns are those of a pose: `<name>_x`, `<name>_yaw`, `<name>_qw`, ..."""
    owners = (mechanism.joint_of_position[name] for name in mechanism.measured_positions)
    turning = [joint.name for joint in owners if joint.has_quaternion]
    return tuple(dict.fromkeys([*turning, *(pose.name for pose in mechanism.poses)]))


def slots(mechanism: Mechanism) -> tuple[Slot, ...]:
    """Every quantity a log of this mechanism may have."""
    return tuple(_slots(mechanism))


def match(
    names: Sequence[str],
    known: Sequence[Slot],
    columns: Mapping[str, ColumnMap | str],
    file: object,
) -> dict[str, ColumnMap]:
    """Canonical key -> column of the file, the user's mapping first.

    Raises:
        InputError: A key or column that does not exist, a column used twice, or two
            columns that fit the same quantity.
    """
    chosen = _mapped(names, known, columns, file)
    taken = {column.name for column in chosen.values()}
    for slot in known:
        if slot.key in chosen:
            continue
        found = [name for name in names if name in slot.spellings and name not in taken]
        if len(found) > 1:
            raise InputError(
                f"columns {' and '.join(repr(name) for name in found)} both match {slot.label}",
                file=file,
                place="header",
                remedy=f"choose one: columns: {{{slot.key}: {found[0]}}}",
            )
        if found:
            chosen[slot.key] = ColumnMap(found[0])
            taken.add(found[0])
    return chosen


def _mapped(
    names: Sequence[str], known: Sequence[Slot], columns: Mapping[str, ColumnMap | str], file: object
) -> dict[str, ColumnMap]:
    by_spelling = {spelling: slot for slot in reversed(known) for spelling in slot.spellings}
    chosen: dict[str, ColumnMap] = {}
    users: dict[str, str] = {}
    for key, entry in columns.items():
        column = ColumnMap(entry) if isinstance(entry, str) else entry
        slot = by_spelling.get(key)
        if slot is None:
            raise InputError(
                f"'{key}' is not a quantity of this robot" + nearest(key, by_spelling),
                place="columns",
                remedy="use t, segment, q_1.., dq_1.., ddq_1.., q_ref_1.., tau_1.. or the joints' names",
            )
        if column.name not in names:
            raise InputError(
                f"column '{column.name}' (for {key}) is not in the file" + nearest(column.name, names),
                file=file,
                place=f"columns.{key}",
            )
        if column.name in users or slot.key in chosen:
            other = users.get(column.name, slot.key)
            raise InputError(
                f"'{key}' and '{other}' use the same {'column' if column.name in users else 'quantity'}",
                file=file,
                place="columns",
                remedy="map every quantity once, each to its own column",
            )
        users[column.name] = key
        chosen[slot.key] = column
    return chosen


def _slots(mechanism: Mechanism) -> Iterator[Slot]:
    positions = mechanism.measured_positions
    poses = pose_names(mechanism)
    cables = enumerate(cable.name for cable in mechanism.cables)
    lengths = {name: (*_numbered("l0", k, name), *_numbered("l", k, name)) for k, name in cables}
    inertial = mechanism.force_sensor is not None and mechanism.force_sensor.imu is not None
    yield Slot("t", "t", 0, ("t", "time"), "time")
    yield Slot("segment", "segment", 0, ("segment",), "the segment number")
    for i, name in enumerate(positions):
        bare = _bare(name, poses)
        spellings = tuple(dict.fromkeys((*_numbered("q", i, name), *bare, *lengths.get(name, ()))))
        # The same log may have q_1.. and dq_1.. of joints, which are not measured by an IMU.
        spellings = (name,) if inertial else spellings
        what = f"{name} of the IMU" if inertial else f"the position of '{name}'"
        yield Slot(f"q_{i + 1}", "q", i, spellings, what)
    rates = (("dq", "velocity"), ("ddq", "acceleration"), ("q_ref", "reference"))
    for quantity, label in () if inertial else rates:
        for i, name in enumerate(positions):
            spelled = _numbered(quantity, i, name)
            yield Slot(f"{quantity}_{i + 1}", quantity, i, spelled, f"the {label} of '{name}'")
    for i, actuator in enumerate(mechanism.actuators):
        plain = () if mechanism.force_sensor is None else (actuator.name,)
        spelled = (*_numbered("tau", i, actuator.name), *plain)
        yield Slot(f"tau_{i + 1}", "tau", i, spelled, f"the effort of '{actuator.name}'")
    for joint, start in quaternion_starts(mechanism).items():
        for angle in ANGLES:
            spelled = _bare(f"{joint}_{angle}", poses)
            yield Slot(f"{joint}_{angle}", angle, start, spelled, f"the {angle} of '{joint}'")


def _numbered(quantity: str, index: int, name: str) -> tuple[str, ...]:
    number = index + 1
    spelled = (f"{quantity}_{number}", f"{quantity}{number}", f"{quantity}_{name}", f"{quantity}{name}")
    return tuple(dict.fromkeys(spelled))


def _bare(name: str, poses: Sequence[str]) -> tuple[str, ...]:
    """Columns of a pose may omit `q_`, and its name if it is the only pose."""
    for pose in poses:
        suffix = name.removeprefix(f"{pose}_")
        if suffix != name and suffix in _OF_POSE:
            return (name, suffix) if len(poses) == 1 else (name,)
    return ()
