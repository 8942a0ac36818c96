"""Friction that depends on more than the sign of the speed: loads and speeds used in its columns.

    tau = ... + Fr sign(s) sqrt|s|  +  Fl sign(s) |load|  +  Fk sign(s) exp(-(s / vs)^2)

s is the velocity of the owner, a coordinate or an actuator: s = S dq. Its load is the effort that the motion
needs without friction and offsets: load = E tau_l, tau_l at an actuator, C^T tau_l at a coordinate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.expression import FRICTION, parse
from dynid.mechanism.mechanism import DRIVE_SYMBOLS, Mechanism, Term

# rad/s or m/s: initial value of an unknown Stribeck speed (a search sets it).
STRIBECK_SPEED = 0.1
# Terms that jump with the sign of a velocity: their equations need that sign.
JUMPING = ("Fs", "Fs+", "Fs-", "Fv+", "Fv-", "Fl", "Fk")
# Terms that do not vanish at zero speed: at rest they can take any value up to their size.
DRY = ("Fs", "Fs+", "Fs-", "Fl", "Fk")


def drive_names() -> tuple[str, ...]:
    """Names that `drive:` may contain: own terms, then friction of other packages."""
    return (*DRIVE_SYMBOLS, *FRICTION)


def own_symbols(symbols: Iterable[str]) -> tuple[str, ...]:
    """Those with a compiled column, in the order of DRIVE_SYMBOLS."""
    listed = set(symbols)
    return tuple(symbol for symbol in DRIVE_SYMBOLS if symbol in listed)


def with_friction(mechanism: Mechanism, drive: Mapping[str, Sequence[str]]) -> Mechanism:
    """The robot with the friction of other packages in `drive`, as declared extra columns.

    Args:
        mechanism: The robot; such friction that it has already is removed.
        drive: Coordinate or actuator -> all its drive terms.
    """
    kept = tuple(term for term in mechanism.terms if not term.friction)
    added = [
        term
        for owner, symbols in drive.items()
        for symbol in dict.fromkeys(symbols)
        if symbol not in DRIVE_SYMBOLS
        for term in _friction_terms(mechanism, owner, symbol)
    ]
    terms = (*kept, *added)
    return mechanism if terms == mechanism.terms else replace(mechanism, terms=terms)


def _friction_terms(mechanism: Mechanism, owner: str, symbol: str) -> list[Term]:
    """The column of (s, ds/dt, d2s/dt2) of an owner, in the equation of every coordinate it acts on."""
    ratios = {
        coordinate: float(ratio)
        for coordinate, ratio in zip(mechanism.coordinates, speed_map(mechanism, (owner,))[0], strict=True)
        if ratio != 0.0
    }
    # An angle of a ball joint is not one of its coordinates: such friction depends on speeds only.
    placed = [name for name in ratios if name in mechanism.positions]
    q = " + ".join(f"({ratios[name]!r}) * q({name})" for name in placed) or "0"
    dq = " + ".join(f"({ratio!r}) * dq({one})" for one, ratio in ratios.items())
    text = f"{symbol}({q}, {dq}, {dq.replace('* dq(', '* ddq(')})"
    name = f"{symbol}_{owner}"
    return [Term(name, one, parse(f"({ratio!r}) * {text}"), friction=symbol) for one, ratio in ratios.items()]


def owners_of(mechanism: Mechanism, symbol: str) -> tuple[str, ...]:
    """Coordinates and actuators that have a drive term."""
    return tuple(owner for owner, symbols in mechanism.drive.items() if symbol in symbols)


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
