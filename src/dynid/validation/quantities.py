"""What results with different parameters have in common: friction at given speeds, and masses of bodies.

Drive terms of two fits may differ (`Fv`, `Fs` in one, `Fr` in the other), and so may the base parameters. The
friction of a joint at one speed, half the difference of both directions, means the same in all of them:

    f(v) = (A(v) - A(-v)) chi / 2         sigma^2 = a C a^T
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.notices import Notice, notice
from dynid.statistics.estimate import Estimate, ParameterEstimate
from dynid.statistics.friction import drives_of, friction_columns
from dynid.statistics.uncertainty import half95

SPEEDS: Mapping[str, tuple[float, ...]] = {"rad/s": (0.1, 1.0), "m/s": (0.01, 0.1)}

Table = Mapping[str, ParameterEstimate]


def common_quantities(results: Sequence[Estimate], speeds: Sequence[float] = ()) -> list[Table]:
    """Friction and masses of each result, where the results do not have the same parameters.

    Args:
        results: To compare.
        speeds: At which friction is compared, in [rad/s] or [m/s]; default: `SPEEDS`.
    """
    if not _unlike(results):
        return []
    tables = [{**_frictions(result, speeds), **_masses(result)} for result in results]
    names = [name for table in tables for name in table]
    return [{name: entry for name, entry in table.items() if names.count(name) > 1} for table in tables]


def why_unlike(results: Sequence[Estimate]) -> list[Notice]:
    """A notice where only some parameters are in all results, with the likely reason."""
    if not _unlike(results):
        return []
    listed = [_names(result) for result in results]
    shared, total = len(set.intersection(*listed)), len(set.union(*listed))
    robots = list(dict.fromkeys(result.robot for result in results))
    terms = [tuple(sorted({name.partition("_")[0] for name in _drive_names(result)})) for result in results]
    scaled = {any("/M_" in name for name in names) for names in listed}
    if len(robots) > 1:
        why = f"the robots are {' and '.join(robots)}"
    elif len(scaled) > 1:
        why = "some are per unit mass, others in kg"
    elif len(set(terms)) > 1:
        why = f"drive terms are {'; '.join(' '.join(one) or 'none' for one in dict.fromkeys(terms))}"
    else:
        why = "motion, payloads or ties of their logs determine other sums of parameters"
    return [notice("parameters-differ", shared=shared, total=total, why=why)]


def _unlike(results: Sequence[Estimate]) -> bool:
    listed = [_names(result) for result in results]
    return any(names != listed[0] for names in listed)


def _names(result: Estimate) -> set[str]:
    return {parameter.name for parameter in result.parameters}


def _drive_names(result: Estimate) -> list[str]:
    return [term.name for drive in drives_of(result) for term in drive.terms]


def _frictions(result: Estimate, speeds: Sequence[float]) -> dict[str, ParameterEstimate]:
    found = {}
    for drive in drives_of(result):
        unit = "rad/s" if drive.unit == "N m" else "m/s"
        at = np.array(speeds or SPEEDS[unit], float)
        A = 0.5 * (
            friction_columns(drive.symbols, at, drive.stribeck)
            - friction_columns(drive.symbols, -at, drive.stribeck)
        )
        sigma = np.sqrt(np.maximum(np.einsum("ns,st,nt->n", A, drive.C, A), 0.0))
        for v, f, s in zip(at.tolist(), (A @ drive.chi).tolist(), sigma.tolist(), strict=True):
            name = f"friction of {drive.owner} at {v:g} {unit}"
            found[name] = _entry(name, drive.unit, f, s, drive.terms)
    return found


def _masses(result: Estimate) -> dict[str, ParameterEstimate]:
    """Masses that the logs of a result determine by themselves."""
    found = {}
    for body in result.bodies:
        if body["mass"] is not None and body["mass_sigma"] is not None:
            name = f"mass of {body['name']}"
            found[name] = _entry(name, "kg", body["mass"], body["mass_sigma"], (), body["mass_dof"])
    return found


def _entry(
    name: str,
    unit: str,
    value: float,
    sigma: float,
    of: Sequence[ParameterEstimate],
    dof: float | None = None,
) -> ParameterEstimate:
    """A quantity with its interval, as a parameter has them."""
    dof = min((p.dof for p in of if p.dof is not None), default=dof)
    plain = ParameterEstimate(name, unit, value, sigma, None, None, dof=dof)
    half = float(half95(sigma, [plain]))
    relative = 100.0 * sigma / abs(value) if value else None
    return ParameterEstimate(name, unit, value, sigma, relative, (value - half, value + half), dof=dof)
