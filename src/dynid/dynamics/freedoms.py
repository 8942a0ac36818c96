"""Independent velocities of a mechanism, tree or closed: directions N(q) and the bias of the loops."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Inexact
from dynid.common.batched import singular_values
from dynid.common.errors import InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.closure import Closure
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.elimination import Elimination, best_coordinates, eliminate
from dynid.kinematics.sensors import Sensors
from dynid.kinematics.tracking import Tracker
from dynid.kinematics.tree import SPHERICAL, times_pure, tree_of
from dynid.mechanism.mechanism import Mechanism

_SINGULAR = 1e4  # condition number beyond which independent coordinates are not used at a pose
_NEARLY = 0.3


class TreeFreedoms:
    """A tree: N is constant, couplings included."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        mapping = coordinate_map(mechanism, mechanism.positions)
        self._G = mapping.velocities
        self.independent = np.array([mechanism.coordinates.index(name) for name in mapping.independent])
        self.dof = self._G.shape[1]
        self.closure = Closure(mechanism)
        self.plan = self._elimination()

    def _elimination(self) -> Elimination:
        """Map from independent to all coordinates, by couplings."""
        where, none = self.closure.tables[4], np.zeros(0, dtype=np.int64)
        if not self.closure.count:
            tables = (np.zeros((0, k), dtype=np.int64) for k in (4, 4, 3))
            return Elimination(self.independent, none, none, np.zeros((0, 2), dtype=np.int64), 0, *tables)
        A = self.closure.values(np.zeros((1, len(self.mechanism.positions)))).A
        plan = eliminate(A, self.independent.tolist(), (where[0], where[1]))
        if plan is None:
            raise InputError(f"the couplings of robot '{self.mechanism.name}' contradict each other")
        return plan

    def tangent(self, q: Float[Array, "n q"]) -> Float[Array, "n v d"]:
        """N with dq = N dy."""
        return np.broadcast_to(self._G, (len(q), *self._G.shape))

    def regular(self, q: Float[Array, "n q"]) -> bool:
        """Whether the independent coordinates move the mechanism in every direction: always."""
        return True

    def lifted(
        self, q: Float[Array, "n q"], dy: Float[Array, "n d"], gamma: Float[Array, "n c"] | None = None
    ) -> Float[Array, "n v"]:
        """Rates of all coordinates from the independent ones."""
        return np.asarray(dy @ self._G.T)

    def bias(self, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"]) -> Inexact[Array, "n c"]:
        """Bias of the closure equations: there are none."""
        return np.zeros((len(q), 0), np.result_type(q, dq))

    def jacobian(self, q: Inexact[Array, "n q"]) -> Inexact[Array, "n c v"]:
        """Of the closure equations."""
        return np.zeros((len(q), 0, self._G.shape[0]), q.dtype)

    def projected(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"]
    ) -> tuple[Float[Array, "n q"], Float[Array, "n v"]]:
        """The nearest feasible state: every state is feasible."""
        return q, dq


class ClosedFreedoms:
    """A closed mechanism: as many coordinates as degrees of freedom move the others through the loops.

    Args:
        poses: Closed poses at which the coordinates must be valid, shape (s, n_q); default poses around
            the start pose.
    """

    def __init__(self, mechanism: Mechanism, poses: Float[Array, "s q"] | None = None) -> None:
        self.mechanism = mechanism
        self.assembly = assembly_of(mechanism)
        self.closure = self.assembly.closure
        self.dof = self.assembly.dof
        poses = self.assembly.samples if poses is None else poses
        A = self.assembly.closure.values(poses).A
        self.independent = np.array(self._choice(self.assembly.tangent(A)))
        where = self.assembly.closure.tables[4]
        others = self.assembly.closure.values(self.assembly.samples).A
        plan = eliminate(A, self.independent.tolist(), (where[0], where[1]), others)
        if plan is None:
            raise InputError(
                f"robot '{mechanism.name}' has no valid set of independent coordinates near its start pose",
                file=mechanism.file,
                remedy="give a pose farther from singularities under `start:`",
            )
        ones, none = np.ones(self.dof), np.zeros((0, 3), dtype=np.int64)
        places = np.arange(self.dof)
        sensors = Sensors(self.independent, self.independent, places, ones, none)
        self.plan = plan
        self._tracker = Tracker(self.assembly.closure, plan, sensors)

    def _choice(self, N: Float[Array, "s v d"]) -> list[int]:
        """Scalar coordinates if they are nearly as good: their rates are derivatives of positions."""
        robot = self.mechanism
        scalar = [i for i, name in enumerate(robot.coordinates) if name in robot.positions]
        best = best_coordinates(N, range(len(robot.coordinates)))
        if len(scalar) < self.dof:
            return best
        plain = best_coordinates(N, scalar)
        least = [singular_values(N[:, columns])[:, -1].min() for columns in (plain, best)]
        return plain if least[0] > _NEARLY * least[1] else best

    def tangent(self, q: Float[Array, "n q"]) -> Float[Array, "n v d"]:
        """N with dq = N dy; where the independent coordinates fail, any basis of the tangent space."""
        N, poor = self._tangent(q)
        if poor.any():
            N[poor] = self.assembly.tangent(self.assembly.closure.values(q[poor]).A)
        return N

    def regular(self, q: Float[Array, "n q"]) -> bool:
        """Whether the independent coordinates move the mechanism in every direction."""
        return not self._tangent(q)[1].any()

    def _tangent(self, q: Float[Array, "n q"]) -> tuple[Float[Array, "n v d"], Bool[Array, "n"]]:
        still = np.zeros((len(q), self.assembly.closure.count))
        _, N, condition = self._tracker.nearest_rates(q, np.zeros((len(q), self.dof)), still)
        return N, ~(condition < _SINGULAR)

    def lifted(
        self, q: Float[Array, "n q"], dy: Float[Array, "n d"], gamma: Float[Array, "n c"] | None = None
    ) -> Float[Array, "n v"]:
        """Rates x of all coordinates with A x = -gamma from the independent ones.

        Where these fail, the minimum-norm x: with dy = 0 it is equally valid.
        """
        still = np.zeros((len(q), self.assembly.closure.count)) if gamma is None else gamma
        x, _, condition = self._tracker.nearest_rates(q, dy, still)
        poor = ~(condition < _SINGULAR)
        if poor.any():
            x[poor] = -self.assembly.split(self.assembly.closure.values(q[poor]).A).step(still[poor])
        return x

    def bias(self, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"]) -> Inexact[Array, "n c"]:
        """Acceleration of the closure equations at ddq = 0."""
        return self.assembly.closure.bias(q, dq)

    def jacobian(self, q: Inexact[Array, "n q"]) -> Inexact[Array, "n c v"]:
        """Of the closure equations."""
        return self.assembly.closure.values(q).A

    def projected(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"]
    ) -> tuple[Float[Array, "n q"], Float[Array, "n v"]]:
        """The nearest feasible state."""
        q = self.assembly.close(q, iterations=4)
        N = self.assembly.tangent(self.assembly.closure.values(q).A)
        return q, np.einsum("nvd,nwd,nw->nv", N, N, dq, optimize=True)


class OrthonormalFreedoms(ClosedFreedoms):
    """A closed mechanism whose directions are orthonormal at every pose: no coordinate is preferred, and
    none can fail; but the independent velocities are not rates of coordinates."""

    def tangent(self, q: Float[Array, "n q"]) -> Float[Array, "n v d"]:
        """Orthonormal N in the units of the coordinates."""
        return self.assembly.tangent(self.assembly.closure.values(q).A)

    def regular(self, q: Float[Array, "n q"]) -> bool:
        """Always."""
        return True

    def lifted(
        self, q: Float[Array, "n q"], dy: Float[Array, "n d"], gamma: Float[Array, "n c"] | None = None
    ) -> Float[Array, "n v"]:
        """Rates x with A x = -gamma: N dy plus the minimum-norm solution for gamma."""
        parts = self.assembly.split(self.assembly.closure.values(q).A)
        x = np.einsum("nvd,nd->nv", parts.N, dy)
        return np.asarray(x if gamma is None else x - parts.step(gamma))


Freedoms = TreeFreedoms | ClosedFreedoms


def freedoms_of(mechanism: Mechanism) -> Freedoms:
    """The independent velocities of a mechanism."""
    return ClosedFreedoms(mechanism) if mechanism.is_closed else TreeFreedoms(mechanism)


def position_rates(
    mechanism: Mechanism, q: Float[Array, "n q"], dq: Float[Array, "n v"]
) -> Float[Array, "n q"]:
    """Time derivatives of positions: velocities, and for a quaternion q (0, omega) / 2."""
    if not any(joint.has_quaternion for joint in mechanism.joints):
        return dq
    tree = tree_of(mechanism)
    rates = np.zeros(q.shape, np.result_type(q, dq))
    for kind, p, v in zip(tree.kind.tolist(), tree.q_start.tolist(), tree.v_start.tolist(), strict=True):
        if kind == SPHERICAL:
            rates[:, p : p + 4] = 0.5 * times_pure(q[:, p : p + 4], dq[:, v : v + 3])
        elif kind != 0:
            rates[:, p] = dq[:, v]
    return rates
