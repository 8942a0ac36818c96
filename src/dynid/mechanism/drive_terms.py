"""Drive terms: all that is known of each, in one table. The rest of the code asks the table, not the symbol.

Other packages add terms by the entry point `dynid.friction`: a `DriveTerm`, or its function of (q, dq, ddq).

The effort of a term is value times column(v, a, load, s): v and a are speed and acceleration of its owner (a
coordinate or an actuator), load is the size of the effort that its owner carries, s its Stribeck speed. The
columns of dynid's own terms are in `term_column`, which arrays, compiled code and exported code share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.common.arrays import Array

Column = Callable[[Array, Array, Array, float], Array]
# The order of DRIVE_TERMS: compiled code knows a term by its number.
INERTIA, VISCOUS, COULOMB, VISCOUS_UP, VISCOUS_DOWN, COULOMB_UP, COULOMB_DOWN, OFFSET = range(8)
ROOT, LOAD, STRIBECK = range(8, 11)


def term_column(number: Any, v: Any, a: Any, signs: Any, load: Any, s: Any) -> Any:
    """Effort of a term of value one: of numbers (compiled), arrays, or nodes of exported code.

    Args:
        number: Of the term.
        v, a: Speed and acceleration of its owner; complex numbers give derivatives.
        signs: Sign of v; the same where its jump may be smoothed; forward and backward part of the latter.
        load: Size of the effort that its owner carries.
        s: Stribeck speed.
    """
    sign, step, up, down = signs
    if number == INERTIA:
        return a
    if number == VISCOUS:
        return v
    if number == COULOMB:
        return v * 0.0 + step
    if number == VISCOUS_UP:
        return 0.5 * (v + sign * v)
    if number == VISCOUS_DOWN:
        return 0.5 * (v - sign * v)
    if number == COULOMB_UP:
        return v * 0.0 + up
    if number == COULOMB_DOWN:
        return v * 0.0 + down
    if number == OFFSET:
        return v * 0.0 + 1.0
    if number == ROOT:
        return step * np.sqrt(sign * v)
    if number == LOAD:
        return v * 0.0 + step * load
    if number == STRIBECK:
        return step * np.exp(-(v / s) * (v / s))
    return v * np.nan  # a number without a column: nothing may pass for a zero


def jump_signs(v: Any) -> Any:
    """The `signs` of `term_column` without smoothing."""
    sign = np.sign(v.real)
    return sign, sign, np.maximum(sign, 0.0), np.minimum(sign, 0.0)


def _column(number: int, v: Array, a: Array, load: Array, s: float) -> Array:
    return np.asarray(term_column(number, v, a, jump_signs(v), load, s))


@dataclass(frozen=True)
class DriveTerm:
    """What a symbol stands for.

    Attributes:
        words: Its name in a sentence.
        units: Of a rotary and of a linear owner, SI.
        column: Effort of a term of value one, in [N m] or [N].
        jumps: With the sign of the speed: its equations need that sign.
        dry: Does not vanish at zero speed: at rest it takes any value up to its size.
        positive: Cannot be negative: it brakes, or is an inertia. Others may fall with the speed, as long as
            the friction of their owner brakes at every speed.
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

DRIVE_TERMS = {
    "Ia": DriveTerm("rotor inertia", ("kg m^2", "kg"), partial(_column, INERTIA), curve=False, inertia=True),
    "Fv": DriveTerm("viscous friction", _VISCOUS, partial(_column, VISCOUS), viscous=True),
    "Fs": DriveTerm("Coulomb friction", _DRY, partial(_column, COULOMB), jumps=True, dry=True),
    "Fv+": DriveTerm(
        "viscous friction (forwards)", _VISCOUS, partial(_column, VISCOUS_UP), jumps=True, viscous=True
    ),
    "Fv-": DriveTerm(
        "viscous friction (backwards)", _VISCOUS, partial(_column, VISCOUS_DOWN), jumps=True, viscous=True
    ),
    "Fs+": DriveTerm("Coulomb friction (forwards)", _DRY, partial(_column, COULOMB_UP), jumps=True, dry=True),
    "Fs-": DriveTerm(
        "Coulomb friction (backwards)", _DRY, partial(_column, COULOMB_DOWN), jumps=True, dry=True
    ),
    "Off": DriveTerm("offset", _DRY, partial(_column, OFFSET), positive=False, moves=False),
    "Fr": DriveTerm(
        "square-root friction", ("N m (s/rad)^0.5", "N (s/m)^0.5"), partial(_column, ROOT), positive=False
    ),
    "Fl": DriveTerm(
        "load-dependent friction",
        ("1", "1"),
        partial(_column, LOAD),
        jumps=True,
        dry=True,
        curve=False,
        loaded=True,
    ),
    "Fk": DriveTerm(
        "Stribeck friction",
        _DRY,
        partial(_column, STRIBECK),
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
# Friction whose jump a search for motions smooths: of the speed alone, its size independent of it.
SMOOTHED = tuple(
    symbol for symbol, term in DRIVE_TERMS.items() if term.dry and not term.loaded and not term.searched
)
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
