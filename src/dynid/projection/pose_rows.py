"""Rows along a motion whose directions follow from the pose: closed loops, and the power model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.kinematics import kinematics_along
from dynid.projection.load import load_along
from dynid.projection.projection import Directions
from dynid.projection.reversals import Reversals
from dynid.regressor.moving import MovingRegressor


class MovingRows:
    """Equations N(q)^T W chi = N(q)^T B tau along one log (a `RowSource`).

    Args:
        foretold: Standard parameters that foretell the loads of load-dependent friction, shape (p,), SI;
            None: loads are one.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        directions: Directions,
        motion: Motion,
        load_parameters: Float[Array, "p"] | None = None,
    ) -> None:
        if directions.moving is None:
            raise TypeError("constant directions need TreeRows")
        self.motion = motion
        self.directions = directions
        self._moving = directions.moving
        self.kinematics = kinematics_along(mechanism, motion)
        self.regressor = MovingRegressor(mechanism, parameters, len(directions.names), motion.log.payloads)
        self.layout = self.regressor.layout
        self._load = load_along(mechanism, parameters, motion, load_parameters)
        self.dt = motion.log.dt
        self._B = mechanism.actuator_map
        self._reversals = Reversals(mechanism, directions, motion, self.kinematics)
        self.notices = self.kinematics.notices
        self.choices = {**self.kinematics.choices, **self._reversals.choices}

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self.motion.usable()

    def tangents(
        self, start: int, N: Float[Array, "n v d"], dq: Float[Array, "n v"]
    ) -> Float[Array, "n v k"]:
        """Directions of the rows at samples of one run, at or after `start`."""
        return self._moving(N, dq)

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        measured = self.motion.states(start, stop)
        states = self.kinematics.states(start, measured)
        fine = states.fine
        N = np.zeros((stop - start, states.dq.shape[1], len(self.directions.names)))
        N[fine] = self.tangents(start, states.N[fine], states.dq[fine])
        # A column that the log does not have is NaN: rows that need it are not chosen.
        tau = np.nan_to_num(self.motion.log.tau[start:stop])
        Y = np.einsum("nvk,nv->nk", N, tau @ self._B)
        weights = self._reversals.weights(start, stop, measured[1], states.dq) * fine[:, None]
        load = self._load and self._load(start, states.q, states.dq, states.ddq, states.N)
        batch = self.regressor.batch(states.q, states.dq, states.ddq, load)
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            packed = np.empty((self.layout.n_entries, part.stop - at))
            self.regressor.fill(batch, at, N[part], Y[part], packed)
            yield start + at, packed, np.ascontiguousarray(weights[part].T)
