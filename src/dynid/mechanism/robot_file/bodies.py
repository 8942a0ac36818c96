"""Joints, frames, bodies, payloads and capsules of the robot file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.entry import Entry
from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.frame import (
    Frame,
    dh_frames,
    frame_from_axes,
    identity_frame,
    mdh_frame,
    rpy_matrix,
    unit_vector,
)
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Body, Capsule, Payload
from dynid.mechanism.parts import coordinate_clash
from dynid.mechanism.robot_file.scope import Scope

FRAME_KEYS = ("xyz", "rpy", "x", "y", "z")
_JOINT_KEYS = ("name", "kind", "parent", "child", "mdh", "dh", *FRAME_KEYS, "axis", "axes", "body")
_MDH_ANGLES = ("gamma", "alpha", "theta")
_MDH_LENGTHS = ("b", "d", "r")
_DH_ANGLES, _DH_LENGTHS = ("theta", "alpha"), ("d", "a")
_ONE_AXIS = (JointKind.REVOLUTE, JointKind.PRISMATIC)
_MOMENTS = ("MX", "MY", "MZ")
_CAPSULE_KEYS = ("from", "to", "radius")


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
        body = read_frame(fields["body"].fields(FRAME_KEYS), scope, name, "b")
    placement, link = _placement(fields, scope, name)
    return Joint(
        name,
        kind,
        BASE if parent == root else parent,
        fields["child"].text(),
        placement,
        _axes(entry, fields, scope, kind),
        link @ body,
    )


def _placement(fields: Mapping[str, Entry], scope: Scope, name: str) -> tuple[Frame, Frame]:
    """The joint frame at zero, and that of the link in the moving one: with classical DH at its far end."""
    table = next((key for key in ("mdh", "dh") if key in fields), None)
    if table is None:
        return read_frame(fields, scope, name), identity_frame()
    for other in (*FRAME_KEYS, "axis", *(key for key in ("mdh", "dh") if key != table)):
        if other in fields:
            raise fields[other].error(
                f"'{other}' cannot be combined with '{table}'",
                "a joint of a DH table moves about or along its z axis",
            )
    angles, lengths = (_MDH_ANGLES, _MDH_LENGTHS) if table == "mdh" else (_DH_ANGLES, _DH_LENGTHS)
    given = fields[table].fields((*angles, *lengths))
    numbers = {key: scope.angle(given[key]) for key in angles if key in given}
    numbers |= {key: scope.length(given[key], f"{key}_{name}") for key in lengths if key in given}
    return (mdh_frame(**numbers), identity_frame()) if table == "mdh" else dh_frames(**numbers)


def read_frame(
    fields: Mapping[str, Entry], scope: Scope, owner: str | None = None, prefix: str = ""
) -> Frame:
    """A frame from `xyz` with `rpy`, with two of the axis vectors `x`, `y`, `z`, or with the matrix `R`.

    Lengths are named `<prefix>x_<owner>` ...; without an owner they stay nameless.
    """
    p = np.zeros(3)
    if "xyz" in fields:
        parts = fields["xyz"].vector(lambda number: number)
        for i, (axis, part) in enumerate(zip("xyz", parts, strict=True)):
            p[i] = scope.length(part, f"{prefix}{axis}_{owner}") if owner else scope.number(part)
    given = [axis for axis in "xyz" if axis in fields]
    if "R" in fields:  # as results record frames
        return Frame(np.array(fields["R"].vector(lambda row: row.vector(scope.number))), p)
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


def read_bodies(entry: Entry, scope: Scope, bodies: Mapping[str, Body]) -> dict[str, Body]:
    """All `bodies`, with the changes of the file's `bodies:`."""
    changed = dict(bodies)
    for name, item in entry.mapping().items():
        item.known(name, bodies, "body", "name a body of a joint")
        changed[name] = _body(item, scope, bodies[name])
    return changed


def _body(entry: Entry, scope: Scope, body: Body) -> Body:
    fields = entry.fields(("parameters", "known", "prior"))
    parameters = body.parameters
    if "parameters" in fields:
        listed = [item.choice(SYMBOLS) for item in fields["parameters"].items()]
        parameters = tuple(symbol for symbol in SYMBOLS if symbol in listed)
    known = read_known(fields["known"], scope) if "known" in fields else body.known
    prior = read_prior(fields["prior"], scope, body.name) if "prior" in fields else body.prior
    for symbol, value in known.items():
        if symbol not in parameters and value != 0.0:
            raise entry.error(
                f"{symbol} is fixed to {value:g}, but '{body.name}' does not have that parameter",
                f"add {symbol} to 'parameters'",
            )
    return replace(
        body, parameters=parameters, known={s: v for s, v in known.items() if s in parameters}, prior=prior
    )


def read_known(entry: Entry, scope: Scope) -> dict[str, float]:
    """Values taken as exact; impossible ones are refused."""
    values = read_inertial(entry, scope)
    if wrong := _impossible(values):
        raise entry.error(f"{wrong} is negative, which is physically impossible", "correct or remove it")
    return values


def read_prior(entry: Entry, scope: Scope, name: str) -> dict[str, float]:
    """Prior values; those of an impossible body are excluded, with a notice."""
    values = read_inertial(entry, scope)
    if wrong := _impossible(values):
        fault = f"its {wrong} is negative"
        scope.notices.append(notice("impossible-prior", place=entry.place, owner=f"'{name}'", fault=fault))
        return {}
    return values


def _impossible(values: Mapping[str, float]) -> str:
    """A mass or moment of inertia below zero; empty if there is none."""
    return next((f"{s} {values[s]:g}" for s in ("M", "XX", "YY", "ZZ") if values.get(s, 0.0) < 0.0), "")


def read_inertial(entry: Entry, scope: Scope) -> dict[str, float]:
    """Some of the ten parameters; `com` [m] together with M gives MX, MY, MZ."""
    fields = entry.fields((*SYMBOLS, "com"))
    values = {symbol: scope.number(fields[symbol]) for symbol in SYMBOLS if symbol in fields}
    if "com" in fields:
        if "M" not in values or any(symbol in values for symbol in _MOMENTS):
            raise fields["com"].error("'com' needs M and excludes MX, MY and MZ", "give M and com")
        com = fields["com"].vector(scope.number)
        values |= {symbol: values["M"] * x for symbol, x in zip(_MOMENTS, com, strict=True)}
    return {symbol: values[symbol] for symbol in SYMBOLS if symbol in values}


def read_payloads(entry: Entry, scope: Scope, bodies: Collection[str]) -> dict[str, Payload]:
    """The mapping `payloads:` of a robot file."""
    payloads = {}
    for name, item in entry.mapping().items():
        payloads[name] = read_payload(item, scope)
        item.at("body").known(payloads[name].body, bodies, "body", "name a body")
        if name in bodies:
            raise item.error(f"payload '{name}' has the name of a body", "choose another name")
    return payloads


def read_capsules(entry: Entry, scope: Scope, bodies: tuple[str, ...]) -> dict[str, tuple[Capsule, ...]]:
    """`capsules: {BODY: {from: [..], to: [..], radius: r}}`, or a list of them; `base` may have some too."""
    by_body = {}
    for name, item in entry.mapping().items():
        item.known(name, bodies, "body", "name a body, or `base`")
        listed = item.items() if item.is_list else [item]
        by_body[name] = tuple(_capsule(capsule, scope) for capsule in listed)
    return by_body


def _capsule(entry: Entry, scope: Scope) -> Capsule:
    fields = entry.fields(_CAPSULE_KEYS)
    for key in _CAPSULE_KEYS:
        if key not in fields:
            raise entry.error(f"'{key}' is missing", "give from: [x, y, z], to: [x, y, z] and radius")
    radius = scope.positive(fields["radius"], "the radius", "give it in m")
    ends = [np.array(fields[key].vector(scope.number)) for key in ("from", "to")]
    return Capsule(ends[0], ends[1], radius)


def read_payload(entry: Entry, scope: Scope | None = None) -> Payload:
    """One payload, of a robot or an experiment; its name is that of the entry, its body stays unchecked."""
    scope, name = scope or Scope(), entry.name
    fields = entry.fields(("body", *FRAME_KEYS, "R", "p", "known", "prior"), required=("body",))
    if "p" in fields:  # the origin in results of earlier versions
        fields["xyz"] = fields["p"]
    return Payload(
        name,
        fields["body"].text(),
        read_frame(fields, scope),
        read_known(fields["known"], scope) if "known" in fields else {},
        read_prior(fields["prior"], scope, name) if "prior" in fields else {},
    )


def payload_document(payload: Payload) -> dict[str, Any]:
    """A plain tree that `read_payload` reads back."""
    frame = {"xyz": payload.frame.p.tolist(), "R": payload.frame.R.tolist()}
    return {"body": payload.body, **frame, "known": dict(payload.known), "prior": dict(payload.prior)}
