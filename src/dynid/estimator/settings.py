"""Settings of estimators: unknown drive gains; priors, bounds and margins of physical consistency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from dynid.common.entry import Entry, plain_entry
from dynid.common.errors import InputError, nearest
from dynid.common.settings import Positive, Settings, read

GAIN = "gain"  # how the names of gains begin: gain_elbow


class TotalMass(Settings, frozen=True):
    """What a scale reads.

    Attributes:
        kg: Of all bodies together.
        bodies: Those on the scale; None is all moving bodies, without payloads.
    """

    _title: ClassVar[str] = "gains.total_mass"
    _alone: ClassVar[str] = "kg"

    kg: Positive
    bodies: tuple[str, ...] | None = None

    def check(self) -> None:
        """An empty list of bodies."""
        if self.bodies is not None and not self.bodies:
            raise InputError("total_mass lists no body", remedy="list bodies, or leave `bodies:` out")


class GainSettings(Settings, frozen=True):
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

    _title: ClassVar[str] = "gains"
    _alone: ClassVar[str] = "unknown"
    _switch: ClassVar[bool] = True

    unknown: tuple[str, ...] | None = None
    common: bool = False
    nominal: Mapping[str, float] | float = {}
    logged: Literal["torque", "current"] | None = None
    total_mass: TotalMass | None = None

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """`unknown: all` and `unknown: none`."""
        unknown = entries.get("unknown")
        if unknown is not None and isinstance(unknown.value, str):
            word = unknown.choice(("all", "none"))
            entries["unknown"] = plain_entry(None if word == "all" else (), like=unknown)
        return entries

    def check(self) -> None:
        """Nothing to find, and gains that no current has."""
        if self.unknown == () and self.total_mass is None:
            raise InputError("gains: no motor is listed", remedy="list motors, or write unknown: all")
        values = self.nominal.values() if isinstance(self.nominal, Mapping) else [self.nominal]
        for value in values:
            if value == 0.0:
                raise InputError(
                    f"gains: nominal gain {value} is not valid", place="nominal", remedy="give N m/A or N/A"
                )
        if self.logged == "torque" and self.nominal:
            raise InputError(
                "gains: nominal gains are for logged currents, but `logged:` says torques",
                remedy="leave `nominal:` out, or write logged: current",
            )

    @property
    def scale(self) -> TotalMass | None:
        """The weighed mass."""
        return self.total_mass

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
        return motors if self.unknown is None else tuple(drive for drive in motors if drive in self.unknown)

    def scales(self, motors: tuple[str, ...]) -> bool:
        """Whether every motor has a gain, found or nominal: its column may hold a current."""
        given = self.nominal if isinstance(self.nominal, Mapping) else motors
        return all(name in given for name in motors if name not in self.open_motors(motors))

    def nominal_of(self, motors: tuple[str, ...]) -> tuple[float, ...]:
        """The nominal gain of each motor; one by default."""
        if not isinstance(self.nominal, Mapping):
            return tuple(float(self.nominal) for _ in motors)
        for name in self.nominal:
            if name not in motors:
                raise InputError(f"gains: no motor '{name}'" + nearest(name, motors))
        return tuple(float(self.nominal.get(name, 1.0)) for name in motors)


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
