"""States at which an export is compared with the estimate, and efforts there.

    tau = (J^T)^+ N^T f          f = W chi, or what another program computes for the tree

f are the efforts of all tree coordinates. N are directions in which the loops allow motion, J = C N the
motors along them: efforts of least norm where actuation is redundant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.kinematics.assembly import assembly_of
from dynid.kinematics.coordinates import States, coordinate_map
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


def tree_states(
    mechanism: Mechanism, q: Float[Array, "n m"], dq: Float[Array, "n m"], ddq: Float[Array, "n m"]
) -> States:
    """All coordinates from the measured ones, through couplings or loops; samples need not be neighbours."""
    if not mechanism.is_closed:
        return coordinate_map(mechanism).states(0, (q, dq, ddq))
    assembly, sensors = assembly_of(mechanism), sensors_of(mechanism, mechanism.measured_positions)
    pose = assembly.follow(q, sensors)
    rates = assembly.rates(pose, *sensors.rates(q, dq, ddq), sensors)
    return States(pose, rates.dq, rates.ddq, rates.N, np.ones(len(pose), dtype=bool))


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
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: States
) -> Float[Array, "n a"]:
    """Efforts of the actuators by dynid's own equations, payloads mounted, shape (n, a)."""
    return balanced(mechanism, states, model_rows(mechanism, parameters, chi, states))


def balanced(mechanism: Mechanism, states: States, rows: Float[Array, "n d"]) -> Float[Array, "n a"]:
    """Least efforts of the actuators with J^T tau = rows, shape (n, a)."""
    return least_norm(motor_jacobian(mechanism, states.N), rows)


def along(states: States, f: Float[Array, "n v"]) -> Float[Array, "n d"]:
    """Efforts f of the tree coordinates along the free directions, N^T f, shape (n, d)."""
    return np.asarray(np.einsum("nvd,nv->nd", states.N, f))


def model_rows(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: States
) -> Float[Array, "n d"]:
    """N^T W chi, shape (n, d): also what no motor balances, as at a floating base."""
    return np.concatenate([W @ chi for W in row_matrices(mechanism, parameters, chi, states)])


def row_matrices(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: States
) -> Iterator[Float[Array, "n d p"]]:
    """N^T W of consecutive states; load-dependent friction has the loads of chi."""
    for start in range(0, len(states.q), _TILE):
        at = slice(start, start + _TILE)
        part = States(states.q[at], states.dq[at], states.ddq[at], states.N[at], states.fine[at])
        yield _rows(mechanism, parameters, chi, part)


def _rows(
    mechanism: Mechanism, parameters: Sequence[Parameter], chi: Float[Array, "p"], states: States
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
