"""Reader of URDF files: joints, links as bodies, inertials and friction as priors, mimics as couplings.

Values missing in a URDF stay unknown: nothing is guessed or repaired, and no other file is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.collision_shapes import of_kind, urdf_shapes
from dynid.mechanism.frame import Frame, rpy_matrix, unit_vector
from dynid.mechanism.inertia import SYMBOLS, XML_ENTRIES, in_parent_frame, unpack
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import Body, Capsule, Coupling
from dynid.mechanism.mesh_file import MeshShape
from dynid.mechanism.parts import Parts, coordinate_clash, resolve_couplings
from dynid.mechanism.robot_file.bodies import normalised_notice
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf_tree import UrdfModel, joint_end
from dynid.mechanism.xml_elements import Element

_KINDS = {
    "revolute": JointKind.REVOLUTE,
    "continuous": JointKind.REVOLUTE,
    "prismatic": JointKind.PRISMATIC,
    "fixed": JointKind.FIXED,
    "floating": JointKind.FREE,
}
# Inertias are written with a few digits; a thin rod or plate may violate the triangle inequality by rounding.
_TRIANGLE_RTOL = 1e-6
_Priors = tuple[dict[str, dict[str, float] | None], list[Notice]]
_PRIORS: WeakKeyDictionary[UrdfModel, _Priors] = WeakKeyDictionary()


def urdf_parts(model: UrdfModel, scope: Scope) -> Parts:
    """Joints, bodies, couplings and limits, with the dimensions in `scope`."""
    scope.notices += model.notices
    joints = [_joint(element, model, scope) for element in model.joints]
    if model not in _PRIORS:  # they do not depend on the dimensions, of which many are tried
        _PRIORS[model] = read_priors(model.joints, model.links)
    priors, notices = _PRIORS[model]
    scope.notices += notices
    bodies = {}
    for joint, element in zip(joints, model.joints, strict=True):
        prior = priors[joint_end(element, "child")]
        massless = prior is None and joint.kind is JointKind.FIXED
        bodies[joint.child] = (
            Body(joint.child, parameters=()) if massless else Body(joint.child, prior={**(prior or {})})
        )
    by_name = {joint.name: joint for joint in joints}
    clash = coordinate_clash(joints)
    if clash:
        raise model.joints[joints.index(by_name[clash[2]])].error(
            "coordinate '{}' belongs to joints '{}' and '{}'".format(*clash), "rename one of the joints"
        )
    limits = {
        joint.name: _limits(element, joint) for joint, element in zip(joints, model.joints, strict=True)
    }
    friction = [_friction(element, joint, scope) for joint, element in zip(joints, model.joints, strict=True)]
    shapes = urdf_shapes(model.links, model.rename)
    return Parts(
        name=model.name,
        joints=joints,
        bodies=bodies,
        couplings=_mimics(model, by_name),
        limits={name: values for name, values in limits.items() if values},
        root=model.root,
        prior={name: value for priors in friction for name, value in priors.items()},
        capsules=of_kind(shapes, Capsule),
        meshes=of_kind(shapes, MeshShape),
    )


def _joint(element: Element, model: UrdfModel, scope: Scope) -> Joint:
    name, kind_text = element.text("name"), element.text("type")
    if kind_text not in _KINDS:
        remedy = "use one of " + ", ".join(_KINDS)
        if kind_text == "planar":
            remedy = "write two prismatic joints and a revolute one instead"
        raise element.error(f"joint '{name}' has type '{kind_text}'" + nearest(kind_text, _KINDS), remedy)
    kind = _KINDS[kind_text]
    parent, child = joint_end(element, "parent"), joint_end(element, "child")
    axes = (_axis(element, name, scope),) if kind in (JointKind.REVOLUTE, JointKind.PRISMATIC) else ()
    return Joint(
        name,
        kind,
        model.rename.get(parent, parent),
        model.rename.get(child, child),
        _placement(element, name, scope),
        axes,
    )


def _placement(joint: Element, name: str, scope: Scope) -> Frame:
    origin = joint.child("origin")
    if origin is None:
        return Frame(np.eye(3), np.zeros(3))
    if "quat_xyzw" in origin.attributes:
        raise origin.error(f"joint '{name}': quat_xyzw is not supported", "write the rotation as rpy")
    xyz = origin.numbers("xyz", f"joint '{name}'") or []
    rpy = origin.numbers("rpy", f"joint '{name}'") or []
    p = [scope.bare_length(value, f"{axis}_{name}") for axis, (value, _) in zip("xyz", xyz, strict=bool(xyz))]
    angles = [scope.written_angle(value, text, f"line {origin.line}, joint '{name}'") for value, text in rpy]
    roll, pitch, yaw = angles or (0.0, 0.0, 0.0)
    return Frame(rpy_matrix((roll, pitch, yaw)), np.array(p or (0.0, 0.0, 0.0)))


def _axis(joint: Element, name: str, scope: Scope) -> np.ndarray:
    element = joint.child("axis")
    numbers = element.numbers("xyz", f"joint '{name}'") if element is not None else None
    vector = np.array([value for value, _ in numbers] if numbers else (1.0, 0.0, 0.0))  # URDF's default is x
    try:
        axis = unit_vector(vector)
    except ValueError:
        raise (element or joint).error(
            f"joint '{name}' has a zero axis", 'e.g. <axis xyz="0 0 1"/>'
        ) from None
    if abs(float(np.linalg.norm(vector)) - 1.0) > 1e-6:
        scope.notices.append(normalised_notice(f"line {(element or joint).line}, joint '{name}'", vector))
    return axis


def _limits(element: Element, joint: Joint) -> dict[str, float | tuple[float, float]]:
    """{q: (low, high), dq, tau}; zero speed or effort means that none was given."""
    limit = element.child("limit")
    owner = f"joint '{joint.name}'"
    if limit is None or not joint.coordinates:
        return {}
    low, high = limit.number("lower", 0.0, owner), limit.number("upper", 0.0, owner)
    if low > high:
        raise limit.error(f"{owner}: lower limit {low:g} is above the upper one {high:g}", "swap them")
    limits: dict[str, float | tuple[float, float]] = {}
    if low < high and element.attributes["type"] != "continuous":
        limits["q"] = (low, high)
    for ours, theirs in (("dq", "velocity"), ("tau", "effort")):
        bound = limit.number(theirs, 0.0, owner)
        if bound < 0:
            raise limit.error(f"{owner}: {theirs} limit {bound:g} is negative", "give a positive bound")
        if bound > 0:
            limits[ours] = bound
    return limits


def _friction(element: Element, joint: Joint, scope: Scope) -> dict[str, float]:
    """Damping and friction as priors of Fv and Fs; zero means that none was given."""
    dynamics = element.child("dynamics")
    priors: dict[str, float] = {}
    if dynamics is None:
        return priors
    for symbol, key in (("Fv", "damping"), ("Fs", "friction")):
        value = dynamics.number(key, 0.0, f"joint '{joint.name}'")
        if value < 0.0:
            owner = f"{key} {value:g} of joint '{joint.name}'"
            scope.notices.append(excluded_notice(dynamics, owner, "it is negative"))
        elif value > 0.0 and joint.axes:
            priors[f"{symbol}_{joint.name}"] = value
    return priors


def _mimics(model: UrdfModel, joints: Mapping[str, Joint]) -> tuple[Coupling, ...]:
    couplings: dict[str, Coupling] = {}
    places: dict[str, Element] = {}
    for element in model.joints:
        mimic, name = element.child("mimic"), element.text("name")
        if mimic is None or not joints[name].coordinates:
            continue
        followed = mimic.text("joint")
        one_axis = [joint.name for joint in joints.values() if joint.axes]
        if followed not in one_axis or name not in one_axis:
            raise mimic.error(
                f"joint '{name}' mimics '{followed}', which is not a movable joint"
                + nearest(followed, one_axis),
                "",
            )
        owner = f"joint '{name}'"
        ratio, offset = mimic.number("multiplier", 1.0, owner), mimic.number("offset", 0.0, owner)
        couplings[name], places[name] = Coupling(name, {followed: ratio}, offset), mimic
    return resolve_couplings(
        couplings, lambda name, text: places[name].error(text, "remove the cycle of mimic joints")
    )


def read_priors(joints: Sequence[Element], links: Mapping[str, Element]) -> _Priors:
    """Prior of every link on a joint (ten values, {} when excluded, None when massless), and notices.

    None is given only to links on fixed joints without mass: they are frames, not bodies.
    """
    notices: list[Notice] = []
    priors: dict[str, dict[str, float] | None] = {}
    frames: list[str] = []
    missing: list[str] = []
    for joint in joints:
        child = joint.child("child")
        name = child.text("link") if child is not None else ""
        fixed = joint.attributes.get("type") == "fixed"
        chi, fault = _ten_parameters(links[name], name)
        if fault:
            notices.append(excluded_notice(links[name], f"link '{name}'", fault))
        if chi is not None and (fault or (fixed and not np.any(chi))):
            priors[name] = {} if fault else None
        elif chi is not None:
            priors[name] = dict(zip(SYMBOLS, (float(x) for x in chi), strict=True))
        else:
            priors[name] = None if fixed else {}
        if priors[name] is None:
            frames.append(name)
        elif chi is None:
            missing.append(name)
    return priors, [*notices, *absent_notices(frames, missing, "link")]


def _ten_parameters(link: Element, name: str) -> tuple[Float[Array, "10"] | None, str]:
    """Ten parameters about the link's origin (None when not given), and why they are impossible."""
    inertial = link.child("inertial")
    if inertial is None:
        return None, ""
    owner = f"link '{name}'"
    mass_element, inertia_element = inertial.child("mass"), inertial.child("inertia")
    mass = mass_element.number("value", owner=owner) if mass_element is not None else None
    entries = np.zeros(6)
    if inertia_element is not None:
        for i, entry in enumerate(XML_ENTRIES):
            default = None if entry in ("ixx", "iyy", "izz") else 0.0
            entries[i] = inertia_element.number(entry, default, owner)
    origin = inertial.child("origin")
    xyz = origin.numbers("xyz", owner) if origin is not None else None
    rpy = origin.numbers("rpy", owner) if origin is not None else None
    if mass is None or inertia_element is None:
        return None, ""
    roll, pitch, yaw = [angle for angle, _ in rpy] if rpy else (0.0, 0.0, 0.0)
    com = np.array([x for x, _ in xyz]) if xyz else np.zeros(3)
    return ten_about_origin(mass, entries, Frame(rpy_matrix((roll, pitch, yaw)), com))


def ten_about_origin(mass: float, entries: Iterable[float], place: Frame) -> tuple[Float[Array, "10"], str]:
    """Ten parameters of a body, and why they are impossible; empty if they are not.

    Args:
        entries: XX XY XZ YY YZ ZZ about the centre of mass, in the axes of `place`, in [kg m^2].
        place: Centre of mass and axes in the frame of the body.
    """
    at_com = np.array([*entries, 0.0, 0.0, 0.0, mass])
    return in_parent_frame(at_com, place.R, place.p), _inertial_fault(mass, unpack(at_com)[2])


def _inertial_fault(mass: float, inertia: Float[Array, "3 3"]) -> str:
    moments = np.linalg.eigvalsh(inertia)
    if mass < 0:
        return f"its mass {mass:g} kg is negative"
    if mass == 0 and np.any(inertia):
        return "it has inertia but no mass"
    if moments[0] < -_TRIANGLE_RTOL * abs(moments[-1]):
        return f"its inertia is not positive definite (smallest principal moment {moments[0]:.4g} kg m^2)"
    if moments[0] + moments[1] < (1.0 - _TRIANGLE_RTOL) * moments[2]:
        shown = ", ".join(f"{x:.4g}" for x in moments)
        return f"its principal moments ({shown} kg m^2) violate the triangle inequality"
    return ""


def excluded_notice(element: Element, owner: str, fault: str) -> Notice:
    """The notice about a physically inconsistent inertial, or a friction that drives."""
    return notice("impossible-prior", place=element.place, owner=owner, fault=fault)


def absent_notices(frames: list[str], missing: list[str], word: str) -> list[Notice]:
    """Notices about links or bodies (`word`) that are frames only, or come without inertial."""
    notices = []
    if frames:
        subject = "links on fixed joints" if word == "link" else "bodies without a joint and"
        notices.append(notice("massless-frame", which=subject, names=", ".join(frames)))
    if missing:
        subject = "links" if word == "link" else "bodies"
        notices.append(notice("missing-inertial", which=subject, names=", ".join(missing)))
    return notices
