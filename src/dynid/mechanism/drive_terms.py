"""Drive terms: all that is known of each, in one table. The rest of the code asks the table, not the symbol.

The effort of a term is value times column(v, a, load, s): v and a are speed and acceleration of its owner (a
coordinate or an actuator), load is the size of the effort that its owner carries, s its Stribeck speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array

Column = Callable[[Array, Array, Array, float], Array]


@dataclass(frozen=True)
class DriveTerm:
    """What a symbol stands for.

    Attributes:
        words: Its name in a sentence.
        units: Of a rotary and of a linear owner, SI.
        column: Effort of a term of value one, in [N m] or [N].
        jumps: With the sign of the speed: its equations need that sign.
        dry: Does not vanish at zero speed: at rest it takes any value up to its size.
        positive: Cannot be negative: it brakes, or is an inertia.
        curve: Depends on the speed alone: part of the friction curve.
        moves: Acts only in motion.
    """

    words: str
    units: tuple[str, str]
    column: Column
    jumps: bool = False
    dry: bool = False
    positive: bool = True
    curve: bool = True
    moves: bool = True


_VISCOUS, _DRY = ("N m s/rad", "N s/m"), ("N m", "N")

# The compiled kernels number the terms in this order.
DRIVE_TERMS = {
    "Ia": DriveTerm("rotor inertia", ("kg m^2", "kg"), lambda v, a, load, s: a, curve=False),
    "Fv": DriveTerm("viscous friction", _VISCOUS, lambda v, a, load, s: v),
    "Fs": DriveTerm("Coulomb friction", _DRY, lambda v, a, load, s: np.sign(v), jumps=True, dry=True),
    "Fv+": DriveTerm(
        "viscous friction (forwards)", _VISCOUS, lambda v, a, load, s: np.maximum(v, 0.0), jumps=True
    ),
    "Fv-": DriveTerm(
        "viscous friction (backwards)", _VISCOUS, lambda v, a, load, s: np.minimum(v, 0.0), jumps=True
    ),
    "Fs+": DriveTerm(
        "Coulomb friction (forwards)",
        _DRY,
        lambda v, a, load, s: np.maximum(np.sign(v), 0.0),
        jumps=True,
        dry=True,
    ),
    "Fs-": DriveTerm(
        "Coulomb friction (backwards)",
        _DRY,
        lambda v, a, load, s: np.minimum(np.sign(v), 0.0),
        jumps=True,
        dry=True,
    ),
    "Off": DriveTerm("offset", _DRY, lambda v, a, load, s: np.ones_like(v), positive=False, moves=False),
    "Fr": DriveTerm(
        "square-root friction",
        ("N m (s/rad)^0.5", "N (s/m)^0.5"),
        lambda v, a, load, s: np.sign(v) * np.sqrt(np.abs(v)),
    ),
    "Fl": DriveTerm(
        "load-dependent friction",
        ("1", "1"),
        lambda v, a, load, s: np.sign(v) * load,
        jumps=True,
        dry=True,
        curve=False,
    ),
    "Fk": DriveTerm(
        "Stribeck friction",
        _DRY,
        lambda v, a, load, s: np.sign(v) * np.exp(-((v / s) ** 2)),
        jumps=True,
        dry=True,
        positive=False,
    ),
}
DRIVE_SYMBOLS = tuple(DRIVE_TERMS)
JUMPING = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.jumps)
DRY = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.dry)
POSITIVE = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.positive)
RESISTING = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.curve)
# Friction models that real drives need, simple ones first: tried where none is asked for, and compared.
PLAIN_FRICTION = ("Fv", "Fs")
FRICTION_SETS = (
    PLAIN_FRICTION,
    ("Fv+", "Fv-", "Fs+", "Fs-"),
    *((*PLAIN_FRICTION, *more) for more in (("Fr",), ("Fl",), ("Fk",), ("Fr", "Fl"), ("Fr", "Fl", "Fk"))),
)
