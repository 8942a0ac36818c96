"""Rows along a motion whose directions follow from the pose: closed loops, and the power model.

Rows of a closed robot in which the sign of friction is known.

A motor need not be measured: its velocity then follows from the loops, with noise

    dq = J dq_measured,   J = N (V N_m)^+ V,      sigma_dq^2 = sum over sensors of (J sigma)^2

and is tested by the same rule as a measured one (see `plan_motions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import pinv
from dynid.common.notices import Notice, notice
from dynid.kinematics.coordinates import CoordinateMap
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import jumping_coordinates
from dynid.motion.motion import Motion, near_reversal
from dynid.motion.plan import reversal_speeds
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.load import load_along
from dynid.projection.model import LogRows
from dynid.projection.projection import Along
from dynid.regressor.moving import MovingRegressor

if TYPE_CHECKING:
    from dynid.kinematics.coordinates import States
    from dynid.kinematics.sensors import Sensors
    from dynid.projection.projection import Directions


PART = 1024  # samples whose directions are computed at a time
_MOST_CANDIDATES = 64  # poses of a run among which the reference of its directions is chosen
TURNED = 0.3  # cosine of the angle beyond which one reference is not valid for a run


class MovingRows(LogRows):
    """Equations N(q)^T W chi = N(q)^T B tau along one log."""

    def _prepare(self) -> None:
        mechanism, parameters = self.mechanism, self.parameters
        motion, directions = self.motion, self.directions
        if directions.moving is None:
            raise TypeError("constant directions need TreeRows")
        self._moving = [directions.moving]
        self._starts: list[int] = []
        self.kinematics = kinematics_along(mechanism, motion)
        self.regressor = MovingRegressor(mechanism, parameters, len(directions.names), motion.log.payloads)
        self.layout = self.regressor.layout
        self._load = load_along(mechanism, parameters, motion, self.load_parameters)
        self._B = mechanism.actuator_map
        # Rows without efforts have exactly zero, not the rounding error of N^T B tau.
        self._felt = ~directions.homogeneous
        self._reversals = Reversals(mechanism, directions, motion, self.kinematics)
        self.notices = self.kinematics.notices
        self.choices = {**self.kinematics.choices, **self._reversals.choices}
        if directions.along is not None:
            self._follow_runs(directions.along)

    def _follow_runs(self, along: Along) -> None:
        """Directions of each run by a reference of its own."""
        runs = self.run_tangents()
        followed = [along(N) for _, N in runs]
        if followed:
            self._starts, self._moving = [start for start, _ in runs], [moving for moving, _ in followed]
        turned = [start for (start, _), (_, close) in zip(runs, followed, strict=True) if close < TURNED]
        self.notices = (*self.notices, *turned_notices(self.motion.log.name, len(turned)))

    def run_tangents(self) -> list[tuple[int, Float[Array, "s v d"]]]:
        """First sample of each run, and tangent directions at some of its poses."""
        if not isinstance(self.kinematics, ClosedKinematics):
            raise TypeError("a robot without loops has constant directions")
        anchors, tangents = self.kinematics.anchors, self.kinematics.tangents
        per_run = []
        for low, high in self.pieces() if len(tangents) else ():
            inside = np.flatnonzero((anchors >= low) & (anchors < high))[: len(tangents)]
            picked = inside[:: max(1, len(inside) // _MOST_CANDIDATES)] if len(inside) else np.arange(1)
            per_run.append((low, tangents[picked]))
        return per_run

    def align_to(self, other: Any) -> None:
        """Take the references of rows along nearly the same motion: its noise must not rotate them."""
        if isinstance(other, MovingRows):
            self._starts, self._moving = other._starts, other._moving

    def under(self, mechanism: Mechanism) -> MovingRows:
        """The same rows of a robot that differs only in gravity."""
        other = copy(self)
        other.regressor = self.regressor.of(mechanism, self.parameters, self.motion.log.payloads)
        return other

    def resized(self, mechanism: Mechanism) -> MovingRows:
        """The same rows of a robot whose dimensions differ by little: its poses are tracked from these."""
        other = self.under(mechanism)
        if isinstance(self.kinematics, ClosedKinematics):
            other.kinematics = self.kinematics.near(mechanism)
        return other

    def reframed(self, mechanism: Mechanism) -> MovingRows | None:
        """The same of a closed robot; None where loads of friction depend on its poses."""
        closed = isinstance(self.kinematics, ClosedKinematics)
        return self.resized(mechanism) if closed and self._load is None else None

    def tangents(
        self, start: int, N: Float[Array, "n v d"], dq: Float[Array, "n v"]
    ) -> Float[Array, "n v k"]:
        """Directions of the rows at samples of one run, at or after `start`."""
        run = int(np.searchsorted(self._starts, start, side="right")) - 1
        return self._moving[max(run, 0)](N, dq)

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        for at, states, N, weights, load in self._parts(start, stop):
            # A column that the log does not have is NaN: rows that need it are not chosen.
            tau = np.nan_to_num(self.motion.log.tau[at : at + len(N)])
            Y = np.einsum("nvk,nv->nk", N, tau @ self._B) * self._felt
            batch = self.regressor.batch(states.q, states.dq, states.ddq, load)
            for low in range(0, len(N), tile):
                part = slice(low, min(low + tile, len(N)))
                packed = np.empty((self.layout.n_entries, part.stop - low))
                self.regressor.fill(batch, low, N[part], Y[part], packed)
                yield at + low, packed, np.ascontiguousarray(weights[part].T)

    def predicted(
        self, start: int, stop: int, chi: Float[Array, "p"]
    ) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
        """W chi and row weights of samples start .. stop, without the entries of W."""
        W_chi, known = np.empty((2, len(self.directions.names), stop - start))
        for at, states, N, weights, load in self._parts(start, stop):
            part = slice(at - start, at - start + len(N))
            forces = self.regressor.efforts(states.q, states.dq, states.ddq, chi, load)
            forces[~states.fine] = 0.0
            W_chi[:, part], known[:, part] = np.einsum("nvk,nv->kn", N, forces), weights.T
        return W_chi, known

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, States, Array, Array, Array | None]]:
        """First sample, states, N (n, v, k), row weights (n, k) and loads of parts of start .. stop.

        A part has so few samples that their directions stay in the cache.
        """
        measured, known = self.motion.weighted(start, stop)
        for low in range(0, stop - start, PART):
            part, at = slice(low, min(low + PART, stop - start)), start + low
            states = self.kinematics.states(at, (measured[0][part], measured[1][part], measured[2][part]))
            fine = states.fine
            if fine.all():
                N = self.tangents(at, states.N, states.dq)
            else:
                N = np.zeros((*states.dq.shape, len(self.directions.names)))
                N[fine] = self.tangents(at, states.N[fine], states.dq[fine])
            weights = self._reversals.weights(at, known[part], states.dq) * fine[:, None]
            load = self._load and self._load(at, states.q, states.dq, states.ddq, states.N)
            yield at, states, N, self.with_known_efforts(at, weights), load


def turned_notices(log: str, runs: int) -> tuple[Notice, ...]:
    """A warning where the direction of free motion changes too much within a run for one reference."""
    if not runs:
        return ()
    return (notice("free-turned", log=log, runs=runs),)


class Reversals:
    """Weights of rows along one log: 0 at rest, and where a motor of the row may reverse.

    Attributes:
        choices: What was chosen for motors that are not measured, in words.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        directions: Directions,
        motion: Motion,
        kinematics: CoordinateMap | ClosedKinematics,
    ) -> None:
        self.motion, self.kinematics = motion, kinematics
        felt = _felt(mechanism, directions)
        measured = {name: i for i, name in enumerate(motion.log.position_names)}
        self._measured = [[measured[name] for name in names if name in measured] for names in felt]
        rebuilt = sorted({name for names in felt for name in names if name not in measured})
        self._rebuilt = [[rebuilt.index(name) for name in names if name in rebuilt] for names in felt]
        self._at = np.array([mechanism.coordinates.index(name) for name in rebuilt], dtype=np.int64)
        self._speeds = np.zeros(len(rebuilt))
        if rebuilt and isinstance(kinematics, ClosedKinematics) and len(kinematics.speeds):
            noise = rebuilt_noise(kinematics.tangents, kinematics.sensors, motion.plan.noise)
            peak = np.quantile(kinematics.speeds, 0.995, axis=0)
            self._speeds = reversal_speeds(motion.plan.mask_speed, noise, peak)[self._at]
        self.choices = _words(rebuilt, self._speeds)

    def weights(self, start: int, known: Float[Array, "n m"], dq: Float[Array, "n v"]) -> Float[Array, "n k"]:
        """1 for rows to use, shape (n, k).

        Args:
            start: First sample.
            known: Weights of the measured coordinates, shape (n, m).
            dq: Velocities of all coordinates, shape (n, n_v).
        """
        moving = known.max(axis=1, initial=0.0) if known.shape[1] else np.ones(len(known))
        weights = np.repeat(moving[:, None], len(self._measured), axis=1)
        for row, columns in enumerate(self._measured):
            if columns:
                weights[:, row] = known[:, columns].min(axis=1)
        if len(self._at):
            masked = self._near(start, start + len(known), dq)
            for row, columns in enumerate(self._rebuilt):
                weights[:, row] *= ~masked[:, columns].any(axis=1)
        return weights

    def _near(self, start: int, stop: int, dq: Float[Array, "n v"]) -> Array:
        """Computed velocities near a reversal, with as many neighbours as in the plan."""
        around = self.motion.plan.reversal_around
        low, high = next((a, b) for a, b in self.motion.usable() if a <= start < stop <= b)
        before, after = max(low, start - around - 1), min(high, stop + around + 1)
        parts = [self._velocities(before, start), dq[:, self._at], self._velocities(stop, after)]
        masked = near_reversal(np.concatenate(parts), self._speeds, around)
        return np.asarray(masked[start - before : stop - before])

    def _velocities(self, start: int, stop: int) -> Float[Array, "n w"]:
        if stop <= start or self.motion.plan.reversal_around == 0:
            return np.zeros((stop - start, len(self._at)))
        return self.kinematics.states(start, self.motion.states(start, stop)).dq[:, self._at]


def rebuilt_noise(N: Float[Array, "s v d"], sensors: Sensors, noise: Sequence[float]) -> Float[Array, "v"]:
    """Standard deviation of every coordinate's velocity from those of the measured rates, RMS over poses.

    Args:
        N: Tangent directions at poses along the log, shape (s, n_v, d).
        sensors: What is measured.
        noise: Standard deviations of the rates of the measured positions, shape (w,), per s.
    """
    sigma = np.array([noise[c] for c in sensors.column], dtype=float)
    for _, c, j in sensors.quaternions.tolist():
        # |omega| = 2 |du|, and three of the four directions of the entries are rotations.
        sigma[j : j + 3] = 2.0 * np.sqrt(np.mean(np.square(noise[c : c + 4])))
    seen = N[:, sensors.velocity] * sensors.weight[:, None]
    J = N @ pinv(seen) * (sensors.weight * sigma)
    return np.asarray(np.sqrt(np.mean(np.sum(J**2, axis=2), axis=0)))


def _words(names: Sequence[str], speeds: Float[Array, "w"]) -> dict[str, str]:
    """What is masked of motors that are not measured, for the report."""
    if not names:
        return {}
    low, high = float(speeds.min()), float(speeds.max())
    shown = f"{high:.2g}" if low >= 0.99 * high else f"{low:.2g} to {high:.2g}"
    text = f"velocities of {', '.join(names)} from the loops; rows dropped below {shown} rad/s or m/s"
    return {"reversals of motors not measured": text}


def _felt(mechanism: Mechanism, directions: Directions) -> list[list[str]]:
    """Coordinates whose reversals matter in each row.

    A motor's own row depends on its own friction, a row of J_a^T tau on that of all motors, a power on none.
    """
    if not directions.jumps:
        return [[] for _ in directions.names]
    jumping = jumping_coordinates(mechanism)
    felt = []
    for efforts in directions.effort_map:
        driven = {c for a in np.flatnonzero(efforts) for c in mechanism.actuators[a].on}
        felt.append([name for name in mechanism.coordinates if name in driven & jumping])
    return felt
