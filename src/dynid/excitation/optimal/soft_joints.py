"""Limits of dependent joints, and distance to singular poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.batched import cholesky, eigvalsh, inv
from dynid.excitation.closed import places
from dynid.excitation.optimal.box import RATES
from dynid.excitation.optimal.closed_path import ClosedPath
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.excitation.ranking import speed_bound, symmetric_range
from dynid.kinematics.sensors import sensors_of

NEARNESS = "distance to singularity (condition number)"
_DIFFERENCE = 1e-6


class FollowingJoints(Ranged):
    """Positions, speeds, accelerations and jerk of dependent joints and motors, between their limits.

    The jerk is N dddy + (d ddq / d dy) ddy + (d ddq / d y) dy. Its derivatives with respect to the rates are
    multiples of those of ddq, because derivatives of q(y) are symmetric. That with respect to y, a fourth
    derivative of the loops, is neglected: the search checks every step by the jerk itself.
    """

    def __init__(self, path: Path) -> None:
        robot = path.mechanism
        self.path = path
        self._scalar = [name for name in robot.coordinates if name in robot.positions]
        self._rows: list[tuple[int, Float[Array, "v"], float, float]] = []  # order, weights, low, high
        sides: list[Side] = []
        for name, weights in _followers(path).items():
            own = robot.limits.get(name, {})
            for order, kind in enumerate(RATES):
                if kind not in own:
                    continue
                bound = speed_bound(own[kind])
                low, high = symmetric_range(own[kind]) if order == 0 else (-bound, bound)
                self._rows.append((order, weights, low, high))
                sides += both_sides(kind, name, low, high)
        self.sides = tuple(sides)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows per limit: above and below."""
        signals = self._signals(states)
        rows: list[Array] = []
        for order, weights, low, high in self._rows:
            rows += shares(signals[order] @ weights, low, high)
        return np.array(rows)

    def slopes(self, states: RobotStates) -> Float[Array, "4 s n d"]:
        """From the sensitivities of the coordinates."""
        found = self.path.followed(states)
        none = np.zeros_like(found.N)
        parts = np.array(
            [
                (found.N, none, none, none),
                (found.dq_y, found.N, none, none),
                (found.ddq_y, found.ddq_dy, found.N, none),
                (none, 3.0 * found.ddq_y, 1.5 * found.ddq_dy, found.N),
            ]
        )
        rows = []
        for order, weights, low, high in self._rows:
            one = np.einsum("onvd,v->ond", parts[order], weights) / (0.5 * (high - low))
            rows += [one, -one]
        return np.array(rows).transpose(1, 0, 2, 3)

    def _signals(self, states: RobotStates) -> list[Float[Array, "n v"]]:
        """Positions (of scalar coordinates), velocities, accelerations and, if limited, jerk."""
        robot = self.path.mechanism
        q = np.zeros_like(states.dq)
        q[:, places(robot, self._scalar)] = states.q[:, [robot.positions.index(one) for one in self._scalar]]
        signals = [q, states.dq, states.ddq]
        if any(order == RATES.index("jerk") for order, *_ in self._rows):
            if states.third is None:
                raise ValueError("a limit on jerk needs third rates")
            found, (_, dy, ddy) = self.path.followed(states), states.moved
            jerk = np.einsum("nvd,nd->nv", found.ddq_y, dy) + np.einsum("nvd,nd->nv", found.ddq_dy, ddy)
            signals.append(jerk + np.einsum("nvd,nd->nv", found.N, states.third))
        return signals


def _followers(path: Path) -> dict[str, Float[Array, "v"]]:
    """Dependent joints and motors: name -> weights of the coordinates."""
    robot = path.mechanism
    unit = np.eye(len(robot.coordinates))
    scalar = [name for name in robot.coordinates if name in robot.positions]
    found = {name: unit[robot.coordinates.index(name)] for name in scalar}
    turning = [i for i, name in enumerate(robot.coordinates) if name not in robot.positions]
    for actuator, weights in zip(robot.actuators, robot.actuator_map, strict=True):
        if not np.any(weights[turning]):
            found.setdefault(actuator.name, weights)
    return {name: weights for name, weights in found.items() if name not in path.names}


class Singularity:
    """Condition number of sensors, motors and moved coordinates: log kappa / log most - 1."""

    jumps = False

    def __init__(self, path: ClosedPath, most: float) -> None:
        robot = path.mechanism
        self.path, self._most = path, float(np.log(most))
        sensors = sensors_of(robot, robot.measured_positions)
        used: list[tuple[str, Float[Array, "m v"]]] = [
            ("the measured joints", np.eye(len(robot.coordinates))[sensors.velocity]),
            ("the motors", robot.actuator_map),
            ("the coordinates moved", np.eye(len(robot.coordinates))[places(robot, path.names)]),
        ]
        self._seen = [(name, C) for name, C in _different(used) if len(C) >= path.assembly.dof]
        self._units = path.assembly.units
        self.sides = tuple(Side(NEARNESS, name, None, most, True) for name, _ in self._seen)

    def reached(self, side: Side, h: float) -> float:
        """The condition number."""
        return float(np.exp(self._most * (1.0 + h)))

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """One row for each of them."""
        return self._values(states.tangent)

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """From the exact derivative of N; finite differences only of the condition itself."""
        found = self.path.followed(states)
        d = found.N.shape[2]
        out = np.zeros((3, len(self._seen), len(states.q), d))
        for i in range(d):
            change = np.zeros_like(found.N)
            change[:, self.path.rest] = -found.inverse @ (found.A_y[i] @ found.N)
            ahead, behind = (self._values(found.N + sign * _DIFFERENCE * change) for sign in (1.0, -1.0))
            out[0, :, :, i] = (ahead - behind) / (2.0 * _DIFFERENCE)
        return out

    def _values(self, N: Float[Array, "n v d"]) -> Float[Array, "s n"]:
        # Singular values of C U Q with N / U = Q R: eigenvalues of R^-T (C N)' (C N) R^-1.
        scaled = N / self._units[:, None]
        L = cholesky(np.swapaxes(scaled, 1, 2) @ scaled)
        back = np.swapaxes(inv(L), 1, 2)
        rows = []
        for _, C in self._seen:
            seen = C @ N @ back
            squares = eigvalsh(np.swapaxes(seen, 1, 2) @ seen)
            ratio = squares[:, -1] / np.maximum(squares[:, 0], 1e-15 * squares[:, -1])
            rows.append(0.5 * np.log(ratio) / self._most - 1.0)
        return np.array(rows)


def _different(used: Sequence[tuple[str, Array]]) -> list[tuple[str, Array]]:
    """Without duplicates."""
    kept: list[tuple[str, Array]] = []
    for name, C in used:
        rows = {tuple(row) for row in C.tolist()}
        if not any({tuple(row) for row in other.tolist()} == rows for _, other in kept):
            kept.append((name, C))
    return kept
