"""Cable: an inextensible line from an entry point, round an optional swivel pulley, to an attachment.

The pulley turns about its swivel axis so that its plane contains the attachment A: with u the unit vector
normal to the axis towards A, its centre is C = D + radius u. The cable reaches D along the axis, lies on
the pulley up to the tangent point B, and runs straight to A:

    L = radius * arc(D, B) + |A - B|        [CableRobot, eq. 1]

A cable of given `length` is locked: one closure equation L = length. Any other has a coordinate of its
own, its total length l, and the equation L = l; tension pulls against +l.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.frame import Frame, align_z, unit_vector
from dynid.mechanism.joint import Joint, JointKind, massless_joint

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Cable:
    """One cable between two bodies.

    Attributes:
        body_from: Body (or `base`) that carries the entry point and its pulley.
        D: Entry point in that body's frame, shape (3,), in [m].
        axis: Swivel axis there, the direction in which the cable runs as it reaches D, unit vector of
            shape (3,); None for an eyelet.
        radius: Of the pulley, in [m]; 0 for an eyelet.
        body_to: Body at the other end.
        A: Attachment in that body's frame, shape (3,), in [m].
        length: Total length from D to A where the cable is locked, in [m]; None: it has a coordinate.
        x: Direction normal to `axis` where the swivel angle is zero; None: the angle is not measured.
    """

    name: str
    body_from: str
    D: Float[Array, "3"]
    axis: Float[Array, "3"] | None
    radius: float
    body_to: str
    A: Float[Array, "3"]
    length: float | None = None
    x: Float[Array, "3"] | None = None

    @property
    def entry(self) -> Frame:
        """Frame at D in its body: z along the swivel axis, x where the swivel angle is zero."""
        if self.axis is None:
            return Frame(np.eye(3), self.D)
        if self.x is None:
            return Frame(align_z(self.axis), self.D)
        x = unit_vector(self.x - self.axis * (self.axis @ self.x))
        return Frame(np.column_stack([x, np.cross(self.axis, x), self.axis]), self.D)

    @property
    def attachment(self) -> Frame:
        """Frame at A in its body."""
        return Frame(np.eye(3), self.A)


@dataclass(frozen=True)
class Swivel:
    """An encoder of the angle of a cable's pulley about its swivel axis: a coordinate of its own.

    Attributes:
        name: Of the sensor, its joint and its column in a log.
        cable: Whose pulley turns.
    """

    name: str
    cable: str


def cable_joint(name: str, taken: Sequence[str] | set[str] = ()) -> Joint:
    """The massless slide whose travel is the length of a cable that is not locked."""
    return massless_joint(name, JointKind.PRISMATIC, taken)


def swivel_joint(name: str, taken: Sequence[str] | set[str] = ()) -> Joint:
    """The massless hinge whose angle is that of a pulley about its swivel axis."""
    return massless_joint(name, JointKind.REVOLUTE, taken)


def driven_cables(mechanism: Mechanism) -> tuple[Cable, ...]:
    """Cables with a coordinate, in file order."""
    return tuple(cable for cable in mechanism.cables if cable.length is None)


def cable_coordinates(mechanism: Mechanism) -> set[str]:
    """Coordinates that only cables and their pulleys have: no body moves with them."""
    driven = {cable.name for cable in driven_cables(mechanism)}
    return driven | {swivel.name for swivel in mechanism.swivels}


def held_body(mechanism: Mechanism) -> str:
    """The body that most cables hold (the first of equals); without cables the last of the tree.

    Parameters that are known only per unit mass refer to its mass.
    """
    ends = [name for cable in mechanism.cables for name in (cable.body_to, cable.body_from)]
    held = [name for name in ends if name in mechanism.bodies]
    return max(held, key=held.count) if held else mechanism.joints[-1].child


def locked(mechanism: Mechanism, lengths: Mapping[str, float] | Sequence[float] | None = None) -> Mechanism:
    """The robot with locked winches: cables are closures without coordinates.

    Args:
        mechanism: With cables that have coordinates.
        lengths: Of the cables by name, or one for each cable that has a coordinate in file order, in [m];
            cables not named keep their coordinates. None: all as at the start pose of the description.

    Returns:
        With 6 - n degrees of freedom for n cables on a free platform; the cables' coordinates, motors,
        drive terms and limits are removed.
    """
    length_of = _lengths(mechanism, lengths)
    cables = tuple(replace(rope, length=length_of.get(rope.name, rope.length)) for rope in mechanism.cables)
    return without_joints(mechanism, set(length_of), cables=cables, rebuild=None)


def without_cables(mechanism: Mechanism, names: Collection[str] | None = None) -> Mechanism:
    """The robot without some of its cables (None: all), their coordinates, motors and swivel encoders."""
    gone = {cable.name for cable in mechanism.cables if names is None or cable.name in names}
    seen = {swivel.name for swivel in mechanism.swivels if swivel.cable in gone}
    cables = tuple(cable for cable in mechanism.cables if cable.name not in gone)
    swivels = tuple(swivel for swivel in mechanism.swivels if swivel.cable not in gone)
    # Coordinates and their closures are removed in one step: neither is valid without the other.
    return without_joints(mechanism, gone | seen, cables=cables, swivels=swivels)


def without_joints(mechanism: Mechanism, names: set[str], **changes: Any) -> Mechanism:
    """The mechanism without the massless joints of these names and all that belongs to them.

    Args:
        changes: Other fields of the mechanism, which have priority.
    """
    lost = [joint for joint in mechanism.joints if joint.name in names]
    links = {joint.child for joint in lost}
    gone = names | {name for joint in lost for name in (*joint.positions, *joint.coordinates)}
    given = {
        "measured": tuple(name for name in mechanism.measured if name not in gone),
        "limits": {name: bounds for name, bounds in mechanism.limits.items() if name not in gone},
    }
    return replace(
        mechanism,
        joints=tuple(joint for joint in mechanism.joints if joint.name not in names),
        bodies={name: body for name, body in mechanism.bodies.items() if name not in links},
        actuators=tuple(actuator for actuator in mechanism.actuators if not gone & set(actuator.on)),
        measured_sigma={k: v for k, v in mechanism.measured_sigma.items() if k not in gone},
        drive={owner: terms for owner, terms in mechanism.drive.items() if owner not in gone},
        stribeck={owner: speed for owner, speed in mechanism.stribeck.items() if owner not in gone},
        start={name: value for name, value in mechanism.start.items() if name not in gone},
        **{**given, **changes},
    )


def _lengths(mechanism: Mechanism, lengths: Mapping[str, float] | Sequence[float] | None) -> dict[str, float]:
    """Lengths by name; refused where their number or names do not match."""
    names = [cable.name for cable in driven_cables(mechanism)]

    def refuse(text: str, remedy: str) -> InputError:
        return InputError(text, file=mechanism.file, place=f"robot '{mechanism.name}'", remedy=remedy)

    if lengths is None:
        lengths = {name: mechanism.start[name] for name in names}
    if not isinstance(lengths, Mapping):
        values = [float(length) for length in lengths]
        if len(values) != len(names):
            raise refuse(
                f"{len(values)} lengths for {len(names)} cables ({', '.join(names)})",
                "give one length for every cable, in file order",
            )
        lengths = dict(zip(names, values, strict=True))
    for name, length in lengths.items():
        if name not in names:
            raise refuse(f"'{name}' is not a cable whose length can be locked" + nearest(name, names), "")
        if not 0.0 < length < np.inf:
            raise refuse(f"cable '{name}' cannot have length {length:g} m", "give a positive length in m")
    return {name: float(length) for name, length in lengths.items()}


# Shape of a cable over its pulley in NumPy: length, direction, wrap, and its distance from singularities.
#
# The closure equations use a compiled form of this (`kinematics.cable_kernels`). This version is for start
# poses, statics and drawings, where all quantities are needed and speed is not important.


@dataclass(frozen=True, eq=False)
class CableShape:
    """Cables in their entry frames (z the swivel axis), one per row.

    Attributes:
        length: Total, from D to A, shape (n,), in [m].
        straight: From the tangent point B to A, shape (n,), in [m]; NaN where A is inside the pulley.
        wrap: Angle of the pulley that the cable touches, shape (n,), in [rad]; zero for an eyelet.
        B: Tangent point, shape (n, 3), in [m].
        direction: Unit vector from B to A, which is dL/dA, shape (n, 3).
        off_axis: Distance of A from the swivel axis, shape (n,), in [m]; singular at zero.
    """

    length: Float[Array, "n"]
    straight: Float[Array, "n"]
    wrap: Float[Array, "n"]
    B: Float[Array, "n 3"]
    direction: Float[Array, "n 3"]
    off_axis: Float[Array, "n"]


def shape_of(radius: float, A: Float[Array, "n 3"]) -> CableShape:
    """Shape of a cable whose attachment is at A in the entry frame, in [m]."""
    off_axis = np.hypot(A[:, 0], A[:, 1])
    if radius == 0.0:
        length = np.linalg.norm(A, axis=1)
        still = np.zeros(len(A))
        towards = A / np.maximum(length, np.finfo(float).tiny)[:, None]
        return CableShape(length, length, still, np.zeros(A.shape), towards, off_axis)
    swivel = np.arctan2(A[:, 1], A[:, 0])  # of the pulley's plane about the axis, from x
    u = np.column_stack([np.cos(swivel), np.sin(swivel), np.zeros(len(A))])
    across, along = off_axis - radius, A[:, 2]
    with np.errstate(invalid="ignore"):
        straight = np.sqrt(across**2 + along**2 - radius**2)
    wrap = np.arctan2(radius * along + straight * across, straight * along - radius * across)
    wrap = np.where(wrap < -1e-9, wrap + 2.0 * np.pi, wrap)
    sine, cosine = np.sin(wrap)[:, None], np.cos(wrap)[:, None]
    z = np.array([0.0, 0.0, 1.0])
    B = radius * ((1.0 - cosine) * u + sine * z)
    return CableShape(radius * wrap + straight, straight, wrap, B, sine * u + cosine * z, off_axis)
