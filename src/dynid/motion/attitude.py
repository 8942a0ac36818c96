"""Roll, pitch, yaw of a log as unit quaternions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError, nearest

CONVENTIONS = ("xyz", "zyx")


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


def _about(axis: int, angle: Float[Array, "n"]) -> Float[Array, "n 4"]:
    turned = np.zeros((len(angle), 4))
    turned[:, 0] = np.cos(0.5 * angle)
    turned[:, 1 + axis] = np.sin(0.5 * angle)
    return turned


def _product(a: Float[Array, "n 4"], b: Float[Array, "n 4"]) -> Float[Array, "n 4"]:
    w = a[:, 0] * b[:, 0] - np.sum(a[:, 1:] * b[:, 1:], axis=1)
    v = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])
    return np.column_stack([w, v])
