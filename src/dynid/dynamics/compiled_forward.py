"""Accelerations of closed mechanisms without drive terms but viscous ones, by one compiled pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from dynid.arrays import Array
from dynid.dynamics.freedoms import ClosedFreedoms, Freedoms, OrthonormalFreedoms
from dynid.kinematics.tree import tree_of
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import parameter_table

_SINGULAR = 1e4  # size of N beyond which independent coordinates are given up at a pose


@dataclass(frozen=True, eq=False)
class Accelerations:
    """What efforts do to a batch of states.

    Attributes:
        ddq: Of all coordinates, shape (n, v), per s^2.
        N: Tangent directions in the independent coordinates, shape (n, v, d).
        mass: Mass matrix of the independent coordinates, shape (n, d, d).
    """

    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]
    mass: Float[Array, "n d d"]


@dataclass(frozen=True, eq=False)
class CompiledAccelerations:
    """The compiled pass for one mechanism with its parameters.

    Attributes:
        inertia: Ten parameters of each body, shape (b, 10), SI.
        viscous: Of each coordinate, shape (v,), in [N s/m] or [N m s/rad].
    """

    freedoms: ClosedFreedoms
    inertia: Float[Array, "b 10"]
    viscous: Float[Array, "v"]

    def __call__(
        self, q: Float[Array, "n q"], dq: Float[Array, "n v"], side: Float[Array, "n v"]
    ) -> tuple[Accelerations, Bool[Array, "n"]]:
        """Accelerations under generalised efforts, and at which states they can be trusted."""
        from dynid.dynamics.kernels import closed_accelerations

        free, tree = self.freedoms, self.freedoms.assembly.closure.tree
        n, v, d = len(q), tree.n_v, free.dof
        ddq, N, mass, condition = np.empty((n, v)), np.empty((n, v, d)), np.empty((n, d, d)), np.empty(n)
        batch = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, side - dq * self.viscous))
        bodies = (tree.body_link, tree.body_frame)
        tables = (free.assembly.closure.tables, free.plan.tables, bodies, tree.gravity, self.inertia)
        closed_accelerations(*tables, *batch, ddq, N, mass, condition)
        return Accelerations(ddq, N, mass), (condition < _SINGULAR) & np.isfinite(ddq).all(axis=1)


def compiled_accelerations(
    mechanism: Mechanism, freedoms: Freedoms, chi: Float[Array, "p"], mounted: Sequence[str]
) -> CompiledAccelerations | None:
    """The compiled pass where it serves: loops, independent coordinates, no drive terms but Fv."""
    if not isinstance(freedoms, ClosedFreedoms) or isinstance(freedoms, OrthonormalFreedoms):
        return None
    table = parameter_table(mechanism)
    values = dict(zip((one.name for one in table), chi.tolist(), strict=True))
    other = [
        one for one in table if one.kind != "inertial" and one.symbol != "Fv" and values[one.name] != 0.0
    ]
    driven = any(one.symbol == "Fv" and one.owner not in mechanism.coordinates for one in table)
    if other or driven:
        return None
    absent = set(mechanism.payloads) - set(mounted)
    inertia = [
        [0.0 if name in absent else values.get(f"{symbol}_{name}", 0.0) for symbol in SYMBOLS]
        for name in tree_of(mechanism).body_names
    ]
    viscous = [values.get(f"Fv_{name}", 0.0) for name in mechanism.coordinates]
    return CompiledAccelerations(freedoms, np.array(inertia).reshape(-1, 10), np.array(viscous))
