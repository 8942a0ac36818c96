"""Estimates made less sure by what was taken as known: one covariance added to another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from dynid.arrays import Array
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.uncertainty import uncertainty

MANY = 1e9  # degrees of freedom of what is known exactly


def widened(parts: EstimateParts, added: Float[Array, "v v"], dof: float, what: str) -> EstimateParts:
    """The same parameters with a further covariance.

    Args:
        parts: Parameters with the uncertainty of the rows.
        added: Over all parameters listed, shape (v, v), SI.
        dof: Degrees of freedom of what is added.
        what: It is, in words.
    """
    keep = [k for k, one in enumerate(parts.parameters) if one.sigma is not None]
    added = added[np.ix_(keep, keep)]
    before = parts.covariance
    own, more = np.diag(before), np.diag(added)
    # Welch and Satterthwaite: two deviations that are each known only so well.
    slack = own**2 / parts.spread.dof + more**2 / dof
    total_dof = np.divide((own + more) ** 2, slack, out=np.full(len(own), MANY), where=slack > 0)
    total = before + added
    values = np.array([parts.parameters[k].value for k in keep])
    found = uncertainty(values, total, np.maximum(total_dof, 1.0))
    listed = list(parts.parameters)
    for i, k in enumerate(keep):
        relative = float(found.sigma_rel_percent[i])
        listed[k] = replace(
            listed[k],
            sigma=float(found.sigma[i]),
            sigma_rel_percent=relative if np.isfinite(relative) else None,
            ci95=(float(found.ci95[i, 0]), float(found.ci95[i, 1])),
            dof=float(total_dof[i]),
        )
    share = float(np.median(np.divide(more, own + more, out=np.zeros(len(own)), where=own + more > 0)))
    words = f"{parts.spread.words}; with {what}, {100 * share:.0f} % of the variance (median)"
    spread = replace(parts.spread, covariance=total, dof=total_dof, words=words)
    return replace(parts, parameters=tuple(listed), spread=spread)
