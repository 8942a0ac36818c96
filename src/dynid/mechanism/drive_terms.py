"""Drive terms: all that is known of each, in one table. The rest of the code asks the table, not the symbol.

Other packages add terms by the entry point `dynid.friction`: a `DriveTerm`, or its function of (q, dq, ddq).

The effort of a term is value times column(v, a, load, s): v and a are speed and acceleration of its owner (a
coordinate or an actuator), load is the size of the effort that its owner carries, s its Stribeck speed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
        moves: Acts only in motion; False: an offset.
        inertia: Of a rotor: proportional to the acceleration, part of the kinetic energy, no friction.
        viscous: Proportional to the speed, as the derivative gain of a servo.
        loaded: Its column needs the load of its owner, which is predicted around the fit.
        searched: Its column needs a speed s, which is searched around the fit unless it is known.
    """

    words: str
    units: tuple[str, str]
    column: Column
    jumps: bool = False
    dry: bool = False
    positive: bool = True
    curve: bool = True
    moves: bool = True
    inertia: bool = False
    viscous: bool = False
    loaded: bool = False
    searched: bool = False

    @property
    def friction(self) -> bool:
        """Neither an offset nor an inertia."""
        return self.moves and not self.inertia

    def __call__(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The column of a term of another package, which knows neither load nor Stribeck speed."""
        return self.column(dq, ddq, np.ones_like(dq), 1.0)


_VISCOUS, _DRY = ("N m s/rad", "N s/m"), ("N m", "N")

# The compiled kernels number the terms in this order.
DRIVE_TERMS = {
    "Ia": DriveTerm("rotor inertia", ("kg m^2", "kg"), lambda v, a, load, s: a, curve=False, inertia=True),
    "Fv": DriveTerm("viscous friction", _VISCOUS, lambda v, a, load, s: v, viscous=True),
    "Fs": DriveTerm("Coulomb friction", _DRY, lambda v, a, load, s: np.sign(v), jumps=True, dry=True),
    "Fv+": DriveTerm(
        "viscous friction (forwards)",
        _VISCOUS,
        lambda v, a, load, s: np.maximum(v, 0.0),
        jumps=True,
        viscous=True,
    ),
    "Fv-": DriveTerm(
        "viscous friction (backwards)",
        _VISCOUS,
        lambda v, a, load, s: np.minimum(v, 0.0),
        jumps=True,
        viscous=True,
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
        loaded=True,
    ),
    "Fk": DriveTerm(
        "Stribeck friction",
        _DRY,
        lambda v, a, load, s: np.sign(v) * np.exp(-((v / s) ** 2)),
        jumps=True,
        dry=True,
        positive=False,
        searched=True,
    ),
}
DRIVE_SYMBOLS = tuple(DRIVE_TERMS)
JUMPING = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.jumps)
LOADED = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.loaded)
SEARCHED = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.searched)
ROTOR = tuple(symbol for symbol, term in DRIVE_TERMS.items() if term.inertia)
NO_FRICTION = tuple(symbol for symbol, term in DRIVE_TERMS.items() if not term.friction)
# Of a function of another package nothing else is known: it may jump, may have any sign, and has no curve.
_FUNCTION = DriveTerm("", ("", ""), lambda v, a, load, s: v, jumps=True, positive=False, curve=False)


def drive_term(symbol: str) -> DriveTerm | None:
    """What is known of a drive term, also of another package; None: there is none of that symbol."""
    from dynid.common.expression import FRICTION  # the table itself is read by nearly every module

    if symbol in DRIVE_TERMS or symbol not in FRICTION:
        return DRIVE_TERMS.get(symbol)
    other = FRICTION[symbol]
    return other if isinstance(other, DriveTerm) else replace(_FUNCTION, words=f"friction {symbol}")


def is_positive(symbol: str) -> bool:
    """Whether it is a drive term that cannot be negative."""
    term = drive_term(symbol)
    return term is not None and term.positive


# Friction models that real drives need, simple ones first: tried where none is asked for, and compared.
PLAIN_FRICTION = ("Fv", "Fs")
FRICTION_SETS = (
    PLAIN_FRICTION,
    ("Fv+", "Fv-", "Fs+", "Fs-"),
    *((*PLAIN_FRICTION, *more) for more in (("Fr",), ("Fl",), ("Fk",), ("Fr", "Fl"), ("Fr", "Fl", "Fk"))),
)
