"""Solution: what an estimator returns, with the values needed to assess it.

History of a recursive estimate: parameters after each update, and changes with what jumped.

A change splits the log: the rows before it (since the change before) and after it (until the
next) are fitted apart, and a parameter has jumped by

z = (chi_after - chi_before) / sqrt(sigma_before^2 + sigma_after^2)      standard deviations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.brief import one_line
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.projection.factor import Factor

if TYPE_CHECKING:
    from dynid.projection.projection import System


CONVERGED, NOT_CONVERGED = "converged", "not converged"


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters that solve W chi = Y, and how far to trust them.

    Attributes:
        chi: Shape (p,), SI, in the order of the system's parameters.
        covariance: C_chi = sigma_rho^2 (W^T W)^-1 of the weighted rows, times the inflation of each
            group, shape (p, p), SI.
        weights: Factor on the rows of each group (1 over its deviation), shape (g,).
        sigma_rho: Deviation of a weighted row.
        dof: Independent rows (as many as the correlated ones are worth) less parameters.
        condition, condition_scaled: Of the weighted W, as it is and with unit columns.
        residual_norms: ||Y - W chi|| of each group, not weighted, shape (g,), unit of the group.
        residual_norm, measured_norm: Of all weighted rows.
        normal_residual: Largest |W_j^T rho| / (|W_j| |Y|) of the equations solved: zero at their
            least-squares solution.
        status: `converged` or `not converged`.
        equations: Equations with their blocks whose weighted least-squares solution chi is, where
            they are not the equations given: whatever is computed from rows (clusters, essential
            parameters) reads these.
        history: The parameters over time, of recursive estimators.
    """

    names: tuple[str, ...]
    chi: Float[Array, "p"]
    covariance: Float[Array, "p p"]
    weights: Float[Array, "g"]
    sigma_rho: float
    dof: int
    rank: int
    condition: float
    condition_scaled: float
    residual_norms: Float[Array, "g"]
    residual_norm: float
    measured_norm: float
    normal_residual: float
    iterations: int = 1
    status: str = CONVERGED
    notices: tuple[Notice, ...] = ()
    equations: System | None = None
    history: History | None = None

    __repr__ = one_line


def check_system(system: System) -> None:
    """Refuse what no estimator can use: no rows, wrong shapes, values that are not finite."""
    p = len(system.parameters)
    if not system.groups or p == 0:
        raise InputError("the system is empty: it has no rows or no parameters")
    for group in system.groups:
        columns = np.asarray(group.columns)
        if columns.ndim != 1 or np.any(columns < 0) or np.any(columns >= p):
            raise InputError(f"group '{group.name}' has columns outside the {p} parameters")
        if not group.blocks:
            raise InputError(f"group '{group.name}' of {group.log} has no rows")
        for block in group.blocks:
            check_factor(block, len(columns), f"group '{group.name}' of {group.log}")
    n_rows = sum(group.n_rows for group in system.groups)
    if n_rows <= p:
        raise InputError(
            f"{n_rows} rows cannot determine {p} parameters and their uncertainty",
            remedy="use a longer log, or decimate less",
        )


def check_factor(factor: Factor, p: int, place: str) -> None:
    """Refuse a factor that is not a finite matrix of p columns and a measured side."""
    R = np.asarray(factor.R)
    if R.ndim != 2 or R.shape[1] != p + 1:
        raise InputError(f"a factor has shape {R.shape}, but needs {p + 1} columns (W and Y)", place=place)
    if R.shape[0] == 0 or factor.n_rows <= 0:
        raise InputError("a factor without rows", place=place)
    bad = np.flatnonzero(~np.isfinite(R).all(axis=0))
    if bad.size:
        raise InputError(
            f"column {bad[0]} of {p + 1} holds values that are not finite (NaN or infinity)",
            place=place,
            remedy="mask or repair these samples before filtering",
        )


# Steps in sigma: at which a cheap iteration ends, one that reads the log again in each round, and any.
RTOL, RTOL_OF_PASSES, ENOUGH = 1e-6, 1e-4, 1e-3
_ROUNDING = 1e-13  # of a parameter: smaller changes do not count, even if its sigma is smaller


def step_in_sigma(
    new: Float[Array, "p"], before: Float[Array, "p"] | None, sigma: Float[Array, "p"]
) -> float:
    """Largest change of a parameter in its sigma; infinite in the first round.

    Args:
        new: Parameters, shape (p,), SI.
        before: Those of the round before, shape (p,), SI; None: there was none.
        sigma: Deviations of the parameters, shape (p,), SI.
    """
    if before is None:
        return float("inf")
    change = np.maximum(np.abs(new - before) - _ROUNDING * np.abs(new), 0.0)
    return float(np.max(np.divide(change, sigma, out=np.where(change > 0, np.inf, 0.0), where=sigma > 0)))


def status_after(step: float) -> str:
    """Whether an iteration whose last step was so large has converged."""
    return CONVERGED if step <= ENOUGH else NOT_CONVERGED


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
