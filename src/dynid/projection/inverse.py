"""Model `inverse`: one equation per degree of freedom, N = dq/dq_a.

With motor velocities dq_m = C G u (u independent velocities, C actuators, G couplings)

    N = G [ (C G)^+ | null(C G) ]      N^T W_tree chi = [ tau ; 0 ]

so that a row is the equation of one motor, and a joint without motor gives an equation whose right
side is zero. With more motors than degrees of freedom, N = G, and the right side is (C G)^T tau.

With loops or cables G is an orthonormal basis of the tangent space, and so is null(C G): rows per unit
velocity of some coordinates would grow without bound where these hardly move.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import inv, singular_values
from dynid.common.errors import InputError
from dynid.kinematics.assembly import Assembly, assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.elimination import best_coordinates
from dynid.kinematics.locked_motion import LockedMotion
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit
from dynid.projection.model import Model, rows_of
from dynid.projection.projection import Directions, Moving
from dynid.projection.structure import structural_factor

_SEED = 20150713
_STILL = 1e-9  # of a unit step along the loops' tangent: rounding
_TANGENTS: WeakKeyDictionary[Assembly, Float[Array, "n v d"]] = WeakKeyDictionary()  # at generic poses


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
    return Directions(names, units, N, _own_efforts(a, len(passive)))


def _closed_directions(mechanism: Mechanism) -> Directions:
    """Rows of a closed robot: N = dq/dy, y the motors; with more motors than degrees of freedom y are
    joints, and the right side is J_a^T tau; with fewer see `_underactuated`."""
    assembly = assembly_of(mechanism)
    C, dof = mechanism.actuator_map, assembly.dof
    if assembly not in _TANGENTS:
        q = assembly.walk(np.random.default_rng(_SEED), 16, reach=0.5)
        _TANGENTS[assembly] = assembly.tangent(assembly.closure.values(q).A)
    basis = _TANGENTS[assembly]
    _check_motors(mechanism, basis)
    if len(C) < dof:
        return _underactuated(mechanism)
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
        speeds = y @ N
        # Where the motors are what is measured, N is per unit of their speeds already.
        return N if np.array_equal(speeds, np.broadcast_to(np.eye(dof), speeds.shape)) else N @ inv(speeds)

    return Directions(names, units, None, effort_map, moving)


def _underactuated(mechanism: Mechanism) -> Directions:
    """Rows of an underactuated closed robot: N = [minimum motion per motor | free motion].

    The free motion, on which no motor acts, has an orthonormal basis. If it consists of single joints, the
    rows have their names; else the basis is the one nearest to a reference, named free1, free2, ...
    """
    C = mechanism.actuator_map
    motion = LockedMotion(mechanism, C)
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    moves = [i for i in motion.carrying if np.abs(motion.samples[:, i]).max() > _STILL]
    single = len(moves) == motion.count
    free = tuple(f"free{k + 1}" for k in range(motion.count))
    names = (*motors, *((mechanism.coordinates[i] for i in moves) if single else free))
    mixed = ", ".join(dict.fromkeys(effort_unit(mechanism, mechanism.coordinates[i]) for i in moves))
    units = tuple(mixed if name in free else effort_unit(mechanism, name) for name in names)

    def toward(reference: Float[Array, "v k"]) -> Moving:
        def moving(N: Float[Array, "n v d"], dq: Float[Array, "n v"]) -> Float[Array, "n v k"]:
            basis = motion.aligned(motion.basis(N), reference)
            return np.concatenate([motion.driven(N), basis], axis=2)

        return moving

    def along(N: Float[Array, "n v d"]) -> tuple[Moving, float]:
        reference, close = motion.reference(motion.basis(N))
        return toward(reference), close

    if single:
        reference = np.eye(len(mechanism.coordinates))[:, moves]
        return Directions(names, units, None, _own_efforts(len(C), len(moves)), toward(reference))
    whole = toward(motion.reference(motion.samples)[0])
    return Directions(names, units, None, _own_efforts(len(C), motion.count), whole, along=along)


def _own_efforts(motors: int, free: int) -> Float[Array, "k a"]:
    """A row for each motor, then rows without effort."""
    return np.concatenate([np.eye(motors), np.zeros((free, motors))])


def _check_motors(mechanism: Mechanism, basis: Float[Array, "s v d"]) -> None:
    """Refuse motors that the loops lock, and motors whose motion follows from the others."""
    speeds = mechanism.actuator_map @ basis
    names = [actuator.name for actuator in mechanism.actuators]
    still = np.abs(speeds).max(axis=(0, 2), initial=0.0) < _STILL
    if still.any():
        raise InputError(
            f"motor '{names[int(np.argmax(still))]}' cannot move: the loops lock it",
            file=mechanism.file,
            place="actuators",
            remedy="put the motor on a joint that moves, or check the loops",
        )
    rank = int((singular_values(speeds) > _STILL).sum(axis=1).max(initial=0))
    if len(names) <= speeds.shape[2] and rank < len(names):
        raise InputError(
            f"the motors {', '.join(names)} drive only {rank} of the robot's {speeds.shape[2]} degrees of"
            " freedom: the motion of one motor follows from the others",
            file=mechanism.file,
            place="actuators",
            remedy="name motors that move independently; list two motors on one joint as one actuator",
        )


def _passive(CG: Float[Array, "a u"], names: Sequence[str]) -> tuple[tuple[str, ...], Float[Array, "u n"]]:
    """Directions on which no motor acts: joints without motor, else an orthonormal basis."""
    idle = [i for i in range(CG.shape[1]) if not np.any(CG[:, i])]
    dimension = CG.shape[1] - CG.shape[0]
    if len(idle) == dimension:
        directions = np.zeros((CG.shape[1], dimension))
        directions[idle, range(dimension)] = 1.0
        return tuple(names[i] for i in idle), directions
    directions = np.linalg.svd(CG)[2][CG.shape[0] :].T
    owner = [names[int(np.argmax(np.abs(column)))] for column in directions.T]
    return tuple(f"{name} (free {k + 1})" for k, name in enumerate(owner)), directions


INVERSE = Model(
    "inverse",
    "one equation per degree of freedom",
    inverse_directions,
    rows_of,
    structural_factor,
    effort_rows=True,
    per_sample=True,
)
