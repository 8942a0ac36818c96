"""Accelerations by one compiled pass: bodies, rotors and viscous friction, trees and closed mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from dynid.common.arrays import Array
from dynid.dynamics.freedoms import Freedoms, OrthonormalFreedoms
from dynid.kinematics.closure import Tables
from dynid.kinematics.tree import tree_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import owners_of, parameter_table, speed_map

SINGULAR = 1e4  # size of N beyond which independent coordinates are not used at a pose
_COMPILED = ("Fv", "Ia")


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


@dataclass(frozen=True, eq=False)
class Masses:
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
    owners = [one for one in owners_of(mechanism, "Ia") if values.get(f"Ia_{one}", 0.0) != 0.0]
    rotors = speed_map(mechanism, owners), np.array([values[f"Ia_{one}"] for one in owners])
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
        own = self.masses
        tables = (self.closure, self.plan, own.bodies, own.gravity, own.inertia, own.rotors)
        accelerations(*tables, *batch, ddq, N, mass, condition)
        return Accelerations(ddq, N, mass), (condition < SINGULAR) & np.isfinite(ddq).all(axis=1)


def compiled_accelerations(
    mechanism: Mechanism, freedoms: Freedoms, chi: Float[Array, "p"], mounted: Sequence[str]
) -> CompiledAccelerations | None:
    """The compiled pass where it is applicable: independent coordinates, no drive terms except Fv and Ia."""
    if isinstance(freedoms, OrthonormalFreedoms):
        return None
    table = parameter_table(mechanism)
    values = dict(zip((one.name for one in table), chi.tolist(), strict=True))
    if any(one.kind != "inertial" and one.symbol not in _COMPILED and values[one.name] for one in table):
        return None
    damped = owners_of(mechanism, "Fv")
    viscous = speed_map(mechanism, damped), np.array([values[f"Fv_{one}"] for one in damped])
    masses = masses_of(mechanism, values, mounted)
    return CompiledAccelerations(freedoms.closure.tables, freedoms.plan.tables, masses, viscous)
