"""URDF: the original file with its inertials and joint dynamics changed, or a new file.

<inertial>  mass, centre of mass, inertia about it in the axes of its origin
<dynamics>  damping Fv, friction Fs; rotor inertia, offsets and other terms are in NAME.urdf.yaml
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.exporters.contract import Described, Exported, header_lines, named_file, static_bodies
from dynid.exporters.link_tree import (
    DriveSplit,
    Link,
    at_centre,
    link_tree,
    rest_sentences,
    rpy_of,
    split_drives,
)
from dynid.exporters.readers import Loaded, available, exported, load_dynid, load_pinocchio
from dynid.exporters.sidecar import write_sidecar
from dynid.exporters.xml_text import XmlText, alike, attribute, comment, number, numbers
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import XML_ENTRIES
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf_file import urdf_parts
from dynid.mechanism.urdf_tree import UrdfModel, joint_end, urdf_model
from dynid.mechanism.xml_elements import Element, read_elements
from dynid.statistics.estimate import Estimate

_TYPES = {
    JointKind.REVOLUTE: "revolute",
    JointKind.PRISMATIC: "prismatic",
    JointKind.FIXED: "fixed",
    JointKind.FREE: "floating",
}


def export_urdf(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.urdf, and NAME.urdf.yaml with loops and what a URDF cannot hold."""
    described = Described(estimate, mechanism)
    source = described.source(".urdf")
    links = link_tree(mechanism)
    split = split_drives(
        mechanism,
        described.parameters,
        described.chi,
        ("Fv", "Fs"),
        [link.coordinates for link in links if link.coordinates],
    )
    file = named_file(folder, mechanism, ".urdf")
    missing = rest_sentences(described.parameters, split, "URDF has no such attribute")
    missing += [f"loop '{loop.name}' (URDF is a tree; it is in {file.name}.yaml)" for loop in mechanism.loops]
    missing += [f"cable '{wire.name}' (URDF has no cables)" for wire in mechanism.cables]
    if source is None:
        file.write_text(_generated(described, links, split), encoding="utf-8")
    else:
        model = urdf_model(read_elements(source))
        file.write_bytes(_edited(described, model, split))
        described.difference(source, file)
        missing += described.rounded_angles()
    mimics = [coupling.joint for coupling in mechanism.couplings if len(coupling.of) == 1]
    side = write_sidecar(described, file, generated=source is None, held=mimics)
    load = partial(_load, file, mechanism)
    return exported([file], side, load, mechanism, split, missing)


def _load(file: Path, mechanism: Mechanism) -> Loaded:
    """By Pinocchio; without it by dynid itself."""
    if available("pinocchio"):
        return load_pinocchio(file, mechanism)
    return load_dynid(file, mechanism)


def _edited(described: Described, model: UrdfModel, split: DriveSplit) -> bytes:
    """The source with other numbers."""
    text = XmlText.read(Path(model.file))
    mechanism = described.mechanism
    parts = urdf_parts(model, Scope({}))
    static = static_bodies(mechanism)
    for joint, element in zip(parts.joints, model.joints, strict=True):
        if joint.child not in mechanism.bodies:
            continue
        link = model.links[joint_end(element, "child")]
        chi = described.body(joint.child)
        if chi is not None and joint.child not in static:
            _edit_link(text, link, chi)
        if joint.axes:
            _edit_dynamics(text, element, split.joints.get(joint.name, {}))
    _add_payloads(text, model, mechanism)
    text.header(comment(header_lines(described)))
    return text.result()


def _edit_link(text: XmlText, link: Element, chi: Float[Array, "10"]) -> None:
    inertial = link.child("inertial")
    if inertial is None or inertial.child("mass") is None or inertial.child("inertia") is None:
        if inertial is None:
            text.insert(link.offset, _inertial(chi), first=True)
            return
        raise link.error("its <inertial> has no <mass> or <inertia>", "complete it or remove it")
    origin = inertial.child("origin")
    owner = f"link '{link.attributes.get('name', '')}'"
    rpy = origin.numbers("rpy", owner) if origin is not None else None
    R = rpy_matrix(tuple(x for x, _ in rpy)) if rpy else np.eye(3)  # type: ignore[arg-type]
    mass, com, inertia = at_centre(chi)
    inertia = R.T @ inertia @ R
    xyz = [x for x, _ in origin.numbers("xyz", owner) or ()] if origin is not None else []
    if origin is not None:
        if not alike(xyz or [0.0] * 3, com):
            text.set(origin.offset, "xyz", numbers(com))
    elif np.any(com != 0.0):
        text.insert(inertial.offset, [f'<origin xyz="{numbers(com)}"/>'], first=True)
    masses, tensor = inertial.child("mass"), inertial.child("inertia")
    assert masses is not None and tensor is not None  # noqa: S101, PT018  (checked above)
    if not alike([masses.number("value")], [mass]):
        text.set(masses.offset, "value", number(mass))
    entries = inertia[np.triu_indices(3)]
    before = [tensor.number(key, 0.0) for key in XML_ENTRIES]
    if not alike(before, entries):
        for key, value in zip(XML_ENTRIES, entries, strict=True):
            if key in tensor.attributes or value != 0.0:
                text.set(tensor.offset, key, number(value))


def _edit_dynamics(text: XmlText, joint: Element, terms: object) -> None:
    """Damping and friction of a joint: zero where the estimate has none."""
    values = dict(terms)  # type: ignore[call-overload]
    wanted = {"damping": values.get("Fv", 0.0), "friction": values.get("Fs", 0.0)}
    dynamics = joint.child("dynamics")
    if dynamics is not None:
        for key, value in wanted.items():
            if dynamics.number(key, 0.0) != value:
                text.set(dynamics.offset, key, number(value))
    elif any(wanted.values()):
        text.insert(joint.offset, [_dynamics(values)], first=False)


def _dynamics(values: dict[str, float]) -> str:
    damping, friction = number(values.get("Fv", 0.0)), number(values.get("Fs", 0.0))
    return f'<dynamics damping="{damping}" friction="{friction}"/>'


def _add_payloads(text: XmlText, model: UrdfModel, mechanism: Mechanism) -> None:
    names = {new: old for old, new in model.rename.items()}
    root = min(text._ends)
    for link in link_tree(mechanism):
        if link.payload:
            text.insert(root, _link(link) + _joint(link, names.get(link.parent, link.parent)), first=False)


# New files.


def _generated(described: Described, links: list[Link], split: DriveSplit) -> str:
    mechanism = described.mechanism
    if balls := [link.joint for link in links if link.kind is JointKind.SPHERICAL]:
        raise InputError(
            f"URDF has no spherical joint: {', '.join(balls)}", remedy="export to mjcf or sdf instead"
        )
    lines = ['<?xml version="1.0"?>', comment(header_lines(described))]
    lines += [f'<robot name="{attribute(mechanism.name)}">', f'  <link name="{BASE}"/>']
    for link in links:
        lines += [f"  {line}" for line in _link(link)]
    for link in links:
        terms = {} if not link.coordinates else dict(split.joints.get(link.coordinates[0], {}))
        lines += [f"  {line}" for line in _joint(link, link.parent, mechanism, terms)]
    return "\n".join([*lines, "</robot>", ""])


def _inertial(chi: Float[Array, "10"]) -> list[str]:
    mass, com, inertia = at_centre(chi)
    pairs = zip(XML_ENTRIES, inertia[np.triu_indices(3)], strict=True)
    entries = " ".join(f'{key}="{number(value)}"' for key, value in pairs)
    return [
        "<inertial>",
        f'  <origin xyz="{numbers(com)}"/>',
        f'  <mass value="{number(mass)}"/>',
        f"  <inertia {entries}/>",
        "</inertial>",
    ]


def _link(link: Link) -> list[str]:
    name = attribute(link.name)
    if link.chi is None:
        return [f'<link name="{name}"/>']
    return [f'<link name="{name}">', *(f"  {line}" for line in _inertial(link.chi)), "</link>"]


def origin_line(frame: Frame) -> str:
    """The place of a frame."""
    return f'<origin xyz="{numbers(frame.p)}" rpy="{numbers(rpy_of(frame.R))}"/>'


def _joint(
    link: Link, parent: str, mechanism: Mechanism | None = None, terms: dict[str, float] | None = None
) -> list[str]:
    limit = mechanism.limits.get(link.joint, {}) if mechanism is not None else {}
    kind = _TYPES[link.kind]
    if link.kind is JointKind.REVOLUTE and "q" not in limit:
        kind = "continuous"
    lines = [f'<joint name="{attribute(link.joint)}" type="{kind}">', f"  {origin_line(link.placement)}"]
    lines += [f'  <parent link="{attribute(parent)}"/>', f'  <child link="{attribute(link.name)}"/>']
    if link.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC):
        lines.append(f'  <axis xyz="{numbers(link.axis)}"/>')
        low, high = limit.get("q", (-1e3, 1e3) if kind == "prismatic" else (0.0, 0.0))
        bounds = f'lower="{number(low)}" upper="{number(high)}" ' if kind != "continuous" else ""
        dq, tau = (number(limit.get(key, 1e3)) for key in ("dq", "tau"))
        lines.append(f'  <limit {bounds}velocity="{dq}" effort="{tau}"/>')
        if terms:
            lines.append(f"  {_dynamics(terms)}")
        coupling = (
            next((c for c in mechanism.couplings if c.joint == link.joint), None) if mechanism else None
        )
        if coupling is not None and len(coupling.of) == 1:
            ((other, ratio),) = coupling.of.items()
            values = f'multiplier="{number(ratio)}" offset="{number(coupling.offset)}"'
            lines.append(f'  <mimic joint="{attribute(other)}" {values}/>')
    return [*lines, "</joint>"]
