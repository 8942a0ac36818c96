"""The tree of a mechanism as other formats know it: one link frame at each joint, one axis per joint.

dynid places a body frame anywhere behind its joint; URDF, SDF and (here) MJCF have it at the joint:

    T_parent,link = placement M(q)         chi_link = chi_body in the frame of the joint

Links without mass at the end of a branch (lengths of cables, measured poses, joints that close loops) are
left out: they have no dynamics.

Drive terms that a joint of another format can hold, and the rest.

A motor on one joint with velocity s = r dq acts there as Ia r^2, Fv r^2 and Fs |r|. Friction that depends on
the direction is held by its mean. The rest (offsets, differences between the directions, Stribeck and load
terms, motors on several joints, declared terms) is written beside the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, unpack
from dynid.mechanism.joint import Joint, JointKind, unique
from dynid.mechanism.mechanism import BASE, Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter

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
        chi = own_values(payload)
        place = offset[payload.body] @ payload.frame
        name = unique(payload.name, {link.name for link in links})
        joint_name = unique(f"{name}_fixed", {link.joint for link in links})
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
    return in_parent_frame(own_values(described), frame.R, frame.p)


def own_values(owner: Body | Payload) -> Float[Array, "10"]:
    """Ten parameters as a description gives them, in the frame of the owner; zero where it has none."""
    return np.array([owner.prior.get(s, owner.known.get(s, 0.0)) for s in SYMBOLS])


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


# Symbol -> the term that holds it in other formats, with the power of the gear ratio.
_HELD = {"Ia": ("Ia", 2), "Fv": ("Fv", 2), "Fs": ("Fs", 1)}
_PAIRS = {"Fv": ("Fv+", "Fv-"), "Fs": ("Fs+", "Fs-")}


@dataclass(frozen=True, eq=False)
class DriveSplit:
    """What joints of another format hold of the drive terms.

    Attributes:
        joints: Coordinate -> {Ia, Fv, Fs}, SI.
        held: Standard parameters of the held part, bodies included, shape (p,), SI.
        rest: Names of the parameters that are not held, or only in part.
    """

    joints: Mapping[str, Mapping[str, float]]
    held: Float[Array, "p"]
    rest: tuple[str, ...]


@dataclass
class _Splitting:
    held: Float[Array, "p"]
    joints: dict[str, dict[str, float]] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)


def split_drives(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    chi: Float[Array, "p"],
    holds: Collection[str],
    groups: Sequence[Sequence[str]],
) -> DriveSplit:
    """Drive terms divided between the joints of a format and what is left.

    Args:
        holds: Which of Ia, Fv, Fs a joint has.
        groups: Coordinates of the joints that have them; a joint of several coordinates has one value.
    """
    index = {p.name: i for i, p in enumerate(parameters)}
    splitting = _Splitting(np.where([p.kind == "inertial" for p in parameters], chi, 0.0))
    place = {name: tuple(group) for group in groups for name in group}
    done: set[str] = set()
    for owner in dict.fromkeys(p.owner for p in parameters if p.kind == "drive"):
        on = _single(mechanism, owner)
        for symbol in holds:
            names = _owned(owner, symbol, index)
            if not names or on is None or len(place.get(on[0], ())) != 1:
                continue
            values = [float(chi[index[name]]) for name in names]
            mean = float(np.mean(values))
            splitting.held[[index[name] for name in names]] = mean
            if max(values) - min(values) <= 1e-12 * abs(mean):
                done |= set(names)
            terms = splitting.joints.setdefault(on[0], {})
            terms[symbol] = terms.get(symbol, 0.0) + mean * abs(on[1]) ** _HELD[symbol][1]
    others = [p.name for p in parameters if p.kind != "inertial" and p.name not in done]
    rest = tuple(name for name in others if chi[index[name]] != 0.0)
    return DriveSplit(splitting.joints, splitting.held, rest)


def rest_sentences(parameters: Sequence[Parameter], split: DriveSplit, where: str) -> list[str]:
    """What a format does not hold, one sentence for each kind of term."""
    kinds: dict[str, list[str]] = {}
    table = {p.name: p for p in parameters}
    for name in split.rest:
        parameter = table[name]
        plain = parameter.symbol.rstrip("+-")
        held = parameter.symbol != plain and plain in split.joints.get(parameter.owner, {})
        words = DRIVE_TERMS[plain].words if parameter.kind == "drive" else "declared term"
        kinds.setdefault(f"difference of {words} between the directions" if held else words, []).append(name)
    return [f"{words}: {', '.join(names)} ({where})" for words, names in kinds.items()]


def _single(mechanism: Mechanism, owner: str) -> tuple[str, float] | None:
    """The only coordinate that an owner of drive terms moves with, and its ratio."""
    if owner in mechanism.coordinates:
        return owner, 1.0
    on = next(actuator.on for actuator in mechanism.actuators if actuator.name == owner)
    return next(iter(on.items())) if len(on) == 1 else None


def _owned(owner: str, symbol: str, index: Mapping[str, int]) -> list[str]:
    """The parameter itself, or the pair of both directions."""
    single = f"{symbol}_{owner}"
    if single in index:
        return [single]
    pair = [f"{s}_{owner}" for s in _PAIRS.get(symbol, ())]
    return pair if pair and all(name in index for name in pair) else []
