"""Do the data accept linear restrictions? A test with the covariance that is reported.

L chi = 0,    T = (L chi)^T (L C L^T)^-1 (L chi),    T (d - q + 1) / (d q)  ~  F(q, d - q + 1)

(Hotelling) with C the jackknife over blocks and d its degrees of freedom, the least of the q
restrictions. With few blocks L C L^T has no inverse: each restriction is then tested alone by
Student's t, and the smallest probability is multiplied by q (Bonferroni). The restrictions are rotated
so that they are independent of each other under white noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.statistics.clusters import Clusters
from dynid.statistics.sandwich import jackknife

# Freedoms per restriction from which on their covariance is worth inverting.
_ENOUGH = 3.0


@dataclass(frozen=True)
class WaldTest:
    """Result of the test.

    Attributes:
        F: Size of the violation over its expectation from noise; about one if the restrictions hold.
        q: Restrictions.
        dof: Degrees of freedom of the covariance.
        p: Probability of a larger F if the restrictions hold.
        joint: Whether they were tested together; else one by one.
    """

    F: float
    q: int
    dof: float
    p: float
    joint: bool


def wald_test(
    clusters: Clusters, chi: Float[Array, "p"], L: Float[Array, "q p"], white: Float[Array, "p p"]
) -> WaldTest:
    """Test L chi = 0.

    Args:
        clusters: Of the fit that does not know the restrictions.
        chi: Its parameters, shape (p,), SI.
        L: The restrictions, shape (q, p).
        white: Classical covariance of chi, shape (p, p).
    """
    from scipy.special import fdtrc, stdtr

    root = np.linalg.cholesky(L @ white @ L.T)
    turned = np.linalg.solve(root, L)
    stats = jackknife(replace(clusters, root=turned @ clusters.root))
    value, q = turned @ chi, len(L)
    dof = float(stats.dof.min())
    if dof >= _ENOUGH * q:
        T = float(value @ np.linalg.solve(stats.covariance, value))
        free = dof - q + 1.0
        F = T * free / (dof * q)
        return WaldTest(F, q, dof, float(fdtrc(q, free, F)), True)
    # One block alone cannot give the error of a restriction: white noise is its lower bound.
    variance = np.where(stats.alone, np.maximum(np.diag(stats.covariance), 1.0), np.diag(stats.covariance))
    t = np.abs(value) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    each = 2.0 * stdtr(stats.dof, -t)
    worst = int(np.argmin(each))
    return WaldTest(float(t[worst] ** 2), q, float(stats.dof[worst]), float(min(1.0, q * each[worst])), False)
