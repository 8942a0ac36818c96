"""Efforts needed for a motion, with their sigma from the covariance of the parameters.

    tau = (J^T)^+ N^T W (c + M x) + Z c_t,      power = dq^T W (c + M x)

eq. (11) of the leg-symmetry paper for any robot: N tangent directions, J = C N the motors along them,
x the estimates. Both are linear in x, so sigma_tau = |D M L| with D the rows above and C_x = L L^T;
friction that grows with the load is linear in x and in the load, and D the derivative of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import pinv
from dynid.common.errors import InputError
from dynid.kinematics.coordinates import States
from dynid.kinematics.tension import driven_freedoms, motor_jacobian, tension_directions
from dynid.mechanism.drive_terms import DRY
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, load_map, source_index, speed_map
from dynid.motion.motion import Motion
from dynid.projection.load import loading
from dynid.regressor.layout import Batch
from dynid.regressor.moving import MovingRegressor
from dynid.statistics.reachable import reachable_states

_TILE = 512
_STANDSTILL = 1e-6  # rad/s or m/s: slower is rounding of a derivative, and its sign has no meaning


@dataclass(frozen=True, eq=False)
class Efforts:
    """Predicted efforts at every sample of a motion.

    Attributes:
        tau, sigma: Efforts and their deviations, shape (n, a), in [N m] or [N].
        power, sigma_power: Of all motors together, shape (n,), in [W].
        c: Tension added, shape (n, z), unit of the motors; z is 0 unless actuation is redundant.
        standing: Joint or motor with dry friction -> share of the samples at which it is at rest.
        felt: Largest effort per unit of each standard parameter, shape (p,).
    """

    tau: Float[Array, "n a"]
    sigma: Float[Array, "n a"]
    power: Float[Array, "n"]
    sigma_power: Float[Array, "n"]
    c: Float[Array, "n z"]
    standing: Mapping[str, float]
    felt: Float[Array, "p"]


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
            f" {freedoms} degrees of freedom: it cannot follow a prescribed motion",
            file=mechanism.file,
            remedy="efforts can be predicted for fully actuated robots only",
        )
    n, a, z = len(motion.log.t), len(mechanism.actuators), len(mechanism.actuators) - driven
    results, felt = np.full((n, 2 * a + 2), np.nan), np.zeros(len(parameters))
    c = np.zeros((n, z)) if tension is None else np.broadcast_to(tension, (n, z)).astype(float)
    rows = _EffortRows(mechanism, parameters, motion.log.payloads, chi)
    rests = np.zeros(len(rows.dry))
    before: Float[Array, "a z"] | None = None
    for at, states in reachable_states(mechanism, motion):
        block = slice(at, at + len(states.q))
        Z = tension_directions(mechanism, states.N, before)
        before = Z[-1] if z else None
        strain = np.einsum("naz,nz->na", Z[:, :, :z], c[block])
        still = rows.still(states)
        rests += still.sum(axis=0) / n
        for part, D, slope in rows.tiles(states, strain, still):
            place = slice(at + part.start, at + part.stop)
            np.maximum(felt, np.abs(D[:, :a]).max(axis=(0, 1), initial=0.0), out=felt)
            results[place, : a + 1] = D @ chi
            results[place, a + 1 :] = np.linalg.norm(slope @ root, axis=2)
        results[block, :a] += strain
    tau, power, sigma, sigma_power = np.split(results, [a, a + 1, 2 * a + 1], axis=1)
    standing = dict(zip((parameters[i].owner for i in rows.dry), rests.tolist(), strict=True))
    return Efforts(tau, sigma, power[:, 0], sigma_power[:, 0], c, standing, felt)


def covariance_root(covariance: Float[Array, "x x"]) -> Float[Array, "x x"]:
    """L with L L^T = covariance; scaled first, so that small variances keep their digits."""
    sigma = np.sqrt(np.diag(covariance))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


class _EffortRows:
    """Rows D of the least efforts of all motors, and of their power, over the standard parameters.

    Args:
        mechanism: The robot.
        parameters: Its table.
        mounted: Payloads on it.
        chi: Standard parameters, which predict the loads of load-dependent friction, shape (p,), SI.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        mounted: Sequence[str],
        chi: Float[Array, "p"],
    ) -> None:
        self._mechanism, self._chi = mechanism, chi
        self._regressor = MovingRegressor(mechanism, parameters, len(mechanism.actuators) + 1, mounted)
        drives = [i for i, parameter in enumerate(parameters) if parameter.kind == "drive"]
        self.dry = [i for i in drives if parameters[i].symbol in DRY]
        self._speed = speed_map(mechanism, [parameters[i].owner for i in self.dry])
        self._loaded = [i for i in drives if parameters[i].symbol == "Fl"]
        owners = [source_index(mechanism, parameters[i].owner) for i in self._loaded]
        self._E = load_map(mechanism)[owners]
        self._loading = loading(mechanism, parameters)

    def still(self, states: States) -> Bool[Array, "n o"]:
        """Where the owner of each dry friction is at rest: friction is unknown there, its sign rounding."""
        return np.asarray(np.abs(states.dq @ self._speed.T) < _STANDSTILL)

    def tiles(
        self, states: States, strain: Float[Array, "n a"], still: Bool[Array, "n o"]
    ) -> Iterator[tuple[slice, Float[Array, "t k p"], Float[Array, "t k p"]]]:
        """Some samples at a time, their rows, and the derivatives of what the rows predict.

        Dry friction counts as 0 where its owner is at rest.
        """
        J = motor_jacobian(self._mechanism, states.N)
        N = np.concatenate([states.N @ pinv(J), states.dq[:, :, None]], axis=2)
        batch = self._regressor.batch(states.q, states.dq, states.ddq)
        for first in range(0, len(N), _TILE):
            part = slice(first, min(first + _TILE, len(N)))
            D = self._dense(batch, part, N)
            for k, column in enumerate(self.dry):
                D[still[part, k], :, column] = 0.0
            if self._loaded:
                yield part, D, self._settle(D, strain[part])
            else:
                yield part, D, D

    def _dense(self, batch: Batch, part: slice, N: Float[Array, "n v k"]) -> Float[Array, "t k p"]:
        count = part.stop - part.start
        packed = np.empty((self._regressor.layout.n_entries, count))
        self._regressor.fill(batch, part.start, N[part], np.zeros((count, N.shape[2])), packed)
        return self._regressor.layout.dense(packed, len(self._chi))

    def _settle(self, D: Float[Array, "t k p"], strain: Float[Array, "t a"]) -> Float[Array, "t k p"]:
        """Put the loads that the motion brings about into the columns of load-dependent friction.

        Returns:
            Derivatives of the efforts with respect to the parameters: those that make the loads act
            through friction too.
        """
        bodies = np.where(self._loading, D[:, :-1], 0.0)
        load = (bodies @ self._chi + strain) @ self._E.T
        per_load = D[:, :, self._loaded] * self._chi[self._loaded]
        D[:, :, self._loaded] *= np.abs(load)[:, None]
        return np.asarray(D + (per_load * np.sign(load)[:, None]) @ (self._E @ bodies))
