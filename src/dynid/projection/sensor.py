"""Model `wrench` of a force/torque sensor: its equations along a log, and at random motions.

Columns of a force sensor's equations: six rows per sample in the axes of the sensor.

    s W(omega, dV) chi_tool + bias + J (x - x0) = measured,        J = d(s W chi0)/dx at x0

x are the unknown angles (mounting, direction of gravity), linearised at x0 (`ForceSensor.place`); the
parameters of their columns are corrections x - x0. Without `load_parameters` chi0, J is zero (no tool).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Inexact, Int
from dynid.common.notices import Notice
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import Measured, coordinate_map
from dynid.kinematics.tree import body_motion, tree_of
from dynid.mechanism.force_sensor import COMPONENTS, UNITS, ForceSensor, Run, run_bias
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.factor import Factor, factor_rows, merge
from dynid.projection.kinematics import kinematics_along
from dynid.projection.model import MOUNTED, LogRows, Model
from dynid.projection.projection import Directions
from dynid.projection.structure import random_states
from dynid.regressor.layout import ABSENT, Layout
from dynid.regressor.wrench import wrench_regressor

_SEED = 20021118
_STATES = 120


def sensor_directions(mechanism: Mechanism) -> Directions:
    """The six components of the wrench; each acts on its own rigid joint."""
    places = [mechanism.coordinates.index(name) for name in COMPONENTS]
    return Directions(COMPONENTS, UNITS, np.eye(len(mechanism.coordinates))[:, places], np.eye(6))


class SensorRows(LogRows):
    """Equations of a force/torque sensor along one log."""

    def _prepare(self) -> None:
        mechanism, motion = self.mechanism, self.motion
        self.present = [COMPONENTS.index(name) for name in self.directions.names]
        payloads = motion.log.payloads
        self.columns = SensorColumns(mechanism, self.parameters, self.present, payloads, self.load_parameters)
        self.layout = self.columns.layout
        self.frames = sensor_frames(mechanism, motion)
        self.notices, self.choices = self.frames.notices, self.frames.choices
        sensor = self.columns.sensor
        self._limits = None if sensor.limits is None else np.repeat(sensor.limits, 3)
        runs = sensor.runs
        self._runs = np.array([_number(runs, motion, start) for start, _ in motion.log.segments])

    def run_of(self, start: int, stop: int) -> Int[Array, "n"]:
        """Number of the run of each sample."""
        at = np.arange(start, stop)
        first = np.array([low for low, _ in self.motion.log.segments])
        return self._runs[np.searchsorted(first, at, side="right") - 1]

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        moved = self.frames.along(start, self.motion.states(start, stop))
        log = self.motion.log
        measured = np.nan_to_num(log.tau[start:stop])
        usable = (log.valid[start:stop] & moved.fine)[:, None] & np.isfinite(log.tau[start:stop])
        if self._limits is not None:
            usable &= np.abs(measured) < self._limits
        run = self.run_of(start, stop)
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            tile_motion = SensorMotion(moved.R[part], moved.omega[part], moved.dV[part], moved.fine[part])
            weights = usable[part][:, self.present].T.astype(float)
            yield start + at, self.columns.packed(tile_motion, measured[part], run[part]), weights


def _number(runs: Sequence[Run], motion: Motion, start: int) -> int:
    """Which of the runs a segment is; -1: none."""
    log = motion.log
    numbers = (k for k, run in enumerate(runs) if run.is_of(log.name, float(log.t[start]), log.dt))
    return next(numbers, -1)


def sensor_structure(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = 4.0,  # not used: few states are drawn anyway
    seed: int = _SEED,
) -> Factor:
    """Factor of rows at random feasible motions of the robot (with an IMU: any); Y is zero."""
    rng = np.random.default_rng(seed)
    names = COMPONENTS if directions is None else directions.names
    rows = [COMPONENTS.index(name) for name in names]
    load_parameters = rng.normal(size=len(parameters))
    sensor = mechanism.force_sensor
    runs = len(sensor.runs) if sensor is not None else 0
    factors = []
    for mounted in dict.fromkeys(loads):
        columns = SensorColumns(mechanism, parameters, rows, mounted, load_parameters)
        moved = random_motion(mechanism, rng, max(_STATES, 24 * runs), stretch)
        n = len(moved.omega)
        run = np.arange(n) % runs if runs else np.full(n, -1)
        packed = columns.packed(moved, np.zeros((n, 6)), run)
        W = columns.layout.dense(packed, len(parameters)).reshape(-1, len(parameters))
        factors.append(factor_rows(W, np.zeros(len(W))))
    return merge(factors)


# Chosen by a force sensor, not by name: its file key is that of wrenches.
FORCE_SENSOR = Model(
    "force_sensor",
    "six equations per sample, for the load on a force sensor",
    sensor_directions,
    SensorRows,
    sensor_structure,
    case="force_sensor",
    key=MOUNTED["force_sensor"],
    row_names=COMPONENTS,
    measures="reading",
    effort_rows=True,
)


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


_TINY = 1e-30  # of a complex step: exact to rounding


class SensorColumns:
    """Columns of the sensor's equations for any motion of its frame.

    Args:
        mechanism: With a force sensor.
        parameters: Standard parameters, one per column.
        rows: Which of the six components are requested.
        mounted: Payloads on the tool.
        load_parameters: Values of the bodies that the angles rotate, shape (p,), SI; None: no body.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        rows: Sequence[int],
        mounted: Sequence[str] = (),
        load_parameters: Float[Array, "p"] | None = None,
    ) -> None:
        sensor = mechanism.force_sensor
        if sensor is None:
            raise TypeError("a robot without force sensor has no such rows")
        self.sensor, self.gravity, self.rows = sensor, np.asarray(mechanism.gravity, float), list(rows)
        index = {parameter.name: i for i, parameter in enumerate(parameters)}
        self._maps = _carried(mechanism, index, mounted)
        chi = np.zeros(len(parameters)) if load_parameters is None else np.asarray(load_parameters, float)
        self._ten = sum((T @ _picked(chi, columns) for columns, T in self._maps), np.zeros(10))
        self._angles = [index[name] for name in sensor.angles]
        self.x = sensor.place()
        self._constant = [index.get(f"Off_{name}", ABSENT) for name in COMPONENTS]
        self._runs = [[index.get(run_bias(name, run), ABSENT) for name in COMPONENTS] for run in sensor.runs]
        self.layout = self._layout()

    def _layout(self) -> Layout:
        """Entries of a row: the carried bodies', the angles', its biases, Y."""
        shared = [c for columns, _ in self._maps for c in columns] + self._angles
        columns: list[int] = []
        start = [0]
        for row in self.rows:
            columns += [*shared, self._constant[row], *(run[row] for run in self._runs), ABSENT]
            start.append(len(columns))
        return Layout(np.array(start), np.array(columns))

    def wrench(self, motion: SensorMotion, x: Inexact[Array, "a"]) -> Inexact[Array, "n 6 10"]:
        """Matrix s W for angles x, over ten parameters in the axes of the sensor as mounted."""
        sensor = self.sensor
        dV = motion.dV.astype(np.result_type(x, float))
        if sensor.gravity != "known":
            change = self.gravity - sensor.tilted(x, self.gravity)
            dV[:, :3] += np.einsum("nji,j->ni", motion.R, change)
        Q = sensor.mounting_rotation(x)
        omega = (motion.omega @ Q)[:, None]
        dV = np.concatenate([dV[:, :3] @ Q, dV[:, 3:] @ Q], axis=1)[:, None]
        return np.asarray(sensor.factor * wrench_regressor(omega, dV)[:, 0])

    def loaded(self, motion: SensorMotion) -> Float[Array, "n 6"]:
        """Sensor reading predicted from the given parameter values, without bias, in [N, N m]."""
        return np.asarray(self.wrench(motion, self.x) @ self._ten)

    def slopes(self, motion: SensorMotion) -> Float[Array, "n 6 a"]:
        """J: derivative of the measured wrench with respect to each angle, in [N/rad, N m/rad]."""
        J = np.zeros((len(motion.omega), 6, len(self.x)))
        for k in range(len(self.x)):
            x = self.x.astype(complex)
            x[k] += 1j * _TINY
            J[:, :, k] = (self.wrench(motion, x) @ self._ten).imag / _TINY
        return J

    def packed(
        self, motion: SensorMotion, measured: Float[Array, "n 6"], run: Int[Array, "n"]
    ) -> Float[Array, "e n"]:
        """Entries of all rows, shape (e, n).

        Args:
            measured: As logged, shape (n, 6), in [N, N m].
            run: Which bias of the runs each sample has; -1: their mean.
        """
        n = len(measured)
        W, J = self.wrench(motion, self.x), self.slopes(motion)
        shared = np.concatenate([*(W @ T for _, T in self._maps), J], axis=2)
        share = np.zeros((n, len(self._runs)))
        if self._runs:
            share[run < 0] = 1.0 / len(self._runs)
            share[np.flatnonzero(run >= 0), run[run >= 0]] = 1.0
        width = self.layout.start[1]
        out = np.empty((len(self.rows), width, n))
        for k, row in enumerate(self.rows):
            s = shared.shape[2]
            out[k, :s] = shared[:, row].T
            out[k, s] = 1.0
            out[k, s + 1 : -1] = share.T
            out[k, -1] = measured[:, row]
        return out.reshape(-1, n)


def _picked(chi: Float[Array, "p"], columns: Sequence[int]) -> Float[Array, "10"]:
    return np.array([0.0 if c == ABSENT else chi[c] for c in columns])


def _carried(
    mechanism: Mechanism, index: dict[str, int], mounted: Sequence[str]
) -> list[tuple[list[int], Float[Array, "10 10"]]]:
    """Columns of the tool and of mounted payloads, and the map of their ten to those in sensor axes."""
    tool = mechanism.force_sensor.tool if mechanism.force_sensor is not None else ""
    carried = [(tool, np.eye(10))]
    for name in mounted:
        frame = mechanism.payloads[name].frame
        carried.append((name, np.column_stack([in_parent_frame(e, frame.R, frame.p) for e in np.eye(10)])))
    return [([index.get(f"{s}_{name}", ABSENT) for s in SYMBOLS], T) for name, T in carried]
