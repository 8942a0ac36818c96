"""Motion of a force sensor's frame: from the joints of the robot, or from an inertial unit fixed to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.common.notices import Notice
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.force_sensor import ForceSensor
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.motion import Motion
from dynid.projection.kinematics import Measured, kinematics_along
from dynid.projection.structure import random_states


@dataclass(frozen=True, eq=False)
class SensorMotion:
    """Motion of the sensor's nominal frame.

    Attributes:
        R: Its axes in the base frame, shape (n, 3, 3), dimensionless; with an IMU unknown, the identity.
        omega: Angular velocity, own axes, shape (n, 3), in [rad/s].
        dV: Acceleration of its origin minus the gravity of the description, then angular acceleration,
            own axes, shape (n, 6), in [m/s^2, rad/s^2].
        fine: Whether the pose is known, shape (n,).
    """

    R: Float[Array, "n 3 3"]
    omega: Float[Array, "n 3"]
    dV: Float[Array, "n 6"]
    fine: Bool[Array, "n"]


class ArmFrames:
    """Motion of the sensor's frame from the robot's joints, tree or closed."""

    def __init__(self, mechanism: Mechanism, motion: Motion) -> None:
        self._kinematics = kinematics_along(mechanism, motion)
        self._place = _Place(mechanism)
        self.notices, self.choices = self._kinematics.notices, dict(self._kinematics.choices)

    def along(self, start: int, measured: Measured) -> SensorMotion:
        """At samples start, start + 1, ... from their measured coordinates."""
        states = self._kinematics.states(start, measured)
        moved = self._place(states.q, states.dq, states.ddq)
        return SensorMotion(moved.R, moved.omega, moved.dV, states.fine)


class ImuFrames:
    """Motion of the sensor's frame from an inertial unit fixed to it.

    a_sensor = R a_imu + alpha x r + omega x (omega x r), r from the unit to the sensor's origin.
    """

    notices: tuple[Notice, ...] = ()

    def __init__(self, sensor: ForceSensor) -> None:
        if sensor.imu is None:
            raise TypeError("this sensor has no inertial unit")
        self._R, self._r = sensor.imu.R, -sensor.imu.p
        self.choices = {"motion": "angular velocity and specific force of the IMU"}

    def along(self, start: int, measured: Measured) -> SensorMotion:
        """At samples start, start + 1, ... from their filtered signals and the rates of these."""
        omega, specific = measured[0][:, :3] @ self._R.T, measured[0][:, 3:] @ self._R.T
        alpha = measured[1][:, :3] @ self._R.T
        a = specific + np.cross(alpha, self._r) + np.cross(omega, np.cross(omega, self._r))
        n = len(omega)
        return SensorMotion(
            np.broadcast_to(np.eye(3), (n, 3, 3)), omega, np.hstack([a, alpha]), np.ones(n, dtype=bool)
        )


def sensor_frames(mechanism: Mechanism, motion: Motion) -> ArmFrames | ImuFrames:
    """Where the motion of the sensor comes from."""
    sensor = mechanism.force_sensor
    if sensor is not None and sensor.imu is not None:
        return ImuFrames(sensor)
    return ArmFrames(mechanism, motion)


class _Place:
    """The sensor's nominal frame in the tree."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._tree = tree_of(mechanism)
        tool = mechanism.force_sensor.tool if mechanism.force_sensor is not None else ""
        self._body = self._tree.body_names.index(tool)

    def __call__(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
    ) -> SensorMotion:
        moved, b = body_motion(self._tree, q, dq, ddq), self._body
        fine = np.ones(len(q), dtype=bool)
        return SensorMotion(moved.R[:, b], moved.V[:, b, 3:], moved.dV[:, b], fine)


def frame_motion(mechanism: Mechanism) -> Callable[..., SensorMotion]:
    """Motion of the sensor's frame as a function of tree states q (n, n_q), dq and ddq (n, n_v)."""
    return _Place(mechanism)


def random_motion(mechanism: Mechanism, rng: np.random.Generator, n: int, stretch: float) -> SensorMotion:
    """Feasible motions of the robot; with an inertial unit any motion.

    Args:
        stretch: Range of the states, as of `structural_factor`.
    """
    sensor = mechanism.force_sensor
    if sensor is not None and sensor.imu is not None:
        signals = [stretch * rng.normal(size=(n, 6)) * [1, 1, 1, 10, 10, 10] for _ in range(3)]
        return ImuFrames(sensor).along(0, (signals[0], signals[1], signals[2]))
    if mechanism.is_closed:
        assembly = assembly_of(mechanism)
        q = assembly.walk(rng, n, reach=stretch)
        dq, ddq, _ = assembly.random_rates(q, rng)
        return _Place(mechanism)(q, dq, ddq)
    return _Place(mechanism)(*random_states(coordinate_map(mechanism), rng, n, stretch))
