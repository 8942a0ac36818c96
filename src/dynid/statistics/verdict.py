"""Verdict: can this result be used, for what, and if not, why? With the names of `result.json`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEVELS = ("good", "care", "bad")


@dataclass(frozen=True)
class Reason:
    """Why a result is not good: the code of a warning, what was found, what to do, and how bad it is."""

    code: str
    text: str
    remedy: str = ""
    level: str = "care"


@dataclass(frozen=True)
class JointVerdict:
    """One effort (or equation) on motion that the fit has not seen.

    Attributes:
        name: The effort or equation.
        level: `good`, `care` or `bad`.
        error_rms: Rms of measured minus predicted, low-passed as the rows of the fit, in `unit`.
        error_percent: Rms beyond the noise floor, in percent of the largest measured value.
        noise_floor: Rms that noise of the measured effort alone leaves behind the row filter, in `unit`.
    """

    name: str
    level: str
    error_rms: float
    unit: str
    error_percent: float
    noise_floor: float


@dataclass(frozen=True)
class Verdict:
    """The whole result in one line.

    Attributes:
        level: `good`, `care` or `bad`.
        purpose: What the result is judged for; empty: general use.
        judged_on: Which unseen data the errors of the joints are from, in words.
        reasons: Worst first: causes before symptoms.
        joints: Every effort on its own.
    """

    level: str
    headline: str
    purpose: str = ""
    judged_on: str = ""
    reasons: tuple[Reason, ...] = ()
    joints: tuple[JointVerdict, ...] = ()


NOT_JUDGED = Verdict("care", "Not judged")  # of a result that was made without its logs


def worst(levels: Iterable[str]) -> str:
    """The worst of some levels; good if there are none."""
    return max(levels, key=LEVELS.index, default="good")
