"""Correlations from few blocks, shrunk towards those of white noise.

n blocks give a covariance of rank n - 1 at most. With fewer blocks than parameters some
combinations would seem to be known exactly, and predictions along them to have no error. The
standard deviations of single parameters are not affected, but their correlations are. The latter are

r = (1 - w) r_blocks + w r_white        w = sum Var(r_blocks) / sum (r_blocks - r_white)^2

over all pairs (Schaefer and Strimmer 2005, with the classical correlations as the target), where
Var(r) = (1 - r^2)^2 / (n - 1). The standard deviations do not change.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float

# Some of the target always stays: it alone has full rank.
_LEAST = 0.05


def with_full_rank(
    covariance: Float[Array, "p p"], white: Float[Array, "p p"], freedoms: float
) -> tuple[Float[Array, "p p"], float]:
    """The covariance with correlations of full rank, and the weight of the target.

    Args:
        covariance: By blocks, shape (p, p), SI.
        white: Classical, shape (p, p), SI.
        freedoms: Blocks less one.

    Returns:
        The covariance, and w; zero where the blocks are enough.
    """
    p = len(covariance)
    if freedoms >= p:
        return covariance, 0.0
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    sample, target = _correlations(covariance), _correlations(white)
    pairs = ~np.eye(p, dtype=bool)
    noise = float(np.sum((1.0 - sample[pairs] ** 2) ** 2)) / max(freedoms, 1.0)
    apart = float(np.sum((sample[pairs] - target[pairs]) ** 2))
    weight = 1.0 if apart <= noise else max(noise / apart, _LEAST)
    mixed = (1.0 - weight) * sample + weight * target
    return np.asarray(mixed * np.outer(sigma, sigma)), weight


def _correlations(covariance: Float[Array, "p p"]) -> Float[Array, "p p"]:
    sigma = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    rho = np.clip(covariance / np.outer(sigma, sigma), -1.0, 1.0)
    np.fill_diagonal(rho, 1.0)
    return np.asarray(rho)
