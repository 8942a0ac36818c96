"""Simulated log of a force/torque sensor on a moving arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.excitation.series import Trajectory
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.force_sensor import COMPONENTS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.projection.sensor_columns import SensorColumns, frame_motion


def simulate_sensor_log(
    mechanism: Mechanism,
    truth: Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    sigma: tuple[float, float] = (0.0, 0.0),
    encoder_sigma: float = 0.0,
    seed: int = 0,
    payloads: Sequence[str] = (),
    name: str = "simulated",
) -> Log:
    """Joint angles and wrench of an arm with a force sensor (see `with_force_sensor`).

    Args:
        mechanism: A tree with a force sensor that its joints move.
        truth: True parameters by name (`M_tool`, `Off_fx`, `angle_sensor`, ...); others are zero.
        motion: Of the measured joints.
        rate: Sampling rate, in [Hz].
        duration: In [s].
        sigma: Standard deviations of the noise of forces [N] and moments [N m].
        encoder_sigma: Standard deviation of the joint noise, in [rad] or [m].
        seed: Of the noise.
        payloads: Mounted on the tool.
        name: Of the log.
    """
    t = np.arange(round(duration * rate) + 1) / rate
    q = motion.q(t)
    chi = _values(mechanism, truth)
    turned = _turned(mechanism, truth)
    columns = SensorColumns(turned, parameter_table(mechanism), range(6), payloads)
    tree = coordinate_map(mechanism).tree_states(q, motion.dq(t), motion.ddq(t))
    packed = columns.packed(frame_motion(mechanism)(*tree), np.zeros((len(t), 6)), np.full(len(t), -1))
    wrench = columns.layout.sums(packed, columns.layout.coefficients(chi)).T
    rng = np.random.default_rng(seed)
    wrench = wrench + np.repeat(sigma, 3) * rng.standard_normal(wrench.shape)
    q = q + encoder_sigma * rng.standard_normal(q.shape)
    return log_from_arrays(mechanism, t, q, wrench, name=name, payloads=payloads)


def _turned(mechanism: Mechanism, truth: Mapping[str, float]) -> Mechanism:
    """The robot with its sensor at the true angles."""
    sensor = mechanism.force_sensor
    if sensor is None:
        return mechanism
    at = tuple(truth.get(name, start) for name, start in zip(sensor.angles, sensor.start(), strict=True))
    return replace(mechanism, force_sensor=replace(sensor, at=at))


def _values(mechanism: Mechanism, truth: Mapping[str, float]) -> Float[Array, "p"]:
    sensor = mechanism.force_sensor
    if sensor is None or sensor.imu is not None or mechanism.is_closed:
        raise InputError(
            f"robot '{mechanism.name}' is not a tree with a force sensor moved by its joints",
            remedy=f"add one with with_force_sensor; it measures {', '.join(COMPONENTS)}",
        )
    names = [parameter.name for parameter in parameter_table(mechanism)]
    for name in truth:
        if name not in names:
            raise InputError(f"no parameter '{name}'" + nearest(name, names))
    return np.array([truth.get(name, 0.0) for name in names])
