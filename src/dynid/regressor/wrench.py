"""Wrench kernel of a body: 6 x 10, Newton-Euler about the body origin."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Inexact
from dynid.mechanism.frame import Frame


def wrench_regressor(
    omega: Inexact[Array, "n b 3"], dV: Inexact[Array, "n b 6"]
) -> Inexact[Array, "n b 6 10"]:
    """Matrix W_body with W_body @ chi_body = wrench that gives each body this motion.

    Newton-Euler about the body origin; the kernel of [CableRobot, eq. 19] in the body frame.
    The tree kernel of `kernels.wrench_row` is this matrix times a joint's twist.

    Args:
        omega: Angular velocities, body frame, shape (n, b, 3), in [rad/s].
        dV: Acceleration of the origin (classical, not spatial) minus gravity, then angular
            acceleration, body frame, shape (n, b, 6), in [m/s^2, rad/s^2].

    Returns:
        Body frame, linear part first, shape (n, b, 6, 10); times chi gives [N, N m].
    """
    a, alpha = dV[..., :3], dV[..., 3:]
    W = np.zeros((*dV.shape, 10), np.result_type(omega, dV))
    turn = skew(alpha) + skew(omega) @ skew(omega)
    W[..., :3, 6:9] = turn
    W[..., :3, 9] = a
    W[..., 3:, 6:9] = -skew(a)
    W[..., 3:, :6] = _inertia_columns(alpha) + skew(omega) @ _inertia_columns(omega)
    return W


def body_kernel(
    omega: Float[Array, "n 3"], alpha: Float[Array, "n 3"], a: Float[Array, "n 3"]
) -> Float[Array, "n 6 10"]:
    """W_body of one body: see `wrench_regressor`.

    Args:
        omega, alpha: Angular velocity and acceleration, body axes, shape (n, 3), in [rad/s], [rad/s^2].
        a: Acceleration of the origin minus gravity, body axes, shape (n, 3), in [m/s^2].
    """
    return wrench_regressor(omega[:, None], np.concatenate([a, alpha], axis=1)[:, None])[:, 0]


def carried_kernel(
    omega: Float[Array, "n 3"],
    alpha: Float[Array, "n 3"],
    a: Float[Array, "n 3"],
    frame: Frame,
) -> Float[Array, "n 6 10"]:
    """The same for a body fixed to another: its own ten parameters, the wrench about the carrier's origin.

    Args:
        omega, alpha, a: Of the carrier, in its axes.
        frame: Of the carried body in the carrier's.
    """
    R, p = frame.R, frame.p
    a_body = a + np.cross(alpha, p) + np.cross(omega, np.cross(omega, p))
    kernel = body_kernel(omega @ R, alpha @ R, a_body @ R)
    move = np.zeros((6, 6))
    move[:3, :3] = move[3:, 3:] = R
    move[3:, :3] = skew(p) @ R
    return np.asarray(move @ kernel)


def skew(v: Inexact[Array, "*n 3"]) -> Inexact[Array, "*n 3 3"]:
    """Matrices of the cross product v x."""
    S = np.zeros((*v.shape, 3), v.dtype)
    S[..., 0, 1], S[..., 0, 2], S[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return S - np.swapaxes(S, -1, -2)


def _inertia_columns(v: Inexact[Array, "n b 3"]) -> Inexact[Array, "n b 3 6"]:
    """Matrix L with L @ (XX XY XZ YY YZ ZZ) = I v."""
    L = np.zeros((*v.shape, 6), v.dtype)
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    L[..., 0, 0], L[..., 0, 1], L[..., 0, 2] = x, y, z
    L[..., 1, 1], L[..., 1, 3], L[..., 1, 4] = x, y, z
    L[..., 2, 2], L[..., 2, 4], L[..., 2, 5] = x, y, z
    return L
