"""How much of each standard parameter comes from the data, and which parameters are at a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.estimator.semidefinite import packed
from dynid.projection.factor import triangle

if TYPE_CHECKING:
    from dynid.estimator.consistency import Consistency
    from dynid.estimator.rigid_bodies import RigidBody
    from dynid.estimator.standard_space import StandardSpace

# A generic body has low weight: that of a prior uncertain by a factor of ten.
_GENERIC_SPREAD = 10.0
_VAGUE = 1e-6  # one over the standard deviation of variables without prior, in scaled variables
_ZERO = 1e-3  # standard deviations within which a parameter counts as zero
_FLAT, _FLAT_WITHOUT_PRIOR = 0.01, 1e-5
_UNSEEN, _ROUNDING = 1e-9, 1e-6  # of the largest singular value of unit columns; of a unit vector's square


def pull(body: RigidBody, options: Consistency) -> float:
    """Weight of a body's distance to its prior: 1 / spread^2."""
    spread = options.spread if body.given else max(options.spread, _GENERIC_SPREAD)
    return 1.0 / spread**2


def data_share(space: StandardSpace, options: Consistency) -> Float[Array, "p"]:
    """1 - v / v0 of each standard parameter, shape (p,): zero for known values.

    v0 is its variance from the prior alone (the distance to second order, at the prior). v is its variance
    from the data and an independent prior of variance v0 for each entry: information from other entries
    through the shape of the prior counts as prior. Without a prior v0 is very large.
    """
    n, n_x = space.n, space.n_x
    prior = triangle(np.vstack([*_prior_roots(space, options), _VAGUE * np.eye(n)]))
    v0 = np.sum(np.linalg.inv(prior) ** 2, axis=1)[:n_x]
    both = triangle(np.vstack([np.diag(1.0 / np.sqrt(v0)), space.A]))
    v = np.sum(np.linalg.inv(both) ** 2, axis=1)
    share = np.clip(1.0 - v / v0, 0.0, 1.0)
    return np.asarray((space.T != 0) @ share)


def at_bound(space: StandardSpace, x: Float[Array, "n"]) -> Int[Array, "z"]:
    """Variables at zero, of those that cannot be negative and that act in some row."""
    felt = np.linalg.norm(space.A, axis=0) > 0
    small = space.scale * x[: space.n_x] < _ZERO * space.deviation
    return np.asarray(space.signed[(felt & small)[space.signed]])


def determined_alone(space: StandardSpace) -> Bool[Array, "m"]:
    """Variables that the rows determine individually, not only in sums with others, shape (n_x,).

    x_k is such a variable if no x with A x = 0 changes it: e_k is in the row space of A.
    """
    size = np.linalg.norm(space.A, axis=0)
    scaled = space.A / np.where(size > 0, size, 1.0)
    _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    seen = Vt[s > _UNSEEN * s.max(initial=0.0)]
    return np.asarray(np.sum(seen**2, axis=0) > 1.0 - _ROUNDING)


def at_edge(space: StandardSpace, x: Float[Array, "n"]) -> tuple[str, ...]:
    """Bodies with a direction that holds less than a hundredth of the mass the prior puts there.

    A generic prior gives no such limit: then a body counts as flat relative to its own size.
    """
    return tuple(name for name, body in space.every.items() if _is_flat(body, x))


def _is_flat(body: RigidBody, x: Float[Array, "n"]) -> bool:
    if not body.is_free:
        return False
    P = body.value(x)
    if body.P0 is None or not body.given:
        scale = 1.0 / np.sqrt(np.maximum(np.diag(P), np.finfo(float).tiny))
        return bool(np.linalg.eigvalsh(scale[:, None] * P * scale)[0] < _FLAT_WITHOUT_PRIOR)
    root = np.linalg.inv(np.linalg.cholesky(body.P0))
    return bool(np.linalg.eigvalsh(root @ P @ root.T)[0] < _FLAT)


def _prior_roots(space: StandardSpace, options: Consistency) -> list[Float[Array, "r n"]]:
    """Rows whose squares sum to the distance of each body to its prior, to second order."""
    roots = []
    for body in space.distinct:
        if body.P0 is None or not body.is_free:
            continue
        metric = np.eye(len(body.P0))
        if options.prior == "entropic":
            metric = np.asarray(np.linalg.inv(np.linalg.cholesky(body.P0)), dtype=float)
        root = np.zeros((len(packed(metric)), space.n))
        root[:, body.variables] = np.sqrt(pull(body, options)) * packed(metric @ body.F @ metric.T).T
        roots.append(root)
    return roots
