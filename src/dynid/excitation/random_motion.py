"""Random exciting motions: the best conditioned of some draws, as Fourier series or from point to point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dynid.base.rank import independent_columns
from dynid.common.arrays import Array, Float, Inexact
from dynid.common.errors import InputError
from dynid.excitation.closed import (
    ClosedMotion,
    can_be_done,
    check_start,
    closed_condition,
    feasible,
    independent_joints,
    joint_bounds,
    places,
)
from dynid.excitation.series import (
    QUINTIC_PEAKS,
    SAMPLES,
    FourierMotion,
    Limits,
    Series,
    at_rest,
    position_ranges,
    quintic,
    scaled_condition,
    scaled_into,
    speed_bound,
)
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import considered_order, parameter_table
from dynid.projection.inverse import inverse_directions
from dynid.regressor.regressor import tree_matrix

_STATES = 64
_STATES_SEED = 7
_PEAK_SPEED, _PEAK_ACCELERATION, _ = QUINTIC_PEAKS
_ATTEMPTS = 40
_PATIENCE = 5  # attempts before targets are moved nearer to the start pose and moves become slower
_NEARER, _SLOWER = 0.8, 1.15
_PROBES = 24  # poses of a move that are tested

Possible = Callable[["PointToPoint"], bool]
Motion = TypeVar("Motion", bound=Series)


def random_motion(
    mechanism: Mechanism,
    seed: int = 0,
    *,
    harmonics: int = 5,
    frequency: float = 0.1,
    draws: int = 30,
    margin: float = 0.02,
    joints: tuple[str, ...] | None = None,
) -> FourierMotion | ClosedMotion:
    """A random exciting motion of any robot within its limits, the best conditioned of `draws`.

    That of a closed robot keeps its loops closed, far from singular poses.

    Args:
        mechanism: The robot; its measured joints move, or the independent ones of a closed robot.
        seed: Of the draws; the same seed gives the same motion.
        harmonics: Terms of the series; at least 3, so that it can begin and end at rest.
        frequency: Of the first harmonic, in [Hz].
        draws: Motions drawn and compared.
        margin: Unused share of every limit, dimensionless.
        joints: Of a closed robot: those that follow the series, one per degree of freedom; default
            `independent_joints`.
    """
    _check_series(harmonics, frequency, draws)
    if mechanism.is_closed:
        check_start(mechanism)
        names = joints or independent_joints(mechanism)
        bounds = joint_bounds(mechanism, names)
    else:
        check_joints(mechanism)
        names, bounds = (), robot_limits(mechanism)
    rng = np.random.default_rng(seed)
    shape = (harmonics, len(bounds.low))

    def drawn() -> FourierMotion | ClosedMotion:
        series = at_rest(frequency, rng.normal(size=shape), rng.normal(size=shape))
        series = scaled_into(series, bounds, margin)
        return feasible(mechanism, names, series, margin) if names else series

    return _best(mechanism, [drawn() for _ in range(draws)])


def _best(mechanism: Mechanism, motions: Sequence[Motion]) -> Motion:
    """The best conditioned of some motions."""
    if len(motions) == 1:
        return motions[0]
    condition: Any = closed_condition if mechanism.is_closed else regressor_condition
    return min(motions, key=condition(mechanism))


def regressor_condition(mechanism: Mechanism) -> Callable[[Series], float]:
    """A function from a motion to the condition number of its base regressor, columns scaled.

    The base columns are chosen once, at random states, in the order used everywhere for names.
    """
    coordinates = coordinate_map(mechanism)
    N = inverse_directions(mechanism).N

    def regressor(*state: Float[Array, "n m"]) -> Float[Array, "r p"]:
        W = tree_matrix(mechanism, *coordinates.tree_states(*state), N)
        return W.reshape(-1, W.shape[-1])

    rng = np.random.default_rng(_STATES_SEED)
    m = len(mechanism.measured_positions)
    states = [scale * rng.uniform(-1, 1, (_STATES, m)) for scale in (2.0, 2.0, 5.0)]
    order = considered_order(mechanism, parameter_table(mechanism))
    kept = list(independent_columns(regressor(*states), order).kept)

    def condition(motion: Series) -> float:
        t = np.arange(SAMPLES) / SAMPLES * motion.period
        return scaled_condition(regressor(motion.q(t), motion.dq(t), motion.ddq(t))[:, kept])

    return condition


def robot_limits(mechanism: Mechanism) -> Limits:
    """Limits of the robot file for the measured coordinates; a missing position range is an error."""
    names = mechanism.measured_positions
    ranges = position_ranges(mechanism, names)
    rates = [
        [speed_bound(mechanism.limits[name].get(rate, np.inf)) for name in names] for rate in ("dq", "ddq")
    ]
    low, high = np.array(ranges, float).T
    return Limits(low, high, *np.array(rates, float))


def _check_series(harmonics: int, frequency: float, draws: int) -> None:
    if harmonics < 3:
        raise InputError(f"{harmonics} harmonics cannot begin and end at rest", remedy="use 3 or more")
    if not frequency > 0.0 or draws < 1:
        raise InputError(f"frequency {frequency} Hz and {draws} draws: both must be positive")


def check_joints(mechanism: Mechanism) -> None:
    """Reject joints that cannot follow a series per coordinate."""
    turning = [joint.name for joint in mechanism.joints if joint.has_quaternion]
    if turning:
        raise InputError(
            f"joint '{turning[0]}' is described by a quaternion, which cannot follow a Fourier series",
            file=mechanism.file,
            remedy="use a robot with revolute, prismatic and universal joints",
        )


# Motion between random points: quintic moves, at rest at every point.
#
# q(t) = a + (b - a) s(u),   u = (t - t_0) / T,   s as in `quintic`
#
# Position, velocity and acceleration are continuous; the jerk is not. The slowest joint determines the
# duration of a move: |s'| <= 15/8 and |s''| <= 10/sqrt(3).


@dataclass(frozen=True, eq=False)
class PointToPoint:
    """A sequence of moves between points.

    Attributes:
        points: Where the motion rests, shape (k + 1, j), in [rad] or [m].
        begin: When each move begins, shape (k,), in [s].
        length: How long it takes, shape (k,), in [s].
        period: End of the motion; after it the last point is held, in [s].
    """

    points: Float[Array, "k1 j"]
    begin: Float[Array, "k"]
    length: Float[Array, "k"]
    period: float

    def rates(self, t: Inexact[Array, "n"]) -> Inexact[Array, "4 n j"]:
        """Positions and three derivatives at the times t [s], in [rad] or [m], per s, s^2 and s^3."""
        i, u = self._place(t)
        values = quintic(u, self.length[i])[:, :, None] * np.diff(self.points, axis=0)[i]
        values[0] += self.points[i]
        return values

    def q(self, t: Inexact[Array, "n"]) -> Float[Array, "n j"]:
        """Positions, shape (n, j), in [rad] or [m]."""
        return np.asarray(self.rates(t)[0])

    def dq(self, t: Inexact[Array, "n"]) -> Float[Array, "n j"]:
        """Velocities, shape (n, j), in [rad/s] or [m/s]."""
        return np.asarray(self.rates(t)[1])

    def ddq(self, t: Inexact[Array, "n"]) -> Float[Array, "n j"]:
        """Accelerations, shape (n, j), in [rad/s^2] or [m/s^2]."""
        return np.asarray(self.rates(t)[2])

    def _place(self, t: Inexact[Array, "n"]) -> tuple[Array, Float[Array, "n"]]:
        """Index of the move at each time, and the completed part of it, 0 to 1."""
        i = np.clip(np.searchsorted(self.begin, t, side="right") - 1, 0, len(self.begin) - 1)
        return i, np.clip((t - self.begin[i]) / self.length[i], 0.0, 1.0)


def random_point_to_point(
    mechanism: Mechanism,
    seed: int = 0,
    *,
    points: int = 20,
    dwell: float = 0.0,
    draws: int = 1,
    margin: float = 0.02,
    joints: tuple[str, ...] | None = None,
) -> PointToPoint | ClosedMotion:
    """Moves between random points that the robot can reach, within its limits.

    On a closed robot independent joints move, and every move is tested: loops closed, poses not singular,
    limits of all joints satisfied. A target that cannot be reached is drawn again, after some attempts
    nearer to the start pose.

    Args:
        mechanism: Tree or closed robot; speeds or accelerations must be limited.
        seed: Of the draws; the same seed gives the same motion.
        points: Number of points after the first one.
        dwell: Rest at every point, in [s].
        draws: Motions drawn; the best conditioned is taken.
        margin: Unused share of every limit, dimensionless.
        joints: Joints of a closed robot that move; default `independent_joints`.
    """
    if points < 1 or draws < 1 or dwell < 0.0:
        raise InputError(
            f"no motion with {points} points, {draws} draws and a dwell of {dwell:g} s",
            remedy="give at least one point and one draw, and a dwell of 0 s or more",
        )
    rng = np.random.default_rng(seed)
    if not mechanism.is_closed:
        check_joints(mechanism)
        limits = _narrowed(robot_limits(mechanism), margin)
        centre = 0.5 * (limits.low + limits.high)
        motions = [_random(rng, limits, centre, points, dwell, lambda move: True) for _ in range(draws)]
        return _best(mechanism, motions)
    check_start(mechanism)
    joints = joints or independent_joints(mechanism)
    assembly, picked = assembly_of(mechanism), places(mechanism, joints)
    start = assembly.start[[mechanism.positions.index(name) for name in joints]]

    def possible(move: PointToPoint) -> bool:
        t = np.linspace(0.0, move.period, _PROBES)
        return can_be_done(assembly, picked, move, t, margin)

    limits = _narrowed(joint_bounds(mechanism, joints), margin)
    closed = [
        ClosedMotion(mechanism, joints, _random(rng, limits, start, points, dwell, possible))
        for _ in range(draws)
    ]
    return _best(mechanism, closed)


def _random(
    rng: np.random.Generator,
    limits: Limits,
    centre: Float[Array, "j"],
    points: int,
    dwell: float,
    possible: Possible,
) -> PointToPoint:
    """A motion from `centre` through random points; every move is feasible."""
    visited = [centre]
    lengths: list[float] = []
    while len(lengths) < points:
        target, length = _next(rng, limits, centre, visited[-1], possible)
        visited.append(target)
        lengths.append(length)
    return moves(np.array(visited), np.array(lengths), dwell)


def _next(
    rng: np.random.Generator,
    limits: Limits,
    centre: Float[Array, "j"],
    origin: Float[Array, "j"],
    possible: Possible,
) -> tuple[Float[Array, "j"], float]:
    """A random point reachable from `origin`, and the duration of the move."""
    for attempt in range(_ATTEMPTS):
        patience = attempt // _PATIENCE
        target = centre + _NEARER**patience * (rng.uniform(limits.low, limits.high) - centre)
        length = _SLOWER**patience * _lengths((target - origin)[None], limits)
        if possible(moves(np.array([origin, target]), length, 0.0)):
            return target, float(length[0])
    raise InputError(
        f"no reachable point was found for a straight joint-space move in {_ATTEMPTS} attempts",
        remedy="check `start:` and `limits:`: the start pose must be inside the limits and not singular",
    )


def moves(points: Float[Array, "k1 j"], lengths: Float[Array, "k"], dwell: float = 0.0) -> PointToPoint:
    """Moves between points that take so long [s] each, with a rest at each point, in [s]."""
    ends = np.cumsum(lengths + dwell)
    return PointToPoint(points, ends - lengths - dwell, lengths, float(ends[-1]))


def _lengths(steps: Float[Array, "k j"], limits: Limits) -> Float[Array, "k"]:
    """Duration of each move by its slowest joint, in [s]."""
    by_speed = np.max(_PEAK_SPEED * np.abs(steps) / limits.dq, axis=1)
    by_acceleration = np.max(np.sqrt(_PEAK_ACCELERATION * np.abs(steps) / limits.ddq), axis=1)
    durations = np.maximum(by_speed, by_acceleration)
    if not np.all(durations > 0.0):
        raise InputError(
            "a move has zero duration: it has zero length, or neither speed nor acceleration is limited",
            remedy="add `limits: {JOINT: {dq: ..., ddq: ...}}`",
        )
    return np.asarray(durations)


def _narrowed(limits: Limits, margin: float) -> Limits:
    """Limits with an unused share of each."""
    spare = 0.5 * margin * (limits.high - limits.low)
    speeds = [(1.0 - margin) * bound for bound in (limits.dq, limits.ddq)]
    return Limits(limits.low + spare, limits.high - spare, *speeds)
