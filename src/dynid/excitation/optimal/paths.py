"""From the moved coordinates of a family to those of the whole robot; and gradients (adjoint)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.excitation.random_motion import check_joints
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.inverse import inverse_directions
from dynid.regressor.adjoint import Slopes

Moved = tuple[Float[Array, "n d"], Float[Array, "n d"], Float[Array, "n d"]]


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

    def states(self, moved: Moved) -> RobotStates | None:
        """The whole robot; None if it cannot follow."""

    def back(self, states: RobotStates, slopes: Slopes, N_bar: Float[Array, "n v k"] | None) -> Moved:
        """Gradients with respect to the moved coordinates, from those of the whole robot and of N."""

    def followed(self, states: RobotStates) -> Followed:
        """Sensitivity of all coordinates to the moved ones."""

    def continuous(self, states: RobotStates, t: Float[Array, "n"]) -> bool:
        """Whether positions are consistent with the rates."""


def states_along(path: Path, rates: Float[Array, "4 n d"], t: Float[Array, "n"]) -> RobotStates | None:
    """The robot along a motion of the moved coordinates; None if it cannot follow without a jump."""
    states = path.states((rates[0], rates[1], rates[2]))
    if states is None or not path.continuous(states, t):
        return None
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

    def states(self, moved: Moved) -> RobotStates:
        """The whole robot from measured positions and rates."""
        found = self._map.states(*moved)
        n, G = len(found[0]), self._map.positions
        N = None if self.pick is not None else np.broadcast_to(self._N, (n, *self._N.shape))
        return RobotStates(*found, N, np.broadcast_to(G, (n, *G.shape)), moved)

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
