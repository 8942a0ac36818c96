"""Description: what a result says about the dimensions, zeros and gravity that it assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.common.arrays import Array, Float


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
        residual_percent: 100 |Y - W chi| / |Y| of the fit with it.
        p: Probability of such an improvement if the description were right.
    """

    name: str
    residual_percent: float
    p: float


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
