"""Friction that depends on more than the sign of the speed: loads and speeds used in its columns.

    tau = ... + Fr sign(s) sqrt|s|  +  Fl sign(s) |load|  +  Fk sign(s) exp(-(s / vs)^2)

s is the velocity of the owner, a coordinate or an actuator: s = S dq. Its load is the effort that the motion
needs without friction and offsets: load = E tau_l, tau_l at an actuator, C^T tau_l at a coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.mechanism import Mechanism

# rad/s or m/s: initial value of an unknown Stribeck speed (a search sets it).
STRIBECK_SPEED = 0.1
# Terms that jump with the sign of a velocity: their equations need that sign.
JUMPING = ("Fs", "Fs+", "Fs-", "Fv+", "Fv-", "Fl", "Fk")
# Terms that do not vanish at zero speed: at rest they can take any value up to their size.
DRY = ("Fs", "Fs+", "Fs-", "Fl", "Fk")


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


def jumping_coordinates(mechanism: Mechanism) -> set[str]:
    """Coordinates whose friction jumps with the sign of their velocity."""
    jumping = {
        coordinate
        for owner, symbols in mechanism.drive.items()
        if set(symbols) & set(JUMPING)
        for coordinate in _driven(mechanism, owner)
    }
    jumping |= {term.joint for term in mechanism.terms if "sign" in term.expression.text}
    return jumping


def _driven(mechanism: Mechanism, owner: str) -> Sequence[str]:
    if owner in mechanism.coordinates:
        return (owner,)
    return tuple(next(actuator.on for actuator in mechanism.actuators if actuator.name == owner))
