"""Attitudes of a log: roll, pitch, yaw as unit quaternions, and invalid quaternions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.measured_pose import ANGLE_ORDERS
from dynid.mechanism.mechanism import Mechanism

CONVENTIONS = tuple(ANGLE_ORDERS)
_LOST = 0.1  # length of a quaternion: trackers write zeros when they lose the target
_MOST_OFF = 0.1  # deviation of the typical length from 1: drift and rounding are much smaller


def quaternion(angles: Float[Array, "n 3"], convention: str) -> Float[Array, "n 4"]:
    """Unit quaternions (w, x, y, z) of R = Rx(roll) Ry(pitch) Rz(yaw), or Rz Ry Rx for `zyx`.

    Args:
        angles: Roll, pitch, yaw, shape (n, 3), in [rad].
        convention: The order of the factors.
    """
    if convention not in CONVENTIONS:
        raise InputError(
            f"unknown angle convention '{convention}'" + nearest(convention, CONVENTIONS), place="angles"
        )
    turns = [_about(axis, angles[:, axis]) for axis in range(3)]
    first, second, third = turns if convention == "xyz" else turns[::-1]
    return _product(_product(first, second), third)


def check_order(mechanism: Mechanism, angles: str, file: object) -> None:
    """Refuse a log whose single angles have another order than the robot file gives them."""
    for pose in mechanism.poses:
        if pose.has_single_angles and pose.angles != angles:
            single = ", ".join(name for name in pose.of if name not in ("x", "y", "z"))
            raise InputError(
                f"the robot file defines {single} of the measured pose '{pose.name}' in the order"
                f" '{pose.angles}', the experiment in the order '{angles}'",
                file=file,
                place="angles",
                remedy="give 'angles' the same value in both",
            )


def check_lengths(q: Float[Array, "n 4"], joint: str, file: object) -> list[Notice]:
    """Mark lost attitudes (all zero) as NaN, in place; refuse columns that are not unit quaternions.

    The length itself does not matter later, so a slow drift of it is left as it is.
    """
    length = np.linalg.norm(q, axis=1)
    lost = length < _LOST
    seen = length[length >= _LOST]
    typical = float(np.median(seen)) if len(seen) else 0.0
    if abs(typical - 1.0) > _MOST_OFF:
        raise InputError(
            f"the quaternion of '{joint}' has the length {typical:.3g} instead of 1",
            file=file,
            remedy="check which columns are qw, qx, qy and qz, and their scale",
        )
    if not lost.any():
        return []
    q[lost] = np.nan
    return [notice("attitude-lost", count=int(lost.sum()), joint=joint)]


def _about(axis: int, angle: Float[Array, "n"]) -> Float[Array, "n 4"]:
    turned = np.zeros((len(angle), 4))
    turned[:, 0] = np.cos(0.5 * angle)
    turned[:, 1 + axis] = np.sin(0.5 * angle)
    return turned


def _product(a: Float[Array, "n 4"], b: Float[Array, "n 4"]) -> Float[Array, "n 4"]:
    w = a[:, 0] * b[:, 0] - np.sum(a[:, 1:] * b[:, 1:], axis=1)
    v = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])
    return np.column_stack([w, v])
