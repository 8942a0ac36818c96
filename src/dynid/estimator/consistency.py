"""Settings of physical consistency: priors, bounds and margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError
from dynid.common.settings import Positive, Settings, read

TOTAL = "total"


class Ellipsoid(Settings, frozen=True):
    """Where a centre of mass may be: semi-axes `radii` along the body axes about `centre`, both [m]."""

    centre: tuple[float, float, float]
    radii: tuple[Positive, Positive, Positive]


class Consistency(Settings, frozen=True):
    """Options of the physically consistent estimate.

    Attributes:
        prior: Distance to the prior: `entropic` (log-det divergence) or `euclidean`.
        spread: How far off the prior may be, relative: its pull is 1 / spread^2. A spread of 3 lets
            data worth a tenth of a deviation win.
        margin: Smallest eigenvalue of each pseudo-inertia, relative to a body of the prior's mass
            and size.
        mass: Largest mass [kg] by body or payload; `total` for all bodies together.
        com: Ellipsoid that holds the centre of mass, by body or payload, in the body frame.
    """

    _title: ClassVar[str] = "standard"
    _switch: ClassVar[bool] = True

    prior: Literal["entropic", "euclidean"] = "entropic"
    spread: Positive = 3.0
    margin: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    mass: Mapping[str, Positive] = {}
    com: Mapping[str, Ellipsoid] = {}

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """One number of `mass` is the total."""
        for name in ("mass", "com"):
            if name in entries and entries[name].value is None:
                entries[name] = plain_entry({}, like=entries[name])
        mass = entries.get("mass")
        if mass is not None and not mass.is_mapping:
            entries["mass"] = plain_entry({TOTAL: mass.number()}, like=mass)
        return entries

    def check(self) -> None:
        """A margin that leaves nothing."""
        if not self.margin < 1:
            raise InputError(
                f"margin {self.margin:g} is not between 0 and 1", place="margin", remedy="0.01 is large"
            )


def consistency_from(options: Mapping[str, Any]) -> Consistency:
    """The options as a script gives them to the estimator `consistent`."""
    return read(Consistency, plain_entry(options, "consistent"))
