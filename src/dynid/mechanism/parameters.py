"""The table of standard parameters of a mechanism: name, unit, owner, order; and owners of drive terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.drive_terms import DRIVE_TERMS, JUMPING, ROTOR, DriveTerm, drive_term
from dynid.mechanism.inertia import SYMBOLS, UNITS
from dynid.mechanism.mechanism import Body, Mechanism, Payload

# rad/s or m/s: initial value of an unknown Stribeck speed (a search sets it).
STRIBECK_SPEED = 0.1

# Powers of a length in the units of parameters; forces count as kg m/s^2.
_LENGTHS = {
    "kg m^2": 2.0,
    "kg m": 1.0,
    "N m s/rad": 2.0,
    "N m": 2.0,
    "N m (s/rad)^0.5": 2.0,
    "N": 1.0,
    "N (s/m)^0.5": 0.5,
}


@dataclass(frozen=True)
class Parameter:
    """One column of W before any grouping.

    Attributes:
        kind: `inertial` (of a body or payload), `drive`, or `term` (declared extra column).
        symbol: Of a declared column its name; of friction of another package its symbol.
    """

    name: str
    symbol: str
    owner: str
    unit: str
    kind: str

    @property
    def drive_term(self) -> DriveTerm | None:
        """What is known of its drive term; None: it is of a body, or declared by an expression."""
        declared = self.kind == "term" and self.symbol == self.name
        return None if self.kind == "inertial" or declared else drive_term(self.symbol)

    @property
    def positive(self) -> bool:
        """Whether it is a drive term that cannot be negative."""
        return self.drive_term is not None and self.drive_term.positive

    @property
    def length_power(self) -> float:
        """Power of a length in its unit: 2 of an inertia, 1 of a first moment, 0 of a mass."""
        return _LENGTHS.get(self.unit, 0.0)


def parameter_table(mechanism: Mechanism) -> tuple[Parameter, ...]:
    """Standard parameters: joint by joint the body's ten, the joint's drive terms and extra
    columns, then motors that are not joints, then payloads."""
    return tuple(_rows(mechanism))


def considered_order(mechanism: Mechanism, table: Sequence[Parameter]) -> list[int]:
    """Column indices in the order in which base parameters are chosen: `order` first."""
    joint_bodies = {joint.name: joint.child for joint in mechanism.joints}
    chosen: list[int] = []
    for entry in mechanism.order:
        for i, p in enumerate(table):
            is_owner = p.owner == entry or p.owner == joint_bodies.get(entry)
            if i not in chosen and (is_owner or fnmatchcase(p.name, entry)):
                chosen.append(i)
    first = set(chosen)
    return chosen + [i for i in range(len(table)) if i not in first]


def known_columns(mechanism: Mechanism, parameters: Sequence[Parameter]) -> dict[int, float]:
    """Column -> value of everything the description takes as known."""
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    values: dict[str, float] = dict(mechanism.known)
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    for owner in owners:
        values |= {f"{symbol}_{owner.name}": value for symbol, value in owner.known.items()}
    return {index[name]: value for name, value in values.items() if name in index}


def with_known(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """The mechanism with further parameters, by full name, taken as exact; their owners know them too."""
    names = [parameter.name for parameter in parameter_table(mechanism)]
    for name, value in values.items():
        if name not in names:
            raise InputError(
                f"unknown parameter '{name}'" + nearest(name, names),
                place=f"known.{name}",
                remedy="see 'dynid info'",
            )
        if value < 0.0 and name.split("_")[0] in ("M", "XX", "YY", "ZZ", *ROTOR):
            raise InputError(
                f"{name} {value:g} is negative, which is physically impossible", place=f"known.{name}"
            )
    left = dict(values)

    def known_of(owner: Body | Payload) -> dict[str, float]:
        mine = {
            symbol: left.pop(f"{symbol}_{owner.name}")
            for symbol in SYMBOLS
            if f"{symbol}_{owner.name}" in left
        }
        return {**owner.known, **mine}

    bodies = {name: replace(body, known=known_of(body)) for name, body in mechanism.bodies.items()}
    payloads = {
        name: replace(payload, known=known_of(payload)) for name, payload in mechanism.payloads.items()
    }
    return replace(mechanism, bodies=bodies, payloads=payloads, known={**mechanism.known, **left})


def prior_values(mechanism: Mechanism) -> dict[str, float]:
    """Standard name -> value of everything that the description gives as a prior."""
    owners: list[Body | Payload] = [*mechanism.bodies.values(), *mechanism.payloads.values()]
    inertial = {f"{symbol}_{owner.name}": value for owner in owners for symbol, value in owner.prior.items()}
    return {**inertial, **mechanism.prior}


def effort_units(mechanism: Mechanism) -> str:
    """The unit of all motor efforts as shown: `N m`, `N`, or `N m or N`."""
    return " or ".join(sorted({effort_unit(mechanism, motor.name) for motor in mechanism.actuators})[::-1])


def effort_unit(mechanism: Mechanism, owner: str) -> str:
    """Unit of the effort of a coordinate or actuator: N m for rotation, N for translation."""
    return "N m" if _turns(mechanism, owner) else "N"


def position_unit(mechanism: Mechanism, names: Sequence[str]) -> str:
    """Unit of position coordinates: `rad`, `m`, or `rad or m` where they differ or are not known.

    An IMU measures no positions: its rates and accelerations are used instead.
    """
    sensor = mechanism.force_sensor
    if sensor is not None and sensor.imu is not None:
        return "rad/s or m/s^2"
    known = mechanism.joint_of_coordinate
    units = {"rad" if known[n].is_angle(n) else "m" for n in names if n in known}
    return units.pop() if len(units) == 1 and all(n in known for n in names) else "rad or m"


def _rows(mechanism: Mechanism) -> Iterator[Parameter]:
    shown: set[str] = set()
    for joint in mechanism.joints:
        yield from _inertial(joint.child, mechanism.bodies[joint.child].parameters)
        for coordinate in joint.coordinates:
            shown.add(coordinate)
            yield from _drive(mechanism, coordinate)
            yield from _terms(mechanism, coordinate)
    for actuator in mechanism.actuators:
        if actuator.name not in shown:
            yield from _drive(mechanism, actuator.name)
    for payload in mechanism.payloads.values():
        yield from _inertial(payload.name, SYMBOLS)


def _inertial(owner: str, parameters: Sequence[str]) -> Iterator[Parameter]:
    for symbol, unit in zip(SYMBOLS, UNITS, strict=True):
        if symbol in parameters:
            yield Parameter(f"{symbol}_{owner}", symbol, owner, unit, "inertial")


def _drive(mechanism: Mechanism, owner: str) -> Iterator[Parameter]:
    linear = not _turns(mechanism, owner)
    declared = mechanism.drive.get(owner, ())
    for symbol, term in DRIVE_TERMS.items():
        if symbol in declared:
            yield Parameter(f"{symbol}_{owner}", symbol, owner, term.units[linear], "drive")


def _terms(mechanism: Mechanism, coordinate: str) -> Iterator[Parameter]:
    first_place = {term.name: term.joint for term in reversed(mechanism.terms)}
    declared = {term.name: term for term in reversed(mechanism.terms)}
    for name in dict.fromkeys(term.name for term in mechanism.terms):
        if first_place[name] == coordinate:
            term = declared[name]
            unit = term.unit or f"{effort_unit(mechanism, coordinate)} per unit"
            symbol = term.friction or name
            owner = name.removeprefix(f"{symbol}_") if term.friction else coordinate
            yield Parameter(name, symbol, owner, unit, "term")


def _turns(mechanism: Mechanism, owner: str) -> bool:
    """Whether a coordinate is rotary; an actuator without `turns` is as the first coordinate it drives."""
    for actuator in mechanism.actuators:
        if actuator.name == owner and owner not in mechanism.joint_of_coordinate:
            if actuator.turns is not None:
                return actuator.turns
            owner = next(iter(actuator.on))
    return mechanism.joint_of_coordinate[owner].is_angle(owner)


# Friction that depends on more than the sign of the speed: loads and speeds used in its columns.
#
#     tau = ... + Fr sign(s) sqrt|s|  +  Fl sign(s) |load|  +  Fk sign(s) exp(-(s / vs)^2)
#
# s is the velocity of the owner, a coordinate or an actuator: s = S dq. Its load is the effort that the
# motion needs without friction and offsets: load = E tau_l, tau_l at an actuator, C^T tau_l at a coordinate.


def owners_of(mechanism: Mechanism, *symbols: str) -> tuple[str, ...]:
    """Coordinates and actuators that have one of these drive terms."""
    return tuple(owner for owner, terms in mechanism.drive.items() if any(s in terms for s in symbols))


def speed_map(mechanism: Mechanism, owners: Sequence[str]) -> Float[Array, "o v"]:
    """S with the owners' velocities S dq, dimensionless or a gear ratio."""
    rows = {
        actuator.name: row for actuator, row in zip(mechanism.actuators, mechanism.actuator_map, strict=True)
    }
    rows |= dict(zip(mechanism.coordinates, np.eye(len(mechanism.coordinates)), strict=True))
    return np.array([rows[owner] for owner in owners]).reshape(len(owners), len(mechanism.coordinates))


def source_index(mechanism: Mechanism, owner: str) -> int:
    """Place of an owner among the sources of drive terms: all coordinates, then all actuators."""
    return [*mechanism.coordinates, *(actuator.name for actuator in mechanism.actuators)].index(owner)


def load_map(mechanism: Mechanism) -> Float[Array, "s a"]:
    """E with the loads E tau_l of all sources, coordinates first."""
    return np.concatenate([mechanism.actuator_map.T, np.eye(len(mechanism.actuators))])


def source_loads(mechanism: Mechanism, tau: Float[Array, "n a"]) -> Float[Array, "n s"]:
    """Sizes of the loads of all coordinates, then of all actuators, shape (n, v + a), in [N m] or [N]."""
    return np.asarray(np.abs(tau @ load_map(mechanism).T))


def jumping_coordinates(mechanism: Mechanism) -> set[str]:
    """Coordinates whose friction jumps with the sign of their velocity."""
    jumping = {
        coordinate
        for owner, symbols in mechanism.drive.items()
        if not set(symbols).isdisjoint(JUMPING)
        for coordinate in _driven(mechanism, owner)
    }
    jumping |= {term.joint for term in mechanism.terms if term.expression.jumps}
    return jumping


def _driven(mechanism: Mechanism, owner: str) -> Sequence[str]:
    if owner in mechanism.coordinates:
        return (owner,)
    return tuple(next(actuator.on for actuator in mechanism.actuators if actuator.name == owner))
