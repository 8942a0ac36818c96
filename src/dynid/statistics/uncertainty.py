"""The single source of all reported uncertainty: sigma, relative sigma and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError

if TYPE_CHECKING:
    from dynid.statistics.estimate import ParameterEstimate
    from dynid.statistics.sandwich import Spread


def relative_percent(chi: Float[Array, "p"], covariance: Float[Array, "p p"]) -> Float[Array, "p"]:
    """100 sigma / |chi|; infinite where chi is zero and sigma is not."""
    sigma, magnitude = np.sqrt(np.diag(covariance)), np.abs(chi)
    # sigma 0 of a zero value (an exact fit) is no relative uncertainty at all.
    blank = np.where(sigma > 0, np.inf, 0.0)
    return np.asarray(100.0 * np.divide(sigma, magnitude, out=blank, where=magnitude > 0))


def interval95(
    chi: Float[Array, "p"], covariance: Float[Array, "p p"], dof: int | Float[Array, "p"]
) -> Float[Array, "p 2"]:
    """Lower and upper end of the 95 % Student-t intervals, as honest as the covariance (`covariance_of`).

    Args:
        chi: Estimates, shape (p,), SI.
        covariance: C_chi, shape (p, p), SI.
        dof: Degrees of freedom of the deviations, of all or of each parameter, at least one.
    """
    if np.any(np.asarray(dof) < 1):
        raise InputError(f"{dof} degrees of freedom are too few to estimate the error")
    half = student_t95(dof) * np.sqrt(np.diag(covariance))
    return np.column_stack([chi - half, chi + half])


def with_uncertainty(
    parameters: Sequence[ParameterEstimate], chi: Float[Array, "p"], spread: Spread
) -> tuple[ParameterEstimate, ...]:
    """Parameters with these values, and with the deviations and intervals of one covariance.

    Args:
        parameters: One per entry of `chi`.
        chi: Shape (p,), SI.
        spread: Covariance of `chi` and the method of each deviation.
    """
    sigma, relative = np.sqrt(np.diag(spread.covariance)), relative_percent(chi, spread.covariance)
    ci95 = interval95(chi, spread.covariance, spread.dof)
    return tuple(
        replace(
            parameter,
            value=float(chi[k]),
            sigma=float(sigma[k]),
            sigma_rel_percent=float(relative[k]) if np.isfinite(relative[k]) else None,
            ci95=(float(ci95[k, 0]), float(ci95[k, 1])),
            dof=float(spread.dof[k]),
            sigma_by=spread.methods[k],
        )
        for k, parameter in enumerate(parameters)
    )


def student_t(dof: float | Float[Array, "p"], level: float) -> Float[Array, "*p"]:
    """Half-width of the two-sided interval of Student's t with probability `level`, in deviations."""
    from scipy.special import ndtri, stdtrit  # scipy.stats would cost half a second at start

    upper = 0.5 * (1.0 + level)
    return np.asarray(np.where(np.isinf(dof), ndtri(upper), stdtrit(np.minimum(dof, 1e15), upper)))


def student_t95(dof: int | Float[Array, "p"]) -> Float[Array, "*p"]:
    """Two-sided 95 % quantile of Student's t."""
    return student_t(dof, 0.95)
