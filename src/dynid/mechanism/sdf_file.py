"""Reader of SDF models (1.7 to 1.12): links, joints, frames, inertials as priors, closed loops, mimics.

A construct that is not read and would change the dynamics is refused, never ignored. No other file is
opened: <include> must be expanded first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.common.errors import nearest
from dynid.common.notices import notice
from dynid.mechanism.frame import Frame, align_z, identity_frame, unit_vector
from dynid.mechanism.inertia import SYMBOLS, XML_ENTRIES
from dynid.mechanism.joint import FIXED_BY, Joint, JointKind, Loop
from dynid.mechanism.mechanism import Body, Coupling
from dynid.mechanism.parts import GRAVITY, Parts, coordinate_clash, resolve_couplings
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.sdf_tree import (
    WORLD,
    SdfFrames,
    SdfModel,
    clean,
    flag,
    number_in,
    read_pose,
    vector_in,
)
from dynid.mechanism.urdf_file import absent_notices, excluded_notice, ten_about_origin
from dynid.mechanism.xml_elements import Element

_KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "fixed": JointKind.FIXED,
    "ball": JointKind.SPHERICAL,
    "universal": JointKind.UNIVERSAL,
}
_CLOSURES = {
    JointKind.REVOLUTE: FIXED_BY["revolute"],
    JointKind.PRISMATIC: FIXED_BY["prismatic"],
    JointKind.FIXED: FIXED_BY["weld"],
    JointKind.SPHERICAL: FIXED_BY["point"],
}
_AXES = {
    JointKind.REVOLUTE: ("axis",),
    JointKind.PRISMATIC: ("axis",),
    JointKind.UNIVERSAL: ("axis", "axis2"),
}


def sdf_parts(model: SdfModel, scope: Scope) -> Parts:
    """Joints, bodies, loops, couplings, limits and gravity."""
    scope.notices += model.notices
    if model.root != WORLD:
        scope.notices.append(notice("root-not-fixed", link=model.root))
    frames = SdfFrames(model.model, model.links, model.joints, model.frames, scope)
    base = frames.of(model.root, model.model) if model.root != WORLD else identity_frame()
    parts = Parts(model.model.attributes.get("name", "").strip() or "robot", root=model.root)
    parts.gravity = _gravity(model, scope, base)
    names: dict[str, list[str]] = {"frames": [], "missing": []}
    for name, parent, child in model.tree:
        joint = _joint(model, frames, base, name, parent, child)
        parts.joints.append(joint)
        parts.bodies[joint.child] = _body(model, joint, child, scope, names)
        parts.limits |= _limits(model.joints[name], joint)
        parts.prior |= _friction(model.joints[name], joint)
    for name, parent, child in model.cuts:
        parts.loops += (_loop(model, frames, base, name, parent, child),)
    clash = coordinate_clash(parts.joints)
    if clash:
        raise model.model.error(
            "coordinate '{}' belongs to joints '{}' and '{}'".format(*clash), "rename one"
        )
    parts.couplings = _mimics(model, {joint.name: joint for joint in parts.joints})
    scope.notices += absent_notices(names["frames"], names["missing"], "link")
    return parts


def _gravity(model: SdfModel, scope: Scope, base: Frame) -> tuple[float, ...]:
    """Of the world, in the base frame: that of the model, or of its root link."""
    given = None if model.world is None else model.world.child("gravity")
    g = np.array(GRAVITY) if given is None else vector_in(given, "world")
    pose = model.model.child("pose")
    if pose is not None and pose.attributes.get("relative_to", "").strip() not in ("", WORLD):
        raise pose.error("the model's pose is relative to another frame", "give it in the world")
    R = read_pose(model.model, scope).R @ base.R
    turned = R.T @ g
    return tuple(float(x) for x in np.where(np.abs(turned) < 1e-12, 0.0, turned))


def _placed(frames: SdfFrames, base: Frame, link: str, user: Element) -> Frame:
    """A link in the base frame."""
    return base.inverse() @ base if link in (WORLD, "") else clean(base.inverse() @ frames.of(link, user))


def _joint(model: SdfModel, frames: SdfFrames, base: Frame, name: str, parent: str, child: str) -> Joint:
    element = model.joints[name]
    text = element.text("type")
    if text not in _KINDS:
        remedy = "use one of " + ", ".join(_KINDS)
        raise element.error(f"joint '{name}' has type '{text}'" + nearest(text, _KINDS), remedy)
    kind = _KINDS[text]
    at = clean(base.inverse() @ frames.of(name, element))
    placement = clean(_placed(frames, base, parent, element).inverse() @ at)
    body = clean(at.inverse() @ _placed(frames, base, child, element))
    axes = tuple(_axis(element, tag, name, frames) for tag in _AXES.get(kind, ()))
    rename = model.rename
    return Joint(name, kind, rename.get(parent, parent), rename.get(child, child), placement, axes, body)


def _axis(joint: Element, tag: str, name: str, frames: SdfFrames) -> np.ndarray:
    """Unit axis in the joint frame; it may be expressed in another frame."""
    axis = joint.child(tag)
    xyz = None if axis is None else axis.child("xyz")
    owner = f"joint '{name}'"
    vector = np.array([0.0, 0.0, 1.0]) if xyz is None else vector_in(xyz, owner)
    try:
        vector = unit_vector(vector)
    except ValueError:
        raise (xyz or joint).error(f"{owner} has a zero axis", "e.g. <xyz>0 0 1</xyz>") from None
    other = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
    if other:
        vector = unit_vector(frames.of(name, joint).R.T @ frames.of(other, joint).R @ vector)
    return vector


def _loop(model: SdfModel, frames: SdfFrames, base: Frame, name: str, parent: str, child: str) -> Loop:
    """A joint whose child is already placed: its frame in both links coincides, except for its motion."""
    joint = _joint(model, frames, base, name, parent, child)
    if joint.kind not in _CLOSURES:
        raise model.joints[name].error(
            f"joint '{name}' closes a loop and is {joint.kind}",
            "use a revolute or ball joint there",
        )
    turn = Frame(align_z(joint.axes[0]), np.zeros(3)) if joint.axes else identity_frame()
    b = joint.body.inverse() @ turn
    return Loop(name, _CLOSURES[joint.kind], joint.parent, joint.placement @ turn, joint.child, b)


def _body(model: SdfModel, joint: Joint, link: str, scope: Scope, names: Mapping[str, list[str]]) -> Body:
    chi, fault = _ten_parameters(model.links[link], link, scope)
    fixed = joint.kind is JointKind.FIXED
    if fault:
        scope.notices.append(excluded_notice(model.links[link], f"link '{link}'", fault))
        return Body(joint.child)
    if chi is None:
        names["frames" if fixed else "missing"].append(link)
        return Body(joint.child, parameters=()) if fixed else Body(joint.child)
    return Body(joint.child, prior=dict(zip(SYMBOLS, (float(x) for x in chi), strict=True)))


def _ten_parameters(link: Element, name: str, scope: Scope) -> tuple[np.ndarray | None, str]:
    """Ten parameters about the link's origin (None when not given), and why they are impossible."""
    inertial = link.child("inertial")
    if inertial is None:
        return None, ""
    owner = f"link '{name}'"
    inertia_element = inertial.child("inertia")
    computed = flag(inertial.attributes.get("auto", "false"), inertial)
    if computed or inertial.child("mass") is None or inertia_element is None:
        return None, ""  # computed from shapes, or from defaults: no measured values
    pose = inertial.child("pose")
    if pose is not None and pose.attributes.get("relative_to", "").strip():
        raise pose.error(f"{owner}: the pose of an inertial has no relative_to", "give it in the link")
    mass = number_in(inertial, "mass", 0.0, owner)
    entries = [
        number_in(inertia_element, tag, 1.0 if tag[1] == tag[2] else 0.0, owner) for tag in XML_ENTRIES
    ]  # SDF's default of a moment is 1
    return ten_about_origin(mass, entries, read_pose(inertial, scope))


def _limits(element: Element, joint: Joint) -> dict[str, dict[str, float | tuple[float, float]]]:
    """{coordinate: {q: (low, high), dq, tau}}; infinite and negative bounds mean none."""
    limits: dict[str, dict[str, float | tuple[float, float]]] = {}
    for coordinate, tag in zip(joint.coordinates if joint.axes else (), ("axis", "axis2"), strict=False):
        axis = element.child(tag)
        limit = None if axis is None else axis.child("limit")
        if limit is None:
            continue
        low, high = (_bound(limit, key, sign) for key, sign in (("lower", -1.0), ("upper", 1.0)))
        if low > high:
            raise limit.error(f"joint '{joint.name}': lower limit {low:g} is above {high:g}", "swap them")
        axis_limits: dict[str, float | tuple[float, float]] = {}
        if -1e15 < low < high < 1e15 and element.attributes["type"] != "continuous":
            axis_limits["q"] = (low, high)
        for ours, key in (("dq", "velocity"), ("tau", "effort")):
            if 0.0 < _bound(limit, key, 1.0) < 1e15:
                axis_limits[ours] = _bound(limit, key, 1.0)
        limits |= {coordinate: axis_limits} if axis_limits else {}
    return limits


def _bound(limit: Element, key: str, sign: float) -> float:
    child = limit.child(key)
    text = "inf" if child is None else child.content
    if text.lstrip("+-") in ("inf", "Inf", "infinity"):
        return -float("inf") if text.startswith("-") or (child is None and sign < 0) else float("inf")
    assert child is not None  # noqa: S101  (a missing bound is infinite)
    return child.parsed(text, key, "limit")


def _friction(element: Element, joint: Joint) -> dict[str, float]:
    """Damping and friction as priors of Fv and Fs."""
    prior: dict[str, float] = {}
    for coordinate, tag in zip(joint.coordinates if joint.axes else (), ("axis", "axis2"), strict=False):
        axis = element.child(tag)
        dynamics = None if axis is None else axis.child("dynamics")
        for symbol, key in (("Fv", "damping"), ("Fs", "friction")):
            value = number_in(dynamics, key, 0.0, f"joint '{joint.name}'")
            if value < 0.0:
                raise (dynamics or element).error(f"{key} of '{joint.name}' is negative", "correct it")
            if value > 0.0:
                prior[f"{symbol}_{coordinate}"] = value
    return prior


def _mimics(model: SdfModel, joints: Mapping[str, Joint]) -> tuple[Coupling, ...]:
    couplings: dict[str, Coupling] = {}
    places: dict[str, Element] = {}
    for name, element in model.joints.items():
        axis = element.child("axis")
        mimic = None if axis is None else axis.child("mimic")
        if mimic is None:
            continue
        followed, owner = mimic.text("joint"), f"joint '{name}'"
        simple = [candidate.name for candidate in joints.values() if len(candidate.axes) == 1]
        if followed not in simple or name not in simple or mimic.attributes.get("axis", "axis") != "axis":
            raise mimic.error(
                f"{owner} mimics '{followed}', which is not a joint with one axis", "correct it"
            )
        ratio = number_in(mimic, "multiplier", 1.0, owner)
        offset = number_in(mimic, "offset", 0.0, owner) - ratio * number_in(mimic, "reference", 0.0, owner)
        couplings[name], places[name] = Coupling(name, {followed: ratio}, offset), mimic
    return resolve_couplings(couplings, lambda name, text: places[name].error(text, "remove the cycle"))
