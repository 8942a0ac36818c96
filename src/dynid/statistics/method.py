"""UncertaintySettings: how the covariance of an estimate is found, by name."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, cast

import msgspec

from dynid.common.errors import InputError
from dynid.common.settings import LeftOpen, Positive, Settings, Whole

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
