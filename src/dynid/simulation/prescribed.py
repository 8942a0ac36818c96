"""Simulated logs: efforts of the inverse model along a motion, then encoders and noise.

    effort_map tau = N^T W_tree(q, dq, ddq) chi_true        (closed robots: see `efforts`)

The log contains what a real recorder would measure: positions in encoder steps, efforts
with noise. Friction, rotor inertia and offsets act through their columns of W.

Simulated log of a force/torque sensor on a moving arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.excitation.closed import ClosedMotion, ClosedStates, closed_states
from dynid.excitation.efforts import closed_efforts, internal_tension, strain_along
from dynid.excitation.friction import ExtraFriction
from dynid.excitation.series import Trajectory
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.force_sensor import COMPONENTS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table
from dynid.motion.log import Log
from dynid.motion.logs import log_from_arrays
from dynid.projection.inverse import inverse_directions
from dynid.projection.load import simulated_loads
from dynid.projection.sensor import SensorColumns, frame_motion
from dynid.regressor.regressor import tree_matrix
from dynid.simulation.sensors import Course, Per, Sensing, recorded

_BLOCK = 4096  # samples: keeps the dense regressor of a block below some tens of megabytes
_IDLE_RTOL = 1e-9  # of the largest effort: rounding of the projection


def inverse_efforts(
    mechanism: Mechanism,
    chi_true: Float[Array, "p"] | Mapping[str, float],
    q: Float[Array, "n m"],
    dq: Float[Array, "n m"],
    ddq: Float[Array, "n m"],
    mounted: tuple[str, ...] = (),
    resist: Float[Array, "n v"] | None = None,
    tension: Float[Array, "n a"] | None = None,
    *,
    underactuated: bool = False,
) -> Float[Array, "n a"]:
    """Efforts of all actuators at measured positions and their derivatives, minimum norm if redundant.

    Args:
        mechanism: The robot.
        chi_true: All standard parameters, in the order of the table or by name, SI.
        q: Measured positions, shape (n, m), in [rad] or [m].
        dq: Their rates, shape (n, m), per s.
        ddq: Their second rates, shape (n, m), per s^2.
        mounted: Payloads on the robot.
        resist: Additional efforts against each tree coordinate, shape (n, v), in [N m] or [N].
        tension: See `internal_tension`, shape (n, a), in [N m] or [N]; it also loads the joints.
        underactuated: Whether joints may have no motor; what they require is then left out.

    Returns:
        In the order of the actuators, shape (n, a), in [N m] or [N].
    """
    chi = parameter_vector(mechanism, chi_true)
    if mechanism.is_closed:
        states = _assembled(mechanism, q, dq, ddq)
        return closed_efforts(mechanism, chi, states, mounted, tension, resist, underactuated=underactuated)
    directions = inverse_directions(mechanism)
    coordinates = coordinate_map(mechanism)
    G, tree = coordinates.velocities, coordinates.tree_states(q, dq, ddq)
    loads = simulated_loads(mechanism, parameter_table(mechanism), chi, mounted)
    blocks = []
    for i in range(0, len(q), _BLOCK):
        q_tree, dq_tree, ddq_tree = (x[i : i + _BLOCK] for x in tree)
        load = loads(q_tree, dq_tree, ddq_tree, G, None if tension is None else tension[i : i + _BLOCK])
        blocks.append(tree_matrix(mechanism, q_tree, dq_tree, ddq_tree, directions.N, mounted, load) @ chi)
    rows = np.concatenate(blocks)
    if resist is not None:
        rows = rows + resist @ directions.N
    tau = rows @ np.linalg.pinv(directions.effort_map).T
    left = np.abs(rows - tau @ directions.effort_map.T).max(axis=0)
    if np.any(left > _IDLE_RTOL * np.abs(rows).max()) and not underactuated:
        idle = directions.names[int(np.argmax(left))]
        raise InputError(
            f"'{idle}' has no actuator, so it cannot follow a prescribed motion",
            file=mechanism.file,
            remedy="add an actuator; or use engine dynid or mujoco, where passive joints move by themselves",
        )
    return np.asarray(tau if tension is None else tau + tension)


def parameter_vector(
    mechanism: Mechanism, values: Float[Array, "p"] | Mapping[str, float]
) -> Float[Array, "p"]:
    """All standard parameters in the order of the table, from a vector or from names."""
    names = [parameter.name for parameter in parameter_table(mechanism)]
    if not isinstance(values, Mapping):
        chi = np.asarray(values, float)
        if chi.shape != (len(names),):
            raise InputError(f"{chi.shape} values do not match {len(names)} standard parameters")
        return chi
    for name in values:
        if name not in names:
            raise InputError(f"no parameter '{name}'" + nearest(name, names))
    missing = [name for name in names if name not in values]
    if missing:
        raise InputError(f"{len(missing)} parameters have no value: {', '.join(missing[:8])}")
    return np.array([values[name] for name in names], float)


def simulate_log(
    mechanism: Mechanism,
    chi_true: Float[Array, "p"] | Mapping[str, float],
    motion: Trajectory,
    *,
    rate: float,
    duration: float,
    encoder_resolution: Per = 0.0,
    torque_sigma: Per = 0.0,
    seed: int = 0,
    velocity: bool = False,
    tau_coloured: float | None = None,
    payloads: tuple[str, ...] = (),
    tension: float = 0.0,
    name: str = "simulated",
) -> Log:
    """The log of a robot with parameters `chi_true` along a motion of its measured coordinates.

    Args:
        mechanism: The robot.
        chi_true: All standard parameters, in the order of the table or by name, SI.
        motion: Of the measured coordinates, e.g. a `FourierMotion`.
        rate: Sampling rate, in [Hz].
        duration: In [s]; both ends are sampled.
        encoder_resolution: Of the positions, one or per coordinate, in [rad] or [m]; 0: none.
        torque_sigma: Standard deviation of the effort noise, one or per actuator, in [N m] or [N].
        seed: Of the noise.
        velocity: Whether the exact velocities are also logged.
        tau_coloured: Correlation of the noise from one sample to the next, 0 to 1; None: white.
        payloads: Mounted during the recording.
        tension: Internal tension of a redundantly actuated closed robot, see `internal_tension`,
            in [N m] or [N].
        name: Of the log.
    """
    t = np.arange(round(duration * rate) + 1) / rate
    course = prescribed_course(mechanism, chi_true, motion, t, payloads, tension)
    sensing = Sensing(
        resolution=encoder_resolution, effort_sigma=torque_sigma, correlation=tau_coloured, velocity=velocity
    )
    return recorded(course, sensing, np.random.default_rng(seed)).log(mechanism, payloads, name)


def prescribed_course(
    mechanism: Mechanism,
    chi_true: Float[Array, "p"] | Mapping[str, float],
    motion: Trajectory,
    t: Float[Array, "n"],
    payloads: tuple[str, ...] = (),
    tension: float = 0.0,
    friction: ExtraFriction | None = None,
    changes: Sequence[tuple[float, tuple[str, ...]]] = (),
) -> Course:
    """The course of a robot that follows a motion exactly, with the efforts of the inverse model.

    Args:
        mechanism: The robot.
        chi_true: All standard parameters, in the order of the table or by name, SI.
        motion: Of the measured coordinates.
        t: Evenly spaced, shape (n,), in [s].
        payloads: Mounted at the beginning.
        tension: Of a redundantly actuated closed robot, see `internal_tension`, in [N m] or [N].
        friction: In addition to the drive terms.
        changes: Times [s], increasing, and the payloads mounted from then on.
    """
    chi = parameter_vector(mechanism, chi_true)
    states: ClosedStates | None = None
    strain: Float[Array, "n a"] | None = None
    if mechanism.is_closed:
        (q, dq, ddq), states = closed_motion(mechanism, motion, t)
        strain = strain_along(mechanism, states.N, t, tension)
        dq_tree = states.dq
    else:
        q, dq, ddq = motion.q(t), motion.dq(t), motion.ddq(t)
        dq_tree = coordinate_map(mechanism).tree_states(q, dq, ddq)[1]
        strain = tree_tension(mechanism, t, tension) if tension else None
    resist = None
    if friction is not None and friction.owners:
        resist = friction.along(dq_tree @ friction.D.T, float(t[1] - t[0])) @ friction.D
    tau = np.zeros((len(t), len(mechanism.actuators)))
    for mounted, rows in payload_phases(t, payloads, changes):
        drag, pull = (None if x is None else x[rows] for x in (resist, strain))
        if states is None:
            tau[rows] = inverse_efforts(mechanism, chi, q[rows], dq[rows], ddq[rows], mounted, drag, pull)
            continue
        part = ClosedStates(*(x[rows] for x in (states.q, states.dq, states.ddq, states.N)))
        tau[rows] = closed_efforts(mechanism, chi, part, mounted, pull, drag)
    return Course(t, q, dq, ddq, tau)


def tree_tension(mechanism: Mechanism, t: Float[Array, "n"], size: float) -> Float[Array, "n a"]:
    """Internal tension of a tree with more motors than joints; arguments as for `internal_tension`."""
    N = coordinate_map(mechanism).velocities
    return internal_tension(mechanism, np.broadcast_to(N, (len(t), *N.shape)), t, size)


def payload_phases(
    t: Float[Array, "n"], payloads: tuple[str, ...], changes: Sequence[tuple[float, tuple[str, ...]]] = ()
) -> list[tuple[tuple[str, ...], slice]]:
    """Ranges of samples with the payloads mounted in each; `changes` as for `prescribed_course`."""
    times = [time for time, _ in changes]
    starts = [0, *np.searchsorted(t, times).tolist()]
    stops = [*starts[1:], len(t)]
    mounted = [payloads, *(names for _, names in changes)]
    rows = zip(mounted, starts, stops, strict=True)
    return [(names, slice(start, stop)) for names, start, stop in rows if start < stop]


def closed_motion(
    mechanism: Mechanism, motion: Trajectory, t: Float[Array, "n"]
) -> tuple[tuple[Array, Array, Array], ClosedStates]:
    """Measured coordinates with rates, and all coordinates, along a motion of a closed robot.

    A motion of the robot with a guiding chain has more coordinates than the robot: it is measured first.
    """
    if isinstance(motion, ClosedMotion) and motion.mechanism.positions == mechanism.positions:
        states = motion.states(t)
        return motion.measured(states), states
    measured = motion.q(t), motion.dq(t), motion.ddq(t)
    return measured, _assembled(mechanism, *measured)


def _assembled(mechanism: Mechanism, q: Array, dq: Array, ddq: Array) -> ClosedStates:
    """All coordinates from the measured ones."""
    return closed_states(mechanism, sensors_of(mechanism, mechanism.measured_positions), q, dq, ddq)


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
