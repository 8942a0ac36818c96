"""History of a recursive estimate: parameters after each update, and changes with what jumped.

A change splits the log: the rows before it (since the change before) and after it (until the
next) are fitted apart, and a parameter has jumped by

z = (chi_after - chi_before) / sqrt(sigma_before^2 + sigma_after^2)      standard deviations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float

# Smaller jumps, in standard deviations, are not significant among some tens of parameters.
SIGNIFICANT = 5.0


@dataclass(frozen=True)
class Jump:
    """One parameter before and after a change, in SI units, with the sigma of the difference.

    Sigma takes the noise as white: the stretches are short, and hold few blocks to compare.
    """

    name: str
    before: float
    after: float
    sigma: float

    @property
    def z(self) -> float:
        """Size of the jump in deviations."""
        return abs(self.after - self.before) / self.sigma if self.sigma > 0 else 0.0


@dataclass(frozen=True)
class ChangeFound:
    """A moment from which on the parameters are no longer those of before.

    Attributes:
        log: In which it happened.
        seconds: Rows in use before it, in [s] since the first.
        jumps: All parameters, the surest jump first; empty where the rows before or after it do not
            determine them.
    """

    log: str
    seconds: float
    jumps: tuple[Jump, ...] = ()

    @property
    def jumped(self) -> tuple[Jump, ...]:
        """Parameters that certainly changed."""
        return tuple(jump for jump in self.jumps if jump.z > SIGNIFICANT)


@dataclass(frozen=True, eq=False)
class History:
    """Parameters over time.

    Attributes:
        names: Of the parameters.
        logs: Log of each update.
        seconds: End of each update, in [s] of rows in use, shape (n,).
        chi: Estimate after each update, shape (n, p), SI; NaN while the rows do not determine it.
        sigma: Its deviation, shape (n, p), SI.
        ratio: Squared innovation of each update over the variance so far, shape (n,); about one.
        half_life: Seconds after which a row counts half; None: rows are not forgotten.
    """

    names: tuple[str, ...]
    logs: tuple[str, ...]
    seconds: Float[Array, "n"]
    chi: Float[Array, "n p"]
    sigma: Float[Array, "n p"]
    ratio: Float[Array, "n"]
    half_life: float | None
    changes: tuple[ChangeFound, ...] = ()

    def calibrated(self, sigma: Float[Array, "p"]) -> History:
        """The same with deviations that end at those reported, which take the residuals as they are.

        Those of jumps stay: residuals of one fit over a change hold the change itself.
        """
        last = self.sigma[-1]
        factor = np.where(np.isfinite(last) & (last > 0), sigma / np.where(last > 0, last, 1.0), 1.0)
        return replace(self, sigma=self.sigma * factor)


def surest_first(jumps: Sequence[Jump]) -> tuple[Jump, ...]:
    """Jumps in the order of their size in deviations."""
    return tuple(sorted(jumps, key=lambda jump: -jump.z))
