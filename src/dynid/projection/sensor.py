"""Model `wrench` of a force/torque sensor: its equations along a log, and at random motions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.common.arrays import Array, Int
from dynid.mechanism.force_sensor import COMPONENTS, UNITS, Run
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.motion.motion import Motion
from dynid.projection.contract import LogRows, Model
from dynid.projection.factor import Factor, factor_rows, merge
from dynid.projection.projection import Directions
from dynid.projection.sensor_columns import SensorColumns, SensorMotion, random_motion, sensor_frames

_SEED = 20021118
_STATES = 120


def sensor_directions(mechanism: Mechanism) -> Directions:
    """The six components of the wrench; each acts on its own rigid joint."""
    places = [mechanism.coordinates.index(name) for name in COMPONENTS]
    return Directions(COMPONENTS, UNITS, np.eye(len(mechanism.coordinates))[:, places], np.eye(6))


class SensorRows(LogRows):
    """Equations of a force/torque sensor along one log."""

    def _prepare(self) -> None:
        mechanism, motion = self.mechanism, self.motion
        self.present = [COMPONENTS.index(name) for name in self.directions.names]
        payloads = motion.log.payloads
        self.columns = SensorColumns(mechanism, self.parameters, self.present, payloads, self.load_parameters)
        self.layout = self.columns.layout
        self.frames = sensor_frames(mechanism, motion)
        self.notices, self.choices = self.frames.notices, self.frames.choices
        sensor = self.columns.sensor
        self._limits = None if sensor.limits is None else np.repeat(sensor.limits, 3)
        runs = sensor.runs
        self._runs = np.array([_number(runs, motion, start) for start, _ in motion.log.segments])

    def run_of(self, start: int, stop: int) -> Int[Array, "n"]:
        """Number of the run of each sample."""
        at = np.arange(start, stop)
        first = np.array([low for low, _ in self.motion.log.segments])
        return self._runs[np.searchsorted(first, at, side="right") - 1]

    def rows(self, start: int, stop: int, tile: int) -> Iterator[tuple[int, Array, Array]]:
        """Packed entries (e, n) and row weights (k, n) of consecutive tiles of start .. stop."""
        moved = self.frames.along(start, self.motion.states(start, stop))
        log = self.motion.log
        measured = np.nan_to_num(log.tau[start:stop])
        usable = (log.valid[start:stop] & moved.fine)[:, None] & np.isfinite(log.tau[start:stop])
        if self._limits is not None:
            usable &= np.abs(measured) < self._limits
        run = self.run_of(start, stop)
        for at in range(0, stop - start, tile):
            part = slice(at, min(at + tile, stop - start))
            tile_motion = SensorMotion(moved.R[part], moved.omega[part], moved.dV[part], moved.fine[part])
            weights = usable[part][:, self.present].T.astype(float)
            yield start + at, self.columns.packed(tile_motion, measured[part], run[part]), weights


def _number(runs: Sequence[Run], motion: Motion, start: int) -> int:
    """Which of the runs a segment is; -1: none."""
    log = motion.log
    numbers = (k for k, run in enumerate(runs) if run.is_of(log.name, float(log.t[start]), log.dt))
    return next(numbers, -1)


def sensor_structure(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = 4.0,  # not used: few states are drawn anyway
    seed: int = _SEED,
) -> Factor:
    """Factor of rows at random feasible motions of the robot (with an IMU: any); Y is zero."""
    rng = np.random.default_rng(seed)
    names = COMPONENTS if directions is None else directions.names
    rows = [COMPONENTS.index(name) for name in names]
    load_parameters = rng.normal(size=len(parameters))
    sensor = mechanism.force_sensor
    runs = len(sensor.runs) if sensor is not None else 0
    factors = []
    for mounted in dict.fromkeys(loads):
        columns = SensorColumns(mechanism, parameters, rows, mounted, load_parameters)
        moved = random_motion(mechanism, rng, max(_STATES, 24 * runs), stretch)
        n = len(moved.omega)
        run = np.arange(n) % runs if runs else np.full(n, -1)
        packed = columns.packed(moved, np.zeros((n, 6)), run)
        W = columns.layout.dense(packed, len(parameters)).reshape(-1, len(parameters))
        factors.append(factor_rows(W, np.zeros(len(W))))
    return merge(factors)


# Chosen by a force sensor, not by name: its file key is that of wrenches.
FORCE_SENSOR = Model(
    "force_sensor",
    "six equations per sample, for the load on a force sensor",
    sensor_directions,
    SensorRows,
    sensor_structure,
    case="force_sensor",
    key="wrench",
    effort_rows=True,
)
