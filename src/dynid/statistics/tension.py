"""Torques rebuilt and the internal tension of redundantly actuated robots, in a second pass over a log.

    tau_min = (J^T)^+ N^T W chi,      tau - tau_min = Z c + rho,      rebuilt = tau_min + Z c

as figs 4 and 5 of the power-model paper show them. With N_m = N J^+ in place of N the model's rows
are the least-norm efforts themselves, one per motor. Both sides pass the row filter of the fit; the
tension is read off at the pose of each kept row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import pinv
from dynid.conditioning.lowpass import RowFilter
from dynid.conditioning.rewritten import predictor
from dynid.conditioning.stream import series
from dynid.kinematics.tension import motor_jacobian, redundancy, tension_directions
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, effort_unit
from dynid.projection.model import RowSource
from dynid.projection.pose_rows import MovingRows
from dynid.projection.projection import Directions
from dynid.regressor.layout import ABSENT, Layout
from dynid.statistics.estimate_parts import Tension
from dynid.statistics.prediction import joined, plot_step


def motor_directions(mechanism: Mechanism) -> Directions:
    """Rows whose right side is the part of each motor's effort that is no tension, N_m = N J^+."""
    names = tuple(actuator.name for actuator in mechanism.actuators)

    def moving(N: Float[Array, "n v d"], dq: Float[Array, "n v"]) -> Float[Array, "n v a"]:
        return np.asarray(N @ pinv(motor_jacobian(mechanism, N)))

    units = tuple(effort_unit(mechanism, name) for name in names)
    return Directions(names, units, None, np.ones((len(names), len(names))), moving, jumps=False)


class MotorEfforts:
    """Measured and least-norm efforts of all motors along a log, as rows to be filtered.

    Entries: the efforts as logged, then those predicted from the parameters.

    Args:
        source: Rows of the fit, whose pieces are taken over.
        chi: Standard parameters that give the same efforts as the estimate, shape (p,), SI.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        parameters: Sequence[Parameter],
        source: RowSource,
        chi: Float[Array, "p"],
    ) -> None:
        self._rows = MovingRows(mechanism, parameters, motor_directions(mechanism), source.motion)
        self._sides = predictor(self._rows.layout, chi)
        self._pieces = source.pieces()
        count = 2 * len(mechanism.actuators)
        self.layout = Layout(np.array([0, count]), np.full(count, ABSENT))
        self.dt = source.dt
        self.kinematics, self.motion = self._rows.kinematics, source.motion

    def pieces(self) -> Sequence[tuple[int, int]]:
        """Ranges of samples over which rows may be filtered."""
        return self._pieces

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """First sample, entries (2 a, n) and weights (1, n) of consecutive tiles."""
        for at, packed, weights in self._rows.rows(start, stop, min(tile, self._rows.layout.tile)):
            tau = self.motion.log.tau[at : at + packed.shape[1]].T
            yield at, np.concatenate([np.nan_to_num(tau), self._sides(packed)[1]]), weights[:1]

    def tangent(self, at: Int[Array, "n"]) -> tuple[Float[Array, "f v d"], Int[Array, "f"]]:
        """Tangent directions at evenly spaced samples, and which of them are assembled and regular."""
        step = int(at[1] - at[0]) if len(at) > 1 else 1
        measured = self.motion.states(int(at[0]), int(at[-1]) + 1)
        states = self.kinematics.states(int(at[0]), measured)
        N, fine = states.N[::step], states.fine[::step]
        return N[fine], np.flatnonzero(fine)


def tension_of(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    source: RowSource,
    rows: RowFilter,
    chi: Float[Array, "p"],
) -> Tension | None:
    """Measured and rebuilt efforts and the tension of a log; None where actuation is not redundant.

    Args:
        mechanism: The robot, with the payloads of the problem.
        parameters: One per entry of `chi`.
        source: Rows of the fit along this log.
        rows: Their filter; the samples shown are those of `predict_rows`.
        chi: Standard parameters that give the same efforts as the estimate, shape (p,), SI.
    """
    log, a = source.motion.log, len(mechanism.actuators)
    # An effort that was not logged could hide any tension.
    z = redundancy(mechanism) if log.effort_present.all() else 0
    if not z:
        return None
    efforts = MotorEfforts(mechanism, parameters, source, chi)
    shown: list[tuple[Array, Array]] = []
    step = plot_step(source, rows)
    before: Float[Array, "a z"] | None = None
    for at, both, valid in series(efforts, rows):
        measured, min_norm = both[:a], both[a:]
        N, fine = efforts.tangent(at)
        Z = tension_directions(mechanism, N, before)
        before = Z[-1] if len(Z) else before
        c, strain = np.full((z, len(at)), np.nan), np.full((a, len(at)), np.nan)
        c[:, fine] = np.einsum("naz,an->zn", Z, (measured - min_norm)[:, fine])
        strain[:, fine] = np.einsum("naz,zn->an", Z, c[:, fine])
        hidden = np.where(valid, 1.0, np.nan)
        drawn = np.concatenate([measured, min_norm + strain, min_norm, c]) * hidden
        shown.append((log.t[at[::step]], drawn[:, ::step].copy()))  # a view would keep all of them
    y = joined(shown, 3 * a + z)[1].T
    directions = motor_directions(mechanism)
    return Tension(
        directions.names, directions.units, y[:, :a], y[:, a : 2 * a], y[:, 2 * a : 3 * a], y[:, 3 * a :]
    )
