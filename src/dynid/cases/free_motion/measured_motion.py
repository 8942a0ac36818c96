"""Free motions on locked cables: limits of tensions, swings and places; simulated logs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import InputError
from dynid.dynamics.free_motion import FreeMotions, LockedCables, Values, free_motions
from dynid.excitation.optimal.soft import peaks
from dynid.excitation.series import symmetric_range
from dynid.kinematics.closure import moved
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays

# A sine with 12 or more samples per period exceeds them by up to 1.05 times the value of a parabola.
_ROUNDER = 1.1
_PAUSE = 1.0  # s between motions in one log


@dataclass(frozen=True, eq=False)
class FreeLimits:
    """Limits of a free motion.

    Attributes:
        tension: Smallest and largest tension of each cable, shape (c, 2), in [N]; largest may be infinite.
        swing: Position -> largest displacement from rest, in [m].
        place: Position -> least and largest value, in [m].
    """

    tension: Float[Array, "c 2"]
    swing: dict[int, float]
    place: dict[int, tuple[float, float]]

    def allows(
        self, q: Float[Array, "k q"], pulls: Float[Array, "k c"], spare: float = 0.0
    ) -> Bool[Array, "k"]:
        """Whether equilibria with these tensions satisfy the limits, with a share of the range as margin."""
        low, high = self.tension.T
        room = spare * np.where(np.isinf(high), low, high - low)
        fine = np.all((pulls > low + room) & (pulls < high - room), axis=1)
        for at, (least, most) in self.place.items():
            fine &= (q[:, at] > least) & (q[:, at] < most)
        return np.asarray(fine)

    def use(
        self, motions: FreeMotions, rest: Float[Array, "k q"], rest_pulls: Float[Array, "k c"]
    ) -> Float[Array, "k"]:
        """Largest used share of the range between equilibrium and each limit; above 1: violated."""
        low, high = self.tension.T
        least, most = reached(motions.tensions)
        shares = [
            ((rest_pulls - least) / (rest_pulls - low)).max(axis=1),
            ((most - rest_pulls) / (high - rest_pulls)).max(axis=1),
        ]
        for at, bound in self.swing.items():
            down, up = reached(motions.q[:, :, at] - rest[:, at])
            shares.append(np.maximum(-down, up) / bound)
        for at, (first, last) in self.place.items():
            down, up = reached(motions.q[:, :, at])
            shares.append((up - rest[:, at]) / (last - rest[:, at]))
            shares.append((rest[:, at] - down) / (rest[:, at] - first))
        return np.asarray(np.nan_to_num(np.max(shares, axis=0), nan=np.inf, posinf=np.inf))


def reached(x: Float[Array, "n *k"]) -> tuple[Float[Array, "*k"], Float[Array, "*k"]]:
    """Smallest and largest values of evenly sampled signals, also between the samples."""
    rows, smooth = x.reshape(len(x), -1).T, np.zeros(len(x), dtype=bool)
    extremes = []
    for signed in (-rows, rows):
        top = signed.max(axis=1)
        extremes.append((top + _ROUNDER * (peaks(signed, smooth) - top)).reshape(x.shape[1:]))
    return -extremes[0], extremes[1]


def free_limits(mechanism: Mechanism, cables: tuple[str, ...]) -> FreeLimits:
    """Limits of the robot file.

    `cables: {tension: [20, 200]}` holds for all cables, `cable1: {tension: ...}` for one. Of a free
    platform joint `pose`, `pose: {x: 0.1}` bounds the swing about rest and `pose: {z: [-1, 0]}` the place.
    """
    shared = mechanism.limits.get("cables", {}).get("tension", (0.0, np.inf))
    tension = [mechanism.limits.get(name, {}).get("tension", shared) for name in cables]
    for name, bound in zip(cables, tension, strict=True):
        low, high = symmetric_range(bound)
        if not 0.0 <= low < high:
            raise InputError(
                f"the tension range of cable '{name}', {low:g} to {high:g} N, is not valid",
                file=mechanism.file,
                place="limits.cables.tension",
                remedy="a cable can only pull: give a positive minimum and a larger maximum, e.g. [20, 200]",
            )
    swing: dict[int, float] = {}
    place: dict[int, tuple[float, float]] = {}
    for joint in mechanism.joints:
        for name, bound in mechanism.limits.get(joint.name, {}).items():
            full = f"{joint.name}_{name}"
            if full not in mechanism.positions:
                continue
            at = mechanism.positions.index(full)
            if isinstance(bound, tuple):
                place[at] = symmetric_range(bound)
            else:
                swing[at] = float(bound)
    return FreeLimits(np.array([symmetric_range(bound) for bound in tension]), swing, place)


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
    runs = free_motions(robot, chi_true, lengths, starts, duration, rate, velocities)
    runs.refuse_slack()
    rng = np.random.default_rng(seed)
    noise = np.random.default_rng(rng.integers(2**63)), (position_sigma, angle_sigma)
    wrong = length_sigma * rng.normal(size=lengths.shape)
    return measured_log(mechanism, robot, runs, lengths + wrong, *noise, payloads, name)


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
    q = np.column_stack([columns[position] for position in mechanism.measured_positions])
    runs = [(i * n, (i + 1) * n) for i in range(k)]
    return log_from_arrays(mechanism, t, q, None, name=name, segments=runs, payloads=payloads)


def _noise(
    robot: Mechanism, rng: np.random.Generator, n: int, position_sigma: float, angle_sigma: float
) -> Float[Array, "n v"]:
    """White noise of each velocity coordinate."""
    turning = [joint.is_angle(name) for joint in robot.joints for name in joint.coordinates]
    return np.asarray(rng.normal(size=(n, len(turning))) * np.where(turning, angle_sigma, position_sigma))
