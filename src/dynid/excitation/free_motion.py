"""Simulated logs of free motions on locked cables, as measured by a marker system or encoders."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.dynamics.free_motion import FreeMotions, free_motions
from dynid.dynamics.locked import LockedCables, Values
from dynid.kinematics.closure import moved
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays

_PAUSE = 1.0  # s between motions in one log


def simulate_free_motions(
    mechanism: Mechanism,
    chi_true: Values,
    lengths: Float[Array, "k c"],
    starts: Float[Array, "k q"],
    *,
    rate: float,
    duration: float,
    position_sigma: float = 0.0,
    angle_sigma: float = 0.0,
    length_sigma: float = 0.0,
    velocities: Float[Array, "k v"] | None = None,
    seed: int = 0,
    payloads: tuple[str, ...] = (),
    name: str = "simulated",
) -> Log:
    """The log of k free motions, one segment each, in the coordinates that the mechanism measures.

    Those may be the whole pose, free coordinates with locked lengths (cables among `measured`),
    swivel angles, or any combination. A motion in which a cable becomes slack is rejected.

    Args:
        mechanism: The robot with its cables.
        chi_true: All standard parameters in the order of the table, or by name (others zero), SI.
        lengths: Locked lengths of each motion, shape (k, c), in [m].
        starts: Poses from which the locked robot is released, shape (k, n_q), SI.
        rate: Sampling rate, in [Hz].
        duration: Of each motion, in [s]; both ends are sampled.
        position_sigma: Standard deviation of white noise on translations, in [m].
        angle_sigma: The same on angles, and about each axis of an attitude, in [rad].
        length_sigma: Standard deviation of the error of each locked length, constant per motion, in [m].
        velocities: At the starts, shape (k, v); default at rest.
        seed: Of the noise.
        payloads: Mounted during the recording.
        name: Of the log.
    """
    robot = LockedCables(mechanism, chi_true, payloads)
    found = free_motions(robot, chi_true, lengths, starts, duration, rate, velocities)
    found.refuse_slack()
    rng = np.random.default_rng(seed)
    noise = np.random.default_rng(rng.integers(2**63)), (position_sigma, angle_sigma)
    wrong = length_sigma * rng.normal(size=lengths.shape)
    return measured_log(mechanism, robot, found, lengths + wrong, *noise, payloads, name)


def measured_log(
    mechanism: Mechanism,
    robot: LockedCables,
    motions: FreeMotions,
    lengths: Float[Array, "k c"],
    rng: np.random.Generator,
    sigma: tuple[float, float],
    payloads: tuple[str, ...] = (),
    name: str = "simulated",
) -> Log:
    """Measurements of known motions, with white noise of standard deviations in [m] and [rad]."""
    n, k, n_q = motions.q.shape
    flat = np.moveaxis(motions.q, 0, 1).reshape(k * n, n_q)
    noisy = moved(robot.robot, flat, _noise(robot.robot, rng, len(flat), *sigma))
    columns = dict(zip(robot.robot.positions, noisy.T, strict=True))
    columns |= dict(zip(robot.cables, np.repeat(lengths, n, axis=0).T, strict=True))
    step = float(motions.t[1] - motions.t[0])
    t = np.concatenate([motions.t + i * (motions.t[-1] + step + _PAUSE) for i in range(k)])
    q = np.column_stack([columns[one] for one in mechanism.measured_positions])
    runs = [(i * n, (i + 1) * n) for i in range(k)]
    return log_from_arrays(mechanism, t, q, None, name=name, segments=runs, payloads=payloads)


def _noise(
    robot: Mechanism, rng: np.random.Generator, n: int, position_sigma: float, angle_sigma: float
) -> Float[Array, "n v"]:
    """White noise of each velocity coordinate."""
    turning = [joint.is_angle(name) for joint in robot.joints for name in joint.coordinates]
    return np.asarray(rng.normal(size=(n, len(turning))) * np.where(turning, angle_sigma, position_sigma))
