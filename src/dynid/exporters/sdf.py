"""SDF: a new file with links, joints, inertials, damping and friction; the rest is in NAME.sdf.yaml.

T_parent,link = pose(joint) M(q)        each link's pose is given relative to its joint
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.exporters.contract import Described, Exported, header_lines, named_file
from dynid.exporters.link_tree import (
    DriveSplit,
    Link,
    at_centre,
    link_tree,
    rest_sentences,
    rpy_of,
    split_drives,
)
from dynid.exporters.readers import Loaded, available, exported, pinocchio_efforts
from dynid.exporters.sidecar import write_sidecar
from dynid.exporters.xml_text import attribute, comment, number, numbers
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.inertia import XML_ENTRIES
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.statistics.estimate import Estimate

_WORLD = "world"
_TYPES = {
    JointKind.REVOLUTE: "revolute",
    JointKind.PRISMATIC: "prismatic",
    JointKind.FIXED: "fixed",
    JointKind.SPHERICAL: "ball",
}


def export_sdf(estimate: Estimate, mechanism: Mechanism, folder: Path) -> Exported:
    """NAME.sdf, and NAME.sdf.yaml with loops and what an SDF cannot hold."""
    described = Described(estimate, mechanism)
    links = link_tree(mechanism)
    groups = [link.coordinates for link in links if len(link.coordinates) == 1]
    split = split_drives(mechanism, described.parameters, described.chi, ("Fv", "Fs"), groups)
    file = named_file(folder, mechanism, ".sdf")
    missing = rest_sentences(described.parameters, split, "SDF has no such element")
    missing += [f"loop '{loop.name}' (it is in {file.name}.yaml)" for loop in mechanism.loops]
    missing += [f"cable '{wire.name}' (SDF has no cables)" for wire in mechanism.cables]
    missing += [
        f"coupling of '{relation.joint}' (it is in {file.name}.yaml)" for relation in mechanism.couplings
    ]
    file.write_text(_text(described, links, split), encoding="utf-8")
    side = write_sidecar(described, file, generated=True)
    load = partial(_load, file, mechanism)
    return exported([file], side, load, mechanism, split, missing)


def sdf_name(name: str) -> str:
    """A name that SDF allows: `::` separates scopes, and names with two underscores around are reserved."""
    name = name.replace("::", "_")
    reserved = name == _WORLD or (name.startswith("__") and name.endswith("__"))
    return f"{name}_" if reserved else name


def _text(described: Described, links: list[Link], split: DriveSplit) -> str:
    mechanism = described.mechanism
    lines = ['<?xml version="1.0"?>', comment(header_lines(described)), '<sdf version="1.9">']
    lines += [f'  <model name="{attribute(sdf_name(mechanism.name))}">']
    for link in links:
        lines += [f"    {line}" for line in _link(link)]
    for link in links:
        lines += [f"    {line}" for line in _joint(link, mechanism, split)]
    return "\n".join([*lines, "  </model>", "</sdf>", ""])


def _pose(frame: Frame, relative_to: str) -> str:
    at = f' relative_to="{attribute(relative_to)}"' if relative_to else ""
    return f"<pose{at}>{numbers(frame.p)} {numbers(rpy_of(frame.R))}</pose>"


def _link(link: Link) -> list[str]:
    joint = "" if link.kind is JointKind.FREE else sdf_name(link.joint)
    place = link.placement if link.kind is JointKind.FREE else Frame(np.eye(3), np.zeros(3))
    lines = [f'<link name="{attribute(sdf_name(link.name))}">', f"  {_pose(place, joint)}"]
    if link.chi is not None:
        mass, com, inertia = at_centre(link.chi)
        entries = zip(XML_ENTRIES, inertia[np.triu_indices(3)], strict=True)
        tensor = "".join(f"<{key}>{number(value)}</{key}>" for key, value in entries)
        lines += [
            "  <inertial>",
            f"    {_pose(Frame(np.eye(3), com), '')}",
            f"    <mass>{number(mass)}</mass>",
            f"    <inertia>{tensor}</inertia>",
            "  </inertial>",
        ]
    return [*lines, "</link>"]


def _joint(link: Link, mechanism: Mechanism, split: DriveSplit) -> list[str]:
    """The joint of a link; a free link has none."""
    if link.kind is JointKind.FREE:
        return []
    parent = _WORLD if link.parent == BASE else sdf_name(link.parent)
    above = "" if link.parent == BASE else parent
    lines = [f'<joint name="{attribute(sdf_name(link.joint))}" type="{_TYPES[link.kind]}">']
    lines += [
        f"  {_pose(link.placement, above or '__model__')}",
        f"  <parent>{attribute(parent)}</parent>",
        f"  <child>{attribute(sdf_name(link.name))}</child>",
    ]
    if link.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC):
        limit = mechanism.limits.get(link.joint, {})
        bounds = "".join(
            f"<{key}>{number(value)}</{key}>"
            for key, value in zip(("lower", "upper"), limit.get("q", ()), strict=False)
        )
        bounds += "".join(
            f"<{theirs}>{number(limit[ours])}</{theirs}>"
            for ours, theirs in (("tau", "effort"), ("dq", "velocity"))
            if ours in limit
        )
        terms = split.joints.get(link.coordinates[0], {})
        damping, friction = number(terms.get("Fv", 0.0)), number(terms.get("Fs", 0.0))
        lines += [
            "  <axis>",
            f"    <xyz>{numbers(link.axis)}</xyz>",
            *([f"    <limit>{bounds}</limit>"] if bounds else []),
            f"    <dynamics><damping>{damping}</damping><friction>{friction}</friction></dynamics>",
            "  </axis>",
        ]
    return [*lines, "</joint>"]


# Read back: there is no SDF library among the tools of dynid; Pinocchio computes what this reader finds.


def _load(file: Path, mechanism: Mechanism) -> Loaded:
    if not available("pinocchio"):
        raise InputError("an SDF needs Pinocchio to be compared: pip install pin", remedy="install it")
    import pinocchio

    model, friction = _model(file)
    return Loaded(
        f"Pinocchio {pinocchio.__version__} (model built from the SDF by dynid)",
        pinocchio_efforts(model, mechanism, friction),
    )


def _model(file: Path) -> tuple[Any, dict[str, tuple[float, float]]]:
    """A Pinocchio model of the written file, and damping and friction of its joints."""
    import pinocchio
    from defusedxml.ElementTree import parse

    root = parse(file).getroot().find("model")
    kinds = {
        "revolute": pinocchio.JointModelRevoluteUnaligned,
        "prismatic": pinocchio.JointModelPrismaticUnaligned,
    }
    model = pinocchio.Model()
    friction: dict[str, tuple[float, float]] = {}
    links = {element.get("name"): element for element in root.findall("link")}
    # Joint of the model and place in its frame, of each link.
    carried: dict[str, tuple[int, Any]] = {_WORLD: (0, pinocchio.SE3.Identity())}
    joints = {element.find("child").text: element for element in root.findall("joint")}
    for name, link in links.items():
        joint = joints.get(name)
        if joint is None:
            parent, at = 0, _se3(link.find("pose").text)
            # A link without a joint is named after its joint in the mechanism: the only free one of it.
            i = model.addJoint(parent, pinocchio.JointModelFreeFlyer(), at, f"free {name}")
            carried[name] = (i, pinocchio.SE3.Identity())
        else:
            parent, above = carried[joint.find("parent").text]
            at, kind = above * _se3(joint.find("pose").text), joint.get("type")
            if kind == "fixed":
                carried[name] = (parent, at)
            else:
                made = pinocchio.JointModelSpherical()
                if kind != "ball":
                    made = kinds[kind](np.array([float(x) for x in joint.find("axis/xyz").text.split()]))
                    terms = [joint.find(f"axis/dynamics/{key}").text for key in ("damping", "friction")]
                    friction[joint.get("name")] = float(terms[0]), float(terms[1])
                carried[name] = (
                    model.addJoint(parent, made, at, joint.get("name")),
                    pinocchio.SE3.Identity(),
                )
        inertial = link.find("inertial")
        if inertial is not None:
            model.appendBodyToJoint(carried[name][0], _inertia(inertial), carried[name][1])
    return model, friction


def _inertia(inertial: Any) -> Any:
    import pinocchio

    pose = _se3(inertial.find("pose").text)
    tensor = np.zeros((3, 3))
    tensor[np.triu_indices(3)] = [float(inertial.find(f"inertia/{key}").text) for key in XML_ENTRIES]
    tensor = tensor + np.triu(tensor, 1).T
    centred = pinocchio.Inertia(float(inertial.find("mass").text), np.zeros(3), tensor)
    return centred.se3Action(pose)


def _se3(text: str) -> Any:
    import pinocchio

    x = [float(word) for word in text.split()]
    return pinocchio.SE3(rpy_matrix((x[3], x[4], x[5])), np.array(x[:3]))
