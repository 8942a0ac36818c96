"""Positions of the chain of a measured pose at the start pose.

A weld is also closed when it is rotated by half a revolution, so the chain must start close to the
body: it starts where the tree of the description places the body.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.mechanism.attitude import angles_of, quaternion_of, rotation_of
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.measured_pose import POSE, TURNS, MeasuredPose
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.mjcf.pose import axis_rotation


def chain_starts(mechanism: Mechanism, start: Mapping[str, float]) -> dict[str, float]:
    """Positions of the chains of all measured poses, from those of the other joints.

    Args:
        start: Position coordinates of the start pose; those not named are zero.
    """
    found: dict[str, float] = {}
    for pose in mechanism.poses:
        seen = body_frame(mechanism, pose.body, start) @ pose.frame
        found |= _positions(mechanism, pose, seen)
    return found


def body_frame(mechanism: Mechanism, body: str, start: Mapping[str, float]) -> Frame:
    """Frame of a body in the base frame at position coordinates, those not named being zero."""
    frame = identity_frame()
    while body != BASE:
        joint = mechanism.joint_of_body[body]
        frame = joint.placement @ _moved(joint, start) @ joint.body @ frame
        body = joint.parent
    return frame


def _positions(mechanism: Mechanism, pose: MeasuredPose, seen: Frame) -> dict[str, float]:
    """Position coordinates of a chain whose end is at `seen`."""
    own = {f"{pose.name}_{name}": float(value) for name, value in zip(POSE[:3], seen.p, strict=True)}
    quaternion = zip(("qw", "qx", "qy", "qz"), quaternion_of(seen.R), strict=True)
    own |= {f"{pose.name}_{name}": float(value) for name, value in quaternion}
    turns = zip(TURNS, angles_of(seen.R, pose.angles).tolist(), strict=True)
    own |= {f"{pose.name}_{name}": value for name, value in turns}
    names = {n for joint in mechanism.joints if joint.name in pose.joints for n in joint.positions}
    return {name: value for name, value in own.items() if name in names}


def _moved(joint: Joint, start: Mapping[str, float]) -> Frame:
    """Moving joint frame in the joint frame at zero."""
    values = [start.get(name, 0.0) for name in joint.positions]
    frame = identity_frame()
    if joint.kind is JointKind.PRISMATIC:
        return Frame(frame.R, joint.axes[0] * values[0])
    for axis, angle in zip(joint.axes, values, strict=False):
        frame = frame @ Frame(axis_rotation(axis, angle), np.zeros(3))
    if joint.has_quaternion:
        quaternion = np.array(values[-4:])
        R = rotation_of(quaternion) if quaternion.any() else np.eye(3)
        frame = Frame(R, np.array(values[:3]) if joint.kind is JointKind.FREE else np.zeros(3))
    return frame
