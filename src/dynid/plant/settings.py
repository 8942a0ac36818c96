"""Settings of the plant: how small the steps are, and how stiff what holds the loops together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dynid.errors import InputError

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


def substeps(rate: float, step: float) -> int:
    """Integration steps from one logged sample to the next: none longer than `step`."""
    if not (rate > 0.0 and step > 0.0):
        raise InputError(f"rate {rate:g} Hz and step {step:g} s must both be positive")
    return max(1, math.ceil(1.0 / (rate * step) - 1e-9))
