"""Motions of closed-loop robots: Fourier series of independent joints; the loops determine all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.base.rank import independent_columns
from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import qr, singular_values
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.excitation.series import (
    SAMPLES,
    FourierMotion,
    Limits,
    Series,
    scaled_condition,
    speed_bound,
    symmetric_range,
)
from dynid.kinematics.assembly import Assembly, Measured, assembly_of
from dynid.kinematics.elimination import best_coordinates
from dynid.kinematics.sensors import measured_motion, sensors_of
from dynid.mechanism.description import ZERO, unit_of
from dynid.mechanism.measured_pose import virtual_coordinates
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import considered_order, parameter_table
from dynid.regressor.regressor import tree_matrix

_SEED = 20190227
_WALKED = 64
_REACH = 0.3  # of the random walk that estimates the range of a joint: a good part of the workspace
_NARROWED = 0.9  # of the given range: motions that use less of it are said
_SWING = 4.0  # standard deviations of that walk: more than is feasible; motions are shrunk from there
_CLOSED = 1e-10  # m or rad
_MOST_CONDITION = 50.0
_MOST_JUMP = 0.1  # rad or m between the pose predicted from the rates and the next pose
_GRID_PER_HARMONIC = 12
_LEAST_GRID = 125
_SHRINK = 0.8
_ATTEMPTS = 16


@dataclass(frozen=True, eq=False)
class ClosedStates:
    """A batch of states of a closed robot: all tree coordinates and tangent directions.

    Attributes:
        q: Positions, shape (n, n_q), in [rad, m, -].
        dq, ddq: Velocities and their rates, shape (n, n_v), per s and per s^2.
        N: A basis of the tangent directions, shape (n, n_v, d).
    """

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]


@dataclass(frozen=True, eq=False)
class ClosedMotion:
    """A motion of the measured joints of a closed robot, from a series of independent joints.

    Attributes:
        joints: Scalar coordinates that follow `series`, one per degree of freedom.
        series: Their positions over time.
    """

    mechanism: Mechanism
    joints: tuple[str, ...]
    series: Series

    @property
    def period(self) -> float:
        """Time after which the motion repeats, in [s]."""
        return self.series.period

    def states(self, t: Float[Array, "n"]) -> ClosedStates:
        """All coordinates at the times t [s]."""
        picked = places(self.mechanism, self.joints)
        return closed_states(self.mechanism, picked, self.series.q(t), self.series.dq(t), self.series.ddq(t))

    def q(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Positions of the measured joints, shape (n, m), in [rad] or [m]."""
        return self.measured(self.states(t))[0]

    def dq(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Their rates, per s."""
        return self.measured(self.states(t))[1]

    def ddq(self, t: Float[Array, "n"]) -> Float[Array, "n m"]:
        """Their second rates, per s^2."""
        return self.measured(self.states(t))[2]

    def measured(self, states: ClosedStates) -> tuple[Array, Array, Array]:
        """Positions and rates of the measured joints, each of shape (n, m)."""
        return measured_motion(self.mechanism, states.q, states.dq, states.ddq)


def closed_states(
    mechanism: Mechanism,
    picked: Measured,
    q: Float[Array, "n m"],
    dq: Float[Array, "n m"],
    ddq: Float[Array, "n m"],
) -> ClosedStates:
    """All coordinates from positions of some and their derivatives, along a continuous motion.

    Args:
        picked: Sensors of these positions, or velocity indices of scalar joints.
    """
    assembly = assembly_of(mechanism)
    sensors = assembly.sensors(picked)
    poses = assembly.track(q, sensors)
    gaps = assembly.gaps(poses)
    worst = int(np.argmax(gaps))
    if not gaps[worst] < _CLOSED:
        raise InputError(
            f"the motion violates the loop closure of robot '{mechanism.name}': the gap at sample {worst}"
            f" is {gaps[worst]:.3g} m or rad",
            file=mechanism.file,
            remedy="use a smaller motion, or check the loops and `start:`",
        )
    moving = assembly.rates(poses, *sensors.rates(q, dq, ddq), sensors)
    return ClosedStates(poses, moving.dq, moving.ddq, moving.N)


def closed_condition(mechanism: Mechanism) -> Callable[[ClosedMotion], float]:
    """A function from a motion to the condition number of its base regressor, columns scaled."""
    assembly = assembly_of(mechanism)
    parameters = parameter_table(mechanism)
    rng = np.random.default_rng(_SEED)
    n = max(_WALKED, -(-4 * len(parameters) // assembly.dof))
    q = assembly.walk(rng, n, reach=1.0)
    walked = ClosedStates(q, *assembly.random_rates(q, rng))
    order = considered_order(mechanism, parameters)
    kept = list(independent_columns(_regressor(mechanism, walked), order).kept)

    def condition(motion: ClosedMotion) -> float:
        samples = max(SAMPLES, -(-2 * len(kept) // assembly.dof))
        t = np.arange(samples) / samples * motion.period
        try:
            states = motion.states(t)
        except InputError:  # between the tested poses, this draw violates the loop closure
            return float("inf")
        return scaled_condition(_regressor(mechanism, states)[:, kept])

    return condition


def independent_joints(mechanism: Mechanism) -> tuple[str, ...]:
    """Independent scalar joints: the measured ones if their number equals the degrees of freedom, else
    the actuated ones if theirs does, else those that move most. Chains of measured poses do not count."""
    assembly = assembly_of(mechanism)
    virtual = virtual_coordinates(mechanism)
    scalar = [name for name in mechanism.coordinates if name in mechanism.positions and name not in virtual]
    driven = [name for actuator in mechanism.actuators for name in actuator.on]
    for enough in (mechanism.measured_positions, driven):
        if len(enough) == assembly.dof and set(enough) <= set(scalar):
            return tuple(enough)
    q = assembly.walk(np.random.default_rng(_SEED), _WALKED, reach=_REACH)
    N = assembly.tangent(assembly.closure.values(q).A)
    chosen = best_coordinates(N, places(mechanism, scalar).tolist())
    return tuple(mechanism.coordinates[i] for i in chosen)


def places(mechanism: Mechanism, names: Sequence[str]) -> Int[Array, "m"]:
    """Velocity indices of scalar coordinates; a joint described by a quaternion is rejected."""
    for name in names:
        if name not in mechanism.coordinates:
            raise InputError(
                f"'{name}' cannot follow a series: only scalar joints can",
                file=mechanism.file,
                remedy="use revolute, prismatic and universal joints",
            )
    return np.array([mechanism.coordinates.index(name) for name in names], dtype=np.int64)


def _regressor(mechanism: Mechanism, states: ClosedStates) -> Float[Array, "r p"]:
    W = tree_matrix(mechanism, states.q, states.dq, states.ddq)
    rows = np.einsum("nvd,nvp->ndp", qr(states.N)[0], W)
    return np.asarray(rows.reshape(-1, rows.shape[-1]))


def joint_bounds(mechanism: Mechanism, joints: Sequence[str]) -> Limits:
    """Limits of the independent joints, no wider than the range of a random walk in the workspace."""
    assembly = assembly_of(mechanism)
    walked = assembly.walk(np.random.default_rng(_SEED), _WALKED, reach=_REACH)
    at = [mechanism.positions.index(name) for name in joints]
    swing = _SWING * walked[:, at].std(axis=0)
    centre = assembly.start[at]
    low, high = centre - swing, centre + swing
    speeds, accelerations = np.full((2, len(joints)), np.inf)
    for i, name in enumerate(joints):
        joint_limits = mechanism.limits.get(name, {})
        if "q" in joint_limits:
            least, most = symmetric_range(joint_limits["q"])
            low[i], high[i] = max(low[i], least), min(high[i], most)
        speeds[i] = speed_bound(joint_limits.get("dq", np.inf))
        accelerations[i] = speed_bound(joint_limits.get("ddq", np.inf))
    return Limits(low, high, speeds, accelerations)


def narrowed_limits(mechanism: Mechanism, joints: Sequence[str]) -> Iterator[Notice]:
    """That a motion of independent joints stays well within their limits, see `joint_bounds`."""
    given = {name: limits["q"] for name, limits in mechanism.limits.items() if "q" in limits}
    limited = [name for name in joints if name in given]
    bounds = joint_bounds(mechanism, limited)
    for name, low, high in zip(limited, bounds.low, bounds.high, strict=True):
        least, most = symmetric_range(given[name])
        if high - low < _NARROWED * (most - least):
            unit = unit_of(mechanism, f"{ZERO}{name}")
            yield notice("limits-narrowed", joint=name, low=low, high=high, least=least, most=most, unit=unit)


def check_start(mechanism: Mechanism) -> None:
    """Reject a start pose outside the limits: every motion is shrunk towards it."""
    start = assembly_of(mechanism).start
    for name, joint_limits in mechanism.limits.items():
        if "q" not in joint_limits or name not in mechanism.positions:
            continue
        low, high = symmetric_range(joint_limits["q"])
        value = start[mechanism.positions.index(name)]
        if not low < value < high:
            raise InputError(
                f"the start pose has '{name}' at {value:.4g}, outside its limits {low:g} to {high:g}",
                file=mechanism.file,
                place=f"limits.{name}",
                remedy="correct `start:` or the limits",
            )


def feasible(
    mechanism: Mechanism, joints: tuple[str, ...], series: FourierMotion, margin: float
) -> ClosedMotion:
    """The same motion, shrunk towards the start pose until it is feasible."""
    assembly = assembly_of(mechanism)
    start = assembly.start[[mechanism.positions.index(name) for name in joints]]
    samples = max(_LEAST_GRID, _GRID_PER_HARMONIC * len(series.sine))
    t = np.arange(samples + 1) / samples * series.period
    for attempt in range(_ATTEMPTS):
        size = _SHRINK**attempt
        centre = start + size * (series.centre - start)
        smaller = FourierMotion(series.frequency, size * series.sine, size * series.cosine, centre)
        if can_be_done(assembly, places(mechanism, joints), smaller, t, margin):
            return ClosedMotion(mechanism, joints, smaller)
    raise InputError(
        f"no motion of robot '{mechanism.name}' about its start pose satisfies loop closure and limits"
        " without singular poses",
        file=mechanism.file,
        remedy="check `start:` and `limits:`: the start pose must be inside the limits and not singular",
    )


def can_be_done(
    assembly: Assembly, picked: Int[Array, "m"], series: Series, t: Float[Array, "n"], margin: float
) -> bool:
    """Whether the motion is feasible: loops closed, poses not singular, limits of all joints satisfied."""
    robot = assembly.mechanism
    q = assembly.follow(series.q(t), picked)
    if not np.all(assembly.gaps(q) < _CLOSED):
        return False
    moving = assembly.rates(q, series.dq(t), series.ddq(t), picked)
    dq, ddq, N = moving.dq, moving.ddq, qr(moving.N)[0]
    for used in (picked, sensors_of(robot, robot.measured_positions).velocity):
        s = singular_values(N[:, used])
        if not np.all(s[:, 0] <= _MOST_CONDITION * s[:, -1]):
            return False
    scalar = [name for name in robot.coordinates if name in robot.positions]
    at_v, at_q = places(robot, scalar), [robot.positions.index(name) for name in scalar]
    predicted = 0.5 * (t[1] - t[0]) * (dq[1:] + dq[:-1])[:, at_v]
    if np.abs(np.diff(q[:, at_q], axis=0) - predicted).max() > _MOST_JUMP:
        return False
    return _within(robot, q, dq, ddq, margin)


def _within(robot: Mechanism, q: Array, dq: Array, ddq: Array, margin: float) -> bool:
    """Whether every limit of the robot file is satisfied, with the margin."""
    for name, joint_limits in robot.limits.items():
        if name not in robot.coordinates or name not in robot.positions:
            continue
        x = q[:, robot.positions.index(name)]
        if "q" in joint_limits:
            low, high = symmetric_range(joint_limits["q"])
            spare = 0.5 * margin * (high - low)
            if x.min() < low + spare or x.max() > high - spare:
                return False
        for bound, rate in (("dq", dq), ("ddq", ddq)):
            fastest = np.abs(rate[:, robot.coordinates.index(name)]).max()
            if fastest > (1.0 - margin) * speed_bound(joint_limits.get(bound, np.inf)):
                return False
    return True
