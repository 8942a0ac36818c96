"""Verdict: can this result be used, for what, and if not, why? With the names of `result.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dynid.common.notices import LEVELS, Notice

# Percent of the peak effort, beyond noise: good up to the first, bad above the second. A feedforward torque
# within 5 % of the peak leaves a twentieth to the feedback controller; careful real arms reach 2 to 7 %.
LIMITS: Mapping[str, tuple[float, float]] = {
    "": (5.0, 10.0),
    "feedforward": (5.0, 10.0),
    "simulation": (5.0, 10.0),
    "payload": (10.0, 20.0),
    "collision": (2.0, 5.0),
}


@dataclass(frozen=True)
class JointVerdict:
    """One effort (or equation) on motion that the fit has not seen.

    Attributes:
        name: The effort or equation.
        level: `good`, `care` or `bad`.
        error_rms: Rms of measured minus predicted, low-passed as the rows of the fit, in `unit`.
        error_percent: Rms beyond the noise floor, in percent of the largest measured value.
        noise_floor: Rms that noise of the measured effort alone leaves behind the row filter, in `unit`.
        bias: Mean of measured minus predicted, in `unit`; None where only sums of squares are known.
        peak: Largest measured value, in `unit`.
    """

    name: str
    level: str
    error_rms: float
    unit: str
    error_percent: float
    noise_floor: float
    bias: float | None = None
    peak: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The whole result in one line.

    Attributes:
        level: `good`, `care` or `bad`.
        purpose: What the result is judged for; empty: general use.
        judged_on: Which unseen data the errors of the joints are from, in words.
        reasons: Warnings because of which it is not good. Worst first: causes before symptoms.
        joints: Every effort on its own.
    """

    level: str
    headline: str
    purpose: str = ""
    judged_on: str = ""
    reasons: tuple[Notice, ...] = ()
    joints: tuple[JointVerdict, ...] = ()


NOT_JUDGED = Verdict("care", "Not judged")  # of a result that was made without its logs


def worst(levels: Iterable[str]) -> str:
    """The worst of some levels; good if there are none."""
    return max(levels, key=LEVELS.index, default="good")
