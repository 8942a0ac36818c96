"""PlantRun: result of a plant simulation by any engine.

Stability of a simulated controller: before the run from its gains, during it from the tracking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.kinematics.sensors import measured_motion
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.controller_sensors import Sight
from dynid.simulation.plant.reference import Reference, position_map
from dynid.simulation.plant.settings import ControllerSettings
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
        width: Speed scale of dry friction by owner, per s, if it is smoothed: see `Drives`.
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


_MOST_ANGLE = 1.0  # bandwidth times step, rad: Runge-Kutta is stable up to 2.7 with critical damping
_SWINGS, _ANYHOW = 2.0, 0.5  # of a motor's range, and rad or m: largest allowed tracking error


def check_bandwidth(settings: ControllerSettings, step: float, sight: Sight | None = None) -> None:
    """Reject gains that are too high for the integration step or for the delay of the encoders.

    Args:
        settings: Of the controller.
        step: Of the integration, in [s].
        sight: Its encoders; None: it knows the true state.
    """
    angle = settings.omega * max(1.0, 2.0 * settings.damping) * step / 2.0
    if angle > _MOST_ANGLE:
        raise InputError(
            f"controller gains too high: a bandwidth of {settings.bandwidth:g} Hz is unstable with steps of"
            f" {step:.3g} s",
            remedy=f"lower `bandwidth`, or use steps below {step * _MOST_ANGLE / angle:.2g} s",
        )
    if sight is not None and not phase_margin(settings, sight) > 0.0:
        raise InputError(
            f"controller gains too high: a bandwidth of {settings.bandwidth:g} Hz is unstable with encoders"
            f" that are read every {sight.period:.3g} s with a delay of {sight.delay:.3g} s, and velocities"
            f" low-passed at {sight.cutoff:.3g} Hz",
            remedy="lower `bandwidth` or `delay`, raise the controller's `rate` or `cutoff`",
        )


def phase_margin(settings: ControllerSettings, sight: Sight) -> float:
    """Phase margin of a single motor, in [rad], at the last gain crossover.

    L(s) = (omega^2 + 2 zeta omega D(s)) exp(-s (delay + T/2)) / s^2,   D = s exp(-s T/2) / (1 + s / omega_c):
    efforts are held for T, velocities are differences over T.
    """
    omega, T = settings.omega, sight.period
    w = np.geomspace(1e-2, 1e3, 20001) * omega
    velocity = 1j * w * np.exp(-0.5j * w * T) / (1.0 + 1j * w / (2.0 * np.pi * sight.cutoff))
    late = np.exp(-1j * w * (sight.delay + 0.5 * T))
    loop = (omega**2 + 2.0 * settings.damping * omega * velocity) * late / -(w**2)
    last = int(np.flatnonzero(np.abs(loop) >= 1.0)[-1])
    return float(np.pi + np.unwrap(np.angle(loop))[last])


def check_tracking(
    mechanism: Mechanism,
    reference: Reference,
    t: Float[Array, "n"],
    q: Float[Array, "n q"],
    unfinished: bool = False,
) -> None:
    """Reject a run whose motors lose their reference.

    Args:
        mechanism: The robot.
        reference: Of the motors.
        t: Samples, in [s].
        q: All tree positions, shape (n, n_q).
        unfinished: Whether samples that were not reached are NaN; else NaN means divergence.
    """
    away = np.abs(q @ position_map(mechanism).T - reference.at(t).y)
    lost = ~(away < _SWINGS * reference.swing + _ANYHOW)
    if unfinished:
        lost &= np.isfinite(away)
    if lost.any():
        k, motor = np.argwhere(lost)[0].tolist()
        name = mechanism.actuators[motor].name
        raise unstable(
            float(t[k]), f"motor '{name}' is {away[k, motor]:.3g} rad or m away from its reference"
        )


def unstable(t: float, what: str) -> InputError:
    """The error of a run that became unstable at t [s]."""
    return InputError(
        f"the simulation is unstable: at {t:.4g} s {what}",
        remedy="lower the controller's `bandwidth` (gains too high), use smaller steps, or give it a better"
        " model of the robot",
    )
