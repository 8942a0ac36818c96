"""Settings of physical consistency: priors, bounds and margins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dynid.common.errors import InputError, nearest

DISTANCES = ("entropic", "euclidean")
TOTAL = "total"


@dataclass(frozen=True)
class Ellipsoid:
    """Where a centre of mass may be: semi-axes `radii` along the body axes about `centre`, both [m]."""

    centre: tuple[float, float, float]
    radii: tuple[float, float, float]

    def __post_init__(self) -> None:
        if not all(radius > 0 for radius in self.radii):
            raise InputError(
                f"radii {list(self.radii)} of a centre of mass are not all positive",
                remedy="give three lengths in m, larger than zero",
            )


@dataclass(frozen=True)
class Consistency:
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

    prior: str = "entropic"
    spread: float = 3.0
    margin: float = 0.0
    mass: Mapping[str, float] = field(default_factory=dict)
    com: Mapping[str, Ellipsoid] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prior not in DISTANCES:
            raise InputError(
                f"prior distance '{self.prior}' is not known" + nearest(self.prior, DISTANCES),
                remedy=f"use {' or '.join(DISTANCES)}",
            )
        if not self.spread > 0:
            raise InputError(f"spread {self.spread:g} is not positive", remedy="3 is the default")
        if not 0 <= self.margin < 1:
            raise InputError(f"margin {self.margin:g} is not between 0 and 1", remedy="0.01 is large")
        for name, value in self.mass.items():
            if not value > 0:
                raise InputError(f"mass {value:g} kg of '{name}' is not positive", remedy="give kg")


def consistency_from(options: Mapping[str, Any]) -> Consistency:
    """The options as a file or a script gives them: `mass` may be one number, the total."""
    valid = tuple(one.name for one in fields(Consistency))
    _known("consistent", options, valid)
    made = dict(options)
    if made.get("mass") is None:
        made.pop("mass", None)
    elif isinstance(made["mass"], Mapping):
        made["mass"] = {name: _number(f"mass of '{name}'", value) for name, value in made["mass"].items()}
    else:
        made["mass"] = {TOTAL: _number("mass", made["mass"])}
    made["com"] = _ellipsoids(made.get("com") or {})
    for name in ("spread", "margin"):
        if name in made:
            made[name] = _number(name, made[name])
    return Consistency(**made)


def _ellipsoids(given: Any) -> dict[str, Ellipsoid]:
    if not isinstance(given, Mapping):
        raise InputError(f"com: expected bodies by name, found {given!r}", remedy=_COM_REMEDY)
    made = {}
    for name, one in given.items():
        if isinstance(one, Ellipsoid):
            made[name] = one
            continue
        if not isinstance(one, Mapping) or set(one) != {"centre", "radii"}:
            raise InputError(f"com of '{name}': centre and radii are needed", remedy=_COM_REMEDY)
        made[name] = Ellipsoid(
            _vector(f"centre of '{name}'", one["centre"]), _vector(f"radii of '{name}'", one["radii"])
        )
    return made


_COM_REMEDY = "e.g. com: {link1: {centre: [0, 0, 0.1], radii: [0.1, 0.1, 0.2]}}"


def _known(what: str, given: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    for name in given:
        if name not in valid:
            raise InputError(
                f"{what} has no option '{name}'" + nearest(name, valid),
                remedy=f"its options are {', '.join(valid)}",
            )


def _number(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what}: {value!r} is not a number", remedy="give a number")
    return float(value)


def _vector(what: str, value: Any) -> tuple[float, float, float]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise InputError(f"{what}: {value!r} are not three numbers", remedy=_COM_REMEDY)
    x, y, z = (_number(what, entry) for entry in value)
    return x, y, z
