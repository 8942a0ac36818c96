"""Friction of other packages, declared as extra columns: tau = ... + F f(s, ds/dt, d2s/dt2).

s is the position of the owner, a coordinate or an actuator, and f a NumPy function (see `FRICTION`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dynid.common.expression import FRICTION, parse
from dynid.mechanism.drive_terms import DRIVE_SYMBOLS
from dynid.mechanism.mechanism import Mechanism, Term
from dynid.mechanism.parameters import speed_map


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
    dq = " + ".join(f"({ratio!r}) * dq({coord})" for coord, ratio in ratios.items())
    text = f"{symbol}({q}, {dq}, {dq.replace('* dq(', '* ddq(')})"
    name = f"{symbol}_{owner}"
    return [
        Term(name, coord, parse(f"({ratio!r}) * {text}"), friction=symbol) for coord, ratio in ratios.items()
    ]
