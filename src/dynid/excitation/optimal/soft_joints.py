"""Limits of dependent joints, distance to singular poses, and limits of motor efforts by the prior model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import cholesky, eigh, eigvalsh, inv
from dynid.excitation.closed import places
from dynid.excitation.efforts import effort_range
from dynid.excitation.optimal.box import RATES
from dynid.excitation.optimal.paths import ClosedPath, Path, RobotStates
from dynid.excitation.optimal.problem import Entries, Rows
from dynid.excitation.optimal.soft import Ranged, Side, both_sides, shares
from dynid.excitation.series import speed_bound, symmetric_range
from dynid.kinematics.sensors import sensors_of
from dynid.mechanism.parameters import parameter_table
from dynid.regressor.adjoint import Slopes

NEARNESS = "distance to singularity (condition number)"


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
            joint_limits = robot.limits.get(name, {})
            for order, kind in enumerate(RATES):
                if kind not in joint_limits:
                    continue
                bound = speed_bound(joint_limits[kind])
                low, high = symmetric_range(joint_limits[kind]) if order == 0 else (-bound, bound)
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

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "4 s n d"]:
        """From the sensitivities of the coordinates."""
        linearised = self.path.followed(states)
        none = np.zeros_like(linearised.N)
        parts = np.array(
            [
                (linearised.N, none, none, none),
                (linearised.dq_y, linearised.N, none, none),
                (linearised.ddq_y, linearised.ddq_dy, linearised.N, none),
                (none, 3.0 * linearised.ddq_y, 1.5 * linearised.ddq_dy, linearised.N),
            ]
        )
        rows = []
        for order, weights, low, high in self._rows:
            row = np.einsum("onvd,v->ond", parts[order], weights) / (0.5 * (high - low))
            rows += [row, -row]
        return np.array(rows).transpose(1, 0, 2, 3)

    def _signals(self, states: RobotStates) -> list[Float[Array, "n v"]]:
        """Positions (of scalar coordinates), velocities, accelerations and, if limited, jerk."""
        robot = self.path.mechanism
        q = np.zeros_like(states.dq)
        q[:, places(robot, self._scalar)] = states.q[
            :, [robot.positions.index(name) for name in self._scalar]
        ]
        signals = [q, states.dq, states.ddq]
        if any(order == RATES.index("jerk") for order, *_ in self._rows):
            if states.third is None:
                raise ValueError("a limit on jerk needs third rates")
            linearised, (_, dy, ddy) = self.path.followed(states), states.moved
            jerk = np.einsum("nvd,nd->nv", linearised.ddq_y, dy) + np.einsum(
                "nvd,nd->nv", linearised.ddq_dy, ddy
            )
            signals.append(jerk + np.einsum("nvd,nd->nv", linearised.N, states.third))
        return signals


def _followers(path: Path) -> dict[str, Float[Array, "v"]]:
    """Dependent joints and motors: name -> weights of the coordinates."""
    robot = path.mechanism
    unit = np.eye(len(robot.coordinates))
    scalar = [name for name in robot.coordinates if name in robot.positions]
    followers = {name: unit[robot.coordinates.index(name)] for name in scalar}
    turning = [i for i, name in enumerate(robot.coordinates) if name not in robot.positions]
    for actuator, weights in zip(robot.actuators, robot.actuator_map, strict=True):
        if not np.any(weights[turning]):
            followers.setdefault(actuator.name, weights)
    return {name: weights for name, weights in followers.items() if name not in path.names}


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

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "3 s n d"]:
        """From the exact derivative of N.

        Squares of singular values are eigenvalues of M x = lam S x, M = (C N)'(C N), S = (U^-1 N)'(U^-1 N).
        A change dN moves them by 2 ((C N x)'(C dN x) - lam (U^-1 N x)'(U^-1 dN x)) with x' S x = 1.
        """
        linearised = self.path.followed(states)
        n, _, d = linearised.N.shape
        out = np.zeros((3, len(self._seen), n, d))
        scaled, back = self._scaled(linearised.N)
        for row, (_, C) in enumerate(self._seen):
            seen = C @ linearised.N @ back
            squares, vectors = eigh(np.swapaxes(seen, 1, 2) @ seen)
            for end, sign in ((-1, 1.0), (0, -1.0)):
                x = back @ vectors[:, :, end, None]
                along, across = (C @ (linearised.N @ x))[:, :, 0], (scaled @ x)[:, :, 0]
                lam = np.maximum(squares[:, end], 1e-15 * squares[:, -1])
                # Both products with dN, as one row vector: C and U do not move.
                left = along @ C - lam[:, None] * across / self._units
                pushed = left[:, None, self.path.rest] @ linearised.inverse  # (n, 1, c)
                moved = linearised.turned @ x[:, None]  # (n, d, c, 1)
                change = -2.0 * (pushed[:, None] @ moved)[:, :, 0, 0]
                out[0, row] += sign * 0.5 * change / lam[:, None] / self._most
        return out

    def _values(self, N: Float[Array, "n v d"]) -> Float[Array, "s n"]:
        # Singular values of C U Q with N / U = Q R: eigenvalues of R^-T (C N)' (C N) R^-1.
        back = self._scaled(N)[1]
        rows = []
        for _, C in self._seen:
            seen = C @ N @ back
            squares = eigvalsh(np.swapaxes(seen, 1, 2) @ seen)
            ratio = squares[:, -1] / np.maximum(squares[:, 0], 1e-15 * squares[:, -1])
            rows.append(0.5 * np.log(ratio) / self._most - 1.0)
        return np.array(rows)

    def _scaled(self, N: Float[Array, "n v d"]) -> tuple[Float[Array, "n v d"], Float[Array, "n d d"]]:
        """U^-1 N, and R^-1 of its triangular factor."""
        scaled = N / self._units[:, None]
        L = cholesky(np.swapaxes(scaled, 1, 2) @ scaled)
        return scaled, np.swapaxes(inv(L), 1, 2)


def _different(used: Sequence[tuple[str, Array]]) -> list[tuple[str, Array]]:
    """Without duplicates."""
    kept: list[tuple[str, Array]] = []
    for name, C in used:
        rows = {tuple(row) for row in C.tolist()}
        if not any({tuple(row) for row in other.tolist()} == rows for _, other in kept):
            kept.append((name, C))
    return kept


class EffortLimits(Ranged):
    """Efforts of a motion between the limits of motors and cables.

    With redundant cables, a controller keeps all of them taut about the middle of their range m:

        tau = m + D^T (W chi - C^T m)        D as in `ClosedPath`: the internal part of m remains

    Args:
        path: Moved coordinates; its rows are the motor efforts.
        chi: Prior of all standard parameters, shape (p,), SI.
    """

    jumps = True

    def __init__(
        self,
        path: Path,
        chi: Float[Array, "p"],
        mounted: tuple[str, ...] = (),
        softness: Float[Array, "s"] | None = None,
    ) -> None:
        robot = path.mechanism
        self.path, self.chi = path, chi
        self.rows = Rows(path, parameter_table(robot), mounted, softness)
        self._bounds: list[tuple[int, float, float]] = []  # row, low, high
        sides: list[Side] = []
        cables = {cable.name for cable in robot.cables}
        middle = np.zeros(len(robot.actuators))
        for i, actuator in enumerate(robot.actuators):
            bounds = effort_range(robot, actuator.name)
            if bounds is not None and actuator.name in path.rows:
                self._bounds.append((path.rows.index(actuator.name), *bounds))
                kind = "tension" if actuator.name in cables else "effort"
                sides += both_sides(kind, actuator.name, *bounds)
                middle[i] = 0.5 * sum(bounds) if actuator.name in cables else 0.0
        self.sides = tuple(sides)
        self._middle = middle if middle.any() else None
        self._known: tuple[RobotStates, Entries] | None = None

    def efforts(self, states: RobotStates) -> Float[Array, "n k"]:
        """Efforts of all rows, shape (n, k), in [N m] or [N]."""
        entries = self._entries(states)
        pairs = zip(self.rows.entries, self.rows.columns, strict=True)
        tau = np.stack([self.chi[columns] @ entries.model[rows] for rows, columns in pairs], axis=1)
        if self._middle is None or states.N is None:
            return tau
        return np.asarray(tau + self._middle - np.einsum("nvk,v->nk", states.N, self._strain))

    def excess(self, states: RobotStates) -> Float[Array, "s n"]:
        """Two rows per limit: above and below."""
        tau = self.efforts(states)
        return np.array([row for k, low, high in self._bounds for row in shares(tau[:, k], low, high)])

    def slopes(self, states: RobotStates, needed: Bool[Array, "s"] | None = None) -> Float[Array, "3 s n d"]:
        """One adjoint pass per motor whose rows are needed."""
        entries = self._entries(states)
        rows = []
        for i, (k, low, high) in enumerate(self._bounds):
            if needed is not None and not needed[2 * i : 2 * i + 2].any():
                rows += 2 * [np.zeros((3, *states.moved[0].shape))]
                continue
            weights = np.zeros_like(entries.model)
            weights[self.rows.entries[k]] = (2.0 * self.chi[self.rows.columns[k]] / (high - low))[:, None]
            slope = np.array(self.rows.back(entries, weights, k))
            if self._middle is not None:
                slope += self._strained_back(states, k, 2.0 / (high - low))
            rows += [slope, -slope]
        return np.array(rows).transpose(1, 0, 2, 3)

    @property
    def _strain(self) -> Float[Array, "v"]:
        """C^T m."""
        return np.asarray(self.path.mechanism.actuator_map.T @ self._middle)

    def _strained_back(self, states: RobotStates, k: int, size: float) -> Float[Array, "3 n d"]:
        """Gradients of -size D_k^T C^T m: only D varies."""
        N_bar = np.zeros((*states.dq.shape, len(self.path.rows)))
        N_bar[:, :, k] = -size * self._strain
        none = Slopes(*(np.zeros((len(states.q), states.dq.shape[1])) for _ in range(3)))
        return np.array(self.path.back(states, none, N_bar))

    def _entries(self, states: RobotStates) -> Entries:
        if self._known is None or self._known[0] is not states:
            self._known = states, self.rows.at(states)
        return self._known[1]
