"""Signals of a result along its logs: measured against predicted, internal tension, closure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float

SINGULARITY_DISTANCE = "singularity_distance"  # a signal of closed robots


def percent_of_peak(values: Float[Array, "... k"], measured: Float[Array, "n k"]) -> Float[Array, "... k"]:
    """Values in percent of the largest effort of their row; zero in rows without effort, which have none."""
    peak = np.nanmax(np.abs(measured), axis=0, initial=0.0)
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
    def error(self) -> float:
        """Rms of the residuals in percent of the rms of the measured efforts; NaN without efforts."""
        left = np.nansum(np.square(self.measured - self.predicted))
        whole = np.nansum(np.square(self.measured))
        return float(100.0 * np.sqrt(left / whole)) if whole > 0.0 else float("nan")


def worst_signals(signals: Sequence[Signals], most: int = 3) -> list[int]:
    """Places of the logs with the largest errors, in the order of the logs."""
    order = sorted(range(len(signals)), key=lambda k: -np.nan_to_num(signals[k].error))
    return sorted(order[:most])
