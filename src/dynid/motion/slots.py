"""Quantities that a log of a robot may have, with the column names of each: `q_1`, `dq_motor1`, `tau3`, `x`.

Positions and efforts are numbered as the measured joints and the actuators of the mechanism, or carry their
names; the underscore is optional.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Actuator, Mechanism
from dynid.motion.vocabulary import (
    ACCELERATION,
    ANGLE,
    EFFORT,
    FITTING,
    FORCE,
    POSITION,
    REFERENCE,
    TIME_UNITS,
    TORQUE,
    VELOCITY,
)

ANGLES = ("roll", "pitch", "yaw")
QUATERNION = ("qw", "qx", "qy", "qz")
_TURNING = ("wx", "wy", "wz")  # what an IMU measures beside accelerations
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
        owner: Joint or motor with one coordinate, by whose name other columns are searched; empty: none.
        also: Other names of the owner: the joint that a motor drives.
        turns: Whether the owner is rotary.
        units: Units that its columns may have, the SI unit first; empty: it is a number without unit.
    """

    key: str
    quantity: str
    index: int
    spellings: tuple[str, ...]
    label: str
    owner: str = ""
    also: tuple[str, ...] = ()
    turns: bool = True
    units: tuple[str, ...] = ()


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


def _slots(mechanism: Mechanism) -> Iterator[Slot]:
    positions = mechanism.measured_positions
    poses = pose_names(mechanism)
    cables = enumerate(cable.name for cable in mechanism.cables)
    lengths = {name: (*_numbered("l0", k, name), *_numbered("l", k, name)) for k, name in cables}
    inertial = mechanism.force_sensor is not None and mechanism.force_sensor.imu is not None
    yield Slot("t", "t", 0, ("t", "time"), "time", units=TIME_UNITS)
    yield Slot("segment", "segment", 0, ("segment",), "the segment number")
    for i, name in enumerate(positions):
        bare = _bare(name, poses)
        spellings = tuple(dict.fromkeys((*_numbered("q", i, name), *bare, *lengths.get(name, ()))))
        # The same log may have q_1.. and dq_1.. of joints, which are not measured by an IMU.
        spellings = (name,) if inertial else spellings
        meaning = f"{name} of the IMU" if inertial else f"the position of '{name}'"
        units = position_units(mechanism, name, POSITION)
        yield Slot(f"q_{i + 1}", "q", i, spellings, meaning, *_joint_owner(mechanism, name), units)
    rates = (("dq", "velocity"), ("ddq", "acceleration"), ("q_ref", "reference"))
    for quantity, label in () if inertial else rates:
        for i, name in enumerate(positions):
            spelled = _numbered(quantity, i, name)
            owner = _joint_owner(mechanism, name)
            units = position_units(mechanism, name, quantity)
            yield Slot(f"{quantity}_{i + 1}", quantity, i, spelled, f"the {label} of '{name}'", *owner, units)
    for i, actuator in enumerate(mechanism.actuators):
        plain = () if mechanism.force_sensor is None else (actuator.name,)
        spelled = (*_numbered("tau", i, actuator.name), *plain)
        meaning = f"the effort of '{actuator.name}'"
        turning = _turns(mechanism, actuator)
        sensed = TORQUE if turning else FORCE
        units = FITTING[EFFORT, turning] if mechanism.force_sensor is None else sensed
        yield Slot(f"tau_{i + 1}", "tau", i, spelled, meaning, *_motor_owner(mechanism, actuator), units)
    for joint, start in quaternion_starts(mechanism).items():
        for angle in ANGLES:
            spelled = _bare(f"{joint}_{angle}", poses)
            yield Slot(f"{joint}_{angle}", angle, start, spelled, f"the {angle} of '{joint}'", units=ANGLE)


def position_units(mechanism: Mechanism, name: str, quantity: str) -> tuple[str, ...]:
    """Units of a position, its rates or its reference; none of the entries of a quaternion."""
    sensor = mechanism.force_sensor
    if sensor is not None and sensor.imu is not None:
        turns = name.endswith(_TURNING)
        return FITTING[VELOCITY if turns else ACCELERATION, turns]
    joint = mechanism.joint_of_position[name]
    if name not in joint.coordinates:
        return ()
    return FITTING[POSITION if quantity == REFERENCE else quantity, joint.is_angle(name)]


def _joint_owner(mechanism: Mechanism, position: str) -> tuple[str, tuple[str, ...], bool]:
    """Owner, other names and whether it is rotary, of a joint with a single axis; empty for others."""
    joint = mechanism.joint_of_position[position]
    plain = joint.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.UNIVERSAL)
    apart = {*(cable.name for cable in mechanism.cables), *(swivel.name for swivel in mechanism.swivels)}
    if not plain or position in apart or mechanism.poses or mechanism.force_sensor is not None:
        return "", (), True
    return position, (), joint.kind is not JointKind.PRISMATIC


def _motor_owner(mechanism: Mechanism, actuator: Actuator) -> tuple[str, tuple[str, ...], bool]:
    if mechanism.force_sensor is not None or not actuator.on:
        return "", (), True
    also = tuple(actuator.on) if len(actuator.on) == 1 else ()
    return actuator.name, also, _turns(mechanism, actuator)


def _turns(mechanism: Mechanism, actuator: Actuator) -> bool:
    """Whether a motor is rotary; if it does not say so, it is as the first coordinate that it drives."""
    if actuator.turns is not None or not actuator.on:
        return actuator.turns is not False
    driven = next(iter(actuator.on))
    return mechanism.joint_of_coordinate[driven].is_angle(driven)


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
