"""Masses, centres of mass and ellipsoids of bodies, beside those of the description.

A log determines sums of the parameters of bodies, x = G chi, hardly ever each of them. The set that is shown
is the description changed as little as possible to give the identified efforts,

    chi = prior + K (x - G prior),      K = D G^T (G D G^T)^-1,      share = diag(K G)

with D the squared sizes of the parameters. A share of 1 means that the log alone gives the entry, 0 that it
is the description's. Priors of a physically consistent set were used already: then the set itself is shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import pinv
from dynid.fit import Fit
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.inertia import SYMBOLS, is_physical, unpack
from dynid.mechanism.parameters import known_columns, prior_values

_LENGTH = 0.2  # [m]: size of first moments and inertias of a body relative to its mass
_FIRST = ("MX", "MY", "MZ")
_NOT_GIVEN = 1e3  # times the size of an entry that the description gives


def drawn_bodies(fit: Fit) -> list[dict[str, Any]]:
    """Every body with its mass [kg], centre of mass [m], and their origin; empty without a scale."""
    problem = fit.problem
    if not problem.case.has_scale or not problem.case.is_series:
        return []
    names = [parameter.name for parameter in problem.parameters]
    prior = prior_values(problem.mechanism)
    known = {names[i]: value for i, value in known_columns(problem.mechanism, problem.parameters).items()}
    described = {**prior, **known}
    start = np.array([described.get(name, 0.0) for name in names])
    K, share = _nearest(fit, start, [name in described for name in names])
    chi = start + K @ (fit.data.G @ (fit.chi - start))
    if fit.standard is not None and fit.standard.is_estimate:
        chi = fit.standard.found.chi
    elif fit.standard is not None and fit.standard.entries:
        given = {str(item["name"]): float(item["value"]) for item in fit.standard.entries}
        chi = np.array([given.get(name, value) for name, value in zip(names, chi, strict=True)])
    root = _root(fit, K)
    drawn = []
    for body in (*problem.mechanism.bodies, *problem.mechanism.payloads):
        place = {s: names.index(f"{s}_{body}") for s in SYMBOLS if f"{s}_{body}" in names}
        if "M" in place and any(abs(chi[i]) > 0.0 for i in place.values()):
            entry = _body(place, chi, share, root)
            entry |= {"name": body, "payload": body in problem.mechanism.payloads}
            drawn.append(entry | _described(body, described))
    return drawn


def _nearest(
    fit: Fit, start: Float[Array, "p"], given: list[bool]
) -> tuple[Float[Array, "p v"], Float[Array, "p"]]:
    """K and the share of each entry that the log gives; sizes are those of a body of typical mass.

    What the description does not give (rotor inertias, as a rule) takes up any difference first.
    """
    masses = [
        abs(v)
        for v, parameter in zip(start, fit.problem.parameters, strict=True)
        if parameter.symbol == "M" and v
    ]
    typical = float(np.median(masses)) if masses else 1.0
    by_owner = {
        parameter.owner: abs(v)
        for v, parameter in zip(start, fit.problem.parameters, strict=True)
        if parameter.symbol == "M" and v
    }
    size = np.ones(len(start))
    for i, parameter in enumerate(fit.problem.parameters):
        power = 0 if parameter.symbol == "M" else 1 if parameter.symbol in _FIRST else 2
        if parameter.symbol in SYMBOLS:
            size[i] = by_owner.get(parameter.owner, typical) * _LENGTH**power
    size *= np.where(given, 1.0, _NOT_GIVEN)
    G = fit.data.G
    DG = size[:, None] ** 2 * G.T
    K = DG @ pinv(G @ DG)
    return K, np.clip(np.einsum("pv,vp->p", K, G), 0.0, 1.0)


def _root(fit: Fit, K: Float[Array, "p v"]) -> Float[Array, "p v"]:
    """A root of the covariance that the data leave in the set, shape (p, v), SI."""
    fitted = {
        parameter.name: k
        for k, parameter in enumerate(p for p in fit.parts.parameters if p.sigma is not None)
    }
    at = [(i, fitted[name]) for i, name in enumerate(fit.data.names) if name in fitted]
    rows, places = [i for i, _ in at], [k for _, k in at]
    values, vectors = np.linalg.eigh(fit.parts.covariance[np.ix_(places, places)])
    return np.asarray(K[:, rows] @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _body(
    place: dict[str, int],
    chi: Float[Array, "p"],
    share: Float[Array, "p"],
    root: Float[Array, "p v"],
) -> dict[str, Any]:
    ten = np.array([chi[place[s]] if s in place else 0.0 for s in SYMBOLS])
    mass = float(ten[SYMBOLS.index("M")])
    centre = np.array([ten[SYMBOLS.index(s)] for s in _FIRST]) / mass if mass > 0.0 else None
    entry: dict[str, Any] = {
        "mass": mass,
        "mass_sigma": float(np.linalg.norm(root[place["M"]])),
        "mass_share": float(share[place["M"]]),
        "centre": None if centre is None else centre.tolist(),
        "centre_share": float(np.mean([share[place[s]] for s in _FIRST if s in place] or [0.0])),
        "physical": bool(mass > 0.0 and is_physical(ten, rtol=1e-6)),
    }
    if centre is not None:
        rows = [
            root[place[s]] - c * root[place["M"]] for s, c in zip(_FIRST, centre, strict=True) if s in place
        ]
        entry["centre_sigma"] = (np.linalg.norm(rows, axis=1) / mass).tolist() if len(rows) == 3 else None
    if entry["physical"]:
        entry |= _ellipsoid(ten)
    return entry


def _ellipsoid(ten: Float[Array, "10"]) -> dict[str, Any]:
    """Axes (quaternion, body frame) and half lengths [m] of the uniform ellipsoid with this inertia."""
    mass, first, inertia = unpack(ten)
    c = first / mass
    about = inertia - mass * (c @ c * np.eye(3) - np.outer(c, c))
    spread = 0.5 * np.trace(about) * np.eye(3) - about
    values, vectors = np.linalg.eigh(spread)
    vectors[:, 2] *= np.sign(np.linalg.det(vectors))
    half = np.sqrt(np.maximum(5.0 * values / mass, 0.0))
    return {"axes": quaternion_of(vectors).tolist(), "half": half.tolist()}


def _described(body: str, described: dict[str, float]) -> dict[str, Any]:
    """Mass and centre of mass of the description; None where it gives none."""
    mass = described.get(f"M_{body}")
    if not mass:
        return {"prior_mass": None, "prior_centre": None}
    return {
        "prior_mass": float(mass),
        "prior_centre": [described.get(f"{s}_{body}", 0.0) / mass for s in _FIRST],
    }
