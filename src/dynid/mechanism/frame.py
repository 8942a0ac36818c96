"""Rigid frames: a rotation and a translation, from modified DH, xyz/rpy or axis vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array


@dataclass(frozen=True, eq=False)
class Frame:
    """Pose of one frame in another: x_parent = R x + p.

    Attributes:
        R: Rotation, shape (3, 3), dimensionless.
        p: Origin in the parent frame, shape (3,), in [m].
    """

    R: Float[Array, "3 3"]
    p: Float[Array, "3"]

    def __matmul__(self, other: Frame) -> Frame:
        """The frame `other`, given in this frame, seen from this frame's parent."""
        return Frame(self.R @ other.R, self.R @ other.p + self.p)

    def inverse(self) -> Frame:
        """The parent frame seen from this one."""
        return Frame(self.R.T, -self.R.T @ self.p)


def identity_frame() -> Frame:
    """The frame that coincides with its parent."""
    return Frame(np.eye(3), np.zeros(3))


def rotation(axis: int, angle: float) -> Float[Array, "3 3"]:
    """Rotation by `angle` [rad] about coordinate axis 0, 1 or 2; exact at quarter turns."""
    quarter, rest = round(angle / (np.pi / 2)), angle
    c, s = np.cos(rest), np.sin(rest)
    if abs(angle - quarter * np.pi / 2) < 1e-15 * max(1.0, abs(angle)):
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarter % 4]
    R = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def rpy_matrix(rpy: tuple[float, float, float]) -> Float[Array, "3 3"]:
    """Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF; angles in [rad]."""
    roll, pitch, yaw = rpy
    return rotation(2, yaw) @ rotation(1, pitch) @ rotation(0, roll)


def mdh_frame(
    *,
    gamma: float = 0.0,
    b: float = 0.0,
    alpha: float = 0.0,
    d: float = 0.0,
    theta: float = 0.0,
    r: float = 0.0,
) -> Frame:
    """Rz(gamma) Tz(b) Rx(alpha) Tx(d) Rz(theta) Tz(r): modified DH of Khalil, trees included.

    Angles in [rad], lengths in [m].
    """
    to_alpha = rotation(2, gamma) @ rotation(0, alpha)
    p = rotation(2, gamma) @ np.array([0.0, 0.0, b]) + to_alpha @ np.array([d, 0.0, 0.0])
    R = to_alpha @ rotation(2, theta)
    return Frame(R, p + R @ np.array([0.0, 0.0, r]))
