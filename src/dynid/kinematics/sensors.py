"""Measured coordinates as input of the closure solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError, nearest
from dynid.kinematics.tree import quaternion_rates, times_pure
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import Mechanism

_HINGES = (JointKind.REVOLUTE, JointKind.UNIVERSAL)


@dataclass(frozen=True, eq=False)
class Sensors:
    """Measured coordinates: scalar ones, and quaternions that count as three.

    Attributes:
        velocity: Velocity index of each, shape (m,).
        position: Position index, of a quaternion's coordinate any of its own, shape (m,).
        column: Column of the wanted positions, shape (m,).
        weight: Relative weight where there are more than degrees of freedom, shape (m,).
        quaternions: First position, first wanted column and first coordinate of each, shape (k, 3).
        turning: Position and wanted column of each coordinate whose pose does not change by a full turn,
            shape (k, 2); None: none.
    """

    velocity: Int[Array, "m"]
    position: Int[Array, "m"]
    column: Int[Array, "m"]
    weight: Float[Array, "m"]
    quaternions: Int[Array, "k 3"]
    turning: Int[Array, "t 2"] | None = None

    @property
    def count(self) -> int:
        """Measured coordinates, as velocities."""
        return len(self.velocity)

    def tables(self, n_freedoms: int) -> tuple[Array, ...]:
        """As input of the kernels."""
        more = np.array([int(self.count != n_freedoms)], dtype=np.int64)
        return self.velocity, self.position, self.column, self.weight, self.quaternions, more

    def miss(self, q: Float[Array, "n q"], wanted: Float[Array, "n w"]) -> Float[Array, "n m"]:
        """From the pose to the wanted positions, in velocity coordinates."""
        miss = wanted[:, self.column] - q[:, self.position]
        for p, c, j in self.quaternions.tolist():
            miss[:, j : j + 3] = _rotation_vector(q[:, p : p + 4], wanted[:, c : c + 4])
        return np.asarray(miss)

    def rates(
        self, q: Float[Array, "n w"], dq: Float[Array, "n w"], ddq: Float[Array, "n w"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Velocities and accelerations of the measured coordinates from time derivatives of positions."""
        first, second = dq[:, self.column], ddq[:, self.column]
        for _, c, j in self.quaternions.tolist():
            part = slice(c, c + 4)
            _, first[:, j : j + 3], second[:, j : j + 3] = quaternion_rates(
                q[:, part], dq[:, part], ddq[:, part]
            )
        return first, second

    def between(
        self, origin: Float[Array, "w"], wanted: Float[Array, "n w"], part: float
    ) -> Float[Array, "n w"]:
        """Positions on the straight line from `origin` to `wanted`, without the full turns between them.

        Quaternions take the shorter rotation; an angle keeps its direction, as its range may be limited.
        """
        aim = np.array(wanted)
        if self.turning is not None:
            columns = self.turning[:, 1]
            aim[:, columns] -= self._turns(origin, wanted)
        for _, c, _ in self.quaternions.tolist():
            aim[:, c : c + 4] *= np.where(aim[:, c : c + 4] @ origin[c : c + 4] < 0.0, -1.0, 1.0)[:, None]
        way = origin + part * (aim - origin)
        for _, c, _ in self.quaternions.tolist():
            way[:, c : c + 4] /= np.linalg.norm(way[:, c : c + 4], axis=1, keepdims=True)
        return np.asarray(way)

    def wound(
        self, q: Float[Array, "n q"], origin: Float[Array, "w"], wanted: Float[Array, "n w"]
    ) -> Float[Array, "n q"]:
        """Poses at the end of a line, with the full turns that it omitted."""
        if self.turning is None or not len(self.turning):
            return q
        q[:, self.turning[:, 0]] += self._turns(origin, wanted)
        return q

    def _turns(self, origin: Float[Array, "w"], wanted: Float[Array, "n w"]) -> Float[Array, "n t"]:
        """Full turns between two positions, in [rad]."""
        columns = np.zeros(0, dtype=np.int64) if self.turning is None else self.turning[:, 1]
        turn = 2.0 * np.pi
        return np.asarray(turn * np.trunc((wanted[:, columns] - origin[columns]) / turn))

    def read(self, q: Float[Array, "n q"]) -> Float[Array, "n w"]:
        """Measured positions of poses, in the order of `wanted`."""
        width = max(self.column.max(initial=-1) + 1, max((c + 4 for _, c, _ in self.quaternions), default=0))
        wanted = np.zeros((len(q), int(width)))
        wanted[:, self.column] = q[:, self.position]
        for p, c, _ in self.quaternions.tolist():
            wanted[:, c : c + 4] = q[:, p : p + 4]
        return wanted


def sensors_of(
    mechanism: Mechanism, positions: Sequence[str], weights: Sequence[float] | None = None
) -> Sensors:
    """Sensors of the positions in a log, in its order.

    Args:
        positions: Names of position coordinates; a quaternion must be complete.
        weights: Relative weight of each position; default equal.
    """
    names, at = list(mechanism.positions), {name: i for i, name in enumerate(mechanism.coordinates)}
    owner = {name: joint for joint in mechanism.joints for name in joint.positions}
    trust = [1.0] * len(positions) if weights is None else list(weights)
    channels: list[tuple[int, int, int, float]] = []
    quaternions: list[tuple[int, int, int]] = []
    for column, name in enumerate(positions):
        if name not in owner:
            raise InputError(
                f"'{name}' is not a coordinate of robot '{mechanism.name}'" + nearest(name, names),
                file=mechanism.file,
            )
        joint, position = owner[name], names.index(name)
        turning = joint.positions[-4:] if joint.has_quaternion else ()
        if name not in turning:
            place = at[joint.coordinates[joint.positions.index(name)]]
            channels.append((place, position, column, trust[column]))
        elif name == turning[0]:
            _check_whole(mechanism, turning, positions[column : column + 4])
            quaternions.append((position, column, len(channels)))
            first = at[joint.coordinates[-3]]
            channels += [(first + k, position + k, column + k, trust[column]) for k in range(3)]
    at_v, at_q, column_of = (np.array([channel[k] for channel in channels], dtype=np.int64) for k in range(3))
    weight = np.array([channel[3] for channel in channels], dtype=float)
    free = set(turning_positions(mechanism))
    turned = [(position, column) for _, position, column, _ in channels if position in free]
    return Sensors(
        at_v,
        at_q,
        column_of,
        weight,
        np.array(quaternions, dtype=np.int64).reshape(-1, 3),
        np.array(turned, dtype=np.int64).reshape(-1, 2),
    )


def turning_positions(mechanism: Mechanism) -> list[int]:
    """Positions whose pose does not change by a full turn: angles of hinges without coupling."""
    bound = {name for gear in mechanism.couplings for name in (gear.joint, *gear.of)}
    bound |= {swivel.name for swivel in mechanism.swivels}
    return [
        i
        for i, name in enumerate(mechanism.positions)
        if mechanism.joint_of_position[name].kind in _HINGES and name not in bound
    ]


def _check_whole(mechanism: Mechanism, turning: Sequence[str], given: Sequence[str]) -> None:
    if tuple(given) != tuple(turning):
        raise InputError(
            f"the attitude of a joint needs all of {', '.join(turning)}, in this order; {', '.join(given)}"
            " do not match",
            file=mechanism.file,
            remedy="measure the complete quaternion",
        )


def _rotation_vector(q: Float[Array, "n 4"], wanted: Float[Array, "n 4"]) -> Float[Array, "n 3"]:
    """Rotation vector (frame of q) that rotates q into `wanted`."""
    real = np.sum(q * wanted, axis=1, keepdims=True)
    imaginary = q[:, :1] * wanted[:, 1:] - wanted[:, :1] * q[:, 1:] - np.cross(q[:, 1:], wanted[:, 1:])
    side = np.where(real < 0.0, -1.0, 1.0)
    length = np.linalg.norm(imaginary, axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(length, side * real)
    return np.asarray(side * imaginary * np.where(length > 1e-12, angle / np.maximum(length, 1e-300), 2.0))


# Sensor readings of a motion: positions and their time derivatives.
#
# A quaternion u of a joint that turns at omega (moving frame) changes by
#
#     du = u omega / 2,      ddu = u dom / 2 - |omega|^2 u / 4         (omega, dom as pure quaternions)


def measured_motion(
    mechanism: Mechanism, q: Float[Array, "n q"], dq: Float[Array, "n v"], ddq: Float[Array, "n v"]
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    """Measured positions and their first and second time derivatives, in the order of a log.

    Args:
        q: All tree positions, shape (n, n_q), in [rad, m, -].
        dq: All tree velocities, shape (n, n_v), per s.
        ddq: Their rates, shape (n, n_v), per s^2.
    """
    sensors = sensors_of(mechanism, mechanism.measured_positions)
    positions = sensors.read(q)
    first, second = np.zeros_like(positions), np.zeros_like(positions)
    first[:, sensors.column], second[:, sensors.column] = dq[:, sensors.velocity], ddq[:, sensors.velocity]
    for p, c, j in sensors.quaternions.tolist():
        turning = sensors.velocity[j : j + 3]
        u, omega = q[:, p : p + 4], dq[:, turning]
        part = slice(c, c + 4)
        first[:, part] = 0.5 * times_pure(u, omega)
        square = np.sum(omega**2, axis=1, keepdims=True)
        second[:, part] = 0.5 * times_pure(u, ddq[:, turning]) - 0.25 * square * u
    return positions, first, second
