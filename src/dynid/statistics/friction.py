"""Friction over speed with its 95 % band: columns of drive terms times their values.

f(v) = A(v) chi,      half width t sqrt(a C a^T) of every row a of A
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class DriveFriction:
    """The drive terms of one joint or motor of a result that depend on its speed.

    Attributes:
        unit: Of its effort.
        terms: Parameters of the result.
        C: Covariance of their values, SI; zero for values that are not estimated.
        stribeck: Stribeck speed, in [rad/s] or [m/s]; None: the usual one.
    """

    owner: str
    unit: str
    terms: tuple[ParameterEstimate, ...]
    C: Float[Array, "s s"]
    stribeck: float | None

    @property
    def symbols(self) -> list[str]:
        """Of the terms."""
        return [term.name.partition("_")[0] for term in self.terms]

    @property
    def chi(self) -> Float[Array, "s"]:
        """Their values, SI."""
        return np.array([term.value for term in self.terms])


def drives_of(estimate: Estimate) -> list[DriveFriction]:
    """Friction of every drive of a result, from its parameters alone."""
    stribeck: Mapping[str, float] = estimate.provenance.get("options", {}).get("stribeck", {})
    known = [parameter.name for parameter in estimate.parameters if parameter.sigma is not None]
    owners: dict[str, list[ParameterEstimate]] = {}
    for parameter in estimate.parameters:
        symbol, _, owner = parameter.name.partition("_")
        term = drive_term(symbol)
        if term is not None and term.curve and owner:
            owners.setdefault(owner, []).append(parameter)
    drives = []
    for owner, terms in owners.items():
        C = np.zeros((len(terms), len(terms)))
        at = [k for k, term in enumerate(terms) if term.name in known]
        places = [known.index(terms[k].name) for k in at]
        C[np.ix_(at, at)] = estimate.covariance[np.ix_(places, places)]
        unit = "N m" if any("N m" in term.unit for term in terms) else "N"
        drive = DriveFriction(owner, unit, tuple(terms), C, stribeck.get(owner))
        if set(drive.symbols) - set(NO_FRICTION):
            drives.append(drive)
    return drives


def curves_of(estimate: Estimate, reach: float) -> list[dict[str, Any]]:
    """Friction of every drive of a result up to a speed, from its parameters alone."""
    return [
        {"owner": drive.owner, "unit": drive.unit}
        | friction_curve(drive.symbols, drive.chi, drive.C, reach, drive.stribeck, drive.terms)
        for drive in drives_of(estimate)
    ]
