"""Estimates with other standard deviations, or with the uncertainty of values taken as known added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.statistics.assemble import EstimateParts
from dynid.statistics.sandwich import Spread
from dynid.statistics.uncertainty import with_uncertainty

MANY = 1e9  # degrees of freedom of what is known exactly


def widened(parts: EstimateParts, added: Float[Array, "v v"], dof: float, what: str) -> EstimateParts:
    """The same parameters with a further covariance.

    Args:
        parts: Parameters with the uncertainty of the rows.
        added: Over all parameters listed, shape (v, v), SI.
        dof: Degrees of freedom of what is added.
        what: It is, in words.
    """
    keep = with_sigma(parts)
    added = added[np.ix_(keep, keep)]
    before = parts.covariance
    old, more = np.diag(before), np.diag(added)
    # Welch and Satterthwaite: two deviations that are each known only so well.
    slack = old**2 / parts.spread.dof + more**2 / dof
    total_dof = np.divide((old + more) ** 2, slack, out=np.full(len(old), MANY), where=slack > 0)
    share = float(np.median(np.divide(more, old + more, out=np.zeros(len(old)), where=old + more > 0)))
    words = f"{parts.spread.words}; with {what}, {100 * share:.0f} % of the variance (median)"
    spread = replace(parts.spread, covariance=before + added, dof=np.maximum(total_dof, 1.0), words=words)
    return with_spread(parts, spread)


def with_spread(parts: EstimateParts, spread: Spread) -> EstimateParts:
    """The same parameters with other deviations; those without a sigma stay without."""
    keep, listed = with_sigma(parts), list(parts.parameters)
    before = [listed[k] for k in keep]
    values = np.array([parameter.value for parameter in before])
    for k, parameter in zip(keep, with_uncertainty(before, values, spread), strict=True):
        listed[k] = parameter
    return replace(parts, parameters=tuple(listed), spread=spread)


def with_sigma(parts: EstimateParts) -> list[int]:
    """Places of the parameters that have a sigma: those of the covariance."""
    return [k for k, parameter in enumerate(parts.parameters) if parameter.sigma is not None]
