"""Settings of a plant: its steps, its controller, its friction, and how stiff MuJoCo holds the loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dynid.common.errors import InputError, nearest
from dynid.excitation.friction import FrictionLaw

MOST_IMPEDANCE = 0.9999  # MuJoCo's own bound
DEFAULT_STEP = 1e-4


@dataclass(frozen=True)
class Softness:
    """How MuJoCo holds a loop: r'' = -2 r' / T - r / T^2 + (1 - d) times what the free tree would do.

    Attributes:
        steps: T in integration steps, critically damped; None takes `seconds`.
        seconds: T in [s], where it is not to follow the step.
        impedance: d, at rest and beyond `width`, dimensionless, below 1.
        width: What is open [m or rad] when the second impedance is reached.
    """

    steps: float | None = 10.0
    seconds: float = 0.0
    impedance: tuple[float, float] = (MOST_IMPEDANCE, MOST_IMPEDANCE)
    width: float = 1e-3

    def solref(self, step: float) -> list[float]:
        """Time constant [s] and damping ratio, as MuJoCo takes them."""
        return [self.seconds if self.steps is None else self.steps * step, 1.0]

    @property
    def solimp(self) -> list[float]:
        """Impedance as MuJoCo takes it: two values, the width, and the curve between them."""
        return [*self.impedance, self.width, 0.5, 2.0]


STIFF = Softness()
# What MuJoCo takes when nobody says otherwise: good for contacts that shall look right.
MUJOCO_DEFAULT = Softness(steps=None, seconds=0.02, impedance=(0.9, 0.95))


CONTROLLERS = ("feedforward", "computed_torque", "pd")
FEEDBACKS = ("encoders", "truth")


@dataclass(frozen=True)
class ControllerSettings:
    """How motors follow their reference.

    Attributes:
        kind: `feedforward`, `computed_torque` or `pd`.
        bandwidth: Around the reference, in [Hz].
        damping: zeta, 1 is critical, dimensionless.
        feedback: What it sees: `encoders`, read at its ticks (see `sight`), or the `truth` at any time.
        rate: Its ticks a second, in [Hz]; None: about 1000, a multiple of the log's rate.
        cutoff: Of the low-pass on velocities from encoders, in [Hz]; None: ten times the bandwidth.
    """

    kind: str = "feedforward"
    bandwidth: float = 10.0
    damping: float = 1.0
    feedback: str = "encoders"
    rate: float | None = None
    cutoff: float | None = None

    def __post_init__(self) -> None:
        for what, name, valid in (
            ("controller", self.kind, CONTROLLERS),
            ("feedback", self.feedback, FEEDBACKS),
        ):
            if name not in valid:
                raise InputError(
                    f"{what} '{name}' is not known" + nearest(name, valid), remedy=f"use {', '.join(valid)}"
                )
        for name in ("bandwidth", "damping", "rate", "cutoff"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < float("inf"):
                raise InputError(f"controller: {name} {value:g} is not positive")

    @property
    def omega(self) -> float:
        """Bandwidth in [rad/s]."""
        return 2.0 * math.pi * self.bandwidth


@dataclass(frozen=True, eq=False)
class PlantSettings:
    """What moves with the true parameters, and how it is driven.

    Attributes:
        step: Longest step of the integration, in [s]; a whole number of them fits into a sample.
        controller: How the motors follow the desired motion.
        friction: Owner or glob -> friction beyond the drive terms.
        tension: Internal tension of a redundantly actuated closed robot, see `internal_tension`, in [N m]
            or [N].
        softness: Of the loops, in MuJoCo.
    """

    step: float = DEFAULT_STEP
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    friction: Mapping[str, FrictionLaw] = field(default_factory=dict)
    tension: float = 0.0
    softness: Softness = STIFF

    def __post_init__(self) -> None:
        if not 0.0 < self.step < float("inf"):
            raise InputError(f"a step of {self.step:g} s makes no motion", remedy="give a positive step")
        if not 0.0 <= self.tension < float("inf"):
            raise InputError(f"a tension of {self.tension:g} is none", remedy="give 0 or more, in N m or N")


def substeps(rate: float, step: float, ticks: float | None = None) -> int:
    """Integration steps from one logged sample to the next: none longer than `step`.

    Args:
        rate: Of the log, in [Hz].
        step: The longest, in [s].
        ticks: Of a controller, in [Hz], a whole multiple of the rate or a part of it: whole steps fit too.
    """
    if not (rate > 0.0 and step > 0.0):
        raise InputError(f"rate {rate:g} Hz and step {step:g} s must both be positive")
    fastest = max(rate, ticks or rate)
    return max(1, math.ceil(1.0 / (fastest * step) - 1e-9)) * round(fastest / rate)
