"""How much of each standard parameter comes from the data, and which parameters are at a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array
from dynid.estimator.semidefinite import packed
from dynid.projection.factor import triangle

if TYPE_CHECKING:
    from dynid.estimator.consistency import Consistency
    from dynid.estimator.standard_space import Pencil, Variables

# A generic body has low weight: that of a prior uncertain by a factor of ten.
_GENERIC_SPREAD = 10.0
_VAGUE = 1e-6  # one over the standard deviation of variables without prior, in scaled variables
_ZERO = 1e-3  # standard deviations within which a parameter counts as zero
_FLAT, _FLAT_WITHOUT_PRIOR = 0.01, 1e-5
_UNSEEN, _ROUNDING = 1e-9, 1e-6  # of the largest singular value of unit columns; of a unit vector's square


def pull(pencil: Pencil, options: Consistency) -> float:
    """Weight of a body's distance to its prior: 1 / spread^2."""
    spread = options.spread if pencil.body.given else max(options.spread, _GENERIC_SPREAD)
    return 1.0 / spread**2


def data_share(variables: Variables, options: Consistency) -> Float[Array, "p"]:
    """1 - v / v0 of each standard parameter, shape (p,): zero for known values.

    v0 is its variance from the prior alone (the distance to second order, at the prior). v is its variance
    from the data and an independent prior of variance v0 for each entry: information from other entries
    through the shape of the prior counts as prior. Without a prior v0 is very large.
    """
    n, n_x = variables.n, variables.n_x
    prior = triangle(np.vstack([*_prior_roots(variables, options), _VAGUE * np.eye(n)]))
    v0 = np.sum(np.linalg.inv(prior) ** 2, axis=1)[:n_x]
    both = triangle(np.vstack([np.diag(1.0 / np.sqrt(v0)), variables.A]))
    v = np.sum(np.linalg.inv(both) ** 2, axis=1)
    share = np.clip(1.0 - v / v0, 0.0, 1.0)
    return np.asarray((variables.space.T != 0) @ share)


def at_bound(variables: Variables, x: Float[Array, "n"]) -> Int[Array, "z"]:
    """Variables at zero, of those that cannot be negative and that act in some row."""
    felt = np.linalg.norm(variables.A, axis=0) > 0
    small = variables.scale * x[: variables.n_x] < _ZERO * variables.deviation
    return np.asarray(variables.signed[(felt & small)[variables.signed]])


def determined_alone(variables: Variables) -> Bool[Array, "m"]:
    """Variables that the rows determine individually, not only in sums with others, shape (n_x,).

    x_k is such a variable if no x with A x = 0 changes it: e_k is in the row space of A.
    """
    size = np.linalg.norm(variables.A, axis=0)
    scaled = variables.A / np.where(size > 0, size, 1.0)
    _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    seen = Vt[s > _UNSEEN * s.max(initial=0.0)]
    return np.asarray(np.sum(seen**2, axis=0) > 1.0 - _ROUNDING)


def at_edge(variables: Variables, x: Float[Array, "n"]) -> tuple[str, ...]:
    """Bodies with a direction that holds less than a hundredth of the mass the prior puts there.

    A generic prior gives no such limit: then a body counts as flat relative to its own size.
    """
    return tuple(name for name, pencil in variables.every.items() if _is_flat(pencil, x))


def _is_flat(pencil: Pencil, x: Float[Array, "n"]) -> bool:
    if not pencil.is_free:
        return False
    P = pencil.value(x)
    if pencil.P0 is None or not pencil.body.given:
        own = 1.0 / np.sqrt(np.maximum(np.diag(P), np.finfo(float).tiny))
        return bool(np.linalg.eigvalsh(own[:, None] * P * own)[0] < _FLAT_WITHOUT_PRIOR)
    root = np.linalg.inv(np.linalg.cholesky(pencil.P0))
    return bool(np.linalg.eigvalsh(root @ P @ root.T)[0] < _FLAT)


def _prior_roots(variables: Variables, options: Consistency) -> list[Float[Array, "r n"]]:
    """Rows whose squares sum to the distance of each body to its prior, to second order."""
    roots = []
    for pencil in variables.pencils:
        if pencil.P0 is None or not pencil.is_free:
            continue
        metric = np.eye(len(pencil.P0))
        if options.prior == "entropic":
            metric = np.asarray(np.linalg.inv(np.linalg.cholesky(pencil.P0)), dtype=float)
        root = np.zeros((len(packed(metric)), variables.n))
        root[:, pencil.columns] = np.sqrt(pull(pencil, options)) * packed(metric @ pencil.F @ metric.T).T
        roots.append(root)
    return roots
