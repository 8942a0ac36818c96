"""Sensor readings of a motion: positions and their time derivatives.

A quaternion u of a joint that turns at omega (moving frame) changes by

    du = u omega / 2,      ddu = u dom / 2 - |omega|^2 u / 4         (omega, dom as pure quaternions)
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.kinematics.sensors import sensors_of
from dynid.kinematics.tree import times_pure
from dynid.mechanism.mechanism import Mechanism


def measured_motion(
    mechanism: Mechanism, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    """Measured positions and their first and second time derivatives, in the order of a log.

    Args:
        mechanism: The robot.
        q: All tree positions, shape (n, n_q), in [rad, m, -].
        dq: All tree velocities, shape (n, n_v), per s.
        ddq: Their rates, shape (n, n_v), per s^2.
    """
    sensors = sensors_of(mechanism, mechanism.measured_positions)
    positions = sensors.read(q)
    first, second = np.zeros_like(positions), np.zeros_like(positions)
    first[:, sensors.column], second[:, sensors.column] = dq[:, sensors.velocity], ddq[:, sensors.velocity]
    for p, c, j in sensors.quaternions.tolist():
        turning = sensors.velocity[j : j + 3]
        u, omega = q[:, p : p + 4], dq[:, turning]
        part = slice(c, c + 4)
        first[:, part] = 0.5 * times_pure(u, omega)
        square = np.sum(omega**2, axis=1, keepdims=True)
        second[:, part] = 0.5 * times_pure(u, ddq[:, turning]) - 0.25 * square * u
    return positions, first, second
