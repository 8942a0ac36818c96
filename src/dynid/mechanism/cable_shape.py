"""Shape of a cable over its pulley in NumPy: length, direction, wrap, and its distance from singularities.

The closure equations use a compiled form of this (`kinematics.cable_kernels`). This version is for start
poses, statics and drawings, where all quantities are needed and speed is not important.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array


@dataclass(frozen=True, eq=False)
class CableShape:
    """Cables in their entry frames (z the swivel axis), one per row.

    Attributes:
        length: Total, from D to A, shape (n,), in [m].
        straight: From the tangent point B to A, shape (n,), in [m]; NaN where A is inside the pulley.
        wrap: Angle of the pulley that the cable touches, shape (n,), in [rad]; zero for an eyelet.
        swivel: Angle of the pulley's plane about the axis, from x, shape (n,), in [rad].
        B: Tangent point, shape (n, 3), in [m].
        direction: Unit vector from B to A, which is dL/dA, shape (n, 3).
        off_axis: Distance of A from the swivel axis, shape (n,), in [m]; singular at zero.
    """

    length: Float[Array, "n"]
    straight: Float[Array, "n"]
    wrap: Float[Array, "n"]
    swivel: Float[Array, "n"]
    B: Float[Array, "n 3"]
    direction: Float[Array, "n 3"]
    off_axis: Float[Array, "n"]


def shape_of(radius: float, A: Float[Array, "n 3"]) -> CableShape:
    """Shape of a cable whose attachment is at A in the entry frame, in [m]."""
    off_axis = np.hypot(A[:, 0], A[:, 1])
    swivel = np.arctan2(A[:, 1], A[:, 0])
    if radius == 0.0:
        length = np.linalg.norm(A, axis=1)
        still = np.zeros(len(A))
        towards = A / np.maximum(length, np.finfo(float).tiny)[:, None]
        return CableShape(length, length, still, swivel, np.zeros(A.shape), towards, off_axis)
    u = np.column_stack([np.cos(swivel), np.sin(swivel), np.zeros(len(A))])
    across, along = off_axis - radius, A[:, 2]
    with np.errstate(invalid="ignore"):
        straight = np.sqrt(across**2 + along**2 - radius**2)
    wrap = np.arctan2(radius * along + straight * across, straight * along - radius * across)
    wrap = np.where(wrap < -1e-9, wrap + 2.0 * np.pi, wrap)
    sine, cosine = np.sin(wrap)[:, None], np.cos(wrap)[:, None]
    z = np.array([0.0, 0.0, 1.0])
    B = radius * ((1.0 - cosine) * u + sine * z)
    return CableShape(radius * wrap + straight, straight, wrap, swivel, B, sine * u + cosine * z, off_axis)
