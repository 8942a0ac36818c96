"""Internal tension of redundantly actuated robots: efforts that load the robot without moving it.

    J = C N,      J^T tau = N^T W chi,      tau = least norm + Z c,      J^T Z = 0,  Z^T Z = 1

N are tangent directions (any basis), C the actuators, J the motor velocities per unit of N. The
least-norm efforts are orthogonal to Z, so c = Z^T tau for any parameters.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import pinv, singular_values, svd
from dynid.common.lapack import pivoted_qr
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism

_NULL_RTOL = 1e-9
_SEED = 20140922
_STATES = 16
_PREFERENCE = 0.3  # how much smaller an entry of an earlier motor may be and still fix the sign


def motor_jacobian(mechanism: Mechanism, N: Float[Array, "*n v d"]) -> Float[Array, "*n a d"]:
    """Motor velocities per unit velocity along each direction of N, J = C N, of one pose or a batch."""
    return np.asarray(mechanism.actuator_map @ N)


def driven_freedoms(mechanism: Mechanism) -> tuple[int, int]:
    """Degrees of freedom of the robot, and how many of them its actuators drive (the rank of J)."""
    if mechanism.is_closed:
        assembly = assembly_of(mechanism)
        q = assembly.walk(np.random.default_rng(_SEED), _STATES, reach=0.5)
        N = assembly.tangent(assembly.closure.values(q).A)
    else:
        N = coordinate_map(mechanism).velocities[None]
    return N.shape[2], _rank(motor_jacobian(mechanism, N))


def redundancy(mechanism: Mechanism) -> int:
    """Number of independent tensions: actuators beyond the degrees of freedom that they drive."""
    if not mechanism.actuators or mechanism.mounted_model:
        return 0
    return len(mechanism.actuators) - driven_freedoms(mechanism)[1]


def least_norm(J: Float[Array, "n a d"], rows: Float[Array, "n d *k"]) -> Float[Array, "n a *k"]:
    """Efforts of least norm with J^T tau = rows: orthogonal to every tension."""
    inverse = pinv(np.swapaxes(J, 1, 2))
    return np.asarray(np.einsum("nad,nd...->na...", inverse, rows))


def tension_directions(
    mechanism: Mechanism, N: Float[Array, "n v d"], before: Float[Array, "a z"] | None = None
) -> Float[Array, "n a z"]:
    """Orthonormal efforts that do no work at any velocity, continuous from sample to sample.

    Args:
        N: Tangent directions along a continuous motion, shape (n, n_v, d), dimensionless.
        before: Directions at the sample before the first one, shape (a, z); without them the first
            ones are fixed so that they are the same on every machine, in every log that begins at
            the same pose.

    Returns:
        Z with J^T Z = 0, shape (n, a, z), dimensionless; z is 0 unless actuation is redundant.
    """
    J = motor_jacobian(mechanism, N)
    rank = _rank(J) if before is None else J.shape[1] - before.shape[1]
    Z = svd(J)[0][:, :, rank:]
    if not len(Z) or not Z.shape[2]:
        return np.asarray(Z)
    return carried_along(Z, _fixed(Z[0]) if before is None else before)


def carried_along(Z: Float[Array, "n a z"], before: Float[Array, "a z"]) -> Float[Array, "n a z"]:
    """The same spaces, each with the basis nearest to that of the sample before.

    Z_k R_k with R_k = polar(Z_k^T Z_(k-1)) R_(k-1): one direction keeps its sign, several rotate as
    little as possible.
    """
    fine = np.asarray(np.isfinite(Z).all(axis=(1, 2)))
    # A sample without directions is skipped: the next one follows the last that has some.
    last = np.maximum.accumulate(np.where(fine, np.arange(1, len(Z) + 1), 0))
    earlier = np.concatenate([before[None], Z])[np.concatenate([[0], last[:-1]])]
    left, _, right = svd(np.swapaxes(Z, 1, 2) @ earlier)
    turns = np.where(fine[:, None, None], left @ right, np.eye(Z.shape[2]))
    return np.asarray(Z @ _running_product(turns))


def _running_product(Q: Float[Array, "n z z"]) -> Float[Array, "n z z"]:
    """Products Q_k ... Q_1 of all beginnings, in log2(n) steps."""
    product, reach = Q.copy(), 1
    while reach < len(product):
        product[reach:] = product[reach:] @ product[:-reach]
        reach *= 2
    return product


def _rank(J: Float[Array, "n a d"]) -> int:
    """Largest rank of a batch: a singular sample does not count."""
    if 0 in J.shape:
        return 0
    s = singular_values(J)
    return int((s > _NULL_RTOL * np.nanmax(s)).sum(axis=1).max())


def _fixed(Z: Float[Array, "a z"]) -> Float[Array, "a z"]:
    """A unique basis of a space, independent of the algorithm that found the space.

    The motors with the largest entries (earlier ones preferred, so that rounding decides no tie of a
    symmetric robot) get a lower triangle with a positive diagonal: a single tension is positive in
    its motor.
    """
    a, z = Z.shape
    preference = 1.0 - _PREFERENCE * np.arange(a) / a
    motors = pivoted_qr((Z * preference[:, None]).T)[2][:z]
    Q, R = np.linalg.qr(Z[motors].T)
    return np.asarray(Z @ (Q * np.where(np.diag(R) < 0.0, -1.0, 1.0)))
