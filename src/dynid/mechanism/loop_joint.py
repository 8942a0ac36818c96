"""Loops that are also joints: those whose coordinate the robot file uses.

A cut has no coordinate, so a revolute or prismatic loop that is driven, measured or has friction
becomes a joint of the tree, which carries a massless link, and a weld of that link to the body
at the loop's other end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from dynid.common.entry import Entry
from dynid.common.expression import parse
from dynid.mechanism.frame import identity_frame
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.loop import DIRECTIONS, FIXED_BY, Loop
from dynid.mechanism.robot_file.drives import is_none
from dynid.mechanism.robot_file.measured import measured_joints

_KINDS = {FIXED_BY[kind]: kind for kind in (JointKind.REVOLUTE, JointKind.PRISMATIC)}


@dataclass(frozen=True, eq=False)
class Cut:
    """Loops of a description, with the joints (of massless links) that some of them have become."""

    loops: tuple[Loop, ...]
    joints: tuple[Joint, ...]


def can_be_joint(loop: Loop) -> bool:
    """Whether a loop leaves one motion about or along z: that of a revolute or prismatic joint."""
    return loop.fix in _KINDS


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
        link = f"{loop.name}_link"
        while link in taken:
            link += "_"
        taken.add(link)
        z = np.array([0.0, 0.0, 1.0])
        joints.append(Joint(loop.name, _KINDS[loop.fix], loop.body_a, link, loop.a, (z,)))
        kept.append(replace(loop, fix=DIRECTIONS, body_a=link, a=identity_frame()))
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
        expression = parse(where.node.text, file=where.document.file, place=where.place)
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
