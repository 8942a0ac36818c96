"""Efforts along a prescribed motion of a closed robot, and internal tension of redundant ones.

    J_a^T tau = N^T W_tree chi_true,      J_a = C N,      tau = least norm + Z c

Z is an orthonormal null space of J_a^T (see `kinematics.tension`): Z c causes no motion and does no work.
Cables only pull: Z Z^T m, the internal part of the middle m of their range, is included.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.excitation.closed import ClosedStates
from dynid.excitation.series import symmetric_range
from dynid.kinematics.tension import least_norm, motor_jacobian, tension_directions
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.projection.load import simulated_loads
from dynid.regressor.regressor import tree_matrix

_MOST_ENTRIES = 4_000_000  # of a dense regressor at a time: 32 MB
_IDLE_RTOL = 1e-9  # of the largest effort: rounding of the projection


def closed_efforts(
    mechanism: Mechanism,
    chi: Float[Array, "p"],
    states: ClosedStates,
    mounted: tuple[str, ...] = (),
    tension: Float[Array, "n a"] | None = None,
    resist: Float[Array, "n v"] | None = None,
    *,
    underactuated: bool = False,
) -> Float[Array, "n a"]:
    """Efforts required by a motion, in the order of the actuators: minimum norm plus internal tension.

    Args:
        chi: All standard parameters, in the order of the table, shape (p,), SI.
        states: Along the motion.
        mounted: Payloads on the robot.
        tension: See `internal_tension`, shape (n, a), in [N m] or [N]; it also loads the joints.
        resist: Additional efforts against each tree coordinate, shape (n, v), in [N m] or [N].
        underactuated: Whether the motors may produce only a part of the motion.
    """
    J = motor_jacobian(mechanism, states.N)
    loads = simulated_loads(mechanism, parameter_table(mechanism), chi, mounted)
    step = max(1, _MOST_ENTRIES // (states.dq.shape[1] * len(chi)))
    blocks = []
    for i in range(0, len(states.q), step):
        q, dq, ddq, N = (x[i : i + step] for x in (states.q, states.dq, states.ddq, states.N))
        strain = None if tension is None else tension[i : i + step]
        load = loads(q, dq, ddq, N, strain)
        joint_efforts = tree_matrix(mechanism, q, dq, ddq, mounted=mounted, load=load) @ chi
        blocks.append(np.einsum("nvd,nv->nd", N, joint_efforts))
    rows = np.concatenate(blocks)
    if resist is not None:
        rows = rows + np.einsum("nvd,nv->nd", states.N, resist)
    tau = least_norm(J, rows)
    left = np.abs(rows - np.einsum("nad,na->nd", J, tau)).max()
    if left > _IDLE_RTOL * np.abs(rows).max() and not underactuated:
        raise InputError(
            f"robot '{mechanism.name}' is underactuated: {len(mechanism.actuators)} actuators cannot produce"
            f" a prescribed motion of {states.N.shape[2]} degrees of freedom",
            file=mechanism.file,
            remedy="add an actuator; or use engine dynid or mujoco, where passive joints move by themselves",
        )
    return tau if tension is None else tau + tension


def effort_range(mechanism: Mechanism, motor: str) -> tuple[float, float] | None:
    """Effort limits of a motor: its `tau`, or the `tension` of all cables; None: not limited."""
    motor_limits = mechanism.limits.get(motor, {})
    if "tau" in motor_limits:
        return symmetric_range(motor_limits["tau"])
    pulls = mechanism.limits.get("cables", {}).get("tension")
    if pulls is None or motor not in {cable.name for cable in mechanism.cables}:
        return None
    return pulls if isinstance(pulls, tuple) else (0.0, pulls)


def middle_tensions(mechanism: Mechanism) -> Float[Array, "a"]:
    """Middle of the tension range of every cable, in [N]; 0 for other motors and without limits."""
    cables = {cable.name for cable in mechanism.cables}
    motors = (actuator.name for actuator in mechanism.actuators)
    ranges = [effort_range(mechanism, name) if name in cables else None for name in motors]
    return np.array([0.0 if span is None else 0.5 * sum(span) for span in ranges])


def strain_along(
    mechanism: Mechanism, N: Float[Array, "n v d"], t: Float[Array, "n"], size: float
) -> Float[Array, "n a"] | None:
    """`internal_tension` if requested or needed to keep cables taut; None: no internal tension."""
    if not size and not (middle_tensions(mechanism).any() and tension_directions(mechanism, N[:1]).shape[2]):
        return None
    return internal_tension(mechanism, N, t, size)


def internal_tension(
    mechanism: Mechanism, N: Float[Array, "n v d"], t: Float[Array, "n"], size: float
) -> Float[Array, "n a"]:
    """Efforts that cause no motion: a constant tension with a slow oscillation, at most `size`.

    For cables it is added to the tension that keeps all of them as near as possible to mid-range.

    Args:
        mechanism: A redundantly actuated robot.
        N: Tangent directions along the motion, shape (n, n_v, d), dimensionless.
        t: Times, shape (n,), in [s].
        size: Largest coefficient of each direction of Z, in [N m] or [N].
    """
    Z = tension_directions(mechanism, N)
    if not Z.shape[2]:
        raise InputError(
            f"robot '{mechanism.name}' is not redundantly actuated, so it has no internal tension",
            file=mechanism.file,
            remedy="remove `tension`",
        )
    # A different frequency in each direction, and never that of the motion itself.
    pace = 2.0 * np.pi * 0.37 * (1.0 + 0.61 * np.arange(Z.shape[2]))
    c = size * (0.6 + 0.4 * np.sin(t[:, None] * pace))
    c = c + np.einsum("naz,a->nz", Z, middle_tensions(mechanism))
    return np.asarray(np.einsum("naz,nz->na", Z, c))
