"""Dense regressors for inspection, tests and small batches: W_tree and the energy row."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Inexact, Int
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.layout import tree_regressor


def tree_matrix(
    mechanism: Mechanism,
    q: Inexact[Array, "n q"],
    dq: Inexact[Array, "n v"],
    ddq: Inexact[Array, "n v"],
    N: Float[Array, "v k"] | None = None,
    mounted: tuple[str, ...] = (),
    load: Float[Array, "n s"] | None = None,
) -> Inexact[Array, "n k p"]:
    """N^T W_tree for a batch of tree states, all standard parameters (N: default identity).

    Args:
        q: Positions of all tree joints, shape (n, n_q), in [rad, m, -].
        dq, ddq: Velocities and their rates, shape (n, n_v), in [rad/s, m/s] and per s.
        N: Tangent directions, shape (n_v, k).
        mounted: Payloads on the robot.
        load: Loads to which load-dependent friction is proportional, of coordinates, then of actuators, shape
            (n, v + a), in [N m] or [N]; default one.
    """
    parameters = parameter_table(mechanism)
    directions = np.eye(len(mechanism.coordinates)) if N is None else N
    regressor = tree_regressor(mechanism, parameters, directions, mounted)
    packed = regressor.packed(q, dq, ddq, np.zeros((len(q), directions.shape[1])), load)
    return regressor.layout.dense(packed, len(parameters))


def energy_row(
    mechanism: Mechanism, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"]
) -> Inexact[Array, "n p"]:
    """Total energy per inertial parameter: h with energy = h chi, ten columns per body.

    Kinetic energy plus potential energy (zero at the base origin); shape (n, 10 b), b bodies in
    joint order, then payloads.
    """
    motion = body_motion(tree_of(mechanism), q, dq, np.zeros_like(dq))
    h = energy_regressor(motion.R, motion.p, motion.V, np.asarray(mechanism.gravity, float))
    return h.reshape(len(q), -1)


def energy_entries(
    mechanism: Mechanism, q: Float[Array, "n q"], dq: Float[Array, "n v"], places: Int[Array, "i"]
) -> Float[Array, "e n"]:
    """Columns of `energy_row` along many samples, as rows: that of column c at `places[c]`, -1 for none."""
    from dynid.kinematics.kernels import LINK
    from dynid.kinematics.tile import LANES
    from dynid.regressor.kernels import energy_rows

    tree = tree_of(mechanism)
    sizes = ((tree.parent.size + 1) * LINK * LANES, LINK * LANES, 10 * LANES)
    out = np.empty((int(places.max(initial=-1)) + 1, len(q)))
    energy_rows(
        (tree.parent, tree.kind, tree.q_start, tree.v_start, tree.placement),
        (tree.body_link, tree.body_frame),
        np.asarray(mechanism.gravity, float),
        *(np.ascontiguousarray(x, dtype=float) for x in (q, dq)),
        np.zeros(dq.shape),
        places,
        tuple(np.empty(size) for size in sizes),
        out,
    )
    return out


# Energy kernel of a body: 1 x 10, kinetic plus potential.


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
    u, v, w, x, y, z = np.moveaxis(V, -1, 0)
    down = np.moveaxis(gravity @ R, -1, 0)
    moments = v * z - w * y, w * x - u * z, u * y - v * x  # linear x angular velocity
    entries = [0.5 * x * x, x * y, x * z, 0.5 * y * y, y * z, 0.5 * z * z]
    entries += [moment - g for moment, g in zip(moments, down, strict=True)]
    return np.stack([*entries, 0.5 * (u * u + v * v + w * w) - p @ gravity], axis=-1)
