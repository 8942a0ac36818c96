"""Rows along a motion whose directions follow from the pose: closed loops, and the power model."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import Notice, notice
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.contract import LogRows
from dynid.projection.kinematics import ClosedKinematics, kinematics_along
from dynid.projection.load import load_along
from dynid.projection.projection import Along
from dynid.projection.reversals import Reversals
from dynid.regressor.moving import MovingRegressor

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
        other, k = copy(self), len(self.directions.names)
        other.regressor = MovingRegressor(mechanism, self.parameters, k, self.motion.log.payloads)
        return other

    def resized(self, mechanism: Mechanism) -> MovingRows:
        """The same rows of a robot whose dimensions differ by little: its poses are tracked from these."""
        other = self.under(mechanism)
        if isinstance(self.kinematics, ClosedKinematics):
            other.kinematics = self.kinematics.near(mechanism)
        return other

    def tangents(
        self, start: int, N: Float[Array, "n v d"], dq: Float[Array, "n v"]
    ) -> Float[Array, "n v k"]:
        """Directions of the rows at samples of one run, at or after `start`."""
        run = int(np.searchsorted(self._starts, start, side="right")) - 1
        return self._moving[max(run, 0)](N, dq)

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        measured = self.motion.states(start, stop)
        states = self.kinematics.states(start, measured)
        fine = states.fine
        N = np.zeros((stop - start, states.dq.shape[1], len(self.directions.names)))
        N[fine] = self.tangents(start, states.N[fine], states.dq[fine])
        # A column that the log does not have is NaN: rows that need it are not chosen.
        tau = np.nan_to_num(self.motion.log.tau[start:stop])
        Y = np.einsum("nvk,nv->nk", N, tau @ self._B) * self._felt
        weights = self._reversals.weights(start, stop, measured[1], states.dq) * fine[:, None]
        load = self._load and self._load(start, states.q, states.dq, states.ddq, states.N)
        batch = self.regressor.batch(states.q, states.dq, states.ddq, load)
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            packed = np.empty((self.layout.n_entries, part.stop - at))
            self.regressor.fill(batch, at, N[part], Y[part], packed)
            yield start + at, packed, np.ascontiguousarray(weights[part].T)


def turned_notices(log: str, runs: int) -> tuple[Notice, ...]:
    """A warning where the direction of free motion changes too much within a run for one reference."""
    if not runs:
        return ()
    return (notice("free-turned", log=log, runs=runs),)
