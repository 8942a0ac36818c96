"""Formulas in a few named constants that explain sampled values: the simplest one that holds.

Tried in this order: a fraction, a monomial, a homogeneous polynomial, one over a constant, one with
the sine and cosine of one angle. Every candidate must predict samples it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from dynid.common.arrays import Array, Float

_HOLDS = 1e-8  # relative; structural factors give coefficients to about 1e-12
_INTEGER = 1e-5  # exponents and fractions must be this close to their values before they are tested
_MAX_CONSTANTS = 5


@dataclass(frozen=True)
class _Monomial:
    """Product of constants to integer powers, and of sines and cosines of at most one of them."""

    powers: tuple[int, ...]
    angle: int = -1
    cosine: int = 0
    sine: int = 0

    def value(self, X: Float[Array, "s m"]) -> Float[Array, "s"]:
        product = np.prod(X ** np.array(self.powers, dtype=float), axis=1)
        if self.angle < 0:
            return np.asarray(product)
        a = X[:, self.angle]
        return np.asarray(product * np.cos(a) ** self.cosine * np.sin(a) ** self.sine)


_Sum = Sequence[tuple[Fraction, _Monomial]]


def find_formula(
    labels: Sequence[str],
    X: Float[Array, "s m"],
    c: Float[Array, "s"],
    held: int,
    degree: int | None = None,
) -> str | None:
    """Text of the simplest formula that holds, or None.

    Args:
        labels: Names of the constants that a coefficient depends on.
        X, c: Constants and values of the coefficient, shapes (s, m) and (s,).
        held: So many of the last samples are not fitted: they test the formula.
        degree: Power of lengths that the value must have; None when its unit is not known.
    """
    m, n = len(labels), len(c) - held
    if held < 3 or n < 1 or m > _MAX_CONSTANTS:
        return None
    for terms in _candidates(X[:n], c[:n], degree):
        if all(_holds(*part, terms) for part in ((X[n:], c[n:]), (X[:n], c[:n]))):
            return _sum_text(terms, labels)
    return None


def _candidates(X: Float[Array, "s m"], c: Float[Array, "s"], degree: int | None) -> Iterator[_Sum]:
    """Sums that explain the samples, the simplest first."""
    m = X.shape[1]
    if m == 0:
        value = _fraction(float(c[0]))
        if value is not None:
            yield [(value, _Monomial(()))]
        return
    yield from _fit_monomial(X, c)
    for features in _feature_sets(m, degree):
        yield from _fit_sum(X, c, features)


def _fit_monomial(X: Float[Array, "s m"], c: Float[Array, "s"]) -> Iterator[_Sum]:
    """One product k x1^e1 x2^e2 ... by regression of logarithms."""
    if np.any(X == 0) or np.any(c == 0):
        return
    logs = np.column_stack([np.ones(len(c)), np.log(np.abs(X))])
    if len(logs) <= logs.shape[1]:
        return
    solution = np.linalg.lstsq(logs, np.log(np.abs(c)), rcond=None)[0]
    powers = np.round(solution[1:])
    if np.any(np.abs(solution[1:] - powers) > _INTEGER) or np.any(np.abs(powers) > 4):
        return
    term = _Monomial(tuple(int(e) for e in powers))
    k = _fraction(float(c[0] / term.value(X[:1])[0]))
    if k is not None:
        yield [(k, term)]


def _feature_sets(m: int, degree: int | None) -> Iterator[list[_Monomial]]:
    """Candidate sums: lengths only, lengths over one of them, then each in turn treated as an angle."""
    degrees = (degree,) if degree is not None else (1, 2, 3)
    for d in degrees:
        if d > 0:
            yield _polynomial(m, d, range(m))
    for under in range(m):
        for d in (degree,) if degree is not None else (0, 1):
            if d >= 0:
                yield [_over(monomial, under) for monomial in _polynomial(m, d + 1, range(m))]
    for angle in range(m):
        rest = [i for i in range(m) if i != angle]
        for d in (degree,) if degree is not None else (0, 1, 2):
            if d >= 0 and (rest or d == 0):
                plain = _polynomial(m, d, rest)
                turns = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1)]
                yield [
                    replace(monomial, angle=angle, cosine=c, sine=s) for monomial in plain for c, s in turns
                ]


def _polynomial(m: int, degree: int, use: Sequence[int]) -> list[_Monomial]:
    """All monomials of one degree in the constants `use` of m."""
    chosen = combinations_with_replacement(use, degree)
    return [_Monomial(tuple(factors.count(i) for i in range(m))) for factors in chosen]


def _over(term: _Monomial, under: int) -> _Monomial:
    """A monomial divided by a constant."""
    return replace(term, powers=tuple(e - (i == under) for i, e in enumerate(term.powers)))


def _fit_sum(X: Float[Array, "s m"], c: Float[Array, "s"], features: Sequence[_Monomial]) -> Iterator[_Sum]:
    """Sparse combination of `features` with simple fractions."""
    if not features or len(features) >= len(c):
        return
    values = np.column_stack([feature.value(X) for feature in features])
    size = np.linalg.norm(values, axis=0)
    if np.any(size == 0):
        return
    solution = np.linalg.lstsq(values / size, c, rcond=None)[0]
    terms = []
    for weight, norm, feature in zip(solution, size, features, strict=True):
        if abs(weight) > _INTEGER * np.linalg.norm(c):
            k = _fraction(float(weight / norm))
            if k is None:
                return
            terms.append((k, feature))
    if 0 < len(terms) <= 6:
        yield terms


def _holds(X: Float[Array, "s m"], c: Float[Array, "s"], terms: _Sum) -> bool:
    """Whether the formula gives every sample."""
    predicted = sum(float(k) * monomial.value(X) for k, monomial in terms)
    return not np.any(np.abs(predicted - c) > _HOLDS * np.max(np.abs(c)))


def _fraction(value: float) -> Fraction | None:
    """The fraction of small denominator equal to `value`, if there is one."""
    near = Fraction(value).limit_denominator(8)
    close = abs(value - float(near)) <= _INTEGER * 1e-2 * abs(value)
    return near if near != 0 and close and abs(near.numerator) <= 100_000 else None


def _sum_text(terms: _Sum, labels: Sequence[str]) -> str:
    """`d3^2 + r4^2`, `-d4 r4`, `2 r3`, `d2^2/d3`."""
    text = ""
    ordered = sorted(terms, key=lambda term: term[0] < 0)  # positive terms first: d4^2 - a3^2
    for k, monomial in ordered:
        sign = "-" if k < 0 else "+"
        body = _term_text(abs(k), monomial, labels)
        text += f" {sign} {body}" if text else ("-" if k < 0 else "") + body
    return text


def _term_text(k: Fraction, monomial: _Monomial, labels: Sequence[str]) -> str:
    over, under = [], []
    if k.numerator != 1:
        over.append(str(k.numerator))
    if k.denominator != 1:
        under.append(str(k.denominator))
    for label, power in zip(labels, monomial.powers, strict=True):
        if power:
            (over if power > 0 else under).append(_power(label, abs(power)))
    if monomial.angle >= 0:
        for function, power in (("cos", monomial.cosine), ("sin", monomial.sine)):
            if power:
                over.append(_power(f"{function}({labels[monomial.angle]})", power))
    top, bottom = " ".join(over) or "1", " ".join(under)
    if not bottom:
        return top
    return f"{top}/{bottom}" if len(under) == 1 else f"{top}/({bottom})"


def _power(label: str, power: int) -> str:
    return label if power == 1 else f"{label}^{power}"
