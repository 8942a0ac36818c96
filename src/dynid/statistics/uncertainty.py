"""The single source of all reported uncertainty: sigma, relative sigma and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Of each parameter, from one covariance.

    Attributes:
        sigma: Deviation, shape (p,), SI.
        sigma_rel_percent: 100 sigma / |chi|, shape (p,); infinite where chi is zero.
        ci95: Lower and upper end of the 95 % interval, shape (p, 2), SI.
    """

    sigma: Float[Array, "p"]
    sigma_rel_percent: Float[Array, "p"]
    ci95: Float[Array, "p 2"]


def uncertainty(
    chi: Float[Array, "p"], covariance: Float[Array, "p p"], dof: int | Float[Array, "p"]
) -> Uncertainty:
    """Deviations and Student-t intervals.

    They are as honest as the covariance: see `covariance_of`.

    Args:
        chi: Estimates, shape (p,), SI.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of the deviations, of all or of each parameter, at least one.
    """
    if np.any(np.asarray(dof) < 1):
        raise InputError(f"{dof} degrees of freedom are too few to estimate the error")
    sigma = np.sqrt(np.diag(covariance))
    magnitude = np.abs(chi)
    # sigma 0 of a zero value (an exact fit) is no relative uncertainty at all.
    blank = np.where(sigma > 0, np.inf, 0.0)
    relative = np.divide(sigma, magnitude, out=blank, where=magnitude > 0)
    half = student_t95(dof) * sigma
    return Uncertainty(sigma, 100.0 * relative, np.column_stack([chi - half, chi + half]))


def student_t(dof: float | Float[Array, "p"], level: float) -> Float[Array, "*p"]:
    """Half-width of the two-sided interval of Student's t with probability `level`, in deviations."""
    from scipy.special import ndtri, stdtrit  # scipy.stats would cost half a second at start

    upper = 0.5 * (1.0 + level)
    return np.asarray(np.where(np.isinf(dof), ndtri(upper), stdtrit(np.minimum(dof, 1e15), upper)))


def student_t95(dof: int | Float[Array, "p"]) -> Float[Array, "*p"]:
    """Two-sided 95 % quantile of Student's t."""
    return student_t(dof, 0.95)
