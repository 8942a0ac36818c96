"""Friction over speed with its 95 % band: columns of drive terms times their values.

f(v) = A(v) chi,      half width t sqrt(a C a^T) of every row a of A
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.drive_terms import NO_FRICTION, drive_term
from dynid.regressor.few_states import drive_column
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.uncertainty import half95

_GRID = 81  # points of a curve


def friction_columns(
    symbols: Sequence[str], v: Float[Array, "n"], stribeck: float | None
) -> Float[Array, "n s"]:
    """Effort of each term of value one at the speeds v, in [rad/s] or [m/s]."""
    rest = np.zeros_like(v)
    return np.column_stack([drive_column(symbol, v, rest, rest, stribeck) for symbol in symbols])


def friction_curve(
    symbols: Sequence[str],
    chi: Float[Array, "s"],
    C: Float[Array, "s s"],
    reach: float,
    stribeck: float | None,
    parameters: Iterable[ParameterEstimate] = (),
) -> dict[str, Any]:
    """Speeds up to `reach` on both sides, with a break at zero; friction, and half of its 95 % interval.

    Args:
        symbols: Drive terms.
        chi, C: Their values and covariance, SI; zero for values that are not estimated.
        reach: Largest speed, in [rad/s] or [m/s].
        stribeck: Stribeck speed; None: the usual one.
        parameters: The terms of the result, whose degrees of freedom count.
    """
    positive = np.linspace(1e-6 * reach, reach, _GRID // 2)
    grid = np.concatenate([-positive[::-1], [np.nan], positive])
    A = friction_columns(symbols, grid, stribeck)
    half = half95(np.sqrt(np.maximum(np.einsum("ns,st,nt->n", A, C, A), 0.0)), parameters)
    return {"terms": list(symbols), "speed": grid, "effort": A @ chi, "half": half}


def curves_of(estimate: Estimate, reach: float) -> list[dict[str, Any]]:
    """Friction of every drive of a result up to a speed, from its parameters alone."""
    stribeck: Mapping[str, float] = estimate.provenance.get("options", {}).get("stribeck", {})
    known = [parameter.name for parameter in estimate.parameters if parameter.sigma is not None]
    owners: dict[str, dict[str, Any]] = {}
    for parameter in estimate.parameters:
        symbol, _, owner = parameter.name.partition("_")
        term = drive_term(symbol)
        if term is not None and term.curve and owner:
            owners.setdefault(owner, {})[symbol] = parameter
    curves = []
    for owner, terms in owners.items():
        if not set(terms) - set(NO_FRICTION):
            continue
        C = np.zeros((len(terms), len(terms)))
        at = [k for k, term in enumerate(terms.values()) if term.name in known]
        places = [known.index(term.name) for term in terms.values() if term.name in known]
        C[np.ix_(at, at)] = estimate.covariance[np.ix_(places, places)]
        chi = np.array([term.value for term in terms.values()])
        unit = "N m" if any("N m" in term.unit for term in terms.values()) else "N"
        curve = friction_curve(list(terms), chi, C, reach, stribeck.get(owner), terms.values())
        curves.append({"owner": owner, "unit": unit} | curve)
    return curves
