"""Rotations as matrices, unit quaternions (w, x, y, z), and roll, pitch, yaw."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array


def rotation_of(quaternion: Float[Array, "*n 4"]) -> Float[Array, "*n 3 3"]:
    """Rotation matrices of quaternions of any nonzero length."""
    unit = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    w, x, y, z = np.moveaxis(unit, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def quaternion_of(R: Float[Array, "*n 3 3"]) -> Float[Array, "*n 4"]:
    """Unit quaternions of rotations, w not negative.

    Every entry of 4 q q^T is known; the row with the largest diagonal entry is q up to its length.
    """
    wx, wy, wz = (R[..., j, i] - R[..., i, j] for i, j in ((1, 2), (2, 0), (0, 1)))
    xy, xz, yz = (R[..., i, j] + R[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    t = np.trace(R, axis1=-2, axis2=-1)
    xx, yy, zz = (1.0 - t + 2.0 * R[..., i, i] for i in range(3))
    rows = np.array([[1.0 + t, wx, wy, wz], [wx, xx, xy, xz], [wy, xy, yy, yz], [wz, xz, yz, zz]])
    largest = np.argmax(np.diagonal(rows, axis1=0, axis2=1), axis=-1)
    q = np.take_along_axis(np.moveaxis(rows, (0, 1), (-2, -1)), largest[..., None, None], axis=-2)[..., 0, :]
    sign = np.where(q[..., :1] >= 0.0, 1.0, -1.0)
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True) * sign)


def angles_of(R: Float[Array, "*n 3 3"], angles: str) -> Float[Array, "*n 3"]:
    """Roll, pitch, yaw [rad] of R = Rx Ry Rz (`xyz`) or Rz Ry Rx (`zyx`), pitch within a quarter turn."""
    # Rz Ry Rx with angles (r, p, y) is the transpose of Rx Ry Rz with (-r, -p, -y).
    sign, M = (1.0, R) if angles == "xyz" else (-1.0, np.swapaxes(R, -1, -2))
    turns = (
        np.arctan2(-M[..., 1, 2], M[..., 2, 2]),
        np.arcsin(np.clip(M[..., 0, 2], -1.0, 1.0)),
        np.arctan2(-M[..., 0, 1], M[..., 0, 0]),
    )
    return np.asarray(sign * np.stack(turns, axis=-1))
