"""Settings of a plant: steps, controller, friction, and stiffness of the loops in MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dynid.common.errors import InputError, check_choice
from dynid.excitation.friction import FrictionLaw

MOST_IMPEDANCE = 0.9999  # MuJoCo's own bound
DEFAULT_STEP = 1e-4


@dataclass(frozen=True)
class Softness:
    """Softness of a loop in MuJoCo: r'' = -2 r' / T - r / T^2 + (1 - d) times the free acceleration.

    Attributes:
        steps: T in integration steps, critically damped; None: `seconds` is used.
        seconds: T in [s], independent of the step.
        impedance: d, at rest and beyond `width`, dimensionless, below 1.
        width: Gap [m or rad] at which the second impedance is reached.
    """

    steps: float | None = 10.0
    seconds: float = 0.0
    impedance: tuple[float, float] = (MOST_IMPEDANCE, MOST_IMPEDANCE)
    width: float = 1e-3

    def solref(self, step: float) -> list[float]:
        """Time constant [s] and damping ratio, in MuJoCo's format."""
        return [self.seconds if self.steps is None else self.steps * step, 1.0]

    @property
    def solimp(self) -> list[float]:
        """Impedance in MuJoCo's format: two values, the width, and the curve between them."""
        return [*self.impedance, self.width, 0.5, 2.0]


STIFF = Softness()


CONTROLLERS = ("feedforward", "computed_torque", "pd")
FEEDBACKS = ("encoders", "truth")


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller.

    Attributes:
        kind: `feedforward`, `computed_torque` or `pd`.
        bandwidth: Of the tracking, in [Hz].
        damping: zeta, 1 is critical, dimensionless.
        feedback: `encoders`, read at its ticks (see `controller_sensors`), or the `truth` at any time.
        rate: Tick rate, in [Hz]; None: about 1000, a multiple of the log's rate.
        cutoff: Of the low-pass on velocities from encoders, in [Hz]; None: ten times the bandwidth.
    """

    kind: str = "feedforward"
    bandwidth: float = 10.0
    damping: float = 1.0
    feedback: str = "encoders"
    rate: float | None = None
    cutoff: float | None = None

    def __post_init__(self) -> None:
        for label, name, valid in (
            ("controller", self.kind, CONTROLLERS),
            ("feedback", self.feedback, FEEDBACKS),
        ):
            check_choice(label, name, valid)
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
    """Settings of the simulated plant and its controller.

    Attributes:
        step: Longest step of the integration, in [s]; a sampling period is a whole number of steps.
        controller: Settings of the controller.
        friction: Owner or glob -> friction in addition to the drive terms.
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
            raise InputError(f"a step of {self.step:g} s is not valid", remedy="give a positive step")
        if not 0.0 <= self.tension < float("inf"):
            raise InputError(f"tension {self.tension:g} is not valid", remedy="give 0 or more, in N m or N")


def substeps(rate: float, step: float, ticks: float | None = None) -> int:
    """Integration steps from one logged sample to the next: none longer than `step`.

    Args:
        rate: Of the log, in [Hz].
        step: The longest, in [s].
        ticks: Of a controller, in [Hz], an integer multiple or fraction of the rate; also whole steps.
    """
    if not (rate > 0.0 and step > 0.0):
        raise InputError(f"rate {rate:g} Hz and step {step:g} s must both be positive")
    fastest = max(rate, ticks or rate)
    return max(1, math.ceil(1.0 / (fastest * step) - 1e-9)) * round(fastest / rate)
