"""The contract of a second pass: access of estimators to the rows themselves.

A triangle contains every inner product of its rows but not the rows. Weights of single samples,
covariances between joints, instruments and the noise of W come from streaming the log again, in
pieces that are reduced as soon as they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array
from dynid.common.errors import InputError
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


def needed(again: SecondPass | None, who: str, why: str) -> SecondPass:
    """The second pass, or an error that explains why a triangle is not enough."""
    if again is None:
        raise InputError(
            f"'{who}' {why}, which triangular factors do not contain",
            remedy="give access to the rows, as `identify` does, or use 'wls'",
        )
    return again
