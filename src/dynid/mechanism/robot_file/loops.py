"""Loops and cables of the robot file; loops whose coordinate the file uses, which become joints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from dynid.common.entry import Entry
from dynid.common.errors import InputError
from dynid.common.expression import parse
from dynid.mechanism.cable import Cable, CableShape, cable_joint, shape_of
from dynid.mechanism.frame import ROUNDING, Frame, align_z, identity_frame
from dynid.mechanism.joint import DIRECTIONS, FIXED_BY, Joint, JointKind, Loop, massless_joint
from dynid.mechanism.mechanism import BASE, Actuator, Body, Mechanism
from dynid.mechanism.parts import Parts
from dynid.mechanism.robot_file.bodies import FRAME_KEYS, read_axis, read_frame
from dynid.mechanism.robot_file.measured import body_frame, measured_joints
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.robot_file.sections import is_none

_ROD = "rod"
_LOOP_KINDS = (*FIXED_BY, _ROD)
_WITH_AXIS = ("revolute", "prismatic", "planar")
_JOINT_KINDS = {FIXED_BY[kind]: kind for kind in (JointKind.REVOLUTE, JointKind.PRISMATIC)}
_PARALLEL = 1e-6
_ON_AXIS = 1e-9  # of the cable's length


def read_loops(
    entry: Entry, scope: Scope, bodies: Collection[str], *, taken: Collection[str] = (), root: str = BASE
) -> tuple[Loop, ...]:
    """Loops of the list `loops:`, in file order; `axis` has become z of both frames.

    Args:
        bodies: Names of the bodies that a loop may join, besides `base`.
        taken: Names of joints and coordinates: a loop can also be a joint and needs a unique name.
        root: What a source file calls `base`.
    """
    names = set(taken)
    loops = []
    for item in entry.items():
        fields = item.fields(("name", "kind", "fix", "axis", "length", "a", "b"), required=("name", "a", "b"))
        _new_name(fields["name"], names)
        loops.append(_loop(item, fields, scope, {BASE, root, *bodies}, root))
    return tuple(loops)


def _loop(
    entry: Entry, fields: Mapping[str, Entry], scope: Scope, bodies: Collection[str], root: str
) -> Loop:
    name = fields["name"].text()
    fix = _fixed(entry, fields)
    length = _rod_length(entry, fields, scope, name)
    turn = _turn(fields, scope)
    ends = []
    for end in ("a", "b"):
        point = fields[end].fields(("body", *FRAME_KEYS), required=("body",))
        body = point["body"].known(point["body"].text(), sorted(bodies), "body", "name a body")
        frame = read_frame(point, scope, name, end)
        ends.append((BASE if body == root else body, frame @ turn))
    (body_a, a), (body_b, b) = ends
    if body_a == body_b:
        raise entry.error(f"loop '{name}' joins '{body_a}' to itself", "a loop joins two bodies")
    return Loop(name, fix, body_a, a, body_b, b, length)


def _fixed(entry: Entry, fields: Mapping[str, Entry]) -> tuple[str, ...]:
    """Directions in which the frames coincide, in the order of DIRECTIONS; none for a rod."""
    if ("kind" in fields) == ("fix" in fields):
        raise entry.error("a loop has either 'kind' or 'fix'", "kind: one of " + ", ".join(_LOOP_KINDS))
    if "kind" in fields:
        return FIXED_BY.get(fields["kind"].choice(_LOOP_KINDS), ())
    for direction in fields["fix"].items():
        direction.choice(DIRECTIONS)
    listed = fields["fix"].texts()
    if not listed:
        raise fields["fix"].error("a loop must fix at least one direction", "e.g. fix: [x, y, z]")
    return tuple(direction for direction in DIRECTIONS if direction in listed)


def _rod_length(entry: Entry, fields: Mapping[str, Entry], scope: Scope, name: str) -> float | None:
    """Length of a rod [m]."""
    is_rod = "kind" in fields and fields["kind"].text() == _ROD
    if ("length" in fields) != is_rod:
        raise entry.error(
            "'length' is required for kind rod and not allowed otherwise", "e.g. kind: rod, length: 0.3"
        )
    if not is_rod:
        return None
    length = scope.length(fields["length"], f"length_{name}")
    if length <= 0.0:
        raise fields["length"].error(
            f"rod '{name}' has length {length:g}", "give a positive length; kind: point joins two points"
        )
    return length


def _turn(fields: Mapping[str, Entry], scope: Scope) -> Frame:
    """The rotation, the same in both frames, that makes `axis` their z."""
    if "axis" not in fields:
        return Frame(np.eye(3), np.zeros(3))
    kind = fields["kind"].text() if "kind" in fields else "fix"
    if kind not in _WITH_AXIS:
        raise fields["axis"].error(
            f"'axis' is valid for {', '.join(_WITH_AXIS)}, not for '{kind}'",
            "remove it; to rotate the frames, give 'rpy' or two of 'x', 'y', 'z' under 'a' and 'b'",
        )
    return Frame(align_z(read_axis(fields["axis"], scope)), np.zeros(3))


def _new_name(entry: Entry, names: set[str]) -> None:
    name = entry.text()
    if name in names:
        raise entry.error(f"'{name}' occurs twice", "give a unique name, different from all joints")
    names.add(name)


# Loops that are also joints: those whose coordinate the robot file uses.
#
# A cut has no coordinate, so a revolute or prismatic loop that is driven, measured or has friction
# becomes a joint of the tree, which carries a massless link, and a weld of that link to the body
# at the loop's other end.


@dataclass(frozen=True, eq=False)
class Cut:
    """Loops of a description, with the joints (of massless links) that some of them have become."""

    loops: tuple[Loop, ...]
    joints: tuple[Joint, ...]


def can_be_joint(loop: Loop) -> bool:
    """Whether a loop leaves one motion about or along z: that of a revolute or prismatic joint."""
    return loop.fix in _JOINT_KINDS


def cut_loops(loops: tuple[Loop, ...], fields: Mapping[str, Entry], bodies: Collection[str]) -> Cut:
    """Give a coordinate to every loop that other keys of the robot file name.

    Args:
        fields: Keys of the robot file.
        bodies: Names that are not available for the new links.
    """
    used = _used(loops, fields)
    kept, joints = [], []
    taken = set(bodies)
    for loop in loops:
        if loop.name not in used:
            kept.append(loop)
            continue
        joint = massless_joint(loop.name, _JOINT_KINDS[loop.fix], taken, loop.body_a, loop.a)
        taken.add(joint.child)
        joints.append(joint)
        kept.append(replace(loop, fix=DIRECTIONS, body_a=joint.child, a=identity_frame()))
    return Cut(tuple(kept), tuple(joints))


def _used(loops: tuple[Loop, ...], fields: Mapping[str, Entry]) -> set[str]:
    """Names of loops that need a coordinate; refused where a loop cannot have one."""
    by_name = {loop.name: loop for loop in loops}
    named = {name: entry for name, entry in _references(fields) if name in by_name}
    for name, entry in named.items():
        if not can_be_joint(by_name[name]):
            raise entry.error(
                f"loop '{name}' has no joint coordinate",
                "only a revolute or prismatic loop defines a joint",
            )
    driven = {name for name, loop in by_name.items() if can_be_joint(loop) and _has_terms(fields, name)}
    return driven | set(named)


def _references(fields: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Every joint that a key names in full, with its place."""
    if "measured" in fields:
        yield from measured_joints(fields["measured"])
    if "actuators" in fields:
        for item in fields["actuators"].items():
            on = item.mapping().get("on") if item.is_mapping else None
            yield from on.mapping().items() if on else [] if item.is_mapping else [(item.text(), item)]
    for key in ("couplings", "terms"):
        for item in fields[key].items() if key in fields else ():
            yield from _of_equation(item.mapping())
    for key in ("start", "limits"):
        if key in fields:
            yield from fields[key].mapping().items()
    if "drive" in fields and not is_none(fields["drive"]):
        yield from ((name, item) for name, item in fields["drive"].mapping().items() if _is_filled(item))


def _of_equation(fields: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Joints in one coupling or one extra column."""
    if "joint" in fields:
        yield fields["joint"].text(), fields["joint"]
    if "of" in fields:
        yield from fields["of"].mapping().items()
    if "expression" in fields:
        where = fields["expression"]
        expression = parse(where.written, file=where.file, place=where.place)
        yield from ((name, where) for _, name in sorted(expression.signals))


def _has_terms(fields: Mapping[str, Entry], name: str) -> bool:
    """Whether `drive:` gives a term to `name`: in full, else by the last glob that matches."""
    if "drive" not in fields or is_none(fields["drive"]):
        return False
    drive = fields["drive"].mapping()
    matched = [item for pattern, item in drive.items() if fnmatchcase(name, pattern)]
    chosen = drive.get(name, matched[-1] if matched else None)
    return chosen is not None and _is_filled(chosen)


def _is_filled(entry: Entry) -> bool:
    return not is_none(entry) and any(True for _ in entry.items())


def add_cables(entry: Entry, scope: Scope, parts: Parts) -> None:
    """Read the list `cables:`; those without a length get a joint, a massless link and a motor."""
    taken = {name for joint in parts.joints for name in (joint.name, *joint.positions, *joint.coordinates)}
    taken |= {loop.name for loop in parts.loops}
    bodies = {BASE, parts.root, *parts.bodies}
    for item in entry.items():
        cable = _cable(item, scope, bodies, taken, parts.root)
        taken.add(cable.name)
        parts.cables += (cable,)
        if cable.length is None:
            joint = cable_joint(cable.name, set(parts.bodies))
            parts.joints.append(joint)
            parts.bodies[joint.child] = Body(joint.child, parameters=())


def winches(parts: Parts) -> tuple[Actuator, ...]:
    """One motor on every cable with a coordinate: its effort is the tension, which shortens the cable."""
    return tuple(Actuator(rope.name, {rope.name: -1.0}) for rope in parts.cables if rope.length is None)


def start_lengths(robot: Mechanism, start: Mapping[str, float]) -> dict[str, float]:
    """Lengths and swivel angles at the start pose, by coordinate."""
    values: dict[str, float] = {}
    swivels = {swivel.cable: swivel.name for swivel in robot.swivels}
    for cable in robot.cables:
        entry = body_frame(robot, cable.body_from, start) @ cable.entry
        x = (entry.inverse() @ body_frame(robot, cable.body_to, start) @ cable.attachment).p  # seen from it
        shape = shape_of(cable.radius, x[None])
        _refuse_singular(robot, cable, shape)
        if cable.length is None:
            values[cable.name] = float(shape.length[0])
        if cable.name in swivels:
            values[swivels[cable.name]] = float(np.arctan2(x[1], x[0]))
    return values


def _refuse_singular(robot: Mechanism, cable: Cable, shape: CableShape) -> None:
    """Refuse an attachment on the swivel axis, inside the pulley or at the eyelet, at the start pose."""
    fault = ""
    if not np.isfinite(shape.straight[0]):
        fault = f"ends inside its pulley of {cable.radius:g} m"
    elif shape.length[0] < ROUNDING:
        fault = "has no length"
    elif cable.radius > 0.0 and shape.off_axis[0] < _ON_AXIS * shape.length[0]:
        fault = "ends on its swivel axis, where the swivel angle is undefined"
    if fault:
        raise InputError(
            f"cable '{cable.name}' {fault} at the start pose",
            file=robot.file,
            place=f"cables: '{cable.name}'",
            remedy="check its points and axis, or give another pose under `start:`",
        )


def _cable(item: Entry, scope: Scope, bodies: Collection[str], taken: Collection[str], root: str) -> Cable:
    fields = item.fields(("name", "from", "pulley", "to", "length"), required=("name", "from", "to"))
    name = fields["name"].text()
    if name in taken:
        raise fields["name"].error(f"'{name}' occurs twice", "give a unique name, different from all joints")
    ends = []
    for end in ("from", "to"):
        point = fields[end].fields(("body", "xyz"), required=("body", "xyz"))
        body = point["body"].known(point["body"].text(), sorted(bodies), "body", "name a body")
        ends.append((BASE if body == root else body, read_frame(point, scope, name, end)))
    (body_from, D), (body_to, A) = ends
    if body_from == body_to:
        raise item.error(f"cable '{name}' joins '{body_from}' to itself", "a cable joins two bodies")
    cable = Cable(name, body_from, D.p, None, 0.0, body_to, A.p, _cable_length(fields, scope, name))
    return _over_pulley(cable, fields["pulley"], scope) if "pulley" in fields else cable


def _over_pulley(cable: Cable, entry: Entry, scope: Scope) -> Cable:
    name = cable.name
    fields = entry.fields(("radius", "axis", "x"), required=("radius", "axis"))
    radius = scope.length(fields["radius"], f"radius_{name}")
    if radius < 0.0:
        raise fields["radius"].error(f"the pulley of '{name}' has radius {radius:g} m", "give it in m, > 0")
    axis = read_axis(fields["axis"], scope)
    x = read_axis(fields["x"], scope) if "x" in fields else None
    if x is not None and np.linalg.norm(np.cross(axis, x)) < _PARALLEL:
        raise fields["x"].error("'x' lies along the swivel axis", "give the direction of swivel angle zero")
    return replace(cable, radius=radius, axis=axis, x=x)


def _cable_length(fields: Mapping[str, Entry], scope: Scope, name: str) -> float | None:
    if "length" not in fields:
        return None
    length = scope.length(fields["length"], f"length_{name}")
    if length <= 0.0:
        raise fields["length"].error(f"cable '{name}' has length {length:g} m", "give a positive length")
    return length
