"""Statics on locked cables: equilibria, their stability and tensions, and lengths that lead to a pose.

    N^T ID(q, 0, 0) = 0,      L(q) = lengths        [CableRobot, eq. 35 at rest]

stable where the Hessian of the potential energy on the tangent space is positive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import cholesky, eigh, inv
from dynid.common.errors import InputError, NoResultError
from dynid.dynamics.free_motion import LockedCables
from dynid.kinematics.closure import moved
from dynid.kinematics.sensors import Sensors, sensors_of
from dynid.kinematics.tracking import same_pose

_SEED = 20220104
_STEPS = 80
_LARGEST = 0.2  # m or rad: a step of the search
_RESTS = 1e-9  # of the weight's efforts: residual at an equilibrium
_FIRM = 1e-7  # of the largest stiffness over mass: below it neither stable nor unstable
_HOMOTOPY = 12
_SOFT = 1e-3  # weight of the initial pose relative to the wanted coordinates
_SHOWN = 0.1  # of the largest entry of a shape: smaller entries are not listed


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """An equilibrium pose of a robot on locked cables.

    Attributes:
        q: Pose of the locked robot, shape (n_q,).
        lengths: Of the cables, shape (c,), in [m].
        tensions: Pull of each cable, shape (c,), in [N] for parameters in SI.
        stiffness: Squares of the angular frequencies of small motions, ascending, shape (d,), in [1/s^2];
            a negative one is unstable.
        energy: Potential energy, in [J] for parameters in SI.
    """

    q: Float[Array, "q"]
    lengths: Float[Array, "c"]
    tensions: Float[Array, "c"]
    stiffness: Float[Array, "d"]
    energy: float

    @property
    def stable(self) -> bool:
        """Whether every small displacement raises the potential energy."""
        return bool(self.stiffness[0] > _FIRM * np.abs(self.stiffness).max())

    @property
    def taut(self) -> bool:
        """Whether every cable pulls; otherwise this is no equilibrium on all cables."""
        return bool(np.all(self.tensions > 0.0))


def equilibria(
    robot: LockedCables,
    lengths: Float[Array, "c"],
    starts: Float[Array, "k q"] | None = None,
    count: int = 32,
) -> tuple[Equilibrium, ...]:
    """All equilibria found from many starts, the lowest potential energy first.

    From each start one search goes downhill and one to wherever the efforts vanish, so that unstable
    equilibria are found too. It is not guaranteed that all are found.

    Args:
        robot: With its parameters.
        lengths: Of the cables, shape (c,), in [m].
        starts: Poses near which to search; default: spread over the poses that the cables allow.
        count: How many starts where none are given.
    """
    lengths = _checked(robot, lengths)
    poses = spread(robot, lengths, count) if starts is None else _onto(robot, starts, lengths)
    both = np.concatenate([poses, poses])
    downhill = np.arange(len(both)) < len(poses)
    q, rests = _rested(robot, both, lengths, downhill)
    distinct: list[int] = []
    for i in np.flatnonzero(rests).tolist():
        known = np.array(distinct, dtype=int)
        same = same_pose(robot.assembly.closure, q[known], np.repeat(q[i : i + 1], len(known), axis=0))
        if not same.any():
            distinct.append(i)
    states = [_equilibrium(robot, q[i : i + 1], lengths) for i in distinct]
    return tuple(sorted(states, key=lambda state: state.energy))


def rest(
    robot: LockedCables, lengths: Float[Array, "c"], near: Float[Array, "q"] | None = None
) -> Equilibrium:
    """The lowest stable equilibrium with all cables taut, or the one downhill from a pose."""
    states = equilibria(robot, lengths, None if near is None else near[None])
    fine = [state for state in states if state.stable and state.taut]
    if fine:
        return fine[0]
    shown = ", ".join(f"{length:.6g}" for length in lengths)
    if any(state.stable for state in states):
        lowest = next(state for state in states if state.stable)
        slack = robot.cables[int(np.argmin(lowest.tensions))]
        raise NoResultError(
            f"with cable lengths {shown} m the robot is in equilibrium only if cable '{slack}' pushes"
            f" ({lowest.tensions.min():.3g} N); shorten it, or lengthen the others"
        )
    raise NoResultError(
        f"no stable equilibrium was found for cable lengths {shown} m; check lengths, geometry and the centre"
        " of mass, or give an initial pose near it"
    )


def spread(robot: LockedCables, lengths: Float[Array, "c"], count: int) -> Float[Array, "k q"]:
    """Poses that have the given lengths, spread by random steps along the tangent directions."""
    rng = np.random.default_rng(_SEED)
    first = _first(robot, lengths)
    poses = [first]
    q = np.repeat(first[None], count - 1, axis=0)
    for _ in range(4):
        N = robot.assembly.tangent(robot.assembly.closure.values(q).A)
        tried, reached = robot.closed(moved(robot.robot, q, 0.3 * robot.assembly.drawn(N, rng)), lengths)
        q = np.where(reached[:, None], tried, q)
    return np.concatenate([np.stack(poses), q])


def lengths_for(
    robot: LockedCables, wanted: Mapping[str, float], near: Float[Array, "q"] | None = None
) -> Equilibrium:
    """The equilibrium at which some coordinates have given values, and the lengths that lead to it.

    At most as many coordinates as cables can be prescribed; with fewer, the pose stays as near as possible.

    Args:
        robot: With its parameters.
        wanted: Position coordinates of the robot (a quaternion must be complete) and their values, SI.
        near: Initial pose; default the start pose of the description.
    """
    sensors = sensors_of(robot.robot, tuple(wanted))
    if sensors.count > len(robot.cables):
        raise InputError(
            f"{sensors.count} coordinates are prescribed for a robot on {len(robot.cables)} cables",
            remedy="prescribe fewer: the others follow from the equilibrium",
        )
    values = np.array(list(wanted.values()), dtype=float)[None]
    begin = np.array(robot.assembly.start if near is None else near, dtype=float)[None]
    q, left = begin, np.inf
    for soft in (_SOFT, 0.0):
        q, left = _searched(robot, q, sensors, values, begin, soft)
    if left > 1e-8:
        shown = ", ".join(f"{name} = {value:g}" for name, value in wanted.items())
        raise NoResultError(
            f"no equilibrium with {shown} was found: the remaining error is {left:.3g}; choose a reachable"
            " pose, or give an initial pose near it"
        )
    return _equilibrium(robot, q, robot.lengths(q)[0])


def _searched(
    robot: LockedCables,
    q: Float[Array, "1 q"],
    sensors: Sensors,
    values: Float[Array, "1 w"],
    begin: Float[Array, "1 q"],
    soft: float,
) -> tuple[Float[Array, "1 q"], float]:
    """Gauss-Newton on efforts and wanted coordinates; `soft` also keeps the pose close to the initial one."""
    whole = sensors_of(robot.robot, robot.robot.positions)
    left, weight = np.inf, _weight(robot, q)
    for _ in range(_STEPS):
        efforts, K, by_length = robot.still.stiffness(q, robot.rows)
        reach = np.concatenate(
            [robot.still.freedoms.tangent(q), robot.still.responses(q, robot.rows)], axis=2
        )[0]
        firm = np.concatenate([-efforts / weight, sensors.miss(q, values)], axis=1)[0]
        left = float(np.abs(firm).max())
        miss = np.concatenate([firm, soft * whole.miss(q, begin)[0]])
        change = np.concatenate([K, by_length], axis=2)[0] / weight
        J = np.concatenate([change, reach[sensors.velocity], soft * reach[whole.velocity]])
        step = reach @ np.linalg.lstsq(J, miss, rcond=1e-9)[0]
        size = float(np.linalg.norm(step))
        if size < 1e-12:
            break
        q = moved(robot.robot, q, step[None] * min(1.0, _LARGEST / size))
    return q, left


def _rested(
    robot: LockedCables, q: Float[Array, "k q"], lengths: Float[Array, "c"], downhill: Bool[Array, "k"]
) -> tuple[Float[Array, "k q"], Bool[Array, "k"]]:
    """Newton steps on the potential energy; where `downhill`, always against its gradient."""
    many = np.repeat(lengths[None], len(q), axis=0)
    rests = np.zeros(len(q), dtype=bool)
    weight = _weight(robot, q)
    for _ in range(_STEPS):
        at = np.flatnonzero(~rests)
        if not len(at):
            break
        efforts, K, _ = robot.still.stiffness(q[at])
        N, mass = robot.still.freedoms.tangent(q[at]), _mass(robot, q[at])
        mu, modes = _modes(K, mass)
        curved = np.where(downhill[at, None], np.abs(mu), mu)
        floor = 1e-6 * np.abs(mu).max(axis=1, keepdims=True) + 1e-300
        curved = np.where(np.abs(curved) < floor, floor, curved)
        along = np.einsum("nvd,nde,ne->nv", N, modes, -np.einsum("nde,nd->ne", modes, efforts) / curved)
        size = np.linalg.norm(along / robot.assembly.units, axis=1, keepdims=True)
        step = along * np.minimum(1.0, _LARGEST / np.maximum(size, 1e-300))
        tried, reached = robot.closed(moved(robot.robot, q[at], step), many[at])
        left = np.abs(efforts).max(axis=1) / weight
        rests[at] = (left < _RESTS) & (size[:, 0] < 1e-7)
        q[at] = np.where((reached & ~rests[at])[:, None], tried, q[at])
    return q, rests


def reduced_modes(
    robot: LockedCables, q: Float[Array, "n q"]
) -> tuple[Float[Array, "n d"], Float[Array, "n d d"]]:
    """Squares of angular frequencies, ascending, and shapes in the directions of `robot.still`."""
    return _modes(robot.still.stiffness(q)[1], _mass(robot, q))


def _modes(
    K: Float[Array, "n d d"], mass: Float[Array, "n d d"]
) -> tuple[Float[Array, "n d"], Float[Array, "n d d"]]:
    """Squares of angular frequencies, ascending, and shapes of unit modal mass."""
    inverse = inv(cholesky(mass))
    even = inverse @ (0.5 * (K + np.swapaxes(K, 1, 2))) @ np.swapaxes(inverse, 1, 2)
    mu, vectors = eigh(even)
    return mu, np.swapaxes(inverse, 1, 2) @ vectors


def _mass(robot: LockedCables, q: Float[Array, "k q"]) -> Float[Array, "k d d"]:
    none = np.zeros((len(q), len(robot.robot.coordinates)))
    return robot.still.accelerations(q, none, np.zeros((len(q), len(robot.robot.actuators)))).mass


def _weight(robot: LockedCables, q: Float[Array, "k q"]) -> float:
    """Size of the efforts of gravity, in [N] or [N m]."""
    none = np.zeros((len(q), len(robot.robot.coordinates)))
    size = float(np.abs(robot.dynamics.inverse(q, none, none)).max())
    if not size > 0.0:
        raise InputError(
            f"robot '{robot.robot.name}' has no weight, so its equilibrium is not defined",
            remedy="give it mass and gravity",
        )
    return size


def _equilibrium(robot: LockedCables, q: Float[Array, "1 q"], lengths: Float[Array, "c"]) -> Equilibrium:
    none = np.zeros((1, len(robot.robot.coordinates)))
    mu, _ = reduced_modes(robot, q)
    energy = float(robot.energy(q, none)[0])
    return Equilibrium(q[0], np.array(lengths), robot.tensions(q, none, none)[0], mu[0], energy)


def _checked(robot: LockedCables, lengths: Float[Array, "c"]) -> Float[Array, "c"]:
    lengths = np.asarray(lengths, dtype=float)
    if lengths.shape != (len(robot.cables),):
        raise InputError(
            f"{lengths.size} lengths for {len(robot.cables)} cables ({', '.join(robot.cables)})",
            remedy="give one length for every cable, in file order",
        )
    if not np.all(lengths > 0.0):
        k = int(np.argmin(lengths))
        raise InputError(
            f"cable '{robot.cables[k]}' cannot have length {lengths[k]:g} m",
            remedy="give a positive length in m",
        )
    return lengths


def _onto(
    robot: LockedCables, starts: Float[Array, "k q"], lengths: Float[Array, "c"]
) -> Float[Array, "k q"]:
    """Starts that could be moved onto the lengths; an error if there are none."""
    q, reached = robot.closed(starts, lengths)
    if not reached.any():
        raise _no_pose(robot, q, lengths)
    return q[reached]


def _first(robot: LockedCables, lengths: Float[Array, "c"]) -> Float[Array, "q"]:
    """A pose with given lengths: directly, or in steps from the lengths of the start pose."""
    starts = np.concatenate([robot.assembly.start[None], robot.assembly.samples])
    q, reached = robot.closed(starts, lengths)
    if not reached.any():
        way, q = robot.lengths(starts), starts
        for k in range(1, _HOMOTOPY + 1):
            q, reached = robot.closed(q, way + k / _HOMOTOPY * (lengths - way))
    if not reached.any():
        raise _no_pose(robot, q, lengths)
    return np.asarray(q[int(np.argmax(reached))])


def _no_pose(robot: LockedCables, q: Float[Array, "k q"], lengths: Float[Array, "c"]) -> InputError:
    gaps = robot.lengths(q) - lengths
    best = gaps[int(np.argmin(np.abs(gaps).max(axis=1)))]
    k = int(np.argmax(np.abs(best)))
    how = "short" if best[k] > 0.0 else "long"
    shown = ", ".join(f"{length:.6g}" for length in lengths)
    return InputError(
        f"no pose of robot '{robot.robot.name}' was found with cable lengths {shown} m: in the best pose"
        f" cable '{robot.cables[k]}' is too {how} by {abs(best[k]):.3g} m",
        remedy="check unit, order and zero of the lengths",
    )


@dataclass(frozen=True, eq=False)
class Mode:
    """One undamped oscillation.

    Attributes:
        frequency: In [Hz].
        shape: Velocity ratios of all coordinates of the locked robot, the largest 1, shape
            (v,): world x y z in [m/s], rotation about the body axes in [rad/s] for a free platform.
        words: The same as text.
    """

    frequency: float
    shape: Float[Array, "v"]
    words: str


def modes(robot: LockedCables, equilibrium: Equilibrium) -> tuple[Mode, ...]:
    """The modes of a stable equilibrium, the slowest first."""
    if not equilibrium.stable:
        worst = equilibrium.stiffness[0]
        raise NoResultError(
            "the equilibrium is unstable: a small displacement grows"
            + (f" {np.exp(1.0):.3g}-fold every {1.0 / np.sqrt(-worst):.3g} s" if worst < 0.0 else "")
        )
    q = equilibrium.q[None]
    mu, along = reduced_modes(robot, q)
    shapes = (robot.still.freedoms.tangent(q) @ along)[0].T
    listed = []
    for square, shape in zip(mu[0], shapes, strict=True):
        shape = shape / shape[int(np.argmax(np.abs(shape)))]
        frequency = float(np.sqrt(square) / (2.0 * np.pi))
        listed.append(Mode(frequency, shape, _words(frequency, shape, robot.robot.coordinates)))
    return tuple(listed)


def _words(frequency: float, shape: Float[Array, "v"], names: Sequence[str]) -> str:
    order = [i for i in np.argsort(-np.abs(shape), kind="stable") if abs(shape[i]) >= _SHOWN]
    parts = [f"{names[i]} {shape[i]:+.2f}" for i in order]
    return f"{frequency:.4g} Hz: {', '.join(parts)}"
