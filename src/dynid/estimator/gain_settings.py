"""GainSettings: which drive gains are unknown in an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynid.common.errors import InputError, nearest

GAIN = "gain"  # how the names of gains begin: gain_elbow
LOGGED = ("torque", "current")


@dataclass(frozen=True)
class TotalMass:
    """What a scale reads.

    Attributes:
        kg: Of all bodies together.
        bodies: Those on the scale; None is all moving bodies, without payloads.
    """

    kg: float
    bodies: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (
            isinstance(self.kg, bool)
            or not isinstance(self.kg, int | float)
            or not 0 < self.kg < float("inf")
        ):
            raise InputError(f"gains: total mass {self.kg!r} is not valid", remedy="give kilograms")
        if self.bodies is not None:
            object.__setattr__(self, "bodies", tuple(self.bodies))
            if not self.bodies:
                raise InputError(
                    "gains: total_mass lists no body", remedy="list bodies, or leave `bodies:` out"
                )


@dataclass(frozen=True)
class GainSettings:
    """Drive gains to be found together with the dynamics.

    Attributes:
        unknown: Motors whose gains are open; None is all of them. None at all (an empty tuple): the
            total mass then only checks the efforts.
        common: One factor on all open gains (one amplifier type, one wrong constant).
        nominal: Motor -> nominal gain, in [N m/A] or [N/A]: the log then contains currents. One
            number serves all motors.
        logged: What the effort columns hold: `torque` (gains were applied already, and what is found
            are corrections near one) or `current`; None: current where nominal gains are given.
        total_mass: What a scale reads: a reference for the scale of all gains. A plain number is that
            of all moving bodies.
    """

    unknown: tuple[str, ...] | None = None
    common: bool = False
    nominal: Mapping[str, float] | float = field(default_factory=dict)
    logged: str | None = None
    total_mass: TotalMass | Mapping[str, Any] | float | int | None = None

    def __post_init__(self) -> None:
        if self.total_mass is not None:
            object.__setattr__(self, "total_mass", self.scale)
        if self.unknown is not None:
            object.__setattr__(self, "unknown", tuple(self.unknown))
            if not self.unknown and self.total_mass is None:
                raise InputError("gains: no motor is listed", remedy="list motors, or write unknown: all")
        values = self.nominal.values() if isinstance(self.nominal, Mapping) else [self.nominal]
        for value in values:
            if not value or abs(value) == float("inf") or value != value:
                raise InputError(f"gains: nominal gain {value} is not valid", remedy="give N m/A or N/A")
        if self.logged is not None and self.logged not in LOGGED:
            raise InputError(
                f"gains: logged '{self.logged}' is not known" + nearest(self.logged, LOGGED),
                remedy=f"use {' or '.join(LOGGED)}",
            )
        if self.logged == "torque" and self.nominal:
            raise InputError(
                "gains: nominal gains are for logged currents, but `logged:` says torques",
                remedy="leave `nominal:` out, or write logged: current",
            )

    @property
    def scale(self) -> TotalMass | None:
        """The weighed mass."""
        given = self.total_mass
        if given is None or isinstance(given, TotalMass):
            return given
        return TotalMass(**given) if isinstance(given, Mapping) else TotalMass(given)

    @property
    def checks_only(self) -> bool:
        """Whether no gain is open: the total mass then only checks the efforts."""
        return self.unknown == ()

    @property
    def currents(self) -> bool:
        """Whether the effort columns hold currents."""
        return self.logged == "current" or bool(self.nominal)

    def open_motors(self, motors: tuple[str, ...]) -> tuple[str, ...]:
        """The motors whose gains are open, in the robot's order."""
        for name in self.unknown or ():
            if name not in motors:
                raise InputError(f"gains: no motor '{name}'" + nearest(name, motors))
        return motors if self.unknown is None else tuple(one for one in motors if one in self.unknown)

    def nominal_of(self, motors: tuple[str, ...]) -> tuple[float, ...]:
        """The nominal gain of each motor; one by default."""
        if not isinstance(self.nominal, Mapping):
            return tuple(float(self.nominal) for _ in motors)
        for name in self.nominal:
            if name not in motors:
                raise InputError(f"gains: no motor '{name}'" + nearest(name, motors))
        return tuple(float(self.nominal.get(name, 1.0)) for name in motors)
