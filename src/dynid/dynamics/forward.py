"""Forward dynamics: accelerations of a mechanism with given parameters, and their exact derivatives.

    N^T ID(q, dq, ddq; chi) = N^T B tau,      ddq = N ddy + drift,      A drift = -gamma

ID is the tree's inverse dynamics W chi. Derivatives of ID and of the loops come from the complex step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Inexact, Int
from dynid.common.batched import solve
from dynid.common.errors import NoResultError
from dynid.dynamics.freedoms import Freedoms, OrthonormalFreedoms, freedoms_of, position_rates
from dynid.kinematics.closure import Tables
from dynid.kinematics.tree import tree_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import owners_of, parameter_table, speed_map
from dynid.regressor.layout import tree_regressor

_RUN_AWAY = 1e6  # m, rad or per second
_STEP = 1e-30  # of the complex step: no difference is taken, so no digit is lost
SINGULAR = 1e4  # size of N beyond which independent coordinates are not used at a pose
_COMPILED = ("Fv", "Ia")


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the independent accelerations.

    Attributes:
        by_position, by_velocity: With respect to the independent coordinates, shape (n, d, d).
        by_parameter: With respect to the standard parameters, shape (n, d, p).
        by_closure: With respect to constants of closure equations, shape (n, d, r); None unless requested.
    """

    by_position: Float[Array, "n d d"]
    by_velocity: Float[Array, "n d d"]
    by_parameter: Float[Array, "n d p"]
    by_closure: Float[Array, "n d r"] | None = None


class ForwardDynamics:
    """Accelerations of a mechanism from efforts.

    Args:
        chi: Standard parameters, in the order of the table, SI; equivalent values give the same result.
        mounted: Payloads on the robot.
        freedoms: Shared with other parameters of the same mechanism; default its own.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        chi: Float[Array, "p"],
        mounted: Sequence[str] = (),
        freedoms: Freedoms | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.freedoms = freedoms or freedoms_of(mechanism)
        self.chi = np.asarray(chi, dtype=float)
        self._n_v = len(mechanism.coordinates)
        self._regressor = tree_regressor(mechanism, parameter_table(mechanism), np.eye(self._n_v), mounted)
        self._coefficients = self._regressor.layout.coefficients(self.chi)
        self._C = mechanism.actuator_map
        self._compiled = compiled_accelerations(mechanism, self.freedoms, self.chi, mounted)

    def inverse(
        self, q: Inexact[Array, "n q"], dq: Inexact[Array, "n v"], ddq: Inexact[Array, "n v"]
    ) -> Inexact[Array, "n v"]:
        """Efforts ID(q, dq, ddq) along all tree coordinates, in [N m] or [N]."""
        packed = self._regressor.packed(q, dq, ddq, np.zeros((len(q), self._n_v)))
        return self._regressor.layout.sums(packed, self._coefficients).T

    def accelerations(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], tau: Float[Array, "n a"]
    ) -> Accelerations:
        """Accelerations of states (q, dq) under efforts tau of the actuators."""
        if self._compiled is None:
            return self._by_inverse(q, dq, tau)
        solution, fine = self._compiled(q, dq, tau @ self._C)
        # A diverged state is not updated; the others of its batch continue.
        again = ~fine & np.all(np.abs(np.concatenate([q, dq], axis=1)) < _RUN_AWAY, axis=1)
        if again.any():
            slow = self._by_inverse(q[again], dq[again], tau[again])
            solution.ddq[again], solution.N[again], solution.mass[again] = slow.ddq, slow.N, slow.mass
        return solution

    def _by_inverse(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], tau: Float[Array, "n a"]
    ) -> Accelerations:
        """The same by inverse dynamics: with any drive terms and any directions."""
        n, d = len(q), self.freedoms.dof
        N = self.freedoms.tangent(q)
        drift = self.freedoms.lifted(q, np.zeros((n, d)), self.freedoms.bias(q, dq))
        # One unit of each independent acceleration minus zero acceleration: the columns of M N.
        along = np.concatenate([drift[None], drift[None] + np.moveaxis(N, 2, 0)])
        repeated = (np.tile(q, (d + 1, 1)), np.tile(dq, (d + 1, 1)))
        efforts = self.inverse(*repeated, along.reshape(-1, self._n_v)).reshape(d + 1, n, self._n_v)
        MN = np.moveaxis(efforts[1:] - efforts[0], 0, 2)
        mass = np.swapaxes(N, 1, 2) @ MN
        left = np.einsum("nvd,nv->nd", N, tau @ self._C - efforts[0])
        ddy = solve(mass, left[:, :, None])[:, :, 0]
        return Accelerations(drift + np.einsum("nvd,nd->nv", N, ddy), N, mass)

    def inertia(self, q: Float[Array, "n q"]) -> tuple[Float[Array, "n v d"], Float[Array, "n d d"]]:
        """Tangent directions, and the mass matrix along them."""
        at_rest = self._by_inverse(q, np.zeros((len(q), self._n_v)), np.zeros((len(q), len(self._C))))
        return at_rest.N, at_rest.mass

    def slopes(
        self,
        q: Float[Array, "n q"],
        dq: Float[Array, "n v"],
        tau: Float[Array, "n a"],
        accelerated: Accelerations,
        closures: Int[Array, "r"] | None = None,
    ) -> Slopes:
        """Exact derivatives of the independent accelerations at states with known accelerations.

        From N^T (ID - B tau) = 0: M dddy = -N^T dID - dN^T (ID - B tau) - N^T W dchi, with dID taken
        at constant ddy.

        Args:
            closures: Closure equations f = 0 whose constants may change (f = constant, e.g. a cable's
                length): the derivatives with respect to these too.
        """
        if not self.freedoms.regular(q):
            raise NoResultError("a pose is singular for the coordinates used for the derivatives")
        N, d = accelerated.N, self.freedoms.dof
        rest = self.inverse(q, dq, accelerated.ddq) - tau @ self._C
        along = N if closures is None else np.concatenate([N, self.responses(q, closures)], axis=2)
        sides = [self._by_pose(q, dq, accelerated, rest, along), self._by_velocity(q, dq, accelerated)]
        packed = self._regressor.packed(q, dq, accelerated.ddq, np.zeros((len(q), self._n_v)))
        W = self._regressor.layout.dense(packed, len(self.chi))
        solved = solve(accelerated.mass, np.concatenate([*sides, -np.swapaxes(N, 1, 2) @ W], axis=2))
        m = along.shape[2]
        return Slopes(
            solved[:, :, :d],
            solved[:, :, m : m + d],
            solved[:, :, m + d :],
            None if closures is None else solved[:, :, d:m],
        )

    def responses(self, q: Float[Array, "n q"], closures: Int[Array, "r"]) -> Float[Array, "n v r"]:
        """P with A P = 1 for each of some closure equations, 0 for the others; independent ones are fixed."""
        n, r, count = len(q), len(closures), self.freedoms.jacobian(q[:1]).shape[1]
        gamma = np.zeros((r, n, count))
        gamma[np.arange(r), :, closures] = -1.0
        none = np.zeros((r * n, self.freedoms.dof))
        x = self.freedoms.lifted(np.tile(q, (r, 1)), none, gamma.reshape(r * n, count))
        return np.moveaxis(x.reshape(r, n, self._n_v), 0, 2)

    def stiffness(
        self, q: Float[Array, "n q"], closures: Int[Array, "r"] | None = None
    ) -> tuple[Float[Array, "n d"], Float[Array, "n d d"], Float[Array, "n d r"]]:
        """Statics: efforts N^T ID(q, 0, 0), their derivatives with respect to the independent coordinates
        (where they vanish: the Hessian of the potential energy on the tangent space), and to closures."""
        still, d = np.zeros((len(q), self._n_v)), self.freedoms.dof
        N = self.freedoms.tangent(q)
        rest = self.inverse(q, still, still)
        along = N if closures is None else np.concatenate([N, self.responses(q, closures)], axis=2)
        at_rest = Accelerations(still, N, np.zeros((len(q), d, d)))
        change = -self._by_pose(q, still, at_rest, rest, along)
        return np.einsum("nvd,nv->nd", N, rest), change[:, :, :d], change[:, :, d:]

    def _by_pose(
        self,
        q: Array,
        dq: Array,
        motion: Accelerations,
        rest: Float[Array, "n v"],
        along: Float[Array, "n v m"],
    ) -> Float[Array, "n d m"]:
        """-N^T dID - dN^T (ID - B tau) for changes of the pose; independent rates are fixed.

        All directions are concatenated in one batch.
        """
        free, (n, v, d), m = self.freedoms, motion.N.shape, along.shape[2]
        steps = np.moveaxis(along, 2, 0).reshape(m * n, v)
        many, rates, seconds = (np.tile(x, (m, 1)) for x in (q, dq, motion.ddq))
        none = np.zeros((m * n, d))
        slope = 1j * _STEP * position_rates(self.mechanism, many, steps)
        bent = free.jacobian(many + slope).imag / _STEP  # how A changes with the pose
        twist = free.lifted(many, none, np.einsum("ncv,nv->nc", bent, rates))
        gain = free.bias(many + slope, rates + 1j * _STEP * twist).imag / _STEP
        jerk = free.lifted(many, none, gain + np.einsum("ncv,nv->nc", bent, seconds))
        turned = self.inverse(many + slope, rates + 1j * _STEP * twist, seconds + 1j * _STEP * jerk)
        sides = -np.einsum("nve,knv->nek", motion.N, turned.imag.reshape(m, n, v) / _STEP)
        if bent.size:
            for e in range(d):
                tilt = free.lifted(
                    many, none, np.einsum("ncv,nv->nc", bent, np.tile(motion.N[:, :, e], (m, 1)))
                )
                sides[:, e] -= np.einsum("knv,nv->nk", tilt.reshape(m, n, v), rest)
        return np.asarray(sides)

    def _by_velocity(self, q: Array, dq: Array, motion: Accelerations) -> Float[Array, "n d d"]:
        """-N^T dID for changes of the independent velocities."""
        free, (n, v, d) = self.freedoms, motion.N.shape
        steps = np.moveaxis(motion.N, 2, 0).reshape(d * n, v)
        many, rates, seconds = (np.tile(x, (d, 1)) for x in (q, dq, motion.ddq))
        push = free.bias(many + 0j, rates + 1j * _STEP * steps).imag / _STEP
        jolt = free.lifted(many, np.zeros((d * n, d)), push)
        pushed = self.inverse(many + 0j, rates + 1j * _STEP * steps, seconds + 1j * _STEP * jolt)
        return np.asarray(-np.einsum("nve,knv->nek", motion.N, pushed.imag.reshape(d, n, v) / _STEP))


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Accelerations of a batch of states under efforts.

    Attributes:
        ddq: Of all coordinates, shape (n, v), per s^2.
        N: Tangent directions in the independent coordinates, shape (n, v, d).
        mass: Mass matrix of the independent coordinates, shape (n, d, d).
    """

    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]
    mass: Float[Array, "n d d"]


class Masses(NamedTuple):
    """Inertias of bodies and rotors, as input of the kernels.

    Attributes:
        bodies: Link and frame of each body that has inertia.
        inertia: Its ten parameters, shape (b, 10), SI.
        rotors: Rows R (o, v) of rotor velocities, and their inertias (o,), SI.
        gravity: Base frame, shape (3,), in [m/s^2].
    """

    bodies: tuple[Array, Array]
    inertia: Float[Array, "b 10"]
    rotors: tuple[Float[Array, "o v"], Float[Array, "o"]]
    gravity: Float[Array, "3"]


def masses_of(mechanism: Mechanism, values: Mapping[str, float], mounted: Sequence[str]) -> Masses:
    """Bodies and rotors with standard parameters by name, SI; those not named are zero."""
    tree, absent = tree_of(mechanism), set(mechanism.payloads) - set(mounted)
    inertia = np.array(
        [
            [0.0 if name in absent else values.get(f"{symbol}_{name}", 0.0) for symbol in SYMBOLS]
            for name in tree.body_names
        ]
    ).reshape(-1, 10)
    heavy = np.flatnonzero(np.any(inertia != 0.0, axis=1))
    owners = [owner for owner in owners_of(mechanism, "Ia") if values.get(f"Ia_{owner}", 0.0) != 0.0]
    rotors = speed_map(mechanism, owners), np.array([values[f"Ia_{owner}"] for owner in owners])
    bodies = np.ascontiguousarray(tree.body_link[heavy]), np.ascontiguousarray(tree.body_frame[heavy])
    return Masses(bodies, np.ascontiguousarray(inertia[heavy]), rotors, tree.gravity)


@dataclass(frozen=True, eq=False)
class CompiledAccelerations:
    """The compiled pass for one mechanism with its parameters.

    Attributes:
        viscous: Rows S (o, v) of the velocities that are damped, and Fv of each (o,), SI.
    """

    closure: Tables
    plan: tuple[Array, ...]
    masses: Masses
    viscous: tuple[Float[Array, "o v"], Float[Array, "o"]]

    def __call__(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], side: Float[Array, "n v"]
    ) -> tuple[Accelerations, Bool[Array, "n"]]:
        """Accelerations under generalised efforts, and the states at which they are reliable."""
        from dynid.dynamics.kernels import accelerations

        (n, v), d = dq.shape, self.plan[0].size
        S, Fv = self.viscous
        ddq, N, mass, condition = np.empty((n, v)), np.empty((n, v, d)), np.empty((n, d, d)), np.empty(n)
        batch = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, side - (dq @ S.T * Fv) @ S))
        accelerations(self.closure, self.plan, self.masses, *batch, ddq, N, mass, condition)
        return Accelerations(ddq, N, mass), (condition < SINGULAR) & np.isfinite(ddq).all(axis=1)


def compiled_accelerations(
    mechanism: Mechanism, freedoms: Freedoms, chi: Float[Array, "p"], mounted: Sequence[str]
) -> CompiledAccelerations | None:
    """The compiled pass where it is applicable: independent coordinates, no drive terms except Fv and Ia."""
    if isinstance(freedoms, OrthonormalFreedoms):
        return None
    table = parameter_table(mechanism)
    values = dict(zip((parameter.name for parameter in table), chi.tolist(), strict=True))
    if any(
        parameter.kind != "inertial" and parameter.symbol not in _COMPILED and values[parameter.name]
        for parameter in table
    ):
        return None
    damped = owners_of(mechanism, "Fv")
    viscous = speed_map(mechanism, damped), np.array([values[f"Fv_{owner}"] for owner in damped])
    masses = masses_of(mechanism, values, mounted)
    return CompiledAccelerations(freedoms.closure.tables, freedoms.plan.tables, masses, viscous)
