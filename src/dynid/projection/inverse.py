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

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.elimination import best_coordinates
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit
from dynid.projection.projection import Directions

_SEED = 20150713
_STILL = 1e-9  # of a unit step along the loops' tangent: rounding


def inverse_directions(mechanism: Mechanism) -> Directions:
    """All rows of the inverse model: its motors, then its passive joints."""
    if mechanism.is_closed:
        return _closed_directions(mechanism)
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


def _closed_directions(mechanism: Mechanism) -> Directions:
    """Rows of a closed robot: N = dq/dy, y the motors and, where they are too few, passive joints;
    with more motors than freedoms y are joints, and the right side is J_a^T tau."""
    assembly = assembly_of(mechanism)
    C, dof = mechanism.actuator_map, assembly.dof
    q = assembly.walk(np.random.default_rng(_SEED), 16, reach=0.5)
    basis = assembly.tangent(assembly.closure.values(q).A)
    _check_motors(mechanism, basis)
    names, effort_map = tuple(actuator.name for actuator in mechanism.actuators), np.eye(len(C))
    y = C
    if len(C) > dof:
        y, names, effort_map = np.zeros((0, C.shape[1])), (), np.zeros((0, len(C)))
    for best in best_coordinates(basis, range(C.shape[1]), held=y):
        y = np.vstack([y, np.eye(C.shape[1])[best]])
        names = (*names, mechanism.coordinates[best])
        effort_map = np.vstack([effort_map, np.full(len(C), float(len(C) > dof))])
    units = tuple(effort_unit(mechanism, name) for name in names)

    def moving(N: Float[Array, "n v d"], dq: Float[Array, "n v"]) -> Float[Array, "n v k"]:
        return np.asarray(N @ np.linalg.inv(np.einsum("kv,nvd->nkd", y, N)))

    return Directions(names, units, None, effort_map, moving)


def _check_motors(mechanism: Mechanism, basis: Float[Array, "s v d"]) -> None:
    """Refuse motors that the loops hold still, and motors of which one follows from the others."""
    speeds = mechanism.actuator_map @ basis
    names = [actuator.name for actuator in mechanism.actuators]
    still = np.abs(speeds).max(axis=(0, 2), initial=0.0) < _STILL
    if still.any():
        raise InputError(
            f"motor '{names[int(np.argmax(still))]}' cannot move: the loops hold it still",
            file=mechanism.file,
            place="actuators",
            remedy="put the motor on a joint that moves, or check the loops",
        )
    rank = max((int(np.linalg.matrix_rank(one, tol=_STILL)) for one in speeds), default=0)
    if len(names) <= speeds.shape[2] and rank < len(names):
        raise InputError(
            f"the motors {', '.join(names)} move only {rank} of the robot's {speeds.shape[2]} freedoms:"
            " one of them follows from the others",
            file=mechanism.file,
            place="actuators",
            remedy="name motors that move on their own; two motors on one joint are one actuator",
        )


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
