"""PlantRun: result of a plant simulation by any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.kinematics.sensors import measured_motion
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.controller_sensors import Sight
from dynid.simulation.sensors import Course


@dataclass(frozen=True, eq=False)
class PlantRun:
    """Result of a plant simulation at the logged times; coordinates in dynid's order.

    Attributes:
        t: Time, shape (n,), in [s].
        q, dq, ddq: All tree coordinates of the engine, shapes (n, n_q), (n, n_v), (n, n_v).
        tau: Efforts that the motors apply, shape (n, a), in [N m] or [N].
        energy: Potential and kinetic, shape (n, 2), in [J].
        gap: Largest gap of the loops, shape (n,), in [m] or [rad].
        width: Speed scale of dry friction by owner, per s: see `Drives`.
        step: Of the integration, in [s].
        work: Done on the robot by motors and friction since the start, shape (n,), in [J]; None if
            not computed.
        sight: Encoders of its controller; None if it knew the true state.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n q"]
    dq: Float[Array, "n v"]
    ddq: Float[Array, "n v"]
    tau: Float[Array, "n a"]
    energy: Float[Array, "n 2"]
    gap: Float[Array, "n"]
    width: Mapping[str, float]
    step: float
    work: Float[Array, "n"] | None = None
    sight: Sight | None = None

    @property
    def energy_drift(self) -> float:
        """Largest energy error, relative to the largest kinetic energy; NaN if not computed."""
        if self.work is None:
            return float("nan")
        total = self.energy.sum(axis=1)
        missing = np.abs(total - total[0] - self.work).max()
        return float(missing / max(self.energy[:, 1].max(), np.finfo(float).tiny))

    def course(self, mechanism: Mechanism) -> Course:
        """The measurable part of the run."""
        measured = measured_motion(mechanism, self.q, self.dq, self.ddq)
        return Course(self.t, *measured, self.tau, noise=self._noise(mechanism))

    def _noise(self, mechanism: Mechanism) -> Float[Array, "n m"] | None:
        """Noise of the logged encoders as read by the controller; NaN between ticks and without encoder."""
        if self.sight is None or not self.sight.noise.any():
            return None
        errors = np.full((len(self.t), len(mechanism.measured_positions)), np.nan)
        ticks = self.t / self.sight.period
        at = np.rint(ticks).astype(np.int64)
        rows = np.flatnonzero(np.abs(ticks - at) < 1e-6)
        for column, name in enumerate(mechanism.measured_positions):
            if name in self.sight.names:
                errors[rows, column] = self.sight.noise[at[rows], self.sight.names.index(name)]
        return errors


def joined(runs: Sequence[PlantRun], sight: Sight | None = None) -> PlantRun:
    """Join consecutive runs: each starts in the final state of the previous one.

    Energy added by a new payload counts as work.
    """
    first, last = runs[0], runs[-1]
    start = first.energy[0].sum()
    parts: list[Float[Array, "n"]] = []
    missing = 0.0
    for run in runs:
        if run.work is not None:
            total = run.energy.sum(axis=1)
            work = run.work + (total[0] - start) - missing
            missing = float(total[-1] - start - work[-1])
            parts.append(work if run is last else work[:-1])
    stacked = {
        name: np.concatenate([getattr(run, name)[: None if run is last else -1] for run in runs])
        for name in ("t", "q", "dq", "ddq", "tau", "energy", "gap")
    }
    work_done = np.concatenate(parts) if parts else None
    return PlantRun(**stacked, width=first.width, step=first.step, work=work_done, sight=sight)
