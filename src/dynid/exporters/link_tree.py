"""The tree of a mechanism as other formats know it: one link frame at each joint, one axis per joint.

dynid places a body frame anywhere behind its joint; URDF, SDF and (here) MJCF have it at the joint:

    T_parent,link = placement M(q)         chi_link = chi_body in the frame of the joint

Links without mass at the end of a branch (lengths of cables, measured poses, joints that close loops) are
left out: they have no dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, unpack
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.mechanism import BASE, Mechanism

_ROUNDING = 1e-13  # of the inertia about the origin (of lengths: of its radius): a digit behind the last


@dataclass(frozen=True, eq=False)
class Link:
    """One link and the joint that carries it.

    Attributes:
        name: Of the body, or of a link without mass between two axes.
        joint: Name of the joint.
        kind: revolute, prismatic, fixed, spherical or free.
        parent: Link (or `base`).
        placement: Joint frame at zero in the parent's link frame.
        axis: In the joint frame, shape (3,); of revolute and prismatic joints.
        chi: Ten parameters in the link's frame, shape (10,), SI; None: no mass.
        coordinates: Velocity coordinates of the mechanism that the joint has.
        payload: Whether it is a payload.
    """

    name: str
    joint: str
    kind: JointKind
    parent: str
    placement: Frame
    axis: Float[Array, "3"]
    chi: Float[Array, "10"] | None
    coordinates: tuple[str, ...]
    payload: bool = False


def link_tree(mechanism: Mechanism) -> list[Link]:
    """Links in the order of the joints, payloads last."""
    kept = _massive(mechanism)
    offset: dict[str, Frame] = {BASE: identity_frame()}
    links: list[Link] = []
    for joint in mechanism.joints:
        if joint.child not in kept:
            continue
        placement = offset[joint.parent] @ joint.placement
        offset[joint.child] = joint.body
        links += _links(joint, placement, body_values(mechanism, joint.child, joint.body))
    for payload in mechanism.payloads.values():
        chi = np.array([payload.prior.get(s, payload.known.get(s, 0.0)) for s in SYMBOLS])
        place = offset[payload.body] @ payload.frame
        name = _unique(payload.name, {link.name for link in links})
        joint_name = _unique(f"{name}_fixed", {link.joint for link in links})
        links.append(
            Link(name, joint_name, JointKind.FIXED, payload.body, place, np.zeros(3), chi, (), payload=True)
        )
    return links


def body_offsets(mechanism: Mechanism) -> dict[str, Frame]:
    """Body frame in the link frame, of every body."""
    return {BASE: identity_frame(), **{joint.child: joint.body for joint in mechanism.joints}}


def body_values(mechanism: Mechanism, body: str, frame: Frame) -> Float[Array, "10"] | None:
    """Ten parameters of a body in a frame in which its own is at `frame`; None: it has none."""
    described = mechanism.bodies[body]
    if not described.parameters:
        return None
    chi = np.array([described.prior.get(s, described.known.get(s, 0.0)) for s in SYMBOLS])
    return in_parent_frame(chi, frame.R, frame.p)


def at_centre(chi: Float[Array, "10"]) -> tuple[float, Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass, centre of mass and inertia about it, body axes; entries that are only rounding are zero."""
    mass, moment, inertia = unpack(chi)
    com = moment / mass if mass != 0.0 else np.zeros(3)
    square = float(com @ com) * np.eye(3) - np.outer(com, com)
    about = inertia - mass * square
    size = np.abs(inertia).max()
    com = np.where(mass * np.abs(com) ** 2 < _ROUNDING**2 * size, 0.0, com)
    return mass, com, np.where(np.abs(about) < _ROUNDING * size, 0.0, about)


def rpy_of(R: Float[Array, "3 3"]) -> tuple[float, float, float]:
    """Roll, pitch, yaw of Rz(yaw) Ry(pitch) Rx(roll), accurate at a pitch of a quarter turn too."""
    yaw = float(np.arctan2(R[1, 0], R[0, 0])) if np.hypot(R[0, 0], R[1, 0]) > 0.0 else 0.0
    c, s = np.cos(yaw), np.sin(yaw)
    first = c * R[0] + s * R[1]
    second = -s * R[0] + c * R[1]
    pitch = float(np.arctan2(-R[2, 0], first[0]))
    return float(np.arctan2(-second[2], second[1])), pitch, yaw


def _massive(mechanism: Mechanism) -> set[str]:
    """Bodies with mass, and those that carry some."""
    kept = {payload.body for payload in mechanism.payloads.values()}
    for joint in mechanism.joints[::-1]:
        if joint.child in kept or mechanism.bodies[joint.child].parameters:
            kept |= {joint.child, joint.parent}
    return kept


def _links(joint: Joint, placement: Frame, chi: Float[Array, "10"] | None) -> list[Link]:
    axis = joint.axes[0] if joint.axes else np.zeros(3)
    if joint.kind is not JointKind.UNIVERSAL:
        return [
            Link(joint.child, joint.name, joint.kind, joint.parent, placement, axis, chi, joint.coordinates)
        ]
    first, two = joint.coordinates
    between = f"{joint.child}_{first.rsplit('_', 1)[-1]}"
    turn = JointKind.REVOLUTE
    return [
        Link(between, first, turn, joint.parent, placement, axis, None, (first,)),
        Link(joint.child, two, turn, between, identity_frame(), joint.axes[1], chi, (two,)),
    ]


def _unique(name: str, taken: set[str] | Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name
