"""Rows of a model along a motion: measured coordinates in, packed equations out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.kinematics.coordinates import coordinate_map
from dynid.kinematics.tree import tree_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import jumping_coordinates
from dynid.projection.load import load_along
from dynid.projection.model import LogRows
from dynid.regressor.layout import Batch, tree_regressor


class TreeRows(LogRows):
    """Equations of a tree for constant directions N along one log."""

    def _prepare(self) -> None:
        mechanism, parameters = self.mechanism, self.parameters
        motion, directions = self.motion, self.directions
        if directions.N is None:
            raise TypeError("directions that change with the pose need MovingRows")
        self.coordinates = coordinate_map(mechanism, motion.log.position_names)
        self.regressor = tree_regressor(mechanism, parameters, directions.N, motion.log.payloads)
        self.layout = self.regressor.layout
        self._load = load_along(mechanism, parameters, motion, self.load_parameters)
        self._watched = _watched(mechanism, directions.N, motion.log.position_names)
        # A column that the log does not have is NaN: it must not reach the rows of other efforts.
        present = motion.log.effort_present
        used = np.any(directions.effort_map != 0, axis=0) & present
        self._used, self._effort_map = np.flatnonzero(used), directions.effort_map[:, used]
        self._unmeasured = np.any(directions.effort_map[:, ~present] != 0, axis=1)

    def under(self, mechanism: Mechanism) -> TreeRows:
        """The same rows of a robot that differs only in gravity: the layout of its regressor stays."""
        other = copy(self)
        other.regressor = replace(self.regressor, tree=tree_of(mechanism))
        return other

    def resized(self, mechanism: Mechanism) -> TreeRows:
        """The same rows of a robot whose dimensions or zeros differ: only its tree depends on them."""
        return self.under(mechanism)

    def reframed(self, mechanism: Mechanism) -> TreeRows | None:
        """The same; None where joints follow others, whose zeros move them."""
        return None if mechanism.couplings else self.under(mechanism)

    def measured(self, start: int, stop: int) -> Float[Array, "n k"]:
        """The measured side of every row, as logged."""
        return np.asarray(self.motion.log.tau[start:stop, self._used] @ self._effort_map.T)

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop.

        The entries are overwritten by the next tile.
        """
        batch, weights = self._along(start, stop)
        packed = np.empty((self.layout.n_entries, tile))
        for at in range(0, stop - start, tile):
            width = min(tile, stop - start - at)
            if width < tile:
                packed = np.empty((self.layout.n_entries, width))
            self.regressor.fill(batch, at, packed)
            yield start + at, packed, np.ascontiguousarray(weights[at : at + width].T)

    def predicted(
        self, start: int, stop: int, chi: Float[Array, "p"]
    ) -> tuple[Float[Array, "k n"], Float[Array, "k n"]]:
        """W chi and row weights of samples start .. stop."""
        batch, weights = self._along(start, stop)
        predicted = self.regressor.predicted(batch, self.layout.coefficients(chi))
        return predicted, np.ascontiguousarray(weights.T)

    def model(
        self,
        states: tuple[Float[Array, "n m"], Float[Array, "n m"], Float[Array, "n m"]],
        chi: Float[Array, "p"],
    ) -> Float[Array, "k n"]:
        """W chi at measured positions and their rates, loads of friction being one."""
        tree = self.coordinates.tree_states(*states)
        batch = self.regressor.batch(*tree, np.zeros((len(tree[0]), len(self.directions.names))))
        return self.regressor.predicted(batch, self.layout.coefficients(chi))

    def _along(self, start: int, stop: int) -> tuple[Batch, Float[Array, "n k"]]:
        """States of samples start .. stop for the kernels, and row weights."""
        states, known = self.motion.weighted(start, stop)
        tree = self.coordinates.tree_states(*states)
        load = self._load and self._load(start, *tree, self.coordinates.velocities)
        batch = self.regressor.batch(*tree, self.measured(start, stop), load)
        return batch, self.with_known_efforts(start, self._row_weights(known))

    def _row_weights(self, known: Float[Array, "n m"]) -> Float[Array, "n k"]:
        """1 where a row may be used, 0 where sample or effort is missing or its friction's sign unknown."""
        weights = np.ones((len(known), len(self.directions.names)))
        for row, watched in enumerate(self._watched):
            if watched:
                weights[:, row] = known[:, watched].min(axis=1)
        weights[:, self._unmeasured] = 0.0
        return weights


def _watched(mechanism: Mechanism, N: Float[Array, "v k"], measured: Sequence[str]) -> list[list[int]]:
    """Measured columns whose sign matters in each row: those with friction that jumps.

    A row without such friction depends on no sign: at rest it still contains gravity.
    """
    jumping = jumping_coordinates(mechanism)
    place = {name: i for i, name in enumerate(measured)}
    rows = []
    for column in N.T:
        names = [mechanism.coordinates[j] for j in np.flatnonzero(column)]
        rows.append([place[name] for name in names if name in jumping and name in place])
    return rows
