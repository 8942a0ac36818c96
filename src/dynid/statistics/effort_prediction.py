"""Efforts that a motion will need, with what the covariance of the parameters makes of them.

    tau = (J^T)^+ N^T W (c + M x) + Z c_t,      power = dq^T W (c + M x)

eq. (11) of the leg-symmetry paper for any robot: N tangent directions, J = C N the motors along them,
x the estimates. Both are linear in x, so sigma_tau = |D M L| with D the rows above and C_x = L L^T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.kinematics.tension import driven_freedoms, motor_jacobian, tension_directions
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.kinematics import States
from dynid.regressor.layout import Batch
from dynid.regressor.moving import MovingRegressor
from dynid.statistics.reachable import reachable_states

_TILE = 512
_DRY = ("Fs", "Fs+", "Fs-")
_STANDSTILL = 1e-6  # rad/s or m/s: slower is rounding of a derivative, and its sign says nothing


@dataclass(frozen=True, eq=False)
class Efforts:
    """Predicted efforts at every sample of a motion.

    Attributes:
        tau, sigma: Efforts and their deviations, shape (n, a), in [N m] or [N].
        power, sigma_power: Of all motors together, shape (n,), in [W].
        c: Tension added, shape (n, z), unit of the motors; z is 0 unless actuation is redundant.
        standing: Joint or motor with dry friction -> share of the samples at which it stands still.
        felt: Largest effort per unit of each standard parameter, shape (p,).
    """

    tau: Float[Array, "n a"]
    sigma: Float[Array, "n a"]
    power: Float[Array, "n"]
    sigma_power: Float[Array, "n"]
    c: Float[Array, "n z"]
    standing: Mapping[str, float]
    felt: Float[Array, "p"]


@dataclass(frozen=True, eq=False)
class _Dry:
    """Column of a dry friction, its joint or motor, and that one's speed per unit of dq, shape (v,)."""

    column: int
    owner: str
    speed: Float[Array, "v"]


def efforts_along(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    motion: Motion,
    chi: Float[Array, "p"],
    root: Float[Array, "p r"],
    tension: Float[Array, "n z"] | None = None,
) -> Efforts:
    """Efforts of a prescribed motion; refused where the robot cannot follow it.

    Args:
        mechanism: With the payloads that are mounted.
        parameters: Its table.
        motion: Desired positions and rates of the measured coordinates.
        chi: Standard parameters, shape (p,), SI.
        root: Their covariance is root @ root.T, shape (p, r), SI.
        tension: To add along each direction of Z, shape (n, z); default none: least efforts.
    """
    freedoms, driven = driven_freedoms(mechanism)
    if driven < freedoms:
        raise InputError(
            f"the {len(mechanism.actuators)} actuators of robot '{mechanism.name}' drive {driven} of its"
            f" {freedoms} freedoms: it cannot follow a prescribed motion",
            file=mechanism.file,
            remedy="efforts can be predicted for fully driven robots only",
        )
    n, a, z = len(motion.log.t), len(mechanism.actuators), len(mechanism.actuators) - driven
    found = np.full((n, 2 * a + 2), np.nan)
    c = np.zeros((n, z)) if tension is None else np.broadcast_to(tension, (n, z)).astype(float)
    felt, dry = np.zeros(len(parameters)), _dry(mechanism, parameters)
    rests = dict.fromkeys((one.owner for one in dry), 0.0)
    regressor = MovingRegressor(mechanism, parameters, a + 1, motion.log.payloads)
    before: Float[Array, "a z"] | None = None
    for at, states in reachable_states(mechanism, motion):
        N = _effort_directions(mechanism, states)
        batch = regressor.batch(states.q, states.dq, states.ddq)
        still = {one.owner: np.abs(states.dq @ one.speed) < _STANDSTILL for one in dry}
        for first in range(0, len(N), _TILE):
            part = slice(first, min(first + _TILE, len(N)))
            rows = slice(at + part.start, at + part.stop)
            D = _dense(regressor, batch, part, N, len(parameters))
            for one in dry:
                D[still[one.owner][part], :, one.column] = 0.0
            np.maximum(felt, np.abs(D[:, :a]).max(axis=(0, 1), initial=0.0), out=felt)
            found[rows, : a + 1] = D @ chi
            found[rows, a + 1 :] = np.linalg.norm(D @ root, axis=2)
        rests = {owner: share + float(still[owner].sum()) / n for owner, share in rests.items()}
        if z:
            Z = tension_directions(mechanism, states.N, before)
            before = Z[-1]
            found[at : at + len(N), :a] += np.einsum("naz,nz->na", Z, c[at : at + len(N)])
    tau, power, sigma, sigma_power = np.split(found, [a, a + 1, 2 * a + 1], axis=1)
    return Efforts(tau, sigma, power[:, 0], sigma_power[:, 0], c, rests, felt)


def covariance_root(covariance: Float[Array, "x x"]) -> Float[Array, "x x"]:
    """L with L L^T = covariance; scaled first, so that small variances keep their digits."""
    sigma = np.sqrt(np.diag(covariance))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def _effort_directions(mechanism: Mechanism, states: States) -> Float[Array, "n v k"]:
    """N J^+ for the least efforts of the motors, and dq for their power."""
    J = motor_jacobian(mechanism, states.N)
    return np.concatenate([states.N @ np.linalg.pinv(J), states.dq[:, :, None]], axis=2)


def _dense(
    regressor: MovingRegressor, batch: Batch, part: slice, N: Float[Array, "n v k"], n_parameters: int
) -> Float[Array, "t k p"]:
    """Rows D of some samples over all parameters."""
    count = part.stop - part.start
    packed = np.empty((regressor.layout.n_entries, count))
    regressor.fill(batch, part.start, N[part], np.zeros((count, N.shape[2])), packed)
    return regressor.layout.dense(packed, n_parameters)


def _dry(mechanism: Mechanism, parameters: Sequence[Parameter]) -> list[_Dry]:
    """Every parameter of dry friction, with the speed whose sign it follows."""
    speeds = dict(zip(mechanism.coordinates, np.eye(len(mechanism.coordinates)), strict=True))
    motors = [actuator.name for actuator in mechanism.actuators]
    speeds |= {
        name: row for name, row in zip(motors, mechanism.actuator_map, strict=True) if name not in speeds
    }
    return [
        _Dry(column, one.owner, speeds[one.owner])
        for column, one in enumerate(parameters)
        if one.kind == "drive" and one.symbol in _DRY
    ]
