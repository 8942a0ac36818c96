"""Frames of an SDF model: poses relative to links, joints, frames and the model, all in the model's frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import ROUNDING, Frame, identity_frame, rotation_of, rpy_matrix
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element

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
            name = self._attached(name, user)
        return name

    def _attached(self, name: str, user: Element) -> str:
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
