"""The pose of a body, measured directly: a massless chain from the base, welded to the body.

A body inside a closed robot has no coordinates of its own, so the sensor brings them: translations
along x, y, z of the base frame, then a rotation. The chain adds six degrees of freedom and the weld
removes six, so the robot moves as before. Only the measured coordinates of the chain count as measured.

| measured               | chain                                                              |
|------------------------|--------------------------------------------------------------------|
| all six                | one free joint `name`                                              |
| all or no angles       | slides `name_x`, `name_y`, `name_z`, spherical joint `name`        |
| one angle or two       | the slides, hinges `name_roll`, `name_pitch`, `name_yaw` in the order of `angles` |
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.mechanism.cable import without_joints
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.joint import DIRECTIONS, Joint, JointKind, Loop, massless_joint

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism

SLIDES = ("x", "y", "z")
TURNS = ("roll", "pitch", "yaw")
POSE = (*SLIDES, *TURNS)
# R = Rx(roll) Ry(pitch) Rz(yaw), or Rz Ry Rx: the order of the hinges is that of the factors.
ANGLE_ORDERS = {"xyz": TURNS, "zyx": TURNS[::-1]}


@dataclass(frozen=True, eq=False)
class MeasuredPose:
    """A sensor that measures the pose of a frame on a body, in the base frame.

    Attributes:
        name: Of the sensor, and first part of its columns in a log.
        body: That carries the frame.
        frame: In the body frame.
        of: Coordinates that are measured, in the order of `POSE`.
        angles: Order of the turns where single angles are measured: a key of `ANGLE_ORDERS`.
        joints: Of the massless chain, in its order.
    """

    name: str
    body: str
    frame: Frame = field(default_factory=identity_frame)
    of: tuple[str, ...] = POSE
    angles: str = "xyz"
    joints: tuple[str, ...] = ()

    @property
    def has_single_angles(self) -> bool:
        """Whether some but not all angles are measured, so that their order matters."""
        return 0 < sum(name in self.of for name in TURNS) < len(TURNS)

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the measured joints of the chain."""
        if self.of == POSE:
            return (self.name,)
        slides = tuple(f"{self.name}_{name}" for name in SLIDES if name in self.of)
        if self.has_single_angles:
            return (*slides, *(f"{self.name}_{name}" for name in TURNS if name in self.of))
        return (*slides, self.name) if TURNS[0] in self.of else slides


def chain_of(
    pose: MeasuredPose, base: str, taken: Collection[str]
) -> tuple[MeasuredPose, tuple[Joint, ...], Loop]:
    """The sensor with its joints' names, the massless chain, and the weld to the body.

    Args:
        base: Name of the base.
        taken: Names of bodies, which the massless links must not get.
    """
    joints: list[Joint] = []
    parent, used = base, set(taken)
    for name, kind, axes in _kinds(pose):
        joints.append(massless_joint(name, kind, used, parent, axes=axes))
        parent = joints[-1].child
        used.add(parent)
    weld = Loop(pose.name, DIRECTIONS, parent, identity_frame(), pose.body, pose.frame)
    return replace(pose, joints=tuple(joint.name for joint in joints)), tuple(joints), weld


def virtual_joints(mechanism: Mechanism) -> set[str]:
    """Joints that exist only because a pose, or the swivel of a pulley, is measured."""
    swivels = {swivel.name for swivel in mechanism.swivels}
    return swivels | {name for pose in mechanism.poses for name in pose.joints}


def virtual_coordinates(mechanism: Mechanism) -> set[str]:
    """Position and velocity coordinates of those joints."""
    virtual = virtual_joints(mechanism)
    return {
        name
        for joint in mechanism.joints
        if joint.name in virtual
        for name in joint.positions + joint.coordinates
    }


def without_poses(mechanism: Mechanism, measured: Sequence[str]) -> Mechanism:
    """The robot alone, without the chains of its pose sensors, other joints being `measured`."""
    welds = {pose.name for pose in mechanism.poses}
    return without_joints(
        mechanism,
        virtual_joints(mechanism),
        loops=tuple(loop for loop in mechanism.loops if loop.name not in welds),
        measured=tuple(measured),
        limits=mechanism.limits,  # of bodies too, which may have the name of a chain
        poses=(),
        swivels=(),
    )


def _kinds(pose: MeasuredPose) -> list[tuple[str, JointKind, tuple[np.ndarray, ...]]]:
    """Name, kind and axes of the chain's joints."""
    if pose.of == POSE:
        return [(pose.name, JointKind.FREE, ())]
    axis = dict(zip(POSE, [*np.eye(3), *np.eye(3)], strict=True))
    slides = [(f"{pose.name}_{name}", JointKind.PRISMATIC, (axis[name],)) for name in SLIDES]
    if not pose.has_single_angles:
        return [*slides, (pose.name, JointKind.SPHERICAL, ())]
    order = ANGLE_ORDERS[pose.angles]
    return [*slides, *((f"{pose.name}_{name}", JointKind.REVOLUTE, (axis[name],)) for name in order)]
