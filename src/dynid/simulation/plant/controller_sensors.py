"""Feedback of a controller: encoders on the coordinates driven by its motors.

    y_j = round(y(t_j - delay) + noise),     v_j = v_(j-1) + p ((y_j - y_(j-1)) / T - v_(j-1))

at ticks t_j = j T; p = 1 - exp(-2 pi cutoff T) is a first-order low-pass on differences. The resulting
efforts are held until the next tick. A log has the same noise at the same ticks as the controller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.settings import ControllerSettings
from dynid.simulation.sensors import Per, Sensing

LEAST_RATE = 1000.0  # Hz, default rate of a controller
_PER_BANDWIDTH = 10.0  # cutoff of velocities, over the bandwidth
_MOST = 0.4  # of the controller's rate: largest default cutoff
_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class Sight:
    """Encoders of a controller.

    Attributes:
        names: Coordinates with an encoder, e of them.
        period: From tick to tick, in [s].
        cutoff: Of the velocities' low-pass, in [Hz].
        delay: Of the positions, in [s].
        resolution: Encoder steps, shape (e,), in [rad] or [m].
        noise: Of the positions at all ticks, shape (k, e), in [rad] or [m].
    """

    names: tuple[str, ...]
    period: float
    cutoff: float
    delay: float
    resolution: Float[Array, "e"]
    noise: Float[Array, "k e"]

    @property
    def passed(self) -> float:
        """Low-pass gain of a new difference, dimensionless."""
        return float(-np.expm1(-2.0 * np.pi * self.cutoff * self.period))


def driven_coordinates(mechanism: Mechanism) -> tuple[str, ...]:
    """Coordinates on which motors act, in the order of the tree."""
    named = {name for actuator in mechanism.actuators for name in actuator.on}
    return tuple(name for name in mechanism.coordinates if name in named)


def controller_rate(settings: ControllerSettings, rate: float) -> float:
    """Tick rate, in [Hz]: an integer multiple or an integer fraction of the log's rate."""
    tick_rate = settings.rate or rate * max(1, round(LEAST_RATE / rate))
    ratio = max(tick_rate / rate, rate / tick_rate)
    if abs(ratio - round(ratio)) > _WHOLE * ratio:
        raise InputError(
            f"a controller at {tick_rate:g} Hz and a log at {rate:g} Hz have no common clock",
            remedy="choose one rate as an integer multiple of the other",
        )
    return float(tick_rate)


def sight_of(
    mechanism: Mechanism,
    settings: ControllerSettings,
    sensing: Sensing,
    rate: float,
    duration: float,
    seed: int | np.random.SeedSequence,
) -> Sight:
    """The encoders of a controller.

    Args:
        mechanism: The robot.
        settings: Rate and low-pass.
        sensing: Of the log: logged encoders are those of the controller. A coordinate that is driven but
            not logged has the same encoder if one value applies to all, else a perfect one.
        rate: Of the log, in [Hz].
        duration: Of the run, in [s].
        seed: Of the noise.
    """
    names = driven_coordinates(mechanism)
    ticks = controller_rate(settings, rate)
    cutoff = settings.cutoff or min(_PER_BANDWIDTH * settings.bandwidth, _MOST * ticks)
    sigma = _per_encoder(mechanism, names, sensing.position_sigma)
    count = int(np.ceil(duration * ticks)) + 2
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(count, len(names))) * sigma if sigma.any() else np.zeros((count, len(names)))
    resolution = _per_encoder(mechanism, names, sensing.resolution)
    return Sight(names, 1.0 / ticks, cutoff, sensing.position_delay, resolution, noise)


def _per_encoder(mechanism: Mechanism, names: tuple[str, ...], value: Per) -> Float[Array, "e"]:
    if np.ndim(value) == 0:
        return np.full(len(names), float(value))
    logged = dict(zip(mechanism.measured_positions, np.asarray(value).tolist(), strict=True))
    return np.array([logged.get(name, 0.0) for name in names])
