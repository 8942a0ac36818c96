"""States at which an export is compared with the estimate, and efforts there.

    tau = (J^T)^+ N^T f          f = W chi, or what another program computes for the tree

f are the efforts of all tree coordinates. N are directions in which the loops allow motion, J = C N the
motors along them: efforts of least norm where actuation is redundant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.sensors import measured_motion, sensors_of
from dynid.kinematics.tension import least_norm, motor_jacobian
from dynid.mechanism.drive_terms import LOADED
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, owners_of, source_loads
from dynid.projection.load import loading
from dynid.projection.structure import random_states
from dynid.regressor.few_states import few_states_matrix

_SAME = 1e-6  # rad or m: a pose found again
_REACH = 0.3  # of a random walk from the start pose, in rad or m along each free direction
_TILE = 512


@dataclass(frozen=True, eq=False)
class TreeStates:
    """Positions, velocities and accelerations of all tree coordinates, and tangent directions N."""

    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    N: Float[Array, "n v d"]


def tree_states(
    mechanism: Mechanism, q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
) -> TreeStates:
    """All coordinates from the measured ones, through couplings or loops; samples need not be neighbours."""
    if not mechanism.is_closed:
        coordinates = coordinate_map(mechanism)
        N = np.broadcast_to(coordinates.velocities, (len(q), *coordinates.velocities.shape))
        return TreeStates(*coordinates.tree_states(q, dq, ddq), N)
    assembly, sensors = assembly_of(mechanism), sensors_of(mechanism, mechanism.measured_positions)
    pose = assembly.follow(q, sensors)
    rates = assembly.rates(pose, *sensors.rates(q, dq, ddq), sensors)
    return TreeStates(pose, rates.dq, rates.ddq, rates.N)


def drawn_states(
    mechanism: Mechanism, n: int, seed: int
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]]:
    """Random states of the measured coordinates: within limits, loops closed, on the branch of `start`."""
    rng = np.random.default_rng(seed)
    if not mechanism.is_closed:
        q, dq, ddq = random_states(coordinate_map(mechanism), rng, n)
        return measured_motion(mechanism, _within(mechanism, q), dq, ddq)
    assembly, sensors = assembly_of(mechanism), sensors_of(mechanism, mechanism.measured_positions)
    q = assembly.walk(rng, n, reach=_REACH)
    dq, ddq, _ = assembly.random_rates(q, rng)
    measured = measured_motion(mechanism, q, dq, ddq)
    again = assembly.follow(measured[0], sensors)
    same = np.abs(again - q).max(axis=1, initial=0.0) < _SAME
    if not same.any():
        raise InputError(
            f"no random pose of robot '{mechanism.name}' follows from its measured coordinates",
            remedy="give a regular pose under `start:`",
        )
    return measured[0][same], measured[1][same], measured[2][same]


def _within(mechanism: Mechanism, q: Float[Array, "n q"]) -> Float[Array, "n q"]:
    """Positions of joints with limits moved between them; couplings are left as they are."""
    if mechanism.couplings:
        return q
    q = q.copy()
    for k, name in enumerate(mechanism.positions):
        span = mechanism.limits.get(name, {}).get("q")
        if span is not None:
            size = np.pi if mechanism.joint_of_position[name].is_angle(name) else 1.0
            q[:, k] = span[0] + (span[1] - span[0]) * (q[:, k] / size + 1.0) / 2.0
    return q


def model_efforts(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: TreeStates
) -> Float[Array, "n a"]:
    """Efforts of the actuators by dynid's own equations, payloads mounted, shape (n, a)."""
    return balanced(mechanism, states, model_rows(mechanism, parameters, chi, states))


def balanced(mechanism: Mechanism, states: TreeStates, rows: Float[Array, "n d"]) -> Float[Array, "n a"]:
    """Least efforts of the actuators with J^T tau = rows, shape (n, a)."""
    return least_norm(motor_jacobian(mechanism, states.N), rows)


def along(states: TreeStates, f: Float[Array, "n v"]) -> Float[Array, "n d"]:
    """Efforts f of the tree coordinates along the free directions, N^T f, shape (n, d)."""
    return np.asarray(np.einsum("nvd,nv->nd", states.N, f))


def model_rows(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: TreeStates
) -> Float[Array, "n d"]:
    """N^T W chi, shape (n, d): also what no motor balances, as at a floating base."""
    return np.concatenate([W @ chi for W in row_matrices(mechanism, parameters, chi, states)])


def row_matrices(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: TreeStates
) -> Iterator[Float[Array, "n d p"]]:
    """N^T W of consecutive states; load-dependent friction has the loads of chi."""
    for start in range(0, len(states.q), _TILE):
        at = slice(start, start + _TILE)
        part = TreeStates(states.q[at], states.dq[at], states.ddq[at], states.N[at])
        yield _rows(mechanism, parameters, chi, part)


def _rows(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: TreeStates
) -> Float[Array, "n d p"]:
    motion, mounted = (states.q, states.dq, states.ddq), tuple(mechanism.payloads)
    loads = None
    if owners_of(mechanism, *LOADED):
        n_sources = len(mechanism.coordinates) + len(mechanism.actuators)
        none = np.zeros((len(states.q), n_sources))
        W = few_states_matrix(mechanism, parameters, motion, mounted, none)
        bodies = np.where(loading(mechanism, parameters), chi, 0.0)
        loads = source_loads(mechanism, balanced(mechanism, states, along(states, W @ bodies)))
    W = few_states_matrix(mechanism, parameters, motion, mounted, loads)
    return np.asarray(np.einsum("nvd,nvp->ndp", states.N, W))
