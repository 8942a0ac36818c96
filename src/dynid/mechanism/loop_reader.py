"""Loops and cables of the robot file: checked by the schema; not yet identified."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dynid.entry import Entry
from dynid.errors import InputError, nearest
from dynid.mechanism.joint_reader import FRAME_KEYS, read_axis, read_frame
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.scope import Scope

_LOOP_KINDS = ("point", "universal", "revolute", "prismatic", "planar", "weld", "rod")
_DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


def check_loops(entry: Entry, scope: Scope, bodies: Collection[str]) -> None:
    """Refuse what `loops:` may not contain."""
    names: set[str] = set()
    for item in entry.items():
        fields = item.fields(("name", "kind", "fix", "axis", "length", "a", "b"), required=("name", "a", "b"))
        _new_name(fields["name"], names)
        if ("kind" in fields) == ("fix" in fields):
            raise item.error("a loop has either 'kind' or 'fix'", "kind: one of " + ", ".join(_LOOP_KINDS))
        kind = fields["kind"].choice(_LOOP_KINDS) if "kind" in fields else "fix"
        if "fix" in fields:
            for direction in fields["fix"].items():
                direction.choice(_DIRECTIONS)
        if ("length" in fields) != (kind == "rod"):
            raise item.error("'length' goes with kind rod, and a rod needs it", "e.g. kind: rod, length: 0.3")
        if "length" in fields:
            scope.length(fields["length"], f"length_{fields['name'].text()}")
        if "axis" in fields:
            read_axis(fields["axis"], scope)
        for end in ("a", "b"):
            point = fields[end].fields(("body", *FRAME_KEYS), required=("body",))
            _check_body(point, bodies)
            read_frame(fields[end], point, scope)


def check_cables(entry: Entry, scope: Scope, bodies: Collection[str]) -> None:
    """Refuse what `cables:` may not contain."""
    names: set[str] = set()
    for item in entry.items():
        fields = item.fields(("name", "from", "pulley", "to"), required=("name", "from", "to"))
        _new_name(fields["name"], names)
        for end in ("from", "to"):
            point = fields[end].fields(("body", "xyz"), required=("body", "xyz"))
            _check_body(point, bodies)
            read_frame(fields[end], point, scope)
        if "pulley" in fields:
            pulley = fields["pulley"].fields(("radius", "axis"), required=("radius", "axis"))
            scope.number(pulley["radius"])
            read_axis(pulley["axis"], scope)


def refuse_closed(fields: Mapping[str, Entry]) -> None:
    """Closed loops and cables pass the schema, but this version identifies trees."""
    for key, what in (("loops", "closed loops"), ("cables", "cables")):
        if key in fields and list(fields[key].items()):
            raise fields[key].error(
                f"{what} are not yet supported: this version identifies trees",
                f"remove '{key}:' to work on the open tree; a later version adds {what}",
            )


def _new_name(entry: Entry, names: set[str]) -> None:
    name = entry.text()
    if name in names:
        raise entry.error(f"'{name}' occurs twice", "give every one its own name")
    names.add(name)


def _check_body(point: Mapping[str, Entry], bodies: Collection[str]) -> None:
    entry = point["body"]
    if entry.text() not in (BASE, *bodies):
        raise _unknown_body(entry, bodies)


def _unknown_body(entry: Entry, bodies: Collection[str]) -> InputError:
    return entry.error(
        f"unknown body '{entry.text()}'" + nearest(entry.text(), (BASE, *bodies)), "name a body"
    )
