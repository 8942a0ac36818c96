"""Whether a simulated controller holds its robot: before the run by its gains, during it by the tracking."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.mechanism.mechanism import Mechanism
from dynid.plant.reference import Reference, position_map
from dynid.plant.settings import ControllerSettings

_MOST_ANGLE = 1.0  # of bandwidth and step in [rad]: Runge-Kutta bears 2.7 of a critically damped motor alone
_SWINGS, _ANYHOW = 2.0, 0.5  # of a motor, and rad or m: what it may be away from its reference


def check_bandwidth(settings: ControllerSettings, step: float) -> None:
    """Refuse gains that no step of this length can follow.

    Args:
        settings: Of the controller.
        step: Of the integration, in [s].
    """
    angle = settings.omega * max(1.0, 2.0 * settings.damping) * step / 2.0
    if angle > _MOST_ANGLE:
        raise InputError(
            f"controller gains too high: a bandwidth of {settings.bandwidth:g} Hz is unstable with steps of"
            f" {step:.3g} s",
            remedy=f"lower `bandwidth`, or take steps below {step * _MOST_ANGLE / angle:.2g} s",
        )


def check_tracking(mechanism: Mechanism, reference: Reference, t: float, q: Float[Array, "q"]) -> None:
    """Refuse a run whose motors leave their reference for good.

    Args:
        mechanism: The robot.
        reference: What its motors shall do.
        t: Now, in [s].
        q: All tree positions, shape (n_q,).
    """
    y = position_map(mechanism) @ q
    away = np.abs(y - reference.at(np.array([t])).y[0])
    lost = ~(away < _SWINGS * reference.swing + _ANYHOW)
    if lost.any():
        motor = int(np.argmax(lost))
        name = mechanism.actuators[motor].name
        raise unstable(t, f"motor '{name}' is {away[motor]:.3g} rad or m away from its reference")


def unstable(t: float, what: str) -> InputError:
    """The refusal of a run that went out of hand at t [s]."""
    return InputError(
        f"the simulation is unstable: at {t:.4g} s {what}",
        remedy="lower the controller's `bandwidth` (gains too high), take smaller steps, or give it a better"
        " model of the robot",
    )
