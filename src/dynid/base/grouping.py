"""Grouping relations in readable form.

Unidentifiable parameters in words: which combination is identifiable instead of a single parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dynid.mechanism.parameters import Parameter

Symbols = Mapping[tuple[str, str], str]

_ONE = 1e-9  # coefficients this near to one are one: structural factors are exact to 1e-12
# A separate number with a point or an exponent; digits within names and integers are not changed.
_DECIMAL = re.compile(r"(?<![^\s(-])[0-9]+(?:\.[0-9]+(?:e[-+]?[0-9]+)?|e[-+]?[0-9]+)(?![^\s)])")
_NOTHING = 1e-10  # relative to the largest coefficient: rounding


def grouping_text(coefficients: Mapping[str, float], symbols: Symbols | None = None) -> str:
    """`ZZ_link2_R = ZZ_link2 + YY_link3 + 0.0506 M_link3`, or empty when nothing is grouped.

    Coefficients have all their digits; `readable` rounds them for display.

    Args:
        coefficients: Standard name -> coefficient; the first is the parameter that is kept.
        symbols: (kept, dependent) -> text of a coefficient, used in place of its number.
    """
    kept = next(iter(coefficients))
    others = grouped_terms(coefficients)
    if not others:
        return ""
    text = f"{kept}_R = {kept}"
    for name, value in others.items():
        text += signed_term(value, name, (symbols or {}).get((kept, name)) or exact_text(value))
    return text


def grouped_terms(coefficients: Mapping[str, float]) -> dict[str, float]:
    """The dependent parameters, without the kept one and without rounding errors."""
    kept = next(iter(coefficients))
    largest = max(abs(value) for value in coefficients.values())
    return {
        name: value
        for name, value in coefficients.items()
        if name != kept and abs(value) >= _NOTHING * largest
    }


def signed_term(value: float, name: str, symbol: str | None = None) -> str:
    """` + 0.31 ZZ_link2`, ` - d4 r4 M_link4`, ` - (d3^2 + r4^2) M_link4`."""
    text = coefficient_text(value) if symbol is None else symbol
    sign = "+"
    if text.startswith("-") and " + " not in text:  # all terms are subtracted
        sign, text = "-", text[1:].replace(" - ", " + ")
    if " + " in text or " - " in text:
        text = f"({text})"
    return f" {sign} {name}" if text == "1" else f" {sign} {text} {name}"


def coefficient_text(value: float, digits: int = 3) -> str:
    """A number with the significant digits a reader needs; integers without decimals."""
    return _whole(value) or f"{value:.{digits}g}"


def exact_text(value: float) -> str:
    """A number with all its digits, for programs; integers without decimals."""
    return _whole(value) or repr(float(value))


def readable(relation: str, digits: int = 3) -> str:
    """A grouping relation whose numbers have the significant digits a reader needs."""
    return _DECIMAL.sub(lambda match: coefficient_text(float(match[0]), digits), relation)


def _whole(value: float) -> str:
    nearest_whole = round(value)
    return str(nearest_whole) if nearest_whole and abs(value - nearest_whole) < _ONE * abs(value) else ""


_MOST_SUMS = 3


def spoken(parameter: Parameter) -> str:
    """`the mass of link2`, `the inertia of link2 about x`, `the Coulomb friction of joint3`."""
    symbol, owner = parameter.symbol, parameter.owner
    if parameter.kind == "inertial" and symbol != "M":
        axes = "".join(dict.fromkeys(symbol.removeprefix("M").lower()))
        if symbol.startswith("M"):
            return f"the mass times centre of mass of {owner} along {axes}"
        if len(axes) == 1:
            return f"the inertia of {owner} about {axes}"
        return f"the product of inertia {axes} of {owner}"
    term = parameter.drive_term
    if symbol != "M" and term is None:
        return parameter.name
    words, _, way = ("mass" if term is None else term.words).partition(" (")
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
