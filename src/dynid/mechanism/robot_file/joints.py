"""Joints and frames of the robot file: modified DH, xyz with rpy, or xyz with two axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.frame import Frame, frame_from_axes, mdh_frame, rpy_matrix, unit_vector
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.parts import coordinate_clash
from dynid.mechanism.robot_file.scope import Scope

FRAME_KEYS = ("xyz", "rpy", "x", "y", "z")
_JOINT_KEYS = ("name", "kind", "parent", "child", "mdh", *FRAME_KEYS, "axis", "axes", "body")
_MDH_ANGLES = ("gamma", "alpha", "theta")
_MDH_LENGTHS = ("b", "d", "r")
_ONE_AXIS = (JointKind.REVOLUTE, JointKind.PRISMATIC)


def read_joints(entry: Entry, scope: Scope, earlier: Iterable[Joint] = (), root: str = BASE) -> list[Joint]:
    """Joints of the list `joints:`, parents first; `earlier` ones come from a source file."""
    joints = list(earlier)
    names = {joint.name for joint in joints}
    bodies = {BASE, *(joint.child for joint in joints)}
    added = []
    for item in entry.items():
        joint = _joint(item, scope, root)
        fields = item.mapping()
        if joint.name in names:
            raise fields["name"].error(f"joint '{joint.name}' occurs twice", "give every joint a unique name")
        if joint.child in bodies:
            raise fields["child"].error(
                f"body '{joint.child}' is the child of two joints"
                if joint.child != BASE
                else "'base' cannot move",
                "a second joint on a body is a loop: give it under 'loops:'",
            )
        if joint.parent not in bodies:
            raise fields["parent"].error(
                f"joint '{joint.name}' is attached to unknown body '{joint.parent}'"
                + nearest(joint.parent, bodies),
                "list parent joints before their children, beginning at 'base'",
            )
        names.add(joint.name)
        bodies.add(joint.child)
        added.append(joint)
    clash = coordinate_clash([*joints, *added])
    if clash:
        raise entry.error(
            "coordinate '{}' belongs to joints '{}' and '{}'".format(*clash), "rename one of the joints"
        )
    return added


def _joint(entry: Entry, scope: Scope, root: str) -> Joint:
    fields = entry.fields(_JOINT_KEYS, required=("name", "kind", "parent", "child"))
    name = fields["name"].text()
    kind = JointKind(fields["kind"].choice(tuple(JointKind)))
    parent = fields["parent"].text()
    body = Frame(np.eye(3), np.zeros(3))
    if "body" in fields:
        body = read_frame(fields["body"], fields["body"].fields(FRAME_KEYS), scope, name, "b")
    return Joint(
        name,
        kind,
        BASE if parent == root else parent,
        fields["child"].text(),
        _placement(entry, fields, scope, name),
        _axes(entry, fields, scope, kind),
        body,
    )


def _placement(entry: Entry, fields: Mapping[str, Entry], scope: Scope, name: str) -> Frame:
    if "mdh" not in fields:
        return read_frame(entry, fields, scope, name)
    for other in (*FRAME_KEYS, "axis"):
        if other in fields:
            raise fields[other].error(
                f"'{other}' cannot be combined with 'mdh'",
                "a modified DH joint moves about or along its z axis",
            )
    mdh = fields["mdh"].fields((*_MDH_ANGLES, *_MDH_LENGTHS))
    numbers = {key: scope.angle(mdh[key]) for key in _MDH_ANGLES if key in mdh}
    numbers |= {key: scope.length(mdh[key], f"{key}_{name}") for key in _MDH_LENGTHS if key in mdh}
    return mdh_frame(**numbers)


def read_frame(
    entry: Entry, fields: Mapping[str, Entry], scope: Scope, owner: str | None = None, prefix: str = ""
) -> Frame:
    """A frame from `xyz` with `rpy`, or with two of the axis vectors `x`, `y`, `z`.

    Lengths are named `<prefix>x_<owner>` ...; without an owner they stay nameless.
    """
    p = np.zeros(3)
    if "xyz" in fields:
        parts = fields["xyz"].vector(lambda number: number)
        for i, (axis, part) in enumerate(zip("xyz", parts, strict=True)):
            p[i] = scope.length(part, f"{prefix}{axis}_{owner}") if owner else scope.number(part)
    given = [axis for axis in "xyz" if axis in fields]
    if not given:
        rpy = fields["rpy"].vector(scope.angle) if "rpy" in fields else (0.0, 0.0, 0.0)
        return Frame(rpy_matrix((rpy[0], rpy[1], rpy[2])), p)
    if len(given) != 2 or "rpy" in fields:
        raise fields[given[0]].error(
            "a frame takes 'rpy' or exactly two of 'x', 'y', 'z'", "give two axis vectors and no rpy"
        )
    vectors = {"xyz".index(axis): np.array(fields[axis].vector(scope.number)) for axis in given}
    try:
        return frame_from_axes(p, vectors)
    except ValueError as error:
        raise fields[given[1]].error(str(error), "give two orthogonal vectors") from None


def _axes(
    entry: Entry, fields: Mapping[str, Entry], scope: Scope, kind: JointKind
) -> tuple[Float[Array, "3"], ...]:
    """Unit motion axes: `axis` (default z) of a joint with one, `axes` of a universal joint."""
    for key, wanted in (("axis", kind in _ONE_AXIS), ("axes", kind is JointKind.UNIVERSAL)):
        if key in fields and not wanted:
            raise fields[key].error(f"a {kind} joint has no '{key}'", "remove it")
    if kind in _ONE_AXIS:
        return (read_axis(fields["axis"], scope) if "axis" in fields else np.array([0.0, 0.0, 1.0]),)
    if kind is not JointKind.UNIVERSAL:
        return ()
    if "axes" not in fields:
        raise entry.error("a universal joint needs 'axes: [a, b]'", "e.g. axes: [[1, 0, 0], [0, 1, 0]]")
    first, second = fields["axes"].vector(lambda axis: read_axis(axis, scope), 2)
    if np.linalg.norm(np.cross(first, second)) < 1e-6:
        raise fields["axes"].error("the two axes of a universal joint are parallel", "give two directions")
    return first, second


def read_axis(entry: Entry, scope: Scope) -> Float[Array, "3"]:
    """A direction; normalised with a notice, refused when zero."""
    vector = np.array(entry.vector(scope.number))
    try:
        axis = unit_vector(vector)
    except ValueError:
        raise entry.error("the axis is zero", "give a direction, e.g. [0, 0, 1]") from None
    if abs(float(np.linalg.norm(vector)) - 1.0) > 1e-6:
        scope.notices.append(normalised_notice(entry.path, vector))
    return axis


def normalised_notice(where: str, vector: Float[Array, "3"]) -> Notice:
    """The notice about an axis whose length was not 1."""
    return notice("normalised-axis", where=where, axis=" ".join(f"{x:g}" for x in vector))
