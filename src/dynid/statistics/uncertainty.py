"""The single source of all reported uncertainty: sigma, relative sigma and intervals.

UncertaintySettings: how the covariance of an estimate is found, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

import msgspec
import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.distributions import student_quantile
from dynid.common.errors import InputError
from dynid.common.settings import LeftOpen, NotNegative, Positive, Settings, Whole

if TYPE_CHECKING:
    from dynid.statistics.estimate import ParameterEstimate
    from dynid.statistics.sandwich import Spread


def relative_percent(chi: Float[Array, "p"], covariance: Float[Array, "p p"]) -> Float[Array, "p"]:
    """100 sigma / |chi|; infinite where chi is zero and sigma is not."""
    sigma, magnitude = np.sqrt(np.diag(covariance)), np.abs(chi)
    # sigma 0 of a zero value (an exact fit) is no relative uncertainty at all.
    blank = np.where(sigma > 0, np.inf, 0.0)
    return np.asarray(100.0 * np.divide(sigma, magnitude, out=blank, where=magnitude > 0))


def interval95(
    chi: Float[Array, "p"], covariance: Float[Array, "p p"], dof: int | Float[Array, "p"]
) -> Float[Array, "p 2"]:
    """Lower and upper end of the 95 % Student-t intervals, as honest as the covariance (`covariance_of`).

    Args:
        chi: Estimates, shape (p,), SI.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of the deviations, of all or of each parameter, at least one.
    """
    if np.any(np.asarray(dof) < 1):
        raise InputError(f"{dof} degrees of freedom are too few to estimate the error")
    half = student_t95(dof) * np.sqrt(np.diag(covariance))
    return np.column_stack([chi - half, chi + half])


def with_uncertainty(
    parameters: Sequence[ParameterEstimate], chi: Float[Array, "p"], spread: Spread
) -> tuple[ParameterEstimate, ...]:
    """Parameters with these values, and with the deviations and intervals of one covariance.

    Args:
        parameters: One per entry of `chi`.
        chi: Shape (p,), SI.
        spread: Covariance of `chi` and the method of each deviation.
    """
    sigma, relative = np.sqrt(np.diag(spread.covariance)), relative_percent(chi, spread.covariance)
    ci95 = interval95(chi, spread.covariance, spread.dof)
    return tuple(
        replace(
            parameter,
            value=float(chi[k]),
            sigma=float(sigma[k]),
            sigma_rel_percent=float(relative[k]) if np.isfinite(relative[k]) else None,
            ci95=(float(ci95[k, 0]), float(ci95[k, 1])),
            dof=float(spread.dof[k]),
            sigma_by=spread.methods[k],
        )
        for k, parameter in enumerate(parameters)
    )


def student_t(dof: float | Float[Array, "p"], level: float) -> Float[Array, "*p"]:
    """Half-width of the two-sided interval of Student's t with probability `level`, in deviations."""
    upper, numbers = 0.5 * (1.0 + level), np.asarray(dof, dtype=float)
    values = [student_quantile(x, upper) for x in numbers.ravel().tolist()]
    return np.array(values).reshape(numbers.shape)


def student_t95(dof: int | Float[Array, "p"]) -> Float[Array, "*p"]:
    """Two-sided 95 % quantile of Student's t."""
    return student_t(dof, 0.95)


def half95(sigma: float | Float[Array, "*n"], parameters: Iterable[ParameterEstimate]) -> Float[Array, "*n"]:
    """Half of the 95 % interval of what is computed from parameters: the number behind every `+-`.

    Student's t has the fewest degrees of freedom of these parameters.

    Args:
        sigma: Its standard deviation.
        parameters: That it is computed from.
    """
    dof = min((p.dof for p in parameters if p.dof is not None), default=np.inf)
    return np.asarray(student_t(float(dof), 0.95) * sigma)


Method = Literal["cluster", "classical", "hac", "bootstrap", "leave-one-out"]


class UncertaintySettings(Settings, frozen=True):
    """The method and its options; None is chosen from the data.

    Attributes:
        method: `cluster` (jackknife over blocks of time), `classical` (white noise), `hac`
            (autocorrelation-robust), `bootstrap` (moving blocks) or `leave-one-out` (runs).
        block: Length of a block in [s]: of `cluster` and `bootstrap`.
        bandwidth: Reach of the Bartlett weights in [s]: of `hac`.
        draws: Resampled fits: of `bootstrap`.
        seed: Of the draws.
    """

    _title: ClassVar[str] = "uncertainty"
    _alone: ClassVar[str] = "method"

    method: Method = cast(Method, LeftOpen("cluster"))
    block: Positive | None = None
    bandwidth: Positive | None = None
    draws: Annotated[int, msgspec.Meta(ge=100)] = 1000
    seed: Whole = 0

    @property
    def left_open(self) -> bool:
        """Whether nobody has chosen: the model may prefer another method."""
        return isinstance(self.method, LeftOpen)

    def check(self) -> None:
        """Options of another method."""
        for name, users in (("block", ("cluster", "bootstrap")), ("bandwidth", ("hac",))):
            if getattr(self, name) is not None and self.method not in users:
                raise InputError(
                    f"uncertainty: '{self.method}' has no {name}",
                    place=name,
                    remedy=f"{name} belongs to {' and '.join(users)}",
                )


class EssentialRule(Settings, frozen=True):
    """When to remove the worst parameter: give `ratio` or `sigma_percent`.

    Attributes:
        ratio: While the largest relative sigma exceeds the smallest so many times.
        sigma_percent: While the largest relative sigma exceeds this, in percent.
        growth_percent: Guard: the weighted residual norm may exceed that of the full model by
            this much in all, no more.
        influence_percent: A value counts as at least so large that it makes this much of the measured
            norm: a parameter that is known to be near zero (a product of inertia) then has a small relative
            sigma and stays. None: relative to the value itself.
    """

    _title: ClassVar[str] = "essential"
    _hidden: ClassVar[tuple[str, ...]] = ("influence_percent",)  # the model has its own

    ratio: Positive | None = None
    sigma_percent: Positive | None = None
    growth_percent: NotNegative = 1.0
    influence_percent: float | None = None

    def check(self) -> None:
        """One rule."""
        if (self.ratio is None) == (self.sigma_percent is None):
            raise InputError("'essential' takes one rule", remedy="ratio: 10, or sigma_percent: 15")

    def asks_removal(self, sigma_rel_percent: Float[Array, "p"]) -> bool:
        """Whether the worst of these relative sigmas is too large."""
        worst = float(np.max(sigma_rel_percent))
        if self.sigma_percent is not None:
            return worst > self.sigma_percent
        return worst > float(self.ratio or 0.0) * float(np.min(sigma_rel_percent))
