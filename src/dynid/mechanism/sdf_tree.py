"""The tree of an SDF model: links, joints and frames by name, parents first; loops; what is refused.

Frames of an SDF model: poses relative to links, joints, frames and the model, all in the model's frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice
from dynid.mechanism.frame import ROUNDING, Frame, identity_frame, rotation_of, rpy_matrix
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf_tree import rename_base, unknown_parts, words
from dynid.mechanism.xml_elements import Element

JointEnds = tuple[str, str, str]  # joint, parent, child
_VERSIONS = ("1.7", "1.8", "1.9", "1.10", "1.11", "1.12")
# Children that are read or deliberately ignored, below each element that is read.
_CHILDREN = {
    "model": words(
        "link joint frame pose static self_collide allow_auto_disable enable_wind plugin gripper include",
        "model",
    ),
    "link": words(
        "inertial pose visual collision sensor light particle_emitter projector audio_source audio_sink",
        "battery gravity kinematic enable_wind self_collide must_be_base_link velocity_decay",
    ),
    "joint": words(
        "pose parent child axis axis2 physics sensor gearbox_ratio thread_pitch screw_thread_pitch"
    ),
    "inertial": words("pose mass inertia density auto_inertia_params fluid_added_mass"),
    "axis": words("xyz limit dynamics mimic initial_position use_parent_model_frame"),
    "axis2": words("xyz limit dynamics mimic initial_position use_parent_model_frame"),
    "dynamics": words("damping friction spring_reference spring_stiffness"),
    "limit": words("lower upper effort velocity stiffness dissipation"),
}


@dataclass(frozen=True, eq=False)
class SdfModel:
    """A model of an SDF file whose joints form a tree, some of them closing loops.

    Attributes:
        links, joints, frames: Elements by name, in file order.
        tree: Joints of the tree, parents first, each with its parent and child link (or `world`).
        cuts: Joints whose child is already placed.
        root: The link, or `world`, that is the base here.
        rename: Names of links that differ in the mechanism.
    """

    file: str
    model: Element
    world: Element | None
    links: Mapping[str, Element]
    joints: Mapping[str, Element]
    frames: Mapping[str, Element]
    tree: tuple[JointEnds, ...]
    cuts: tuple[JointEnds, ...]
    root: str
    rename: Mapping[str, str]
    notices: tuple[Notice, ...]


def sdf_model(root: Element) -> SdfModel:
    """The only model of a file, directly below <sdf> or in its world."""
    if root.tag != "sdf":
        raise root.error(f"the root element is <{root.tag}>, not <sdf>", "give an SDF file")
    version = root.attributes.get("version", "").strip()
    if version not in _VERSIONS:
        raise root.error(f"SDF version '{version}' is not supported", "convert it to 1.11: gz sdf -p arm.sdf")
    world = root.child("world")
    models = [
        node for place in (root, world) if place is not None for node in place.children if node.tag == "model"
    ]
    for place in (root, world, *models):
        included = (
            None if place is None else next((node for node in place.children if node.tag == "include"), None)
        )
        if included is not None:
            raise included.error(
                "<include> opens other files", "expand it first: gz sdf -p arm.sdf > whole.sdf"
            )
    moving = [node for node in models if not _switched(node, "static", "false")]
    if len(moving) != 1:
        names = ", ".join(node.attributes.get("name", "?") for node in moving[:5])
        raise root.error(f"the file has {len(moving)} models that move ({names})", "keep the robot alone")
    model = moving[0]
    if model.attributes.get("placement_frame", "").strip():
        raise model.error("placement_frame is not supported", "give the pose of the model itself")
    inner = next((node for node in model.children if node.tag == "model"), None)
    if inner is not None:
        raise inner.error("a model inside a model is not supported", "flatten it, or convert to URDF")
    links, joints, frames = (_by_name(model, tag) for tag in ("link", "joint", "frame"))
    _distinct(links, joints, frames)
    if not links:
        raise model.error("the model has no <link>", "give a robot description")
    _refuse_dynamics(links, joints)
    tree, cuts, top = _ordered(model, links, joints, frames)
    rename, renamed = rename_base(top, links, "link")
    unknown = unknown_parts(
        Element(model.file, "sdf", {}, model.line, [model]), {"sdf": ("model",), **_CHILDREN}, {}
    )
    return SdfModel(
        root.file, model, world, links, joints, frames, tree, cuts, top, rename, (*renamed, *unknown)
    )


def _switched(element: Element, tag: str, default: str) -> bool:
    child = element.child(tag)
    return flag(default if child is None else child.content, child or element)


def _by_name(model: Element, tag: str) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in model.children:
        if element.tag == tag:
            name = element.text("name")
            if name in named or name == WORLD or name.startswith("__") or "::" in name:
                problem = (
                    f"{tag} name '{name}' occurs twice" if name in named else f"'{name}' cannot be a name"
                )
                raise element.error(problem, "rename it")
            named[name] = element
    return named


def _distinct(*groups: Mapping[str, Element]) -> None:
    seen: set[str] = set()
    for group in groups:
        for name, element in group.items():
            if name in seen:
                raise element.error(f"the name '{name}' is used for two things", "rename one of them")
        seen |= set(group)


def _refuse_dynamics(links: Mapping[str, Element], joints: Mapping[str, Element]) -> None:
    """Refuse what the equations do not have: springs, added mass, bodies without gravity."""
    for name, link in links.items():
        if not _switched(link, "gravity", "true"):
            raise refuse(link, f"link '{name}' without gravity")
        if _switched(link, "kinematic", "false"):
            raise refuse(link, f"kinematic link '{name}'")
        decay = link.child("velocity_decay")
        if decay is not None and any(
            number_in(decay, key, 0.0, f"link '{name}'") for key in ("linear", "angular")
        ):
            raise refuse(decay or link, f"<velocity_decay> of link '{name}'")
        inertial = link.child("inertial")
        if inertial is not None and inertial.child("fluid_added_mass") is not None:
            raise refuse(inertial, f"<fluid_added_mass> of link '{name}'")
    for name, joint in joints.items():
        for axis in (joint.child("axis"), joint.child("axis2")):
            dynamics = None if axis is None else axis.child("dynamics")
            if number_in(dynamics, "spring_stiffness", 0.0, f"joint '{name}'") != 0.0:
                raise refuse(dynamics or joint, f"the spring of joint '{name}'")
            if axis is not None and _switched(axis, "use_parent_model_frame", "false"):
                raise axis.error(
                    "use_parent_model_frame is not part of SDF 1.7", 'use <xyz expressed_in="...">'
                )


def _ordered(
    model: Element, links: Mapping[str, Element], joints: Mapping[str, Element], frames: Mapping[str, Element]
) -> tuple[tuple[JointEnds, ...], tuple[JointEnds, ...], str]:
    """Joints of the tree, parents first; those that close loops; and the root."""
    resolve = SdfFrames(model, links, joints, frames, Scope())
    carried: dict[str, str] = {}
    first: list[JointEnds] = []
    cuts: list[JointEnds] = []
    for name, joint in joints.items():
        parent = resolve.link_of(content_of(joint, "parent"), joint)
        child = resolve.link_of(content_of(joint, "child"), joint)
        if child == WORLD or parent == child:
            raise joint.error(f"joint '{name}' moves '{child}' against '{parent}'", "a joint moves a link")
        (cuts if child in carried else first).append((name, parent, child))
        carried.setdefault(child, name)
    roots = [name for name in links if name not in carried]
    top = WORLD if any(parent == WORLD for _, parent, _ in first) else roots[0] if roots else ""
    if len(roots) > (0 if top == WORLD else 1):
        raise links[roots[-1]].error(
            f"link '{roots[-1]}' is not connected to '{top}'", "connect it by a joint"
        )
    placed, waiting = {top}, first
    tree: list[JointEnds] = []
    while waiting:
        ready = [ends for ends in waiting if ends[1] in placed]
        if not ready:
            names = ", ".join(ends[0] for ends in waiting[:5])
            raise joints[waiting[0][0]].error(
                f"joints {names} form a cycle", "exchange parent and child of one"
            )
        tree += ready
        placed |= {child for _, _, child in ready}
        waiting = [ends for ends in waiting if ends not in ready]
    return tuple(tree), tuple(cuts), top


MODEL, WORLD = "__model__", "world"
_UNIT = 1e-4  # deviation of a quaternion's length from 1


@dataclass(eq=False)
class SdfFrames:
    """Frames by name; each is computed once, cycles are refused.

    Attributes:
        links, joints, frames: Elements by name.
    """

    model: Element
    links: Mapping[str, Element]
    joints: Mapping[str, Element]
    frames: Mapping[str, Element]
    scope: Scope
    _known: dict[str, Frame] = field(default_factory=dict)

    def of(self, name: str, user: Element) -> Frame:
        """A frame in the model's frame, without recursion: names are followed until a known one."""
        chain: list[str] = []
        current = name
        while current not in self._known and current not in (MODEL, WORLD, ""):
            if current in chain:
                raise user.error(
                    f"the poses {' -> '.join([*chain, current])} are relative to each other",
                    "break the cycle",
                )
            chain.append(current)
            current = self._reference(current, user)
        if current == WORLD and chain:
            raise user.error(
                "poses relative to the world inside a model are not supported", "use the model's frame"
            )
        pose = self._known.get(current, identity_frame())
        for frame_name in reversed(chain):
            pose = clean(pose @ self.pose(self._element(frame_name, user)))
            self._known[frame_name] = pose
        return pose

    def link_of(self, name: str, user: Element) -> str:
        """The link that a link's or frame's name stands for; frames are attached to links."""
        seen: list[str] = []
        while name not in self.links:
            if name == WORLD or name in seen or name not in {*self.frames, *self.joints, MODEL}:
                if name == WORLD:
                    return WORLD
                valid = [*self.links, *self.frames]
                raise user.error(f"unknown link or frame '{name}'" + nearest(name, valid), "name a link")
            seen.append(name)
            name = self._attached(name)
        return name

    def _attached(self, name: str) -> str:
        if name == MODEL:
            first = self.model.attributes.get("canonical_link", "") or next(iter(self.links))
            if first not in self.links:
                raise self.model.error(f"the canonical link '{first}' is missing", "name a link of the model")
            return first
        if name in self.joints:
            return content_of(self.joints[name], "child")
        return self.frames[name].attributes.get("attached_to", "").strip() or MODEL

    def _reference(self, name: str, user: Element) -> str:
        """The frame that the pose of `name` is given in."""
        element = self._element(name, user)
        pose = element.child("pose")
        given = pose.attributes.get("relative_to", "").strip() if pose is not None else ""
        if given or element.tag == "link":
            return given or MODEL
        if element.tag == "joint":
            return content_of(element, "child")
        return element.attributes.get("attached_to", "").strip() or MODEL

    def _element(self, name: str, user: Element) -> Element:
        for named in (self.links, self.joints, self.frames):
            if name in named:
                return named[name]
        valid = [*self.links, *self.joints, *self.frames]
        raise user.error(f"unknown frame '{name}'" + nearest(name, valid), "name a frame of the model")

    def pose(self, element: Element) -> Frame:
        """What its <pose> says, in the frame that it refers to."""
        return read_pose(element, self.scope)


def read_pose(owner: Element, scope: Scope) -> Frame:
    """`x y z roll pitch yaw`, or with a quaternion; the identity where it is missing."""
    element = owner.child("pose")
    if element is None or not element.content:
        return identity_frame()
    label = f"<{owner.tag}> '{owner.attributes.get('name', '')}'"
    form = element.attributes.get("rotation_format", "euler_rpy")
    counts = {"euler_rpy": 6, "quat_xyzw": 7}
    if form not in counts:
        raise element.error(f"unknown rotation_format '{form}'", "use euler_rpy or quat_xyzw")
    words = element.content.split()
    if len(words) != counts[form]:
        raise element.error(f"{label}: pose has {len(words)} numbers, not {counts[form]}", "correct the pose")
    numbers = [element.parsed(word, "pose", label) for word in words]
    p = np.array(numbers[:3])
    if form == "quat_xyzw":
        x, y, z, w = numbers[3:]
        q = np.array([w, x, y, z])
        if abs(float(np.linalg.norm(q)) - 1.0) > _UNIT:
            raise element.error(
                f"{label}: the quaternion has not the length 1", "give a unit quaternion x y z w"
            )
        return clean(Frame(rotation_of(q), p))
    if flag(element.attributes.get("degrees", "false"), element):
        angles = [float(np.radians(x)) for x in numbers[3:]]
    else:
        where = f"line {element.line}, {label}"
        angles = [scope.written_angle(x, text, where) for x, text in zip(numbers[3:], words[3:], strict=True)]
    return clean(Frame(rpy_matrix((angles[0], angles[1], angles[2])), p))


def clean(frame: Frame) -> Frame:
    """Without rounding errors of products, which must not influence a structural rank."""
    R, p = (np.where(np.abs(x) < ROUNDING, 0.0, x) for x in (frame.R, frame.p))
    return Frame(R, p)


def flag(text: str, element: Element) -> bool:
    """true, false, 1 or 0."""
    if text.strip() not in ("true", "false", "1", "0"):
        raise element.error(f"'{text}' is neither true nor false", "write true or false")
    return text.strip() in ("true", "1")


def content_of(element: Element, tag: str) -> str:
    """Text of a required child."""
    child = element.child(tag)
    if child is None or not child.content:
        raise element.error(f"<{element.tag}> has no <{tag}>", f"add <{tag}>...</{tag}>")
    return child.content


def number_in(element: Element | None, tag: str, default: float, owner: str) -> float:
    """The number in a child, or the default where it is missing."""
    child = None if element is None else element.child(tag)
    return default if child is None else child.parsed(child.content, tag, owner)


def vector_in(element: Element, owner: str) -> np.ndarray:
    """Three numbers between the tags of an element."""
    words = element.content.split()
    if len(words) != 3:
        raise element.error(f"{owner}: <{element.tag}> has {len(words)} numbers, not 3", "give three numbers")
    return np.array([element.parsed(word, element.tag, owner) for word in words])


def refuse(element: Element, text: str) -> InputError:
    """A construct that would change the dynamics."""
    return element.error(
        f"{text} is not supported: it would change the dynamics", "remove it, or convert to URDF"
    )
