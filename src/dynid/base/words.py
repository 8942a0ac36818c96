"""Unidentifiable parameters in words: which combination is identifiable instead of a single parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dynid.base.grouping import grouped_terms, signed_term
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.parameters import Parameter

_MOST_SUMS = 3


def spoken(parameter: Parameter) -> str:
    """`the mass of link2`, `the moment of inertia XX of link2`, `the Coulomb friction of joint3`."""
    symbol, owner = parameter.symbol, parameter.owner
    if parameter.kind == "inertial" and symbol != "M":
        quantity = "the first moment" if symbol.startswith("M") else "the moment of inertia"
        return f"{quantity} {symbol} of {owner}"
    if symbol != "M" and symbol not in DRIVE_TERMS:
        return parameter.name
    words, _, way = ("mass" if symbol == "M" else DRIVE_TERMS[symbol].words).partition(" (")
    return f"the {words} of {owner}" + (f" ({way}" if way else "")


def invisible(parameter: Parameter, relations: Iterable[Mapping[str, float]], where: str = "") -> str:
    """Why a grouped parameter cannot be identified separately, and the sums in which it acts.

    Args:
        parameter: A standard parameter that no base parameter keeps.
        relations: Of the base parameters: standard name -> coefficient, the kept one first.
        where: Restriction of the statement, e.g. ` in these data`.
    """
    sums = [_sum(row, parameter.name) for row in relations if parameter.name in grouped_terms(row)]
    if not sums:
        return f"{spoken(parameter)} has no effect on any effort used"
    act = "the sum {} is identifiable" if len(sums) == 1 else "the sums {} are identifiable"
    return f"{spoken(parameter)} cannot be identified separately{where}: only " + act.format(
        listed(sums, _MOST_SUMS)
    )


def _sum(row: Mapping[str, float], name: str) -> str:
    """`MX_link1 + 0.31 M_link2`, and dots for other grouped parameters."""
    more = " + ..." if len(grouped_terms(row)) > 1 else ""
    return next(iter(row)) + signed_term(row[name], name) + more


def listed(parts: Sequence[str], most: int = 4) -> str:
    """`a, b and c`, the rest counted."""
    shown = list(parts[:most]) + ([f"{len(parts) - most} more"] if len(parts) > most else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def probability(p: float) -> str:
    """A probability of chance to print: its sign first, `= 0.0031`, or `< 0.0001` where it is that small."""
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"
