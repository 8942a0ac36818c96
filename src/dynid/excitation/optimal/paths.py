"""From the moved coordinates of a family to those of the whole robot; and gradients (adjoint)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Complex, Float
from dynid.common.batched import inv, pinv
from dynid.excitation.closed import independent_joints, places
from dynid.excitation.random_motion import check_joints
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import times_pure
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.inverse import inverse_directions
from dynid.regressor.adjoint import Slopes

Moved = tuple[Float[Array, "n d"], Float[Array, "n d"], Float[Array, "n d"]]
_STEP = 1e-30
_TILE = 256  # poses whose complex Jacobians stay in the cache
_CLOSED = 1e-9  # m or rad
_MOST_JUMP = 0.1  # rad or m between the pose predicted from the rates and the next pose


@dataclass(frozen=True, eq=False)
class RobotStates:
    """The whole robot along a motion.

    Attributes:
        q: All tree positions, shape (n, n_q). dq, ddq: velocities and accelerations, shape (n, v).
        N: Rows of the information, velocities per unit of each row, shape (n, v, k); None: those of `pick`.
        tangent: Velocities per unit rate of each coordinate moved, shape (n, v, d).
        moved: Moved coordinates of the family: positions, first and second derivatives.
        third: Their third derivatives, shape (n, d); None if the jerk is not needed.
    """

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    N: Float[Array, "n v k"] | None
    tangent: Float[Array, "n v d"]
    moved: Moved
    third: Float[Array, "n d"] | None = None


@dataclass(frozen=True, eq=False)
class Followed:
    """Sensitivity of all coordinates to the moved ones; the last axis is the moved coordinate.

    Attributes:
        N: Of positions by y, of velocities by dy, of accelerations by ddy, shape (n, v, d).
        dq_y, ddq_y, ddq_dy: Of velocities by y, of accelerations by y and by dy, shape (n, v, d).
    """

    N: Float[Array, "n v d"]
    dq_y: Float[Array, "n v d"]
    ddq_y: Float[Array, "n v d"]
    ddq_dy: Float[Array, "n v d"]


@runtime_checkable
class Path(Protocol):
    """The moved coordinates, and how the robot follows them."""

    mechanism: Mechanism
    names: tuple[str, ...]
    rows: tuple[str, ...]
    effort_map: Float[Array, "k a"]

    @property
    def pick(self) -> tuple[int, ...] | None:
        """Tree rows that are the rows of the model, if N only selects rows; else None."""

    def states(self, moved: Moved, near: RobotStates | None = None) -> RobotStates | None:
        """The whole robot; None if it cannot follow. `near`: a similar motion of as many samples."""

    def back(self, states: RobotStates, slopes: Slopes, N_bar: Float[Array, "n v k"] | None) -> Moved:
        """Gradients with respect to the moved coordinates, from those of the whole robot and of N."""

    def followed(self, states: RobotStates) -> Followed:
        """Sensitivity of all coordinates to the moved ones."""

    def continuous(self, states: RobotStates, t: Float[Array, "n"]) -> bool:
        """Whether positions are consistent with the rates."""


def states_along(
    path: Path, rates: Float[Array, "4 n d"], t: Float[Array, "n"], near: RobotStates | None = None
) -> RobotStates | None:
    """The robot along a motion of the moved coordinates; None if it cannot follow without a jump.

    Poses of a similar motion save the way from the start pose; if they lead to a jump, that way is taken.
    """
    states = path.states((rates[0], rates[1], rates[2]), near)
    if states is None or not path.continuous(states, t):
        return None if near is None else states_along(path, rates, t)
    return replace(states, third=rates[3])


class TreePath:
    """A tree: the measured coordinates move, couplings determine the others.

    Attributes:
        pick: Tree rows that are the rows of the model, if N only selects rows; else None.
        effort_map: Right side of each row per actuator effort.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        check_joints(mechanism)
        self.mechanism = mechanism
        self.names = mechanism.measured_positions
        self._map = coordinate_map(mechanism)
        directions = inverse_directions(mechanism)
        self.rows, self.effort_map = directions.names, directions.effort_map
        N = np.asarray(directions.N)
        single = np.all((N == 0) | (N == 1)) and np.all(N.sum(0) == 1)
        self.pick = tuple(np.argmax(N, axis=0).tolist()) if single else None
        self._N = N

    def states(self, moved: Moved, near: RobotStates | None = None) -> RobotStates:
        """The whole robot from measured positions and rates."""
        tree_motion = self._map.tree_states(*moved)
        n, G = len(tree_motion[0]), self._map.positions
        N = None if self.pick is not None else np.broadcast_to(self._N, (n, *self._N.shape))
        return RobotStates(*tree_motion, N, np.broadcast_to(G, (n, *G.shape)), moved)

    def back(self, states: RobotStates, slopes: Slopes, N_bar: Float[Array, "n v k"] | None) -> Moved:
        """Couplings are linear, and N is constant."""
        G = self._map.positions
        return slopes.q @ G, slopes.dq @ G, slopes.ddq @ G

    def followed(self, states: RobotStates) -> Followed:
        """Constant ratios."""
        none = np.zeros(states.tangent.shape)
        return Followed(states.tangent, none, none, none)

    def continuous(self, states: RobotStates, t: Float[Array, "n"]) -> bool:
        """A tree never jumps."""
        return True


# A closed robot: independent coordinates move, the loops determine all others; and gradients (adjoint).
#
# With A(q) N = 0, N = dq/dy, dq = N dy and A ddq + gamma(q, dq) = 0, a small change of y along N_i gives
#
#     A dN_i = -dA_i N        A d(dq)_i = -dA_i dq        A d(ddq)_i = -dA_i ddq - dgamma_i
#
# with the coordinates y themselves unchanged. dA_i and dgamma_i come from complex steps of the closure:
# a first-order step along the tangent is sufficient, because the step is far below rounding.


@dataclass(frozen=True, eq=False)
class ClosedFollowed(Followed):
    """The same with intermediate results.

    Attributes:
        A_y: Change of the closure Jacobian by y, shape (n, d, c, v).
        inverse: Of the dependent columns of A, shape (n, v - d, c).
        J: Of the motors, Sigma^1/2 C N, shape (n, a, d).
    """

    A_y: Float[Array, "n d c v"]
    inverse: Float[Array, "n x c"]
    J: Float[Array, "n a d"]

    @cached_property
    def turned(self) -> Float[Array, "n d c d"]:
        """A_y N: its product with the inverse is minus the change of N by y."""
        return np.asarray(self.A_y @ self.N[:, None])

    @cached_property
    def K(self) -> Float[Array, "n d d"]:
        """(J'J)^-1."""
        return inv(np.swapaxes(self.J, 1, 2) @ self.J)


class ClosedPath:
    """Independent joints move; each row of the information is the effort of one motor.

    With redundant motors the efforts are those of minimum norm, weighted with the noise.

    Args:
        names: Scalar coordinates to move; default independent joints.
        sigma: Noise of every motor, shape (a,).
    """

    pick: tuple[int, ...] | None = None

    def __init__(
        self,
        mechanism: Mechanism,
        sigma: Float[Array, "a"] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.assembly = assembly_of(mechanism)
        self.names = tuple(independent_joints(mechanism) if names is None else names)
        self.rows = tuple(actuator.name for actuator in mechanism.actuators)
        self.effort_map = np.eye(len(self.rows))
        self.sigma = np.ones(len(self.rows)) if sigma is None else sigma
        self._at = places(mechanism, self.names)
        self.rest = np.setdiff1d(np.arange(len(mechanism.coordinates)), self._at)
        self._known: WeakKeyDictionary[RobotStates, ClosedFollowed] = WeakKeyDictionary()

    def states(self, moved: Moved, near: RobotStates | None = None) -> RobotStates | None:
        """The whole robot along the motion; None if the loops cannot follow."""
        sensors = self.assembly.sensors(self._at)
        tracker = self.assembly.tracker(sensors)
        if tracker is None:
            q = self.assembly.track(moved[0], sensors)
        else:
            # If the compiled steps fail, the pose is out of reach or singular: no second attempt here.
            if near is None:
                q, done = tracker.track(self.assembly.start, moved[0])
            else:
                q, done = tracker.march_one(near.q, moved[0])
            if not done.all():
                return None
        if not np.all(self.assembly.gaps(q) < _CLOSED):
            return None
        moving = self.assembly.rates(q, moved[1], moved[2], self._at)
        if not np.all(np.isfinite(moving.ddq)):
            return None
        N = self._tangent(moving.N)
        return RobotStates(q, moving.dq, moving.ddq, self._directions(N), N, moved)

    def continuous(self, states: RobotStates, t: Float[Array, "n"]) -> bool:
        """Whether positions are consistent with the rates: a jump means another assembly mode of the loops.

        Predicted from velocities and accelerations at both ends, with an error of fifth order in the step.
        """
        robot = self.mechanism
        scalar = [name for name in robot.coordinates if name in robot.positions]
        at_v, at_q = places(robot, scalar), [robot.positions.index(name) for name in scalar]
        h = np.diff(t)[:, None]
        predicted = 0.5 * h * (states.dq[1:] + states.dq[:-1]) - h**2 / 12.0 * np.diff(states.ddq, axis=0)
        return bool(np.abs(np.diff(states.q[:, at_q], axis=0) - predicted[:, at_v]).max() < _MOST_JUMP)

    def back(self, states: RobotStates, slopes: Slopes, N_bar: Float[Array, "n v k"] | None) -> Moved:
        """Gradients with respect to y, dy and ddy."""
        linearised = self.followed(states)
        y = (
            _combined(slopes.q, linearised.N)
            + _combined(slopes.dq, linearised.dq_y)
            + _combined(slopes.ddq, linearised.ddq_y)
        )
        dy = _combined(slopes.dq, linearised.N) + _combined(slopes.ddq, linearised.ddq_dy)
        ddy = _combined(slopes.ddq, linearised.N)
        if N_bar is not None:
            change = self._directions_back(linearised, N_bar)
            pushed = np.swapaxes(linearised.inverse, 1, 2) @ change[:, self.rest]  # (n, c, d)
            n, d = y.shape
            y -= (linearised.turned.reshape(n, d, -1) @ pushed.reshape(n, -1, 1))[:, :, 0]
        return y, dy, ddy

    def followed(self, states: RobotStates) -> ClosedFollowed:
        """Sensitivities of all coordinates; computed once for the states of a motion."""
        if states not in self._known:
            self._known[states] = self._follow(states)
        return self._known[states]

    def _follow(self, states: RobotStates) -> ClosedFollowed:
        """By complex steps of A and of its bias gamma = A' dq, in batches of all directions.

        With A_i the derivative of A along N_i, A' is the sum of the A_i times the rates of the moved
        coordinates. gamma is quadratic in dq: its derivative along N_i is A' N_i + A_i dq.
        """
        q, dq, ddq, N = states.q, states.dq, states.ddq, states.tangent
        closure, kept = self.assembly.closure, self.assembly.kept
        c, d, (n, v) = len(kept), len(self._at), dq.shape
        inverse = _left_inverse(closure.values(q).A[:, kept][:, :, self.rest])
        dq_y, ddq_y, ddq_dy = np.zeros((3, n, v, d))
        stepped = along(self.mechanism, np.repeat(q, d, axis=0), np.swapaxes(N, 1, 2).reshape(n * d, v))
        A_y = np.empty((n * d, c, v))
        for at in range(0, n * d, _TILE):
            part = slice(at, at + _TILE)
            A_y[part] = closure.values(stepped[part]).A[:, kept].imag / _STEP
        A_y = A_y.reshape(n, d, c, v)
        applied = (A_y.reshape(n, d * c, v) @ np.stack([dq, ddq], axis=2)).reshape(n, d, c, 2)
        to_dq, to_ddq = np.swapaxes(applied[..., 0], 1, 2), np.swapaxes(applied[..., 1], 1, 2)
        dq_y[:, self.rest] = -inverse @ to_dq
        turning = np.repeat(dq, d, axis=0) + 1j * _STEP * np.swapaxes(dq_y, 1, 2).reshape(n * d, v)
        gamma = closure.bias(stepped, turning)[:, kept].imag.reshape(n, d, c) / _STEP
        ddq_y[:, self.rest] = -inverse @ (to_ddq + np.swapaxes(gamma, 1, 2))
        moving = (dq[:, None, self._at] @ A_y.reshape(n, d, c * v)).reshape(n, c, v)
        ddq_dy[:, self.rest] = -inverse @ (moving @ N + to_dq)
        return ClosedFollowed(N, dq_y, ddq_y, ddq_dy, A_y, inverse, self._motors(N))

    def _tangent(self, N: Float[Array, "n v d"]) -> Float[Array, "n v d"]:
        """The basis in which the moved coordinates are the degrees of freedom."""
        return np.asarray(N @ inv(N[:, self._at]))

    def _directions(self, N: Float[Array, "n v d"]) -> Float[Array, "n v a"]:
        """Rows of the motors: D = N (J'J)^-1 J' Sigma^1/2, J = Sigma^1/2 C N; D'W chi are the efforts.

        Of all efforts that produce this motion, those of minimum norm when each is divided by its noise.
        """
        J = self._motors(N)
        K = inv(np.swapaxes(J, 1, 2) @ J)
        return np.asarray(N @ K @ np.swapaxes(J, 1, 2) * self.sigma)

    def _motors(self, N: Float[Array, "n v d"]) -> Float[Array, "n a d"]:
        return np.asarray((self.mechanism.actuator_map * self.sigma[:, None]) @ N)

    def _directions_back(
        self, linearised: ClosedFollowed, D_bar: Float[Array, "n v a"]
    ) -> Float[Array, "n v d"]:
        """Gradients with respect to N from those with respect to D."""
        J, K, D_bar = linearised.J, linearised.K, D_bar * self.sigma
        JK = J @ K
        along_N = np.swapaxes(D_bar, 1, 2) @ linearised.N  # (n, a, d)
        M_bar = -np.swapaxes(JK, 1, 2) @ along_N @ K
        J_bar = along_N @ K + J @ (M_bar + np.swapaxes(M_bar, 1, 2))
        C = self.mechanism.actuator_map * self.sigma[:, None]
        return np.asarray(D_bar @ JK + C.T @ J_bar)


def along(mechanism: Mechanism, q: Float[Array, "n q"], rate: Float[Array, "n v"]) -> Complex[Array, "n q"]:
    """Positions with a complex step along a velocity direction, quaternions included."""
    stepped = q.astype(complex)
    at_q = at_v = 0
    for joint in mechanism.joints:
        n_q, n_v = len(joint.positions), len(joint.coordinates)
        plain = n_v - 3 if joint.has_quaternion else n_v
        stepped[:, at_q : at_q + plain] += 1j * _STEP * rate[:, at_v : at_v + plain]
        if joint.has_quaternion:
            u, omega = q[:, at_q + plain : at_q + n_q], rate[:, at_v + plain : at_v + n_v]
            stepped[:, at_q + plain : at_q + n_q] += 0.5j * _STEP * times_pure(u, omega)
        at_q, at_v = at_q + n_q, at_v + n_v
    return stepped


def _left_inverse(A: Float[Array, "n c x"]) -> Float[Array, "n x c"]:
    """Inverse of the dependent columns; the pseudo-inverse if equations are redundant."""
    if A.shape[1] != A.shape[2]:
        return pinv(A)
    inverted = inv(A)
    singular = ~np.isfinite(inverted).all(axis=(1, 2))
    if singular.any():
        inverted[singular] = pinv(A[singular])
    return inverted


def _combined(x: Float[Array, "n a"], M: Float[Array, "n a b"]) -> Float[Array, "n b"]:
    """X' M of every sample."""
    return np.asarray((x[:, None, :] @ M)[:, 0])
