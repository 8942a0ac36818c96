"""Signals of a result along its logs: measured against predicted, internal tension, closure.

Verdict: can this result be used, for what, and if not, why? With the names of `result.json`.

Description: what a result says about the dimensions, zeros and gravity that it assumes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.notices import LEVELS, Notice

SINGULARITY_DISTANCE = "singularity_distance"  # a signal of closed robots
_NOTHING = 1e-6  # N m or N: rounding
FAR = 100.0  # sigma: a larger effect of the description is shown as more than this; it is no longer linear


_BURST = 0.01  # of the samples: a larger effort that lasts no longer is a burst


def peak_of(measured: Float[Array, "n"]) -> float:
    """The size that one percent of the measured values exceed, in their unit; 0 without any.

    Not the largest value: one burst or spike would make every error small in percent of it.
    """
    known = np.abs(measured[np.isfinite(measured)])
    if not known.size:
        return 0.0
    return float(np.quantile(known, 1.0 - _BURST)) or float(known.max())  # an effort that is mostly zero


def percent_of_peak(values: Float[Array, "... k"], measured: Float[Array, "n k"]) -> Float[Array, "... k"]:
    """Values in percent of the peak of their row; zero in rows without effort, which have none."""
    peak = np.array([peak_of(column) for column in measured.T])
    return np.asarray(100.0 * values / np.where(peak > 0.0, peak, np.inf))


@dataclass(frozen=True, eq=False)
class Tension:
    """Motor efforts of a redundantly actuated robot along one log, at the times of its signals.

    rebuilt = min_norm + Z c, Z an orthonormal null space of J_a^T with continuous sign.

    Attributes:
        names, units: Of the motors.
        measured: Shape (n, a), in `units`.
        rebuilt: Model and tension together, shape (n, a), in `units`.
        min_norm: The least efforts that the model needs for this motion, shape (n, a), in `units`.
        c: Tension along each direction of Z, shape (n, z), unit of the motors.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    measured: Float[Array, "n a"]
    rebuilt: Float[Array, "n a"]
    min_norm: Float[Array, "n a"]
    c: Float[Array, "n z"]


@dataclass(frozen=True, eq=False)
class Signals:
    """Measured against predicted efforts of one log, thinned for plotting.

    Attributes:
        t: Shape (n,), in [s]; NaN rows separate pieces that do not join.
        measured, predicted: Shape (n, k), in `units`.
        tension: Motor efforts and internal tension, of redundantly actuated robots.
        closure: Of closed robots, what the loops leave open and what redundant sensors miss, in [m] or
            [rad], by name, each of shape (n,).
        memory: Autocorrelation of the residuals of each effort at lags 0, 1, .. rows, shape (k, l),
            dimensionless; empty where it is not known.
        row_dt: Time between rows, in [s].
        n_rows: Rows behind the autocorrelation.
    """

    log: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    t: Float[Array, "n"]
    measured: Float[Array, "n k"]
    predicted: Float[Array, "n k"]
    validation: bool = False
    tension: Tension | None = None
    closure: Mapping[str, Float[Array, "n"]] = field(default_factory=dict)
    memory: Float[Array, "k l"] | None = None
    row_dt: float = 0.0
    n_rows: int = 0

    @property
    def rms(self) -> Float[Array, "k"]:
        """Rms of the residuals of every effort, shape (k,), in `units`; 0 where nothing is measured."""
        left = self.measured - self.predicted
        n_known = np.maximum(1, np.isfinite(left).sum(axis=0))
        return np.asarray(np.sqrt(np.nansum(np.square(left), axis=0) / n_known))


def worst_signals(signals: Sequence[Signals], most: int = 3) -> list[int]:
    """Places of the logs with the largest errors of an effort, relative to its peak, in their order."""
    largest = [percent_of_peak(part.rms, part.measured).max(initial=0.0) for part in signals]
    return sorted(sorted(range(len(signals)), key=lambda k: -largest[k])[:most])


def model_error(rms: float, noise_floor: float, peak: float) -> float:
    """The error that every verdict, table and plot gives: rms error without noise, in percent of the peak.

    Args:
        rms: Of measured minus predicted, in the unit of the effort.
        noise_floor: Rms that noise of the measurement alone causes, in the same unit.
        peak: `peak_of` the measured values, in the same unit.

    Returns:
        Percent; where nothing but zero was measured, 100 if anything was predicted.
    """
    error = without_noise(rms, noise_floor)
    return 100.0 * error / peak if peak > 0.0 else 100.0 * (error > _NOTHING)


def without_noise(rms: float, noise_floor: float) -> float:
    """The part of an rms error that noise of the measurement does not explain, in its unit."""
    return math.sqrt(max(rms**2 - noise_floor**2, 0.0))


# Model error, percent of the peak effort: good up to the first, bad above the second. A feedforward torque
# within 5 % of the peak leaves a twentieth to the feedback controller; careful real arms reach 2 to 7 %.
LIMITS: Mapping[str, tuple[float, float]] = {
    "": (5.0, 10.0),
    "feedforward": (5.0, 10.0),
    "simulation": (5.0, 10.0),
    "payload": (10.0, 20.0),
    "collision": (2.0, 5.0),
}


def level_of(error_percent: float, purpose: str) -> str:
    """`good`, `care` or `bad`: a model error, in percent of the peak, for a purpose."""
    good, bad = LIMITS[purpose]
    return "good" if error_percent <= good else "care" if error_percent <= bad else "bad"


@dataclass(frozen=True)
class JointVerdict:
    """One effort (or equation) on motion that the fit has not seen.

    Attributes:
        name: The effort or equation.
        level: `good`, `care` or `bad`.
        error_rms: Rms of measured minus predicted, low-passed as the rows of the fit, in `unit`.
        error_percent: `model_error`: rms without noise, in percent of `peak`.
        noise_floor: Rms that noise of the measured effort alone leaves behind the row filter, in `unit`.
            It may exceed `error_rms`: it counts what the model explains, such as vibration, as noise.
        bias: Mean of measured minus predicted, in `unit`; None where only sums of squares are known.
        peak: `peak_of` the measured values, in `unit`.
    """

    name: str
    level: str
    error_rms: float
    unit: str
    error_percent: float
    noise_floor: float
    bias: float | None = None
    peak: float = 0.0

    @property
    def error(self) -> float:
        """The model error in `unit`: the part of `error_rms` that noise does not explain."""
        return without_noise(self.error_rms, self.noise_floor)

    @property
    def noise(self) -> float:
        """The part of `error_rms` that noise explains, in `unit`: no more than all of it."""
        return min(self.noise_floor, self.error_rms)


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

    def __repr__(self) -> str:
        """One line, with the codes of the reasons."""
        codes = ", ".join(item.code for item in self.reasons)
        return f"Verdict({self.level!r}: {self.headline}" + (f"; reasons: {codes})" if codes else ")")


@dataclass(frozen=True)
class LogError:
    """Model error of one log: that of the effort with the largest.

    Attributes:
        percent: `model_error`, with noise floor and peak of the verdict.
        worst: The effort; empty: nothing to compare.
        rms: Its rms error, in `unit`.
        error: The same without noise, in `unit`.
    """

    percent: float = math.nan
    worst: str = ""
    rms: float = math.nan
    unit: str = ""
    error: float = math.nan


def log_error(signals: Signals, verdict: Verdict) -> LogError:
    """Model error of one log, defined as for the verdict: same noise floors, same peaks.

    Rows that the verdict does not judge one by one (tables of wrenches) have no noise floor.
    """
    judged = {joint.name: joint for joint in verdict.joints}
    found = []
    for k, name in enumerate(signals.names):
        largest = peak_of(signals.measured[:, k])
        floor, peak = (judged[name].noise_floor, judged[name].peak) if name in judged else (0.0, largest)
        rms = float(signals.rms[k])
        error = without_noise(rms, floor)
        found.append((model_error(rms, floor, peak or largest), rms, name, signals.units[k], error))
    if not found:
        return LogError()
    value, rms, name, unit, error = max(found)
    return LogError(value, name, rms, unit, error)


NOT_JUDGED = Verdict("care", "Not judged")  # of a result that was made without its logs


def worst(levels: Iterable[str]) -> str:
    """The worst of some levels; good if there are none."""
    return max(levels, key=LEVELS.index, default="good")


@dataclass(frozen=True)
class Candidate:
    """Settings to choose from, by default those of the rules, and their error on unseen samples.

    Attributes:
        cutoff: Low-pass on coordinates, in [Hz]; None: no filter.
        mask: `reversals` or `none`.
        velocity: `measured` or `derived`.
        friction: Drive terms; empty: none.
        held_out_percent: Over the folds, on the same reference rows for all; None: a fit failed.
    """

    cutoff: float | None = None
    mask: str = "reversals"
    velocity: str = "auto"
    friction: str = ""
    estimator: str = "wls"
    held_out_percent: float | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Quantity:
    """One quantity of the description.

    Attributes:
        value: Found, or as described, in [m] or [rad].
        sigma: Standard deviation, in the same unit; None: neither given nor found.
        given: As described.
        found: Whether it was estimated together with the parameters.
        identifiable: Whether these data determine it: its sigma is below half of the prior one.
        combination: Of one that they do not determine, the combination that they do not see, in words.
    """

    value: float
    sigma: float | None
    given: float
    found: bool = False
    identifiable: bool = True
    combination: str = ""


@dataclass(frozen=True)
class DescriptionTest:
    """The description as it is, or corrected in one place, against the same logs.

    Attributes:
        name: The correction, e.g. `gravity [0, 0, 9.81]`, or `as described`.
        residual_percent: 100 |Y - W chi| / |Y| of the fit; of positions: what remains of their misfit.
        p: Probability of such an improvement if the description were right.
        of_positions: Whether measured positions test it (loops, cables), not the efforts.
    """

    name: str
    residual_percent: float
    p: float
    of_positions: bool = False

    @property
    def subject(self) -> str:
        """What is corrected, without its size."""
        return re.split(" (?:corrected by|off by|=)", self.name)[0]

    def left(self, described: float) -> float:
        """Residual that remains with this correction, in percent of that as described."""
        if self.of_positions or described <= 0.0:
            return self.residual_percent
        return 100.0 * self.residual_percent / described


@dataclass(frozen=True, eq=False)
class Description:
    """Quantities of a description with their uncertainty and their effect on the parameters.

    Attributes:
        symbols, zeros: By name of the dimension or joint.
        gravity: In the base frame, shape (3,), in [m/s^2].
        gravity_sigma: Standard deviation of its direction, in [rad]; None: taken as exact.
        names: Quantities in the order of `slopes` and `covariance` (`dynid.mechanism.description`).
        parameters: Names of the parameters in the order of `slopes`.
        slopes: d parameter / d quantity, shape (v, k), SI.
        covariance: Of the quantities, shape (k, k), SI.
        shares: Parameter -> quantity -> share of the parameter's variance.
        per_thousandth: Parameter -> quantity -> change for 1 mm or 1 mrad, in sigma of the parameter: of
            quantities without a standard deviation.
    """

    symbols: Mapping[str, Quantity] = field(default_factory=dict)
    zeros: Mapping[str, Quantity] = field(default_factory=dict)
    gravity: tuple[float, ...] = ()
    gravity_sigma: float | None = None
    names: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    slopes: Float[Array, "v k"] = field(default_factory=lambda: np.zeros((0, 0)))
    covariance: Float[Array, "k k"] = field(default_factory=lambda: np.zeros((0, 0)))
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    per_thousandth: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """Quantities that were found, by the names of `dynid.mechanism.description`."""
        by_name = {name: item.value for name, item in self.symbols.items() if item.found}
        return by_name | {f"zero_{name}": item.value for name, item in self.zeros.items() if item.found}
