"""Joints of an MJCF: anchors, reference positions, several joints in one body, limits.

MuJoCo places a body by its own pose, then moves it by its joints one after the other; with X the
body frame so far, a joint with anchor c, axis n and reference position r does

    hinge   X <- X T(c) R(n, q - r) T(-c)
    slide   X <- X T(n (q - r))
    ball    X <- X T(c) R(q) T(-c)
    free    X <- (q), the body's own pose being where it starts
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import Frame, identity_frame, quaternion_of, unit_vector
from dynid.mechanism.joint import Joint, JointKind, unique
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.mjcf.file import choice
from dynid.mechanism.mjcf.pose import axis_rotation, read_point, read_pose, tidy_frame
from dynid.mechanism.mjcf.tree import MjcfJoint, MjcfModel, Placed
from dynid.mechanism.robot_file.bodies import normalised_notice
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.xml_elements import Element

_PAIR = range(2, 3)


@dataclass(eq=False)
class Tree:
    """Joints of the mechanism, and the state in which MuJoCo's model is defined (qpos0).

    Attributes:
        joints: In MuJoCo's order, one for each body without joint too.
        links: Names of massless links between the joints of one body.
        poses: Frames of the bodies in the base frame at qpos0.
        reference: qpos0 by position coordinate, in [rad, m, -].
        elements: Of each joint that is written, by name.
    """

    joints: list[Joint] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    poses: dict[str, Frame] = field(default_factory=lambda: {BASE: identity_frame()})
    reference: dict[str, float] = field(default_factory=dict)
    elements: dict[str, Element] = field(default_factory=dict)


class Placer:
    """Poses of elements in their bodies; a <frame> around several is read once."""

    def __init__(self, model: MjcfModel, scope: Scope) -> None:
        self.settings, self.scope = model.settings, scope
        self._frames: dict[int, Frame] = {}

    def around(self, placed: Placed) -> Frame:
        """The pose of the innermost <frame> around an element, in the body."""
        total = identity_frame()
        for element in placed.frames:
            if id(element) not in self._frames:
                name = element.attributes.get("name", f"frame{len(self._frames) + 1}")
                self._frames[id(element)] = read_pose(
                    element, f"frame '{name}'", self.settings, self.scope, name
                )
            total = total @ self._frames[id(element)]
        return total

    def pose(self, placed: Placed, owner: str, named: str | None = None) -> Frame:
        """The pose of an element in the body around it."""
        return self.around(placed) @ read_pose(placed.element, owner, self.settings, self.scope, named)


def read_tree(model: MjcfModel, placer: Placer) -> Tree:
    """All joints, with a fixed one for a body without joint."""
    tree = Tree()
    joint_names = {joint.name for body in model.bodies for joint in body.joints}
    body_names = {body.name for body in model.bodies}
    for body in model.bodies:
        # The pose of a free body is its start pose, not a dimension of the robot.
        is_free = any(joint.kind is JointKind.FREE for joint in body.joints)
        pose = placer.pose(body.placed, f"body '{body.name}'", None if is_free else body.name)
        tree.poses[body.name] = tidy_frame(tree.poses[body.parent] @ pose)
        if not body.joints:
            name = unique(f"{body.name}_fixed", joint_names)
            joint_names.add(name)
            tree.joints.append(Joint(name, JointKind.FIXED, body.parent, body.name, tidy_frame(pose)))
        parent = body.parent
        for i, written in enumerate(body.joints):
            child = body.name
            if i + 1 < len(body.joints):
                child = unique(f"{written.name}_link", body_names)
                body_names.add(child)
                tree.links.append(child)
            tree.joints.append(_joint(written, parent, child, pose, tree, placer))
            tree.elements[written.name] = written.placed.element
            parent, pose = child, identity_frame()
    return tree


def _joint(written: MjcfJoint, parent: str, child: str, pose: Frame, tree: Tree, placer: Placer) -> Joint:
    """One joint whose body frame, before it moves, is at `pose` in the parent's frame."""
    name, kind, element = written.name, written.kind, written.placed.element
    owner, scope = f"joint '{name}'", placer.scope
    if kind is JointKind.FREE:
        _refuse_aligned(element, owner, placer)
        values = map(float, (*pose.p, *quaternion_of(pose.R)))
        tree.reference |= dict(zip(_positions(name, JointKind.FREE), values, strict=True))
        return Joint(name, kind, parent, child)
    around = placer.around(written.placed)
    anchor = around.R @ read_point(element, "pos", owner, scope, name, "a") + around.p
    to_anchor, back = Frame(np.eye(3), anchor), Frame(np.eye(3), -anchor)
    if kind is JointKind.SPHERICAL:
        tree.reference |= dict(zip(_positions(name, kind), (1.0, 0.0, 0.0, 0.0), strict=True))
        return Joint(name, kind, parent, child, tidy_frame(pose @ to_anchor), (), tidy_frame(back))
    axis = unit_vector(around.R @ _axis(element, owner, scope))
    ref = _reference(element, owner, placer, turns=kind is JointKind.REVOLUTE)
    tree.reference[name] = ref
    if kind is JointKind.PRISMATIC:
        ref = scope.bare_length(ref, f"ref_{name}")
        return Joint(name, kind, parent, child, tidy_frame(pose @ Frame(np.eye(3), -ref * axis)), (axis,))
    turned = Frame(axis_rotation(axis, -ref), np.zeros(3))
    return Joint(name, kind, parent, child, tidy_frame(pose @ to_anchor @ turned), (axis,), tidy_frame(back))


def _refuse_aligned(element: Element, owner: str, placer: Placer) -> None:
    align = choice(element, "align", ("auto", "true", "false"), "auto")
    if align == "true" or (align == "auto" and placer.settings.alignfree and element.tag == "freejoint"):
        raise element.error(
            f"{owner}: MuJoCo would align its body's frame with the principal axes, which is not supported",
            'write align="false"',
        )


def _positions(name: str, kind: JointKind) -> tuple[str, ...]:
    return Joint(name, kind, BASE, name).positions


def _axis(element: Element, owner: str, scope: Scope) -> Float[Array, "3"]:
    numbers = element.numbers("axis", owner)
    vector = np.array([value for value, _ in numbers] if numbers else (0.0, 0.0, 1.0))
    try:
        axis = unit_vector(vector)
    except ValueError:
        raise element.error(f"{owner} has a zero axis", 'e.g. axis="0 0 1"') from None
    if abs(float(np.linalg.norm(vector)) - 1.0) > 1e-6:
        scope.notices.append(normalised_notice(f"{element.place}, {owner}", vector))
    return axis


def _reference(element: Element, owner: str, placer: Placer, *, turns: bool) -> float:
    """Position of the joint in the pose in which the model is written, in [rad] or [m]."""
    value = element.number("ref", 0.0, owner)
    # A zero of the joint, not a dimension of the robot: it is never treated as a rounded angle.
    return math.radians(value) if turns and placer.settings.degrees else value


def read_limits(model: MjcfModel, tree: Tree) -> dict[str, dict[str, float | tuple[float, float]]]:
    """{joint: {q: (low, high), tau}} of hinges and slides that have a range."""
    limits: dict[str, dict[str, float | tuple[float, float]]] = {}
    for joint in tree.joints:
        element = tree.elements.get(joint.name)
        if element is None or not joint.axes:
            continue
        degrees = joint.kind is JointKind.REVOLUTE and model.settings.degrees
        owner = f"joint '{joint.name}'"
        bounds: dict[str, float | tuple[float, float]] = {}
        span = read_range(element, "range", "limited", owner, model)
        if span:
            scale: Callable[[float], float] = math.radians if degrees else float
            bounds["q"] = (scale(span[0]), scale(span[1]))
        force = read_range(element, "actuatorfrcrange", "actuatorfrclimited", owner, model)
        bounds |= effort_limit(force)
        limits |= {joint.name: bounds} if bounds else {}
    return limits


def read_range(
    element: Element, key: str, switch: str, owner: str, model: MjcfModel
) -> tuple[float, float] | None:
    """A range, if it counts: `switch` is true, or auto with <compiler autolimits>."""
    numbers = element.numbers(key, owner, _PAIR)
    state = choice(element, switch, ("auto", "true", "false"), "auto")
    if numbers is None or state == "false" or (state == "auto" and not model.settings.autolimits):
        return None
    low, high = numbers[0][0], numbers[1][0]
    if low == high == 0.0 and state == "auto":  # how a default class removes a range
        return None
    if low >= high:
        raise element.error(f"{owner}: {key} {low:g} {high:g} is swapped or empty", "give low and high")
    return low, high


def effort_limit(span: tuple[float, float] | None) -> Mapping[str, float]:
    """{tau}: the bound of an effort in both directions; none if the range is on one side of zero."""
    return {"tau": min(-span[0], span[1])} if span and span[0] < 0.0 < span[1] else {}


def spring_damper(element: Element, owner: str) -> bool:
    """Whether MuJoCo replaces stiffness and damping by those of `springdamper` (both numbers positive)."""
    numbers = element.numbers("springdamper", owner, _PAIR) or []
    return bool(numbers) and all(value > 0.0 for value, _ in numbers)
