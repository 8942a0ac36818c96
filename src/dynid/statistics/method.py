"""UncertaintySettings: how the covariance of an estimate is found, by name."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, cast

import msgspec
import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.common.settings import LeftOpen, NotNegative, Positive, Settings, Whole

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
