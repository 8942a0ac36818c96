"""Which column of a file contains which quantity: `q_1`, `dq_motor1`, `tau3`, `x`, `roll`, ...

Positions and efforts are numbered as the measured joints and the actuators of the mechanism, or
carry their names; the underscore is optional. The user's mapping has priority.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.strict_number import is_count
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Actuator, Mechanism
from dynid.motion.column_words import Column, Slot
from dynid.motion.guess import Guess, effort_like, guess
from dynid.motion.settings import ColumnMap, DriveSettings
from dynid.motion.units import canonical_unit

ANGLES = ("roll", "pitch", "yaw")
QUATERNION = ("qw", "qx", "qy", "qz")
_OF_POSE = ("x", "y", "z", *ANGLES, *QUATERNION)


@dataclass(frozen=True)
class Matching:
    """Columns of a log.

    Attributes:
        chosen: Canonical key -> column of the file.
        guesses: Those that were found by other than canonical names.
        notices: About columns that may be meant otherwise.
    """

    chosen: dict[str, ColumnMap]
    guesses: tuple[Guess, ...] = ()
    notices: tuple[Notice, ...] = ()


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
    """Canonical key -> column of the file, the user's mapping first, then canonical names.

    Raises:
        InputError: A key or column that does not exist, a column used twice, or two
            columns that fit the same quantity.
    """
    chosen = _mapped(names, known, columns, file)
    taken = {column.name for column in chosen.values()}
    for slot in known:
        if slot.key in chosen:
            continue
        matches = [name for name in names if name in slot.spellings and name not in taken]
        if len(matches) > 1:
            raise InputError(
                f"columns {' and '.join(repr(name) for name in matches)} both match {slot.label}",
                file=file,
                place="header",
                remedy=f"choose one: columns: {{{slot.key}: {matches[0]}}}",
            )
        if matches:
            chosen[slot.key] = ColumnMap(matches[0])
            taken.add(matches[0])
    return chosen


def matched(
    names: Sequence[str],
    known: Sequence[Slot],
    columns: Mapping[str, ColumnMap | str],
    file: object,
    drives: Mapping[str, DriveSettings] | None = None,
) -> Matching:
    """The same, then other names by their words, with their units; and the scales of the drives.

    A quantity of which some columns are mapped or canonical is not searched further. An entry without a name
    (`tau_1: {delay: 0.003}`) changes the column that is found for its quantity.

    Raises:
        InputError: As `match`, or two readings of the header are about equally likely.
    """
    columns, changes = _nameless(columns, names, known)
    chosen = match(names, known, columns, file)
    _drop_zero_based(chosen, names, known, _mapped(names, known, columns, file))
    quantities = dict.fromkeys(slot.quantity for slot in known)
    given = {slot.quantity for slot in known if slot.key in chosen}
    taken = {column.name for column in chosen.values()}
    guesses = guess(
        [name for name in names if name not in taken],
        known,
        [kind for kind in quantities if kind not in given],
        file,
        counted=any(drive.counts_per_turn for drive in (drives or {}).values()),
        one_based=any(is_count(key.rpartition("_")[2]) and key == chosen[key].name for key in chosen),
    )
    chosen |= {guessed.key: ColumnMap(guessed.column, guessed.unit) for guessed in guesses}
    chosen |= {key: _changed(chosen[key], change) for key, change in changes.items() if key in chosen}
    _mapped(names, known, {key: change for key, change in changes.items() if key not in chosen}, file)
    return Matching(
        with_drives(chosen, known, drives or {}),
        tuple(sorted(guesses, key=lambda guessed: list(chosen).index(guessed.key))),
        _notices(chosen, names, known, guesses, drives or {}),
    )


def _nameless(
    columns: Mapping[str, ColumnMap | str], names: Sequence[str], known: Sequence[Slot]
) -> tuple[dict[str, ColumnMap | str], dict[str, ColumnMap]]:
    """Entries that name a column, and by key those that only change one with another name than their own."""
    named: dict[str, ColumnMap | str] = {}
    changes: dict[str, ColumnMap] = {}
    for key, entry in columns.items():
        meant = [slot for slot in known if key in (*slot.spellings, *_patterns(slot.quantity))]
        present = any(spelling in names for slot in meant for spelling in slot.spellings)
        if isinstance(entry, str) or entry.name != key or present or not meant:
            named[key] = entry
        else:
            changes |= {slot.key: entry.changed(name=slot.key) for slot in meant}
    return named, changes


def _changed(column: ColumnMap, change: ColumnMap) -> ColumnMap:
    """A column that was found by its name, with what an entry says about it."""
    unit = column.unit if change.unit is None else change.unit
    return change.changed(name=column.name, unit=unit)


def _drop_zero_based(
    chosen: dict[str, ColumnMap], names: Sequence[str], known: Sequence[Slot], mapped: Collection[str]
) -> None:
    """Forget q_1 and q_2 where the three joints are q_0, q_1, q_2: as a whole they are numbered from 0."""
    for quantity in dict.fromkeys(slot.quantity for slot in known):
        same_slots = [slot for slot in known if slot.quantity == quantity]
        zero = {f"{quantity}_0", f"{quantity}0"} & set(names)
        whole = all(slot.key in chosen for slot in same_slots)
        if zero and not whole and not any(slot.key in mapped for slot in same_slots):
            for slot in same_slots:
                chosen.pop(slot.key, None)


def _notices(
    chosen: Mapping[str, ColumnMap],
    names: Sequence[str],
    known: Sequence[Slot],
    guesses: Sequence[Guess],
    drives: Mapping[str, DriveSettings],
) -> tuple[Notice, ...]:
    """Efforts without a motor, and currents that are taken as efforts."""
    notices = []
    used = {column.name for column in chosen.values()}
    efforts = [slot for slot in known if slot.quantity == "tau" and slot.owner]
    if any(slot.key in chosen for slot in efforts):
        left = effort_like([name for name in names if name not in used], known)
        lost = any(slot.key not in chosen for slot in efforts)
        # Motor currents, commands and the like beside complete efforts need no remark.
        family = {_without_digits(chosen[slot.key].name) for slot in efforts if slot.key in chosen}
        left = [name for name in left if lost or _without_digits(name) in family]
        if left:
            notices.append(notice("effort-unmatched", names=", ".join(left)))
    owners = {slot.key: slot for slot in efforts}
    current = [
        guess_entry.column
        for guess_entry in guesses
        if guess_entry.current
        and not any(drive.torque_constant for drive in drives_of(owners[guess_entry.key], drives))
    ]
    if current:
        notices.append(notice("effort-from-current", names=", ".join(current)))
    return tuple(notices)


def _without_digits(name: str) -> str:
    return "".join("#" if letter.isdigit() else letter for letter in name)


def drives_of(slot: Slot, drives: Mapping[str, DriveSettings]) -> list[DriveSettings]:
    """The drive of a slot's owner, by name or else by the last glob that matches; none or one."""
    named = (slot.owner, *slot.also) if slot.owner else ()
    exact = [drives[name] for name in named if name in drives]
    globs = [
        settings for pattern, settings in drives.items() if any(fnmatchcase(name, pattern) for name in named)
    ]
    return exact[:1] or globs[-1:]


def with_drives(
    chosen: Mapping[str, ColumnMap], known: Sequence[Slot], drives: Mapping[str, DriveSettings]
) -> dict[str, ColumnMap]:
    """Columns with the scales of gears, encoders and torque constants."""
    for pattern in drives:
        owned = [slot for slot in known if slot.owner]
        if not any(fnmatchcase(name, pattern) for slot in owned for name in (slot.owner, *slot.also)):
            labels = dict.fromkeys(slot.owner for slot in owned)
            raise InputError(
                f"'{pattern}' matches no joint and no motor" + nearest(pattern, labels),
                place=f"drives.{pattern}",
                remedy="use the names of `dynid info`, or a glob",
            )
    made = dict(chosen)
    for slot in known:
        for drive in drives_of(slot, drives) if slot.key in chosen else ():
            column = chosen[slot.key]
            made[slot.key] = column.changed(scale=column.scale * drive.scale(slot.quantity, column.unit))
    return made


def expanded(
    columns: Mapping[str, ColumnMap | str], names: Sequence[str], known: Sequence[Slot], file: object
) -> dict[str, ColumnMap]:
    """Patterns as columns: `tau_{i}: effort_{name}`, with {i} from 1, {i0} from 0 and {name} on the right.

    A pattern names the columns that the file has of it; at least one. Columns given by name have priority.
    """
    given = {key: ColumnMap(entry) if isinstance(entry, str) else entry for key, entry in columns.items()}
    made = {key: entry for key, entry in given.items() if "{" not in key}
    spelled = {spelling: slot.key for slot in known for spelling in slot.spellings}
    exact = {spelled.get(key, key) for key in made}
    for key, column in given.items():
        if "{" not in key:
            continue
        quantity = next(
            (symbol for symbol in ("q_ref", "ddq", "dq", "tau", "q") if key in _patterns(symbol)), None
        )
        same_slots = [slot for slot in known if slot.quantity == quantity]
        if quantity is None or not same_slots:
            raise InputError(
                f"'{key}' is not a pattern of this robot's quantities",
                place=f"columns.{key}",
                remedy="use q_{i}, dq_{i}, ddq_{i}, q_ref_{i} or tau_{i}",
            )
        filled = {slot.key: column.changed(name=_filled(column.name, slot)) for slot in same_slots}
        present = {slot: target for slot, target in filled.items() if in_file(target, names) is not None}
        if not present or len({target.name for target in filled.values()}) < len(filled):
            first = next(iter(filled.values())).name
            raise InputError(
                f"no column of the pattern '{column.name}' is in the file, e.g. '{first}'"
                + nearest(first, names)
                if not present
                else f"the pattern '{column.name}' is the same column for every joint",
                file=file,
                place=f"columns.{key}",
                remedy="use {i} (from 1), {i0} (from 0) or {name} in the column",
            )
        made |= {slot: target for slot, target in present.items() if slot not in exact}
    return made


def _patterns(quantity: str) -> tuple[str, ...]:
    return tuple(f"{quantity}_{{{mark}}}" for mark in ("i", "name"))


def _filled(pattern: str, slot: Slot) -> str:
    name = slot.owner or slot.spellings[0]
    marks = {"{i}": str(slot.index + 1), "{i0}": str(slot.index), "{name}": name}
    for mark, text in marks.items():
        pattern = pattern.replace(mark, text)
    return pattern


def in_file(column: ColumnMap, names: Sequence[str]) -> str | None:
    """The column's name in the file; `pos_1` with the unit deg may be written `pos_1 [deg]` there."""
    if column.name in names or column.unit is None:
        return column.name if column.name in names else None
    matches = [name for name in names if _with_unit(name) == (column.name, canonical_unit(column.unit))]
    return matches[0] if len(matches) == 1 else None


def _with_unit(name: str) -> tuple[str, str | None]:
    column = Column(name)
    return column.base, None if column.bracket is None else canonical_unit(column.bracket)


def _mapped(
    names: Sequence[str], known: Sequence[Slot], columns: Mapping[str, ColumnMap | str], file: object
) -> dict[str, ColumnMap]:
    by_spelling = {spelling: slot for slot in reversed(known) for spelling in slot.spellings}
    chosen: dict[str, ColumnMap] = {}
    users: dict[str, str] = {}
    for key, entry in expanded(columns, names, known, file).items():
        slot = by_spelling.get(key)
        if slot is None:
            raise InputError(
                f"'{key}' is not a quantity of this robot" + nearest(key, by_spelling),
                place="columns",
                remedy="use t, segment, q_1.., dq_1.., ddq_1.., q_ref_1.., tau_1.. or the joints' names",
            )
        name = in_file(entry, names)
        if name is None:
            raise InputError(
                f"column '{entry.name}' (for {key}) is not in the file" + nearest(entry.name, names),
                file=file,
                place=f"columns.{key}",
            )
        column = entry.changed(name=name)
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
        meaning = f"{name} of the IMU" if inertial else f"the position of '{name}'"
        yield Slot(f"q_{i + 1}", "q", i, spellings, meaning, *_joint_owner(mechanism, name))
    rates = (("dq", "velocity"), ("ddq", "acceleration"), ("q_ref", "reference"))
    for quantity, label in () if inertial else rates:
        for i, name in enumerate(positions):
            spelled = _numbered(quantity, i, name)
            owner = _joint_owner(mechanism, name)
            yield Slot(f"{quantity}_{i + 1}", quantity, i, spelled, f"the {label} of '{name}'", *owner)
    for i, actuator in enumerate(mechanism.actuators):
        plain = () if mechanism.force_sensor is None else (actuator.name,)
        spelled = (*_numbered("tau", i, actuator.name), *plain)
        meaning = f"the effort of '{actuator.name}'"
        yield Slot(f"tau_{i + 1}", "tau", i, spelled, meaning, *_motor_owner(mechanism, actuator))
    for joint, start in quaternion_starts(mechanism).items():
        for angle in ANGLES:
            spelled = _bare(f"{joint}_{angle}", poses)
            yield Slot(f"{joint}_{angle}", angle, start, spelled, f"the {angle} of '{joint}'")


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
    driven = next(iter(actuator.on))
    turns = actuator.turns
    if turns is None:
        turns = mechanism.joint_of_coordinate[driven].is_angle(driven)
    return actuator.name, (driven,) if len(actuator.on) == 1 else (), turns


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
