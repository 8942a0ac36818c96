"""Geometric symbols in grouping coefficients: `d4^2` for 0.1764.

The coefficients are computed again for a few dozen geometries in which the named dimensions
differ; a formula is accepted only if it predicts geometries it was not fitted to.

Formulas in a few named constants that explain sampled values: the simplest one that holds.

Tried in this order: a fraction, a monomial, a homogeneous polynomial, one over a constant, one with
the sine and cosine of one angle. Every candidate must predict samples it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynid.base.grouping import exact_text
from dynid.common.arrays import Array, Bool, Float
from dynid.common.errors import DynidError

Coefficients = Mapping[tuple[str, str], float]

MAX_EVALUATIONS = 40
# Geometries with all dimensions changed at once, and how many of them are not used to fit; more where few do
# not give all formulas.
_JOINT = ((7, 3), (15, 5))
_MOVES = 1e-9  # relative change above which a coefficient depends on a dimension
_SEED = 20240229


@runtime_checkable
class Geometric(Protocol):
    """Required interface of a mechanism: its named dimensions, and how to build it with others."""

    @property
    def geometry(self) -> Mapping[str, float]:
        """Name -> value."""

    @property
    def rebuild(self) -> Callable[[Mapping[str, float]], Any] | None:
        """The same mechanism with other values of `geometry`."""


@dataclass(frozen=True, eq=False)
class _Runs:
    """Coefficients at several geometries; NaN where a geometry has other groupings.

    Attributes:
        X: Dimensions, shape (runs, constants).
        C: Coefficients, shape (runs, keys).
    """

    X: Float[Array, "runs constants"]
    C: Float[Array, "runs keys"]


def recover_symbols(
    mechanism: Geometric,
    coefficients: Callable[[Any], Coefficients],
    *,
    units: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], str]:
    """Text of each coefficient that is a function of named dimensions.

    Args:
        mechanism: With `geometry` and `rebuild`; only these two are read.
        coefficients: (kept, dependent) -> value for a mechanism; called at most 40 times.
        units: Unit by standard name; with them only formulas of the right unit are tried.

    Returns:
        (kept, dependent) -> `d4^2`, `2 r3`, `d3^2 + r4^2`; where no formula holds, the number
        with what it depends on, `0.0506 (d3, r4)`. Constants that are not a simple fraction are
        omitted: the number is sufficient.
    """
    nominal = coefficients(mechanism)
    names = tuple(name for name, value in mechanism.geometry.items() if not _is_structure(value))
    if mechanism.rebuild is None or not names or not nominal:
        return {}
    keys = tuple(nominal)
    values = np.array([mechanism.geometry[name] for name in names])
    first = np.array([nominal[key] for key in keys])
    rng = np.random.default_rng(_SEED)
    evaluate = _evaluator(mechanism, mechanism.rebuild, coefficients, names, keys)
    tests = _test_sets(len(names), MAX_EVALUATIONS - 1 - _JOINT[-1][0])
    single = _run(evaluate, [values * _factors(rng, row) for row in tests])
    # Dimensions whose change keeps the groupings, in at least one test.
    movable = np.asarray(tests[np.isfinite(single.C).all(axis=1)].any(axis=0))
    runs = _Runs(np.vstack([values, single.X]), np.vstack([first, single.C]))
    matters = [_matters(tests, column, nominal) for column, nominal in zip(single.C.T, first, strict=True)]
    done, symbols_of = 0, dict[tuple[str, str], str | None]()
    for count, held in _JOINT:
        joint = _run(evaluate, [values * _factors(rng, movable) for _ in range(done, count)])
        runs, done = _Runs(np.vstack([runs.X, joint.X]), np.vstack([runs.C, joint.C])), count
        for k, key in enumerate(keys):
            if symbols_of.get(key) is None:
                symbols_of[key] = _formula(names, runs, k, matters[k], held, _length_degree(key, units))
        if all(
            symbols_of[key] is not None for key, relevant in zip(keys, matters, strict=True) if relevant.any()
        ):
            break
    texts = {}
    for k, key in enumerate(keys):
        labels = [names[i] for i in np.flatnonzero(matters[k]).tolist()]
        text = symbols_of[key] or (f"{exact_text(float(first[k]))} ({', '.join(labels)})" if labels else None)
        if text is not None:
            texts[key] = text
    return texts


def _formula(
    names: Sequence[str],
    runs: _Runs,
    k: int,
    matters: Bool[Array, "constants"],
    held: int,
    degree: int | None,
) -> str | None:
    """Formula of coefficient k in the dimensions that matter, if there is one."""
    relevant, c = np.flatnonzero(matters), runs.C[:, k]
    # Where a dimension changed the groupings themselves there is no coefficient to compare.
    known = np.isfinite(c)
    held = int(np.count_nonzero(known[-held:]))
    return find_formula(
        [names[i] for i in relevant.tolist()], runs.X[known][:, relevant], c[known], held, degree
    )


def _evaluator(
    mechanism: Geometric,
    rebuild: Callable[[Mapping[str, float]], Any],
    coefficients: Callable[[Any], Coefficients],
    names: Sequence[str],
    keys: Sequence[tuple[str, str]],
) -> Callable[[Float[Array, "constants"]], Float[Array, "keys"]]:
    def evaluate(x: Float[Array, "constants"]) -> Float[Array, "keys"]:
        geometry = {**mechanism.geometry, **dict(zip(names, x.tolist(), strict=True))}
        try:
            values = coefficients(rebuild(geometry))
        except DynidError:  # an impossible geometry gives no information
            return np.full(len(keys), np.nan)
        if not values.keys() >= set(keys):
            return np.full(len(keys), np.nan)
        return np.array([values[key] for key in keys])

    return evaluate


def _run(
    evaluate: Callable[[Float[Array, "constants"]], Float[Array, "keys"]],
    geometries: Sequence[Float[Array, "constants"]],
) -> _Runs:
    return _Runs(np.array(geometries), np.array([evaluate(x) for x in geometries]))


def _test_sets(n: int, budget: int) -> Bool[Array, "tests constants"]:
    """Which dimensions each test changes: one each, or, when there are too many, two tests per
    dimension with no pair of tests used twice, so that few others are confounded with it."""
    if n <= budget:
        return np.eye(n, dtype=bool)
    tests = np.zeros((budget, n), dtype=bool)
    pairs = sorted(combinations(range(budget), 2), key=lambda pair: (pair[1] - pair[0], pair))
    for constant in range(n):
        tests[list(pairs[constant % len(pairs)]), constant] = True
    return tests


def _factors(rng: np.random.Generator, changed: Bool[Array, "constants"]) -> Float[Array, "constants"]:
    """Factors 0.7..0.9 or 1.1..1.3 for changed dimensions, one for the rest."""
    size = rng.uniform(0.1, 0.3, changed.size) * rng.choice([-1.0, 1.0], changed.size)
    return np.where(changed, 1.0 + size, 1.0)


def _matters(
    tests: Bool[Array, "tests constants"], c: Float[Array, "tests"], nominal: float
) -> Bool[Array, "constants"]:
    """Dimensions that moved the coefficient in every test that changed them."""
    usable = np.isfinite(c)
    moved = np.abs(c - nominal) > _MOVES * abs(nominal)
    quiet = tests[usable & ~moved].any(axis=0)
    return np.asarray(tests[usable].any(axis=0) & ~quiet)


def _is_structure(value: float) -> bool:
    """Zero and quarter turns define the structure: with other values it would be another robot."""
    quarters = value / (np.pi / 2)
    return bool(abs(quarters - round(quarters)) < 1e-4)


_LENGTHS = {"kg m^2": 2, "kg m": 1, "kg": 0}


def _length_degree(key: tuple[str, str], units: Mapping[str, str] | None) -> int | None:
    """Power of metres of a coefficient, unit(kept) / unit(dependent); None when not known."""
    if units is None:
        return None
    kept, dependent = (_LENGTHS.get(units.get(name, "")) for name in key)
    return None if kept is None or dependent is None else kept - dependent


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
