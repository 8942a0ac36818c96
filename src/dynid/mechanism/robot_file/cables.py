"""Cables of the robot file, and their lengths at the start pose."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.entry import Entry
from dynid.common.errors import InputError, nearest
from dynid.mechanism.cable import Cable, cable_joint
from dynid.mechanism.cable_shape import CableShape, shape_of
from dynid.mechanism.frame import ROUNDING
from dynid.mechanism.measured_start import body_frame
from dynid.mechanism.mechanism import BASE, Actuator, Body, Mechanism
from dynid.mechanism.parts import Parts
from dynid.mechanism.robot_file.joints import read_axis, read_frame
from dynid.mechanism.robot_file.scope import Scope

_PARALLEL = 1e-6
_ON_AXIS = 1e-9  # of the cable's length


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
    return tuple(Actuator(one.name, {one.name: -1.0}) for one in parts.cables if one.length is None)


def start_lengths(robot: Mechanism, start: Mapping[str, float]) -> dict[str, float]:
    """Lengths and swivel angles at the start pose, by coordinate."""
    found: dict[str, float] = {}
    swivels = {swivel.cable: swivel.name for swivel in robot.swivels}
    for cable in robot.cables:
        x = seen_from_entry(robot, cable, start)
        shape = shape_of(cable.radius, x[None])
        _refuse_singular(robot, cable, shape)
        if cable.length is None:
            found[cable.name] = float(shape.length[0])
        if cable.name in swivels:
            found[swivels[cable.name]] = float(np.arctan2(x[1], x[0]))
    return found


def _refuse_singular(robot: Mechanism, cable: Cable, shape: CableShape) -> None:
    """Refuse an attachment on the swivel axis, inside the pulley or at the eyelet, at the start pose."""
    what = ""
    if not np.isfinite(shape.straight[0]):
        what = f"ends inside its pulley of {cable.radius:g} m"
    elif shape.length[0] < ROUNDING:
        what = "has no length"
    elif cable.radius > 0.0 and shape.off_axis[0] < _ON_AXIS * shape.length[0]:
        what = "ends on its swivel axis, where the swivel angle is undefined"
    if what:
        raise InputError(
            f"cable '{cable.name}' {what} at the start pose",
            file=robot.file,
            place=f"cables: '{cable.name}'",
            remedy="check its points and axis, or give another pose under `start:`",
        )


def seen_from_entry(robot: Mechanism, cable: Cable, start: Mapping[str, float]) -> Float[Array, "3"]:
    """Attachment of a cable in its entry frame at given positions, in [m]."""
    entry = body_frame(robot, cable.body_from, start) @ cable.entry
    return (entry.inverse() @ body_frame(robot, cable.body_to, start) @ cable.attachment).p


def _cable(item: Entry, scope: Scope, bodies: Collection[str], taken: Collection[str], root: str) -> Cable:
    fields = item.fields(("name", "from", "pulley", "to", "length"), required=("name", "from", "to"))
    name = fields["name"].text()
    if name in taken:
        raise fields["name"].error(f"'{name}' occurs twice", "give a unique name, different from all joints")
    ends = []
    for end in ("from", "to"):
        point = fields[end].fields(("body", "xyz"), required=("body", "xyz"))
        body = point["body"].text()
        if body not in bodies:
            raise point["body"].error(f"unknown body '{body}'" + nearest(body, sorted(bodies)), "name a body")
        ends.append((BASE if body == root else body, read_frame(fields[end], point, scope, name, end)))
    (body_from, D), (body_to, A) = ends
    if body_from == body_to:
        raise item.error(f"cable '{name}' joins '{body_from}' to itself", "a cable joins two bodies")
    cable = Cable(name, body_from, D.p, None, 0.0, body_to, A.p, _length(fields, scope, name))
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


def _length(fields: Mapping[str, Entry], scope: Scope, name: str) -> float | None:
    if "length" not in fields:
        return None
    length = scope.length(fields["length"], f"length_{name}")
    if length <= 0.0:
        raise fields["length"].error(f"cable '{name}' has length {length:g} m", "give a positive length")
    return length
