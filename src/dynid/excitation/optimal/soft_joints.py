"""Limits of joints that are not moved themselves but follow, and distance to singular poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.excitation.closed import places
from dynid.excitation.optimal.closed_path import ClosedPath
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.ranking import speed_bound, symmetric_range
from dynid.kinematics.sensors import sensors_of

_DIFFERENCE = 1e-6


class FollowingJoints:
    """Positions, speeds and accelerations of joints that follow, between their limits.

    Args:
        path: What is moved.
        margin: Share of every limit that stays unused.
    """

    def __init__(self, path: Path, margin: float = 0.0) -> None:
        robot = path.mechanism
        self.path = path
        self._rows: list[tuple[int, int, int, float, float]] = []  # order, position, velocity, centre, half
        names: list[str] = []
        for name, own in robot.limits.items():
            if name in path.names or name not in robot.positions or name not in robot.coordinates:
                continue
            at = robot.positions.index(name), robot.coordinates.index(name)
            for order, kind in enumerate(("q", "dq", "ddq")):
                if kind not in own:
                    continue
                bound = speed_bound(own[kind])
                low, high = symmetric_range(own[kind]) if order == 0 else (-bound, bound)
                centre, half = 0.5 * (low + high), 0.5 * (high - low) * (1.0 - margin)
                self._rows.append((order, *at, centre, half))
                names.append(f"{kind} of '{name}'")
        self.names = tuple(name for name in names for _ in range(2))

    def __bool__(self) -> bool:
        return bool(self._rows)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows a limit: above and below."""
        rows = []
        for order, at_q, at_v, centre, half in self._rows:
            signal = (states.q[:, at_q], states.dq[:, at_v], states.ddq[:, at_v])[order]
            share = (signal - centre) / half
            rows += [share - 1.0, -share - 1.0]
        return np.array(rows)

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """From how the coordinates follow."""
        found = self.path.followed(states)
        none = np.zeros((len(states.q), len(self.path.names)))
        rows = []
        for order, _, v, _, half in self._rows:
            parts = (
                (found.N[:, v], none, none),
                (found.dq_y[:, v], found.N[:, v], none),
                (found.ddq_y[:, v], found.ddq_dy[:, v], found.N[:, v]),
            )[order]
            one = np.array(parts) / half
            rows += [one, -one]
        return np.array(rows).transpose(1, 0, 2, 3)


class Singularity:
    """Condition of what sensors, motors and moved coordinates see of the motion: log kappa / log most - 1."""

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
        self.names = tuple(f"distance to singularity of {name}" for name, _ in self._seen)

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """One row for each of them."""
        return self._values(states.tangent)

    def slopes(self, states: RobotStates) -> Float[Array, "3 s n d"]:
        """By the change of N, which is exact; differences only of the condition itself."""
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
        L = np.linalg.cholesky(np.swapaxes(scaled, 1, 2) @ scaled)
        back = np.swapaxes(np.linalg.inv(L), 1, 2)
        rows = []
        for _, C in self._seen:
            seen = C @ N @ back
            squares = np.linalg.eigvalsh(np.swapaxes(seen, 1, 2) @ seen)
            ratio = squares[:, -1] / np.maximum(squares[:, 0], 1e-15 * squares[:, -1])
            rows.append(0.5 * np.log(ratio) / self._most - 1.0)
        return np.array(rows)


def _different(used: Sequence[tuple[str, Array]]) -> list[tuple[str, Array]]:
    """Without those that see the same."""
    kept: list[tuple[str, Array]] = []
    for name, C in used:
        rows = {tuple(row) for row in C.tolist()}
        if not any({tuple(row) for row in other.tolist()} == rows for _, other in kept):
            kept.append((name, C))
    return kept
