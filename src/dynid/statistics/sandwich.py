"""Covariances from the residuals: the effect of leaving out a cluster on the estimate.

chi - chi_(c) = R^-1 (I - M_c)^-1 s_c              exact: the fit without cluster c
C_chi = (n - 1)/n  sum_c  (chi - chi_(c)) (chi - chi_(c))^T          the jackknife, CR3

Degrees of freedom after Bell and McCaffrey (2002): under white noise the variance of parameter j
is a quadratic form e^T G G^T e, whose first two moments are those of chi-squared with
(tr G^T G)^2 / tr (G^T G)^2 degrees of freedom; G^T G = diag(n_c) - U^T U with

u_c = M_c (I - M_c)^-1 R^-T e_j        n_c = |Z_c (I - M_c)^-1 R^-T e_j|^2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float
from dynid.common.batched import cholesky, eigh, inv
from dynid.common.notices import Notice
from dynid.statistics.clusters import Clusters

# 1 - leverage below this: without the cluster the direction is lost, and rounding is all that is left.
_LOST = 1e-8
# A parameter with more than this part of its variance in such directions depends on one cluster alone.
_ALONE = 1e-3


@dataclass(frozen=True, eq=False)
class Spread:
    """A covariance, how well it is known itself, and how it was found.

    Attributes:
        covariance: C_chi, shape (p, p), SI; its rank is at most the number of clusters less one.
        dof: Degrees of freedom of each deviation, shape (p,), at least one.
        methods: The method behind each parameter's deviation.
        words: All of it in one line.
        facts: The same for programs.
        alone: Parameters that one cluster alone determines, shape (p,): it cannot be left out. Empty without
            clusters, as is `white`.
        white: What the variances are on average under white noise, over what they should be, shape (p,).
    """

    covariance: Float[Array, "p p"]
    dof: Float[Array, "p"]
    methods: tuple[str, ...] = ()
    words: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    alone: Bool[Array, "_"] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    white: Float[Array, "_"] = field(default_factory=lambda: np.zeros(0))


def jackknife(clusters: Clusters) -> Spread:
    """CR3: the spread of the fits that leave out one cluster each."""
    inverse, alone = _left_out(clusters)
    n = len(clusters)
    moves = _moves(clusters, inverse)
    dof, white = _moments(clusters, inverse)
    return Spread((n - 1) / n * moves.T @ moves, dof, alone=alone, white=(n - 1) / n * white)


def autocorrelated(clusters: Clusters, lags: float) -> Spread:
    """HAC: the same moves, products of neighbours counted with Bartlett weights 1 - k / (lags + 1).

    Newey and West (1987) on the moves of short clusters: correlation inside a cluster counts in
    full, between clusters up to `lags` of them, never over the end of a run.
    """
    inverse, alone = _left_out(clusters)
    n = len(clusters)
    moves = _moves(clusters, inverse)
    covariance = moves.T @ moves
    squares = 1.0
    for k in range(1, min(n, int(np.ceil(lags + 1.0)))):
        weight = 1.0 - k / (lags + 1.0)
        together = clusters.runs[:-k] == clusters.runs[k:]
        product = moves[:-k][together].T @ moves[k:][together]
        covariance += weight * (product + product.T)
        squares += 2.0 * weight**2
    # A weighted sum of n^2 products has fewer degrees of freedom, given by its squared weights.
    dof, white = _moments(clusters, inverse)
    dof = np.maximum(dof / squares, 1.0)
    return Spread((n - 1) / n * covariance, dof, alone=alone, white=(n - 1) / n * white)


def chosen_lags(clusters: Clusters) -> float:
    """Reach of the Bartlett weights in clusters: Andrews (1991), an AR(1) for each score."""
    s = clusters.s
    before, after = s[:-1], s[1:]
    size = np.maximum(np.sum(before**2, axis=0), np.finfo(float).tiny)
    rho = np.clip(np.sum(before * after, axis=0) / size, -0.9, 0.9)
    variance = np.mean((after - rho * before) ** 2, axis=0)
    top = np.sum(4.0 * rho**2 * variance**2 / ((1.0 - rho) ** 6 * (1.0 + rho) ** 2))
    bottom = np.sum(variance**2 / (1.0 - rho) ** 4)
    if bottom == 0.0:
        return 0.0
    return float(min(1.1447 * (top / bottom * len(s)) ** (1.0 / 3.0), 0.25 * len(s)))


def _left_out(clusters: Clusters) -> tuple[Float[Array, "n p p"], Bool[Array, "k"]]:
    """(I - M_c)^-1, and the parameters for which that does not exist (a pseudo-inverse is used)."""
    p = len(clusters.root)
    identity = np.eye(clusters.M.shape[1])
    if not np.isfinite(cholesky((1.0 - _LOST) * identity - clusters.M)).all():
        return _pseudo_inverse(clusters)
    return inv(identity - clusters.M), np.zeros(p, dtype=bool)


def _pseudo_inverse(clusters: Clusters) -> tuple[Float[Array, "n p p"], Bool[Array, "k"]]:
    leverage, V = eigh(clusters.M)
    left = 1.0 - leverage
    lost = left <= _LOST
    inverse = np.where(lost, 0.0, 1.0 / np.where(lost, 1.0, left))
    shares = (clusters.root @ V) ** 2 * lost[:, None, :]
    owed = np.max(shares.sum(axis=2), axis=0) / np.sum(clusters.root**2, axis=1)
    return (V * inverse[:, None, :]) @ V.transpose(0, 2, 1), owed > _ALONE


def _moves(clusters: Clusters, inverse: Float[Array, "n p p"]) -> Float[Array, "n k"]:
    """How far leaving out each cluster moves the estimate: chi - chi_(c), SI."""
    return np.asarray((inverse @ clusters.s[:, :, None])[:, :, 0] @ clusters.root.T)


def _moments(
    clusters: Clusters, inverse: Float[Array, "n p p"]
) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
    """Under white noise: degrees of freedom of each deviation, at least one, and the sum of squared moves
    expected, over the variance."""
    seen = inverse @ clusters.root.T  # (n, p, parameters)
    U = clusters.M @ seen
    leverage = np.einsum("cip,cip->cp", seen, U)
    squares = np.einsum("cip,cip->cp", U, U)
    first = np.sum(leverage - squares, axis=0)
    by_parameter = U.transpose(2, 1, 0)
    products = by_parameter @ by_parameter.transpose(0, 2, 1)
    second = np.sum(leverage**2 - 2.0 * leverage * squares, axis=0) + np.sum(products**2, axis=(1, 2))
    known = (first > 0) & (second > 0)
    dof = np.maximum(np.divide(first**2, second, out=np.ones_like(first), where=known), 1.0)
    return dof, first / np.sum(clusters.root**2, axis=1)
