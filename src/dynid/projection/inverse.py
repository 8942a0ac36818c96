"""Model `inverse`: one equation per degree of freedom, N = dq/dq_a.

With motor velocities dq_m = C G u (u independent velocities, C actuators, G couplings)

    N = G [ (C G)^+ | null(C G) ]      N^T W_tree chi = [ tau ; 0 ]

so that a row is what one motor feels, and a joint without motor gives an equation whose right
side is zero. More motors than freedoms: N = G, and the right side is (C G)^T tau.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit
from dynid.projection.projection import Directions


def inverse_directions(mechanism: Mechanism) -> Directions:
    """All rows of the inverse model of a tree: its motors, then its passive joints."""
    coordinates = coordinate_map(mechanism)
    G = coordinates.velocities
    CG = mechanism.actuator_map @ G
    a, u = CG.shape
    if a and np.linalg.matrix_rank(CG) < a:
        names = coordinates.independent
        units = tuple(effort_unit(mechanism, name) for name in names)
        return Directions(names, units, G, CG.T)
    passive, directions = _passive(CG, coordinates.independent)
    N = G @ np.column_stack([np.linalg.pinv(CG) if a else np.zeros((u, 0)), directions])
    N = np.where(np.abs(N) < 1e-14 * np.abs(N).max(initial=1.0), 0.0, N)
    names = (*(actuator.name for actuator in mechanism.actuators), *passive)
    owners = (*(actuator.name for actuator in mechanism.actuators), *(name.split(" ")[0] for name in passive))
    units = tuple(effort_unit(mechanism, owner) for owner in owners)
    effort_map = np.concatenate([np.eye(a), np.zeros((len(passive), a))])
    return Directions(names, units, N, effort_map)


def _passive(CG: Float[Array, "a u"], names: Sequence[str]) -> tuple[tuple[str, ...], Float[Array, "u n"]]:
    """Directions no motor feels: joints nobody drives, else an orthonormal basis."""
    idle = [i for i in range(CG.shape[1]) if not np.any(CG[:, i])]
    dimension = CG.shape[1] - CG.shape[0]
    if len(idle) == dimension:
        directions = np.zeros((CG.shape[1], dimension))
        directions[idle, range(dimension)] = 1.0
        return tuple(names[i] for i in idle), directions
    directions = np.linalg.svd(CG)[2][CG.shape[0] :].T
    owner = [names[int(np.argmax(np.abs(column)))] for column in directions.T]
    return tuple(f"{name} (free {k + 1})" for k, name in enumerate(owner)), directions
