"""Loops of the robot file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.mechanism.frame import Frame, align_z
from dynid.mechanism.loop import DIRECTIONS, FIXED_BY, Loop
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.robot_file.joints import FRAME_KEYS, read_axis, read_frame
from dynid.mechanism.robot_file.scope import Scope

_ROD = "rod"
_KINDS = (*FIXED_BY, _ROD)
_WITH_AXIS = ("revolute", "prismatic", "planar")


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
    length = _length(entry, fields, scope, name)
    turn = _turn(fields, scope)
    ends = []
    for end in ("a", "b"):
        point = fields[end].fields(("body", *FRAME_KEYS), required=("body",))
        body = _body(point["body"], bodies)
        frame = read_frame(fields[end], point, scope, name, end)
        ends.append((BASE if body == root else body, frame @ turn))
    (body_a, a), (body_b, b) = ends
    if body_a == body_b:
        raise entry.error(f"loop '{name}' joins '{body_a}' to itself", "a loop joins two bodies")
    return Loop(name, fix, body_a, a, body_b, b, length)


def _fixed(entry: Entry, fields: Mapping[str, Entry]) -> tuple[str, ...]:
    """Directions in which the frames coincide, in the order of DIRECTIONS; none for a rod."""
    if ("kind" in fields) == ("fix" in fields):
        raise entry.error("a loop has either 'kind' or 'fix'", "kind: one of " + ", ".join(_KINDS))
    if "kind" in fields:
        return FIXED_BY.get(fields["kind"].choice(_KINDS), ())
    for direction in fields["fix"].items():
        direction.choice(DIRECTIONS)
    listed = fields["fix"].texts()
    if not listed:
        raise fields["fix"].error("a loop must fix at least one direction", "e.g. fix: [x, y, z]")
    return tuple(direction for direction in DIRECTIONS if direction in listed)


def _length(entry: Entry, fields: Mapping[str, Entry], scope: Scope, name: str) -> float | None:
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


def _body(entry: Entry, bodies: Collection[str]) -> str:
    name = entry.text()
    if name not in bodies:
        raise entry.error(f"unknown body '{name}'" + nearest(name, sorted(bodies)), "name a body")
    return name
