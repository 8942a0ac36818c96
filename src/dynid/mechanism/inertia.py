"""The ten inertial parameters of a body: order, conversions, physical consistency.

Order inside a body: XX XY XZ YY YZ ZZ MX MY MZ M; inertia about the origin of the body
frame, in the body frame; XY is the entry of the tensor (minus the integral of x y dm).
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float

SYMBOLS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)

XML_ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")  # the six moments in URDF and SDF
_UPPER = np.triu_indices(3)  # entries of a tensor in our order


def skew(v: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Matrix of the cross product: skew(v) @ x = v x x."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def pack(mass: float, first_moment: Float[Array, "3"], inertia: Float[Array, "3 3"]) -> Float[Array, "10"]:
    """Ten parameters from mass [kg], first moment [kg m] and inertia at the origin [kg m^2]."""
    upper = inertia[_UPPER]
    return np.concatenate([upper, first_moment, [mass]])


def unpack(
    chi: Float[Array, "10"],
) -> tuple[float, Float[Array, "3"], Float[Array, "3 3"]]:
    """Mass [kg], first moment [kg m] and inertia at the body origin [kg m^2]."""
    inertia = np.zeros((3, 3))
    inertia[_UPPER] = chi[:6]
    inertia = inertia + np.triu(inertia, 1).T
    return float(chi[9]), np.array(chi[6:9]), inertia


def from_centre_of_mass(
    mass: float, com: Float[Array, "3"], inertia_com: Float[Array, "3 3"]
) -> Float[Array, "10"]:
    """Ten parameters from mass, centre of mass and inertia about it (body axes)."""
    c = skew(np.asarray(com, float))
    return pack(mass, mass * np.asarray(com, float), inertia_com - mass * (c @ c))


def in_parent_frame(
    chi: Float[Array, "10"], R: Float[Array, "3 3"], p: Float[Array, "3"]
) -> Float[Array, "10"]:
    """The same body's parameters in a frame in which its own frame is at (R, p).

    Args:
        chi: Parameters in the body's frame, shape (10,), SI.
        R: Rotation of the body's frame in the new frame, shape (3, 3), dimensionless.
        p: Origin of the body's frame in the new frame, shape (3,), in [m].
    """
    mass, moment, inertia = unpack(chi)
    moment_r = R @ moment
    s_p, s_m = skew(p), skew(moment_r)
    inertia_new = R @ inertia @ R.T - s_m @ s_p - s_p @ s_m - mass * (s_p @ s_p)
    return pack(mass, moment_r + mass * p, inertia_new)


def pseudo_inertia(chi: Float[Array, "10"]) -> Float[Array, "4 4"]:
    """The 4 x 4 matrix that is positive definite if and only if `chi` is physically consistent."""
    mass, moment, inertia = unpack(chi)
    second_moment = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[second_moment, moment[:, None]], [moment[None, :], np.array([[mass]])]])


def is_physical(chi: Float[Array, "10"], rtol: float = 1e-12) -> bool:
    """Whether these parameters are physically consistent.

    Eigenvalues are relative to the largest, with the body's own size as the unit of length: a robot of 1 cm
    is judged as one of 20 m.
    """
    P = pseudo_inertia(np.asarray(chi, float))
    square = float(np.trace(P[:3, :3]) / P[3, 3]) if P[3, 3] > 0.0 else 1.0
    unit = np.array([1.0, 1.0, 1.0, np.sqrt(square if square > 0.0 else 1.0)])
    eigenvalues = np.linalg.eigvalsh(P * unit[:, None] * unit)
    return bool(eigenvalues[0] >= -rtol * max(eigenvalues[-1], 0.0)) and bool(chi[9] >= 0)
