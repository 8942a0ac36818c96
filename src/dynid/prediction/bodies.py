"""Masses, centres of mass and ellipsoids of bodies, beside those of the description.

A log determines sums of the parameters of bodies, x = G chi, hardly ever each of them. The values are those
that `dynid export` writes (`full_set`). The share of an entry says how much of it the log alone gives,

    K = D G^T (G D G^T)^-1,      share = diag(K G)

with D the squared sizes of the parameters: 1 if the log gives it, 0 if it is the description's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import pinv, single_threaded_blas
from dynid.common.errors import InputError
from dynid.mechanism.frame import quaternion_of
from dynid.mechanism.inertia import SYMBOLS, is_physical, unpack
from dynid.mechanism.parameters import prior_values
from dynid.prediction.effort_space import EffortSpace, written_as_found
from dynid.prediction.full_set import chosen_values, space_of
from dynid.prediction.result_values import fitted_places, saved
from dynid.statistics.estimate import Estimate

_LENGTH = 0.2  # [m]: size of first moments and inertias of a body relative to its mass
_FIRST = ("MX", "MY", "MZ")
ALONE = 0.99  # share above which the log alone gives a value, and a standard deviation
_SLIGHT = 0.1  # of the largest part of a sigma: what is less does not change its degrees of freedom
_NOT_GIVEN = 1e3  # times the size of an entry that the description gives


def identified_bodies(estimate: Estimate) -> tuple[dict[str, Any], ...]:
    """Every body with its mass [kg], centre of mass [m], and their origin; empty without masses.

    If no physically consistent robot is near, masses that the log shows only in sums are None.
    """
    with single_threaded_blas():
        try:
            space = space_of(*saved(estimate))
        except InputError:  # parameters per unit mass, or of a force sensor
            return ()
        chi, how = _values(space)
        return _bodies(space, chi, how)


def _values(space: EffortSpace) -> tuple[Float[Array, "p"], dict[str, bool]]:
    """Values for every parameter, shape (p,), SI.

    Second: whether an export writes them unasked, and whether their efforts are exactly the estimate's.
    """
    try:
        chi, notes, _ = chosen_values(space)
    except InputError:  # no physically consistent robot is near
        return written_as_found(space), {"exported": False, "exact": True}
    return chi, {"exported": True, "exact": not notes}


def _bodies(space: EffortSpace, chi: Float[Array, "p"], how: dict[str, bool]) -> tuple[dict[str, Any], ...]:
    names = [parameter.name for parameter in space.parameters]
    known = {names[i]: value for i, value in space.known.items()}
    described = {**prior_values(space.mechanism), **known}
    share, weights, root = _share(space, described)
    drawn = []
    for body in (*space.mechanism.bodies, *space.mechanism.payloads):
        place = {s: names.index(f"{s}_{body}") for s in SYMBOLS if f"{s}_{body}" in names}
        if "M" in place and any(abs(chi[i]) > 0.0 for i in place.values()):
            entry = _body(place, chi, share, root)
            if entry["mass_sigma"] is not None:
                entry["mass_dof"] = _dof(space, weights[place["M"]])
            if not how["exported"] and entry["mass_sigma"] is None:
                # A sum with other bodies, divided in a way that no real robot has.
                shape = {key: value for key, value in entry.items() if key not in ("axes", "half")}
                entry = {**shape, "mass": None, "centre": None, "centre_sigma": [None] * 3}
            entry |= {"name": body, "payload": body in space.mechanism.payloads, **how}
            drawn.append(entry | _described(body, described))
    return tuple(drawn)


def _dof(space: EffortSpace, weights: Float[Array, "v"]) -> float | None:
    """Degrees of freedom of a sum of parameters: the fewest of those that matter in it."""
    fitted = [space.estimate.parameters[k] for k in fitted_places(space.estimate)]
    parts = [abs(w) * (p.sigma or 0.0) for w, p in zip(weights.tolist(), fitted, strict=True)]
    largest = max(parts, default=0.0)
    counted = [p.dof for p, part in zip(fitted, parts, strict=True) if part > _SLIGHT * largest]
    known = None if space.unloaded is None else space.unloaded.errors.dof
    return min((dof for dof in counted if dof is not None), default=known)


def _share(
    space: EffortSpace, described: dict[str, float]
) -> tuple[Float[Array, "p"], Float[Array, "p v"], Float[Array, "p r"]]:
    """The share of each entry that the log gives, its weights of the parameters, a root of its covariance.

    Sizes are those of a body of typical mass. What the description does not give (rotor inertias, as a rule)
    takes up any difference first; what it takes as exact takes up none.
    """
    masses = {
        p.owner: abs(described[p.name]) for p in space.parameters if p.symbol == "M" and described.get(p.name)
    }
    typical = float(np.median(list(masses.values()))) if masses else 1.0
    size = np.ones(len(space.parameters))
    for i, p in enumerate(space.parameters):
        power = 0 if p.symbol == "M" else 1 if p.symbol in _FIRST else 2
        if p.symbol in SYMBOLS:
            size[i] = masses.get(p.owner, typical) * _LENGTH**power
        size[i] *= 1.0 if p.name in described else _NOT_GIVEN
    size[space.fixed] = 0.0
    G = space.base.G[[k for k, i in enumerate(space.base.indices) if i not in space.free]]
    DG = size[:, None] ** 2 * G.T
    K = DG @ pinv(G @ DG)
    M = space.values.M[:, fitted_places(space.estimate)]
    weights = K @ (G @ M)
    return np.clip(np.einsum("pv,vp->p", K, G), 0.0, 1.0), weights, K @ (G @ space.root)


def _body(
    place: dict[str, int],
    chi: Float[Array, "p"],
    share: Float[Array, "p"],
    root: Float[Array, "p r"],
) -> dict[str, Any]:
    ten = np.array([chi[place[s]] if s in place else 0.0 for s in SYMBOLS])
    mass = float(ten[SYMBOLS.index("M")])
    centre = np.array([ten[SYMBOLS.index(s)] for s in _FIRST]) / mass if mass > 0.0 else None
    entry: dict[str, Any] = {
        "mass": mass,
        "mass_sigma": float(np.linalg.norm(root[place["M"]])) if share[place["M"]] > ALONE else None,
        "mass_share": float(share[place["M"]]),
        "centre": None if centre is None else centre.tolist(),
        "physical": bool(mass > 0.0 and is_physical(ten, rtol=1e-6)),
    }
    if centre is not None:
        entry["centre_sigma"] = [
            float(np.linalg.norm(root[place[s]] - c * root[place["M"]])) / mass
            if s in place and min(share[place[s]], share[place["M"]]) > ALONE
            else None
            for s, c in zip(_FIRST, centre, strict=True)
        ]
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
