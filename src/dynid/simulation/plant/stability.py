"""Stability of a simulated controller: before the run from its gains, during it from the tracking."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.controller_sensors import Sight
from dynid.simulation.plant.reference import Reference, position_map
from dynid.simulation.plant.settings import ControllerSettings

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
