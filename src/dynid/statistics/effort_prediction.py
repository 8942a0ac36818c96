"""Efforts needed for a motion, with their sigma from the covariance of the parameters.

    tau = (J^T)^+ N^T W (c + M x) + Z c_t,      power = dq^T W (c + M x)

eq. (11) of the leg-symmetry paper for any robot: N tangent directions, J = C N the motors along them,
x the estimates. Both are linear in x, so sigma_tau = |D M L| with D the rows above and C_x = L L^T;
friction that grows with the load is linear in x and in the load, and D the derivative of both.

Whether a robot can follow a desired motion: all loops close in every pose, and no pose is singular.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.batched import pinv, singular_values
from dynid.common.errors import InputError
from dynid.kinematics.coordinates import States
from dynid.kinematics.tension import driven_freedoms, motor_jacobian, tension_directions
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, load_map, source_index, speed_map
from dynid.motion.motion import Motion
from dynid.projection.kinematics import MISFIT, OPEN, ClosedKinematics, kinematics_along
from dynid.projection.load import loading
from dynid.regressor.layout import Batch
from dynid.regressor.moving import MovingRegressor

_TILE = 512
_STANDSTILL = 1e-6  # rad/s or m/s: slower is rounding of a derivative, and its sign has no meaning
# Of the peak speed: a joint that stays slower for a window of so many seconds, and moves on by less in it,
# stands still with noise in its speed. One that creeps moves on, and one that reverses is soon faster.
_SLOW, _CREEPS, _WINDOW = 5e-3, 1e-3, 0.2


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
        still = rows.still(states, motion.log.dt)
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
        self.dry = [i for i in drives if DRIVE_TERMS[parameters[i].symbol].dry]
        self._speed = speed_map(mechanism, [parameters[i].owner for i in self.dry])
        self._loaded = [i for i in drives if DRIVE_TERMS[parameters[i].symbol].loaded]
        owners = [source_index(mechanism, parameters[i].owner) for i in self._loaded]
        self._E = load_map(mechanism)[owners]
        self._loading = loading(mechanism, parameters)
        self._peak = np.zeros(len(self.dry))

    def still(self, states: States, dt: float) -> Bool[Array, "n o"]:
        """Where the owner of each dry friction is at rest: friction is unknown there, its sign noise."""
        speed = states.dq @ self._speed.T
        self._peak = np.maximum(self._peak, np.abs(speed).max(axis=0, initial=0.0))
        half, index = round(0.5 * _WINDOW / dt), np.arange(len(speed))
        low, high = np.maximum(index - half, 0), np.minimum(index + half + 1, len(speed))

        def mean(x: Float[Array, "n o"]) -> Float[Array, "n o"]:
            total = np.concatenate([0.0 * x[:1], np.cumsum(x, axis=0)])
            return np.asarray((total[high] - total[low]) / (high - low)[:, None])

        slow = np.maximum(np.abs(speed), mean(np.abs(speed))) < _SLOW * self._peak
        noise = slow & (np.abs(mean(speed)) < _CREEPS * self._peak)
        return np.asarray(noise | (np.abs(speed) < _STANDSTILL))

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


_BLOCK = 4096
_SINGULAR = 1e6  # condition number of J above which efforts are not reliable


def reachable_states(mechanism: Mechanism, motion: Motion) -> Iterator[tuple[int, States]]:
    """States of consecutive blocks, each pose reachable and no singular one on the way."""
    try:
        kinematics = kinematics_along(replace(mechanism, uncertain={}), motion)
    except InputError as error:
        raise InputError(
            f"the trajectory leaves the workspace of the robot: {error.text}",
            file=motion.log.file,
            remedy="move less there, or check units, signs and zeros of the columns, and `start:`",
        ) from error
    for low, high in motion.usable():
        last: States | None = None
        for start in range(low, high, _BLOCK):
            measured = motion.states(start, min(start + _BLOCK, high))
            states = kinematics.states(start, measured)
            if isinstance(kinematics, ClosedKinematics):
                _refuse_unreachable(kinematics, motion, start, states)
            _refuse_singular(mechanism, motion, start, states, last)
            last = States(*(x[-1:] for x in (states.q, states.dq, states.ddq, states.N, states.fine)))
            yield start, states
    for notice in kinematics.notices:
        if notice.code in ("loop-misfit", "singular-start"):
            continue
        raise InputError(notice.text, file=motion.log.file, remedy=notice.remedy)


def _refuse_unreachable(kinematics: ClosedKinematics, motion: Motion, start: int, states: States) -> None:
    wanted = motion.log.q[start : start + len(states.q)]
    missed = np.abs(kinematics.sensors.miss(states.q, wanted)).max(axis=1, initial=0.0) > MISFIT
    lost = np.flatnonzero(~states.fine | missed)
    if not len(lost):
        return
    i = start + int(lost[0])
    gaps, names = kinematics.gaps(motion.log.q[i : i + 1])
    if gaps[0] > OPEN and names[0] in motion.log.position_names:
        unit = kinematics.unit(names[0])
        text = f"'{names[0]}' differs by {gaps[0]:.3g} {unit} from the value given by the other coordinates"
    elif gaps[0] > OPEN:
        text = f"'{names[0]}' does not close: gap {gaps[0]:.3g} m or rad"
    else:
        text = "the pose is singular: the given coordinates do not determine it"
    raise _refusal(motion, i, f"the trajectory leaves the workspace of the robot: {text}")


def _refuse_singular(
    mechanism: Mechanism, motion: Motion, start: int, states: States, last: States | None
) -> None:
    """Where the motors lose hold of a freedom, at a sample or between two."""
    N = states.N if last is None else np.concatenate([last.N, states.N])
    first = start if last is None else start - 1
    J = motor_jacobian(mechanism, N)
    s = singular_values(J)
    bad = np.flatnonzero(~(s[:, -1] * _SINGULAR >= s[:, 0]))
    if len(bad):
        text = (
            f"singular: condition number {s[bad[0], 0] / max(s[bad[0], -1], 1e-300):.2g} of the motors' hold"
        )
        raise _refusal(motion, first + int(bad[0]), f"the pose is {text} on the robot")
    crossed = _crossings(J, N)
    if len(crossed):
        text = (
            "between this sample and the next the trajectory crosses a singular pose, where the motors lose"
        )
        raise _refusal(motion, first + int(crossed[0]), f"{text} hold of the robot")


def _crossings(J: Float[Array, "n a d"], N: Float[Array, "n v d"]) -> Int[Array, "k"]:
    """Samples after which det J changes its sign; the basis N may change its orientation too."""
    if J.shape[1] != J.shape[2] or len(J) < 2:
        return np.zeros(0, dtype=np.int64)
    side = np.linalg.slogdet(J)[0]
    turned = np.linalg.slogdet(np.swapaxes(N[1:], 1, 2) @ N[:-1])[0]
    return np.flatnonzero(side[1:] * turned * side[:-1] < 0.0)


def _refusal(motion: Motion, sample: int, text: str) -> InputError:
    log = motion.log
    return InputError(
        text,
        file=log.file,
        place=f"sample {sample} (t = {log.t[sample]:.6g} s)",
        remedy="move less there, or check units, signs and zeros of the columns",
    )
