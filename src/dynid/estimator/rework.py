"""Rework: equations rewritten so that an estimate is their weighted least-squares solution.

Everything computed from rows later (classical and cluster covariances, bootstraps, essential
parameters) then works for every estimator: it uses the rewritten equations.

Weights by the full covariance between joints: errors of one instant are decorrelated.

Sigma = mean rho_i rho_i^T over instants i,        rows of an instant times chol(Sigma)^-1

Friction of one joint, a wrong payload or a shared power supply disturb several efforts at once. Rows
with the same information then count once. Iterated: Sigma needs residuals, residuals need a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.estimator.solution import CONVERGED, RTOL_OF_PASSES, History, status_after, step_in_sigma
from dynid.estimator.wls import Solver, Weighting, fitted, residual_sizes, smallest_sigmas, unit_weights
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor
from dynid.projection.projection import System

T = TypeVar("T")

# Residuals (k, n) of some samples, which of them count (k, n), and the group of each row (k,); -1: none.
Reduce = Callable[[Float[Array, "k n"], Bool[Array, "k n"], Int[Array, "k"]], T]
# Number of a group and residuals of its rows in, residuals to put in their place out.
Change = Callable[[int, Float[Array, "n"]], Float[Array, "n"]]


@runtime_checkable
class SecondPass(Protocol):
    """The rows behind a system, over the same parameters and with the same groups."""

    def blocked(self) -> System:
        """The equations with their blocks in time order."""

    def residuals(self, chi: Float[Array, "p"], reduce: Reduce[T], filtered: bool = False) -> Iterator[T]:
        """Y - W chi piece by piece, in time order, reduced where they are made.

        Args:
            chi: Parameters of the system, shape (p,), SI.
            reduce: Called for each piece, from several threads.
            filtered: Rows behind the row filter; otherwise sample by sample before it.
        """

    def replaced(self, chi: Float[Array, "p"], change: Change) -> System:
        """The equations with the measured side W chi + change(rho), sample by sample."""

    def whitened(self, covariance: Float[Array, "k k"]) -> System:
        """The equations with the rows of each instant multiplied by chol(covariance)^-1."""

    def instruments(self, kind: str, cutoff: float) -> System:
        """Rows [Z W Y] over twice as many parameters: Z is the regressor of another trajectory.

        Args:
            kind: `smoothed` or `reference`.
            cutoff: Of the low-pass on smoothed coordinates, as a part of the one in use.
        """

    def noise(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> tuple[Factor, ...]:
        """Differences [dW dY] that noise of the positions makes in the rows, one factor a group.

        Args:
            position: Deviation of the measured positions in [rad] or [m]; None: from the log.
            draws: How often the noise is drawn; the factor is that of their mean.
        """

    def centred(self, position: Float[Array, "m"] | float | None, draws: int = 1) -> System:
        """The equations less what noise of the positions adds to them on average, with their blocks.

        Args:
            position: As for `noise`.
            draws: How often the noise is drawn; its mean effect is that of their mean.
        """


def needed(again: SecondPass | None, name: str, why: str) -> SecondPass:
    """The second pass, or an error that explains why a triangle is not enough."""
    if again is None:
        raise InputError(
            f"'{name}' {why}, which triangular factors do not contain",
            remedy="give access to the rows, as `identify` does, or use 'wls'",
        )
    return again


@dataclass(frozen=True, eq=False)
class Reworked:
    """Rewritten equations, with the weights of their groups.

    Attributes:
        system: Same parameters and groups as the system given, with blocks.
        weights: Of its groups, shape (g,).
        iterations, status, notices: How equations and weights were reached.
        chi: The estimate, if it is more accurate than the solution of `system`.
        history: How it came about, of recursive estimators.
        spent: Degrees of freedom used in addition to one for each parameter.
    """

    system: System
    weights: Float[Array, "g"]
    iterations: int = 1
    status: str = CONVERGED
    notices: tuple[Notice, ...] = ()
    chi: Float[Array, "p"] | None = None
    history: History | None = None
    spent: int = 0


Rework = Callable[[System, Weighting, Solver, SecondPass | None], Reworked]


def mapped_columns(
    system: System, columns: Float[Array, "p1 q1"], parameters: tuple[Parameter, ...] | None = None
) -> System:
    """Every row [W Y] of the system times `columns`, block by block; parameters default to its own."""
    groups = []
    for group in system.groups:
        part = columns[[*group.columns, -1]]
        groups.append(replace(group, columns=np.arange(columns.shape[1] - 1), blocks=group.multiplied(part)))
    return System(parameters or system.parameters, tuple(groups))


def check_positive(what: str, value: float) -> float:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{what} {value!r} is not a positive number", remedy="give a positive number")
    return float(value)


_SMALLEST_CORRELATION = 1e-6  # eigenvalue of the correlations: smaller ones are rounding


@dataclass(frozen=True)
class Whitened:
    """Rework of `wls` with `weights: covariance`.

    Attributes:
        rtol: Largest change of a parameter at the end, in its sigma.
        max_iterations: Passes over the log.
    """

    rtol: float = RTOL_OF_PASSES
    max_iterations: int = 20

    def __call__(
        self, system: System, weighting: Weighting, solver: Solver, again: SecondPass | None
    ) -> Reworked:
        """Iterate covariance and fit until the parameters converge."""
        rows = needed(again, "wls", "with weights: covariance needs the rows of each instant together")
        state = fitted(system, weighting, solver)
        floors = smallest_sigmas(state.factors, np.arange(len(state.factors)))
        paid = state.shares() / np.array([factor.n_rows for factor in state.factors])
        factors, weights = state.factors, state.weights
        step, iteration = np.inf, 0
        while iteration < self.max_iterations and step > self.rtol:
            sizes = residual_sizes(system, factors, weights, state.chi)
            changed = rows.whitened(_covariance(rows, state.chi, floors, paid, sizes))
            before, state = state.chi, fitted(changed, unit_weights, solver)
            step, iteration = step_in_sigma(state.chi, before, state.sigma), iteration + 1
        status = status_after(step)
        notices = () if status == CONVERGED else (_not_converged(iteration),)
        return Reworked(changed, state.weights, iteration, status, notices)


def _covariance(
    rows: SecondPass,
    chi: Float[Array, "p"],
    floors: Float[Array, "g"],
    paid: Float[Array, "g"],
    sizes: Float[Array, "g"],
) -> Float[Array, "k k"]:
    """Covariance of the errors of one instant, over all instants at which two rows are valid."""

    def reduce(
        rho: Float[Array, "k n"], valid: Bool[Array, "k n"], groups: Int[Array, "k"]
    ) -> tuple[Array, Array, Array]:
        known = groups >= 0
        # What the parameters took from each group is given back, as in the weights by group.
        back = np.where(known, sizes[groups] / np.sqrt(1.0 - np.minimum(paid[groups], 0.5)), 0.0)
        used = valid & known[:, None]
        part = np.where(used, rho, 0.0) * back[:, None]
        count = used.astype(float)
        return part @ part.T, count @ count.T, np.where(known, floors[groups], 0.0)

    parts = [np.zeros(()), np.zeros(()), np.zeros(())]
    for squares, counts, floor in rows.residuals(chi, reduce, filtered=True):
        parts = [parts[0] + squares, parts[1] + counts, np.maximum(parts[2], floor)]
    mean = parts[0] / np.maximum(parts[1], 1.0)
    sigma = np.maximum(np.sqrt(np.diag(mean)), np.where(parts[2] > 0, parts[2], 1.0))
    return np.asarray(_positive(mean / np.outer(sigma, sigma)) * np.outer(sigma, sigma))


def _positive(correlation: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The nearest matrix that is one of correlations: pairs counted at different instants may clash."""
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.maximum(values, _SMALLEST_CORRELATION)) @ vectors.T)


def _not_converged(passes: int) -> Notice:
    return notice("weights-not-converged", "joints", passes=passes)
