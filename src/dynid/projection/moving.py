"""Rows along a motion whose directions follow from the pose: closed loops, and the power model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.kinematics.assembly import Assembly, assembly_of, singular
from dynid.kinematics.coordinates import coordinate_map
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.notices import Notice
from dynid.projection.projection import Directions
from dynid.projection.rows import jumping_coordinates
from dynid.regressor.moving import MovingRegressor

_OPEN = 1e-8  # m or rad: a pose that leaves more than this open is not assembled
_MOST_LOST = 0.01
_PROBES = 400
# rad or m: encoders, elastic links and rounded geometry stay below, a wrong zero does not.
_MISFIT = 0.02


class MovingRows:
    """Equations N(q)^T W chi = N(q)^T B tau along one log (a `RowSource`)."""

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        directions: Directions,
        motion: Motion,
    ) -> None:
        if directions.moving is None:
            raise TypeError("constant directions need TreeRows")
        self.motion = motion
        self.directions = directions
        self._moving = directions.moving
        self.kinematics = _kinematics(mechanism, motion.log.position_names)
        self.regressor = MovingRegressor(mechanism, parameters, len(directions.names), motion.log.payloads)
        self.layout = self.regressor.layout
        self.dt = motion.log.dt
        self._B = mechanism.actuator_map
        self._watched = _watched(mechanism, directions, motion.log.position_names)
        self.notices = self._check()

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self.motion.usable()

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        measured = self.motion.states(start, stop)
        q, dq, ddq, basis, fine = self.kinematics.states(*measured)
        N = np.zeros((stop - start, dq.shape[1], len(self.directions.names)))
        N[fine] = self._moving(basis[fine], dq[fine])
        # A column that the log does not have is NaN: rows that need it are not chosen.
        tau = np.nan_to_num(self.motion.log.tau[start:stop])
        Y = np.einsum("nvk,nv->nk", N, tau @ self._B)
        weights = self._weights(start, stop, measured[1]) * fine[:, None]
        batch = self.regressor.batch(q, dq, ddq)
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            packed = np.empty((self.layout.n_entries, part.stop - at))
            self.regressor.fill(batch, at, N[part], Y[part], packed)
            yield start + at, packed, np.ascontiguousarray(weights[part].T)

    def _weights(self, start: int, stop: int, dq: Float[Array, "n m"]) -> Float[Array, "n k"]:
        """0 at rest, and where a row's own motor is near a reversal."""
        known = self.motion.weights(start, stop, dq).astype(float)
        moving = known.max(axis=1, initial=0.0) if known.shape[1] else np.ones(stop - start)
        weights = np.repeat(moving[:, None], len(self.directions.names), axis=1)
        for row, watched in enumerate(self._watched):
            if watched:
                weights[:, row] = known[:, watched].min(axis=1)
        return weights

    def _check(self) -> tuple[Notice, ...]:
        """Refuse a log that the loops do not admit, before the work starts."""
        log = self.motion.log
        probes = [np.linspace(a, b - 1, min(_PROBES, b - a)).astype(int) for a, b in self.pieces()]
        at = np.unique(np.concatenate(probes)) if probes else np.zeros(0, dtype=int)
        gaps, names = self.kinematics.gaps(log.q[at])
        lost = ~(gaps < _OPEN)
        if lost.any() and lost.mean() > _MOST_LOST:
            first = int(np.flatnonzero(lost)[0])
            raise InputError(
                f"the measured joints do not close the loops: at sample {at[first]} (t ="
                f" {log.t[at[first]]:.4g} s) '{names[first]}' is off by {gaps[first]:.3g} m or rad",
                file=log.file,
                remedy="check joint zeros, units and signs, the loops' frames, and `start:`",
            )
        if not lost.any():
            return ()
        text = f"{100 * lost.mean():.2g} % of the poses of log '{log.name}' do not close and are left out"
        return (Notice("not-assembled", text, "look at the largest motions of the log"),)


class _TreeKinematics:
    """A tree: coordinates follow from couplings alone."""

    def __init__(self, mechanism: Mechanism, measured: Sequence[str]) -> None:
        self.map = coordinate_map(mechanism, measured)

    def states(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array, Array, Array]:
        """All coordinates, tangent basis, and whether each pose is usable."""
        basis = np.broadcast_to(self.map.velocities, (len(q), *self.map.velocities.shape))
        return *self.map.states(q, dq, ddq), basis, np.ones(len(q), dtype=bool)

    def gaps(self, q: Array) -> tuple[Array, list[str]]:
        """Nothing can stay open."""
        return np.zeros(len(q)), [""] * len(q)


class _ClosedKinematics:
    """A closed mechanism: every joint from the measured ones through the loops."""

    def __init__(self, mechanism: Mechanism, measured: Sequence[str]) -> None:
        self.assembly: Assembly = assembly_of(mechanism)
        self.picked: Int[Array, "m"] = np.array(
            [_scalar_index(mechanism, name) for name in measured], dtype=np.int64
        )
        self._names = tuple(measured)
        if len(self.picked) < self.assembly.dof:
            raise InputError(
                f"{len(self.picked)} measured joints cannot tell the pose of a robot with"
                f" {self.assembly.dof} degrees of freedom",
                file=mechanism.file,
                remedy="measure more joints, and list them under `measured:`",
            )

    def states(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array, Array, Array]:
        """All coordinates, tangent basis, and whether each pose is assembled and regular."""
        pose = self.assembly.track(q, self.picked)
        rates, second, basis = self.assembly.rates(pose, dq, ddq, self.picked)
        fine = (self.assembly.gaps(pose) < _OPEN) & ~singular(basis[:, self.picked])
        return pose, rates, second, basis, fine

    def gaps(self, q: Array) -> tuple[Array, list[str]]:
        """What stays open at measured positions, in [m] or [rad], and where.

        More measured joints than freedoms are met in least squares; what is left beyond
        `_MISFIT` counts as open.
        """
        pose = self.assembly.follow(q, self.picked)
        open_by = np.abs(self.assembly.closure.values(pose).f)
        missed = np.abs(self.assembly.scalars(pose)[:, self.picked] - q)
        both = np.concatenate([open_by, np.where(missed > _MISFIT, missed, 0.0)], axis=1)
        labels = [*self.assembly.closure.names, *(self._names[i] for i in range(q.shape[1]))]
        worst = np.argmax(both, axis=1)
        return both[np.arange(len(q)), worst], [labels[i] for i in worst]


def _kinematics(mechanism: Mechanism, measured: Sequence[str]) -> _TreeKinematics | _ClosedKinematics:
    return (_ClosedKinematics if mechanism.loops else _TreeKinematics)(mechanism, measured)


def _scalar_index(mechanism: Mechanism, name: str) -> int:
    if name not in mechanism.coordinates:
        raise InputError(
            f"'{name}' cannot be measured on a closed robot in this version: only scalar joints can",
            file=mechanism.file,
            remedy="measure revolute and prismatic joints",
        )
    return mechanism.coordinates.index(name)


def _watched(mechanism: Mechanism, directions: Directions, measured: Sequence[str]) -> list[list[int]]:
    """Measured columns whose reversals matter in each row: a motor's own row feels its friction."""
    jumping = jumping_coordinates(mechanism)
    place = {name: i for i, name in enumerate(measured)}
    own = {actuator.name: actuator.on for actuator in mechanism.actuators}
    return [
        [place[c] for c in own.get(name, ()) if c in jumping and c in place]
        if np.count_nonzero(directions.effort_map[k]) == 1
        else []
        for k, name in enumerate(directions.names)
    ]
