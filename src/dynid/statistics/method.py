"""UncertaintySettings: how the covariance of an estimate is found, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynid.common.errors import InputError, nearest

METHODS = ("cluster", "classical", "hac", "bootstrap", "leave-one-out")


@dataclass(frozen=True)
class UncertaintySettings:
    """The method and its options; None is chosen from the data.

    Attributes:
        method: `cluster` (jackknife over blocks of time), `classical` (white noise), `hac`
            (autocorrelation-robust), `bootstrap` (moving blocks) or `leave-one-out` (runs).
        block: Length of a block in [s]: of `cluster` and `bootstrap`.
        bandwidth: Reach of the Bartlett weights in [s]: of `hac`.
        draws: Resampled fits: of `bootstrap`.
        seed: Of the draws.
        left_open: Nobody has chosen: the model may prefer another method.
    """

    method: str = "cluster"
    block: float | None = None
    bandwidth: float | None = None
    draws: int = 1000
    seed: int = 0
    left_open: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"uncertainty '{self.method}' does not exist" + nearest(self.method, METHODS),
                remedy=f"use one of {', '.join(METHODS)}",
            )
        for name, users in (("block", ("cluster", "bootstrap")), ("bandwidth", ("hac",))):
            value = getattr(self, name)
            if value is None:
                continue
            if not value > 0:
                raise InputError(f"uncertainty: {name} {value} is not positive", remedy="give seconds")
            if self.method not in users:
                raise InputError(
                    f"uncertainty: '{self.method}' has no {name}",
                    remedy=f"{name} belongs to {' and '.join(users)}",
                )
        if self.draws < 100:
            raise InputError(f"uncertainty: {self.draws} draws are too few", remedy="give 100 or more")
