"""How much of each standard parameter the data told, and what stands at a bound."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from dynid.common.arrays import Array
from dynid.estimator.consistency import Consistency
from dynid.estimator.semidefinite import packed
from dynid.estimator.standard_space import Pencil, Variables
from dynid.projection.factor import triangle

# A generic body says little: its pull is that of a prior believed to within a factor of ten.
_GENERIC_SPREAD = 10.0
_VAGUE = 1e-6  # one over the deviation of what has no prior, in scaled variables
_ZERO = 1e-3  # deviations within which a parameter stands at zero
_FLAT, _FLAT_WITHOUT_PRIOR = 0.01, 1e-5
_UNTOLD, _ROUNDING = 1e-9, 1e-6  # of the largest singular value of unit columns; of a unit vector's square


def pull(pencil: Pencil, options: Consistency) -> float:
    """Weight of a body's distance to its prior: 1 / spread^2."""
    spread = options.spread if pencil.body.given else max(options.spread, _GENERIC_SPREAD)
    return 1.0 / spread**2


def data_share(variables: Variables, options: Consistency) -> Float[Array, "p"]:
    """1 - v / v0 of each standard parameter, shape (p,): zero for what is known beforehand.

    v0 is its variance by the prior alone (the distance to second order, at the prior), v by the
    data and such a belief in each entry on its own: what an entry owes to others through the shape
    of the prior is the prior's. Without a prior, a variance so large that any row beats it.
    """
    n, n_x = variables.n, variables.n_x
    prior = triangle(np.vstack([*_prior_roots(variables, options), _VAGUE * np.eye(n)]))
    v0 = np.sum(np.linalg.inv(prior) ** 2, axis=1)[:n_x]
    both = triangle(np.vstack([np.diag(1.0 / np.sqrt(v0)), variables.A]))
    v = np.sum(np.linalg.inv(both) ** 2, axis=1)
    share = np.clip(1.0 - v / v0, 0.0, 1.0)
    return np.asarray((variables.space.T != 0) @ share)


def at_bound(variables: Variables, x: Float[Array, "n"]) -> Int[Array, "z"]:
    """Variables at zero, of those that cannot be negative and that some row feels."""
    felt = np.linalg.norm(variables.A, axis=0) > 0
    small = variables.scale * x[: variables.n_x] < _ZERO * variables.deviation
    return np.asarray(variables.signed[(felt & small)[variables.signed]])


def told_alone(variables: Variables) -> Bool[Array, "m"]:
    """Variables that the rows tell on their own, not only in sums with others, shape (n_x,).

    x_k is one where no direction with A x = 0 moves it: e_k lies in the space of A's rows.
    """
    size = np.linalg.norm(variables.A, axis=0)
    scaled = variables.A / np.where(size > 0, size, 1.0)
    _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
    told = Vt[s > _UNTOLD * s.max(initial=0.0)]
    return np.asarray(np.sum(told**2, axis=0) > 1.0 - _ROUNDING)


def at_edge(variables: Variables, x: Float[Array, "n"]) -> tuple[str, ...]:
    """Bodies with a direction that holds less than a hundredth of the mass the prior puts there.

    Generic priors say nothing of that: there a body counts as flat beside its own size.
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
