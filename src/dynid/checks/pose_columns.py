"""Test columns that need the poses behind the rows, of trees and closed robots alike.

Rows N(q)^T (B tau - W chi) = 0 hold at the true pose. A measured joint whose zero is off by s has

z = d/dq_j [ N^T W chi - N^T B tau ]

which moves the whole robot through its loops. A dimension that is off by s has d/ds of the robot instead of
d/dq_j. Directions N depend on the pose, which affects other suspects too: delayed efforts are projected on
the present directions,

N^T B tau(t - s) = Y - s (dY/dt - (dN/dt)^T B tau)

and a row with several motors has a part N^T B_i tau_i of each, the test column for the gain of
motor i. Rows are linear in gravity, so a gravity that is wrong by s along e has

z = (W(g + e) - W(g)) chi,        e two horizontal unit vectors and the one along g

and the readings f of a force sensor rotated by a small vector s change by z = -e x f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dynid.checks.sampled import Sampled, everywhere, means
from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.change import rounded
from dynid.common.errors import DynidError
from dynid.common.notices import Notice, notice
from dynid.kinematics.coordinates import States
from dynid.mechanism.force_sensor import level_axes
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.constant_rows import TreeRows
from dynid.projection.energy import EnergyRows
from dynid.projection.kinematics import ClosedKinematics
from dynid.projection.model import RowSource
from dynid.projection.pose_rows import MovingRows
from dynid.projection.power import power_directions
from dynid.projection.sensor import SensorColumns, SensorMotion, SensorRows

# [rad] or [m]: forward difference over a joint zero. Its error is half a step times the curvature, about ten
# times the slope, and 1e-12 of closure over the step: together 5e-6 of the column (5e-5 with a step of 1e-5).
STEP = 1e-6
TILTED = 3.0  # degrees: what is less may be a base that was not levelled
LARGER = 0.03  # of gravity: its size is wrong too
_JOINTS = (JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.UNIVERSAL)

# Error W chi - Y of some rows with a joint moved by a step, and where its pose could be reached, shapes
# (k, s) and (s,).
_Error = Callable[[TreeRows | MovingRows, int, float], tuple[Float[Array, "k s"], Bool[Array, "s"]]]
Measured = tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]


# Columns at consecutive rows, unit of the row: d(W chi - Y) over joint zeros, then dimensions, (k, m + d, n),
# per rad or m; the part of each motor in rows with several, (k, a, n); gravity, per m/s^2, and force sensor,
# per rad, (k, t, n). And the drift of the directions, (dN/dt)^T B tau, (k, n).
Columns = tuple[tuple[Sampled, Sampled, Sampled], Float[Array, "k n"]]


class PoseColumns:
    """What is tested along a log, and the columns of its rows.

    Args:
        robots: Dimension -> the robot with it changed by a step, see `resized_robots`.
        source: Rows of the log.
        parameters: Standard parameters, one per column.
        chi: Their values, shape (p,), SI.
        thin: Zeros are computed at one sample in so many and interpolated.

    Attributes:
        joints: Measured joints whose zeros are tested.
        sizes: Dimensions.
        motors: Those whose gains are tested one by one: of rows with several motors.
        turns: What may be turned (`gravity`, `mounting`), with three columns each.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        robots: Mapping[str, Mechanism],
        source: RowSource,
        parameters: tuple[Parameter, ...],
        chi: Float[Array, "p"],
        thin: int,
    ) -> None:
        self.source, self._thin, self._chi = source, max(1, thin), chi
        self._rows = _pose_rows(mechanism, source, parameters)
        self._k = len(source.directions.names)
        measured = source.motion.log.position_names if self._rows is not None else ()
        known = mechanism.joint_of_coordinate
        self._places = [i for i, name in enumerate(measured) if name in known and known[name].kind in _JOINTS]
        self.joints = tuple(measured[i] for i in self._places)
        shared = np.any(np.count_nonzero(source.directions.effort_map, axis=1) > 1)
        moving = isinstance(self._rows, MovingRows)
        self._resized = _resized_rows(robots, self._rows)
        self.sizes = tuple(self._resized)
        self.motors = source.motion.log.effort_names if shared and moving else ()
        self._B = mechanism.actuator_map
        self.turns: tuple[str, ...] = ()
        self._sensor: SensorColumns | None = None
        if isinstance(source, SensorRows):
            self._sensor = SensorColumns(
                mechanism, parameters, source.present, source.motion.log.payloads, chi
            )
            self.turns = ("mounting",) if self._sensor.sensor.imu is not None else ("gravity", "mounting")
        self._axes = gravity_axes(mechanism.gravity)
        if self._rows is not None:
            self.turns = ("gravity",)
            turned = (replace(mechanism, gravity=mechanism.gravity + e) for e in self._axes)
            self._turned = [self._rows.under(tilted) for tilted in turned]

    def between(self, start: int, stop: int) -> Columns:
        """Columns of the rows of samples start .. stop."""
        n = stop - start
        if self._rows is None:
            none = np.zeros((self._k, 0, n))
            turned = none if self._sensor is None else self._sensor_turns(self._sensor, start, stop)
            return (everywhere(none), everywhere(none), everywhere(turned)), np.zeros((self._k, n))
        if not isinstance(self.source, EnergyRows):
            return self._samples(start, stop)
        rule = self.source.quadrature
        (zeros, motors, turns), drift = self._samples(start - rule.before, stop + rule.after)
        averaged = means(rule, zeros), means(rule, motors), means(rule, turns)
        return averaged, means(rule, everywhere(drift[:, None]))[1][:, 0]

    def _sensor_turns(self, columns: SensorColumns, start: int, stop: int) -> Float[Array, "k t n"]:
        """Columns of gravity (if joints give the orientation) and of the orientation of the sensor."""
        assert isinstance(self.source, SensorRows)  # noqa: S101 (made for it alone)
        moved = self.source.frames.along(start, self.source.motion.states(start, stop))
        wrench = columns.loaded(moved)
        changes = []
        if "gravity" in self.turns:
            for e in self._axes:
                dV = moved.dV.copy()
                dV[:, :3] -= np.einsum("nji,j->ni", moved.R, e)
                changes.append(columns.loaded(SensorMotion(moved.R, moved.omega, dV, moved.fine)) - wrench)
        parts = wrench.reshape(-1, 2, 3)
        changes += [-np.cross(e, parts).reshape(-1, 6) for e in np.eye(3)]
        return np.ascontiguousarray(np.stack(changes, axis=2)[:, columns.rows].transpose(1, 2, 0))

    def _samples(self, start: int, stop: int) -> Columns:
        measured = self.source.motion.states(start, stop)
        tau = np.nan_to_num(self.source.motion.log.tau[start:stop])
        n = stop - start
        at = np.unique(np.append(np.arange(0, n, self._thin), n - 1))
        if isinstance(self._rows, TreeRows):
            zeros = self._slopes(at, self._rows, self._tree_error(at, measured))
            turns = self._tree_turns(self._rows, at, measured)
            return (zeros, everywhere(np.zeros((self._k, 0, n))), turns), np.zeros((self._k, n))
        assert isinstance(self._rows, MovingRows)  # noqa: S101 (one of two kinds)
        states = self._states(self._rows, start, at, measured)
        zeros = self._slopes(at, self._rows, self._closed_error(start, at, measured, states, tau))
        turns = self._closed_turns(self._rows, at, states)
        motors, drift = self._acting(at, states, tau)
        return (zeros, everywhere(motors), turns), drift

    def _states(self, rows: MovingRows, start: int, at: Int[Array, "s"], measured: Measured) -> States:
        """States at some samples, with N of the rows."""
        if isinstance(rows.kinematics, ClosedKinematics):
            states = rows.kinematics.states(start, measured, at)
        else:
            q, dq, ddq = (x[at] for x in measured)
            states = rows.kinematics.states(start, (q, dq, ddq))
        return replace(states, N=self._directions(rows, start, states))

    def _acting(
        self, at: Int[Array, "s"], states: States, tau: Float[Array, "n a"]
    ) -> tuple[Float[Array, "k w n"], Float[Array, "k n"]]:
        """Parts of the motors in rows with several, and the drift (dN/dt)^T B tau.

        B^T N is smooth: it is interpolated, the efforts are not. It is constant where a row is one motor's.
        """
        fine, n = states.fine, len(tau)
        none = np.zeros((self._k, len(self.motors), n)), np.zeros((self._k, n))
        if np.count_nonzero(fine) < 2:
            return none
        acting = (self._B @ states.N[fine]).transpose(2, 1, 0)  # (k, a, s)
        rate = np.gradient(acting, at[fine] * self.source.dt, axis=2)
        drift = np.einsum("kan,na->kn", _between(at[fine], rate, n), tau) if rate.any() else none[1]
        motors = len(self.motors)
        parts = _between(at[fine], acting[:, :motors], n) * tau.T[:motors] if motors else none[0]
        return parts, drift

    def _tree_turns(self, rows: TreeRows, at: Int[Array, "s"], measured: Measured) -> Sampled:
        """What a unit of gravity along each axis adds to the rows of a tree."""
        sampled = measured[0][at], measured[1][at], measured[2][at]
        turned = [tilted for tilted in self._turned if isinstance(tilted, TreeRows)]
        known = [tilted.model(sampled, self._chi) for tilted in (rows, *turned)]
        changes = [predicted - known[0] for predicted in known[1:]]
        return at, np.stack(changes, axis=1)

    def _closed_turns(self, rows: MovingRows, at: Int[Array, "s"], states: States) -> Sampled:
        """The same for rows whose directions follow the pose."""
        turned = [tilted.regressor for tilted in self._turned if isinstance(tilted, MovingRows)]
        moved = (states.q, states.dq, states.ddq, self._chi)
        known = [model.efforts(*moved) for model in (rows.regressor, *turned)]
        changes = [np.einsum("nvk,nv->kn", states.N, forces - known[0]) for forces in known[1:]]
        return at, np.stack(changes, axis=1)

    def _directions(self, rows: MovingRows, start: int, states: States) -> Float[Array, "n v k"]:
        N = np.zeros((len(states.dq), states.dq.shape[1], len(rows.directions.names)))
        N[states.fine] = rows.tangents(start, states.N[states.fine], states.dq[states.fine])
        return N

    def _slopes(self, at: Int[Array, "s"], rows: TreeRows | MovingRows, error: _Error) -> Sampled:
        """Slope of the error over each joint, then over each dimension, past poses out of reach."""
        changes = [(rows, place, STEP) for place in self._places]
        changes += [(other, 0, 0.0) for other in self._resized.values()]
        slopes = np.zeros((self._k, len(changes), len(at)))
        nominal, known = error(rows, 0, 0.0)
        for j, change in enumerate(changes):
            shifted, reached = error(*change)
            slope, fine = (shifted - nominal) / STEP, known & reached
            if fine.all():
                slopes[:, j] = slope
            elif fine.any():
                slopes[:, j] = [np.interp(at, at[fine], values) for values in slope[:, fine]]
        return at, slopes

    def _tree_error(self, at: Int[Array, "s"], measured: Measured) -> _Error:
        """W chi of a tree with a joint moved; the measured side does not depend on the pose."""
        q, dq, ddq = (x[at] for x in measured)

        def error(
            rows: TreeRows | MovingRows, joint: int, step: float
        ) -> tuple[Float[Array, "k s"], Bool[Array, "s"]]:
            assert isinstance(rows, TreeRows)  # noqa: S101 (of a tree)
            return rows.model((_moved(q, joint, step), dq, ddq), self._chi), np.ones(len(at), dtype=bool)

        return error

    def _closed_error(
        self,
        start: int,
        at: Int[Array, "s"],
        measured: Measured,
        states: States,
        tau: Float[Array, "n a"],
    ) -> _Error:
        """W chi - Y with a measured joint moved and the loops closed again."""
        q, dq, ddq = (x[at] for x in measured)
        pose, fine, force = states.q, states.fine, tau[at] @ self._B

        def error(
            rows: TreeRows | MovingRows, joint: int, step: float
        ) -> tuple[Float[Array, "k s"], Bool[Array, "s"]]:
            assert isinstance(rows, MovingRows)  # noqa: S101 (of a closed robot)
            moved = (_moved(q, joint, step), dq, ddq)
            shifted = _there(rows, pose, moved)
            N = self._directions(rows, start, shifted)
            missed = rows.regressor.efforts(shifted.q, shifted.dq, shifted.ddq, self._chi) - force
            return np.einsum("nvk,nv->kn", N, missed), fine & shifted.fine

        return error


def gravity_axes(gravity: Float[Array, "3"]) -> tuple[Float[Array, "3"], ...]:
    """Two level unit vectors and the one along gravity; without gravity the base axes."""
    size = float(np.linalg.norm(gravity))
    return (*level_axes(gravity), gravity / size) if size > 0.0 else tuple(np.eye(3))


def degrees_between(a: Float[Array, "3"], b: Float[Array, "3"]) -> float:
    """Angle between two vectors; 0 if one of them is zero."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.rad2deg(np.arccos(np.clip(a @ b / size, -1.0, 1.0)))) if size > 0.0 else 0.0


def clock_factor(described: Float[Array, "3"], found: Float[Array, "3"]) -> float | None:
    """Factor of the times of a log that explains another size of gravity; None: nothing of that kind.

    Efforts stay the same if times are s times as long, accelerations 1/s^2 times and inertias s^2 times as
    large. A log with times s times too short therefore fits gravity s^2 times as large, and gravity has one
    size wherever a robot stands.
    """
    before, size = float(np.linalg.norm(described)), float(np.linalg.norm(found))
    if before == 0.0 or abs(size / before - 1.0) <= LARGER or degrees_between(described, found) > TILTED:
        return None
    return float(np.sqrt(size / before))


def clock_notice(described: Float[Array, "3"], found: Float[Array, "3"]) -> Notice | None:
    """That the clock of the logs is wrong, if it explains the gravity that fits; both in [m/s^2]."""
    factor = clock_factor(described, found)
    if factor is None:
        return None
    return notice(
        "gravity-off",
        "clock",
        times=factor**2,
        factor=factor,
        vector=", ".join(f"{x:.3g}" for x in found),
        change={"columns": {"t": {"scale": rounded(factor, 4)}}},
    )


def _between(at: Int[Array, "s"], values: Float[Array, "k c s"], n: int) -> Float[Array, "k c n"]:
    """Values at some of n samples, interpolated at all."""
    rows = [np.interp(np.arange(n), at, row) for row in values.reshape(-1, len(at))]
    return np.array(rows).reshape(*values.shape[:2], n)


def _pose_rows(
    mechanism: Mechanism, source: RowSource, parameters: tuple[Parameter, ...]
) -> TreeRows | MovingRows | None:
    """Rows whose derivative over the pose can be had; of the energy model those of its power."""
    if type(source) in (TreeRows, MovingRows):
        return source  # type: ignore[return-value]
    if type(source) is EnergyRows:
        return MovingRows(mechanism, parameters, power_directions(mechanism), source.motion)
    return None


def _resized_rows(
    robots: Mapping[str, Mechanism], rows: TreeRows | MovingRows | None
) -> dict[str, TreeRows | MovingRows]:
    """Dimension -> the same rows of the robot with it changed, where there is such a robot."""
    variants: dict[str, TreeRows | MovingRows] = {}
    if rows is None:
        return variants
    for name, robot in robots.items():
        try:
            variants[name] = rows.resized(robot)
        except DynidError:
            continue
    return variants


def _there(rows: MovingRows, pose: Float[Array, "n q"], moved: Measured) -> States:
    """All coordinates near known poses, with other measured values."""
    kinematics = rows.kinematics
    if not isinstance(kinematics, ClosedKinematics):
        return kinematics.states(0, moved)
    return kinematics.beside(*kinematics.tracker.march_one(pose, moved[0]), moved)


def _moved(q: Float[Array, "n m"], joint: int, step: float) -> Float[Array, "n m"]:
    other = q.copy()
    other[:, joint] += step
    return other
