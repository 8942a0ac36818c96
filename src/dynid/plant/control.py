"""The controller of the plant: motors follow a reference, critically damped.

tau = foreseen + kp (y_d - y) + kd (dy_d - dy),      kp = omega^2 m,  kd = 2 omega m
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.plant.drives import Drives
from dynid.plant.reference import Reference


class Controller:
    """Efforts of the motors at any stage of the integration.

    Args:
        reference: What the motors shall do.
        Q, C: Motor positions are Q qpos and velocities C qvel, in MuJoCo's order.
        inertia: That each motor feels, shape (a,), in [kg m^2] or [kg].
        omega: Bandwidth, in [rad/s].
    """

    def __init__(
        self,
        reference: Reference,
        Q: Float[Array, "a q"],
        C: Float[Array, "a v"],
        inertia: Float[Array, "a"],
        omega: float,
    ) -> None:
        self._reference, self._Q, self._C = reference, Q, C
        self._kp, self._kd = omega**2 * inertia, 2.0 * omega * inertia
        self._wanted: Float[Array, "n a"] = np.zeros((0, len(Q)))

    def load(self, times: Float[Array, "n"], drives: Drives, D: Float[Array, "o v"]) -> None:
        """Make the part that depends on time alone for the stages at `times` [s].

        Dry friction is foreseen where a motor and the owner D qvel of friction are the same.
        """
        y, dy, foreseen = self._reference.at(times)
        self._wanted = foreseen + self._kp * y + self._kd * dy
        for motor, owner in np.argwhere((self._C[:, None] == D[None]).all(axis=2)):
            self._wanted[:, motor] += drives.dry[owner] * np.tanh(dy[:, motor] / drives.width[owner])

    def efforts(self, stage: int, qpos: Float[Array, "q"], qvel: Float[Array, "v"]) -> Float[Array, "a"]:
        """Of the motors, shape (a,), in [N m] or [N]; `stage` counts the times loaded."""
        return np.asarray(self._wanted[stage] - self._kp * (self._Q @ qpos) - self._kd * (self._C @ qvel))
