"""Dense regressors for inspection, tests and small batches: W_tree and the energy row."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Inexact

from dynid.common.arrays import Array
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.energy import energy_regressor
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
