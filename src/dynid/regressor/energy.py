"""Energy kernel of a body: 1 x 10, kinetic plus potential."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Inexact

from dynid.common.arrays import Array


def energy_regressor(
    R: Inexact[Array, "n b 3 3"],
    p: Inexact[Array, "n b 3"],
    V: Inexact[Array, "n b 6"],
    gravity: Float[Array, "3"],
) -> Inexact[Array, "n b 10"]:
    """Row h_body with h_body @ chi_body = kinetic + potential energy of each body.

    T = 1/2 (m v.v + 2 v.(w x s) + w.I w), U = -g.(m p + R s), s the first moment. The products of
    inertia have the factor 1 (the energy-model paper's appendix prints 1/2).

    Args:
        R, p: Body axes and origins in the base frame, shapes (n, b, 3, 3), (n, b, 3), [-], [m].
        V: Twists, body frame, linear first, shape (n, b, 6), in [m/s, rad/s].
        gravity: Base frame, shape (3,), in [m/s^2].

    Returns:
        Shape (n, b, 10); times chi gives [J].
    """
    v, w = V[..., :3], V[..., 3:]
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    h = np.empty((*V.shape[:-1], 10), V.dtype)
    h[..., 0], h[..., 1], h[..., 2] = 0.5 * x * x, x * y, x * z
    h[..., 3], h[..., 4], h[..., 5] = 0.5 * y * y, y * z, 0.5 * z * z
    h[..., 6:9] = np.cross(v, w) - np.einsum("nbij,i->nbj", R, gravity)
    h[..., 9] = 0.5 * np.sum(v * v, axis=-1) - p @ gravity
    return h
