"""Where the chain of a measured pose stands at the start pose.

A weld is also closed when it is turned by half a revolution, so the chain must not begin far from
the body: it begins where the tree of the description puts the body.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.inertia import skew
from dynid.mechanism.joint import Joint, JointKind
from dynid.mechanism.measured_pose import POSE, TURNS, MeasuredPose
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.mechanism.mjcf_pose import axis_rotation


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


def quaternion_of(R: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Unit quaternion (w, x, y, z) of a rotation, w not negative.

    4 q q^T is known entry by entry; the row of its largest diagonal entry is q but for its length.
    """
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    t = np.trace(R)
    xx, yy, zz = 1.0 - t + 2.0 * np.diag(R)
    rows = np.array([[1.0 + t, wx, wy, wz], [wx, xx, xy, xz], [wy, xy, yy, yz], [wz, xz, yz, zz]])
    q = rows[int(np.argmax(np.diag(rows)))]
    return np.asarray(q / np.linalg.norm(q) * (1.0 if q[0] >= 0.0 else -1.0))


def angles_of(R: Float[Array, "3 3"], angles: str) -> dict[str, float]:
    """Roll, pitch, yaw [rad] of R = Rx Ry Rz (`xyz`) or Rz Ry Rx (`zyx`), pitch within a quarter turn."""
    # Rz Ry Rx with angles (r, p, y) is the transpose of Rx Ry Rz with (-r, -p, -y).
    sign, M = (1.0, R) if angles == "xyz" else (-1.0, R.T)
    turns = (
        np.arctan2(-M[1, 2], M[2, 2]),
        np.arcsin(np.clip(M[0, 2], -1.0, 1.0)),
        np.arctan2(-M[0, 1], M[0, 0]),
    )
    return {name: sign * float(turn) for name, turn in zip(TURNS, turns, strict=True)}


def _positions(mechanism: Mechanism, pose: MeasuredPose, seen: Frame) -> dict[str, float]:
    """Position coordinates of a chain whose end stands at `seen`."""
    own = {f"{pose.name}_{name}": float(value) for name, value in zip(POSE[:3], seen.p, strict=True)}
    quaternion = zip(("qw", "qx", "qy", "qz"), quaternion_of(seen.R), strict=True)
    own |= {f"{pose.name}_{name}": float(value) for name, value in quaternion}
    own |= {f"{pose.name}_{name}": value for name, value in angles_of(seen.R, pose.angles).items()}
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
        length = float(np.linalg.norm(quaternion))
        R = _matrix(quaternion / length) if length > 0.0 else np.eye(3)
        frame = Frame(R, np.array(values[:3]) if joint.kind is JointKind.FREE else np.zeros(3))
    return frame


def _matrix(quaternion: Float[Array, "4"]) -> Float[Array, "3 3"]:
    """Rotation of a unit quaternion (w, x, y, z)."""
    s = skew(quaternion[1:])
    return np.asarray(np.eye(3) + 2.0 * quaternion[0] * s + 2.0 * (s @ s))
