"""GainSettings: which drive gains an experiment leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynid.errors import InputError, nearest

LOGGED = ("torque", "current")


@dataclass(frozen=True)
class GainSettings:
    """Drive gains to be found together with the dynamics.

    Attributes:
        unknown: Motors whose gains are open; None is all of them.
        common: One factor on all open gains (one amplifier type, one wrong constant).
        nominal: Motor -> gain believed so far, in [N m/A] or [N/A]: the log then holds currents. One
            number serves all motors.
        logged: What the effort columns hold: `torque` (gains were applied already, and what is found
            are corrections near one) or `current`; None: current where nominal gains are given.
    """

    unknown: tuple[str, ...] | None = None
    common: bool = False
    nominal: Mapping[str, float] | float = field(default_factory=dict)
    logged: str | None = None

    def __post_init__(self) -> None:
        if self.unknown is not None:
            object.__setattr__(self, "unknown", tuple(self.unknown))
            if not self.unknown:
                raise InputError("gains: no motor is listed", remedy="list motors, or write unknown: all")
        values = self.nominal.values() if isinstance(self.nominal, Mapping) else [self.nominal]
        for value in values:
            if not value or abs(value) == float("inf") or value != value:
                raise InputError(f"gains: a nominal gain of {value} is no gain", remedy="give N m/A or N/A")
        if self.logged is not None and self.logged not in LOGGED:
            raise InputError(
                f"gains: logged '{self.logged}' is not known" + nearest(self.logged, LOGGED),
                remedy=f"use {' or '.join(LOGGED)}",
            )
        if self.logged == "torque" and self.nominal:
            raise InputError(
                "gains: nominal gains belong to logged currents, but the log is said to hold torques",
                remedy="leave `nominal:` out, or write logged: current",
            )

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
        """The gain that each motor is believed to have; one where nothing is said."""
        if not isinstance(self.nominal, Mapping):
            return tuple(float(self.nominal) for _ in motors)
        for name in self.nominal:
            if name not in motors:
                raise InputError(f"gains: no motor '{name}'" + nearest(name, motors))
        return tuple(float(self.nominal.get(name, 1.0)) for name in motors)
