"""Geometric symbols in grouping coefficients: `d4^2` for 0.1764.

The coefficients are computed again for a few dozen geometries in which the named dimensions
differ; a formula is accepted only if it predicts geometries it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynid.base.formula import find_formula
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
    movable = _movable(tests, single.C)
    runs = _Runs(np.vstack([values, single.X]), np.vstack([first, single.C]))
    matters = [_matters(tests, column, nominal) for column, nominal in zip(single.C.T, first, strict=True)]
    done, found = 0, dict[tuple[str, str], str | None]()
    for count, held in _JOINT:
        joint = _run(evaluate, [values * _factors(rng, movable) for _ in range(done, count)])
        runs, done = _Runs(np.vstack([runs.X, joint.X]), np.vstack([runs.C, joint.C])), count
        for k, key in enumerate(keys):
            if found.get(key) is None:
                found[key] = _formula(names, runs, k, matters[k], held, _length_degree(key, units))
        if all(found[key] is not None for key, relevant in zip(keys, matters, strict=True) if relevant.any()):
            break
    texts = {}
    for k, key in enumerate(keys):
        labels = [names[i] for i in np.flatnonzero(matters[k]).tolist()]
        text = found[key] or (f"{exact_text(float(first[k]))} ({', '.join(labels)})" if labels else None)
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


def _movable(
    tests: Bool[Array, "tests constants"], C: Float[Array, "tests keys"]
) -> Bool[Array, "constants"]:
    """Dimensions whose change keeps the groupings, in at least one test."""
    fine = np.isfinite(C).all(axis=1)
    return np.asarray(tests[fine].any(axis=0))


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
