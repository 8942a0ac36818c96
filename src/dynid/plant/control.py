"""Controllers of the plant: motors follow a reference.

    pd               tau = kp (y_d - y) + kd (dy_d - dy),              kp = omega^2 m,  kd = 2 zeta omega m
    feedforward      the same, plus the efforts that the controller's model foresees along the reference
    computed_torque  J^T tau = N^T ID(q, dq, ddq),
                     C ddq = ddy_d + 2 zeta omega (dy_d - dy) + omega^2 (y_d - y)

y = C q are the motors, m the inertia that each feels at the start. The model is what the controller believes,
which need not be what the robot is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.dynamics.forward import ForwardDynamics
from dynid.excitation.simulate import parameter_vector
from dynid.kinematics.tension import least_norm, motor_jacobian
from dynid.mechanism.friction import JUMPING
from dynid.mechanism.mechanism import Mechanism
from dynid.plant.drives import Drives
from dynid.plant.reference import Reference, position_map
from dynid.plant.settings import ControllerSettings


class Controller:
    """Efforts of the motors at any stage of the integration.

    Args:
        mechanism: The robot.
        reference: What the motors shall do.
        settings: Kind and gains.
        inertia: That each motor feels, shape (a,), in [kg m^2] or [kg].
        friction: What the controller believes of friction.
        model: What it believes of the robot; only computed torque asks.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        reference: Reference,
        settings: ControllerSettings,
        inertia: Float[Array, "a"],
        friction: Drives,
        model: ForwardDynamics | None = None,
    ) -> None:
        self._robot, self._reference, self._settings = mechanism, reference, settings
        self._Q, self._C = position_map(mechanism), mechanism.actuator_map
        omega = settings.omega
        scale = np.ones(len(inertia)) if settings.kind == "computed_torque" else inertia
        self._kp, self._kd = omega**2 * scale, 2.0 * settings.damping * omega * scale
        self._friction, self._model = friction, model
        self._wanted = self._extra = np.zeros((0, len(self._Q)))

    def load(self, times: Float[Array, "n"]) -> None:
        """Make the part that depends on time alone for the stages at `times` [s].

        Dry friction is foreseen where a motor is itself the owner of friction.
        """
        goal = self._reference.at(times)
        kind = self._settings.kind
        self._wanted = self._kp * goal.y + self._kd * goal.dy
        rubbing = np.zeros_like(goal.y)
        for motor, owner in np.argwhere((self._C[:, None] == self._friction.D[None]).all(axis=2)):
            width = self._friction.width[owner]
            rubbing[:, motor] += self._friction.dry[owner] * np.tanh(goal.dy[:, motor] / width)
        if kind == "feedforward":
            self._wanted += goal.foreseen + goal.strain + rubbing
        elif kind == "computed_torque":
            self._wanted += goal.ddy
            self._extra = goal.strain + rubbing

    def efforts(self, stage: int, q: Float[Array, "q"], dq: Float[Array, "v"]) -> Float[Array, "a"]:
        """Of the motors, shape (a,), in [N m] or [N]; `stage` counts the times loaded.

        Args:
            q, dq: All tree coordinates as they are, shapes (n_q,) and (n_v,).
        """
        wanted = self._wanted[stage] - self._kp * (self._Q @ q) - self._kd * (self._C @ dq)
        if self._model is None:
            return np.asarray(wanted)
        return np.asarray(self._extra[stage] + self._inverse(self._model, q[None], dq[None], wanted[None])[0])

    def _inverse(
        self, model: ForwardDynamics, q: Array, dq: Array, ddy: Float[Array, "n a"]
    ) -> Float[Array, "n a"]:
        """Least efforts that give the motors these accelerations, by the controller's model."""
        free = model.freedoms
        N = free.tangent(q)
        drift = free.lifted(q, np.zeros((len(q), free.dof)), free.bias(q, dq))
        J = motor_jacobian(self._robot, N)
        along = np.linalg.pinv(J) @ (ddy - drift @ self._C.T)[:, :, None]
        tree = model.inverse(q, dq, drift + (N @ along)[:, :, 0])
        return least_norm(J, np.einsum("nvd,nv->nd", N, tree))


def followed(
    mechanism: Mechanism,
    reference: Reference,
    settings: ControllerSettings,
    inertia: Float[Array, "a"],
    believed: Mapping[str, float],
    payloads: tuple[str, ...],
    width: Float[Array, "o"],
) -> Controller:
    """A controller that believes in these parameters.

    Args:
        inertia: As for `Controller`.
        believed: Standard parameters by name that the controller takes for true, SI.
        payloads: Mounted as it believes.
        width: Speed scales of dry friction in the plant, owners of drive terms first.
    """
    friction = Drives(mechanism, believed)
    friction.width = width[: len(friction.owners)]
    model = None
    if settings.kind == "computed_torque":
        smooth = {name: 0.0 if name.partition("_")[0] in JUMPING else x for name, x in believed.items()}
        model = ForwardDynamics(mechanism, parameter_vector(mechanism, smooth), payloads)
    return Controller(mechanism, reference, settings, inertia, friction, model)
