"""Covariances from the residuals: the effect of leaving out a cluster on the estimate.

chi - chi_(c) = R^-1 (I - M_c)^-1 s_c              exact: the fit without cluster c
C_chi = (n - 1)/n  sum_c  (chi - chi_(c)) (chi - chi_(c))^T          the jackknife, CR3

Degrees of freedom after Bell and McCaffrey (2002): under white noise the variance of parameter j
is a quadratic form e^T G G^T e, whose first two moments are those of chi-squared with
(tr G^T G)^2 / tr (G^T G)^2 degrees of freedom; G^T G = diag(n_c) - U^T U with

u_c = M_c (I - M_c)^-1 R^-T e_j        n_c = |Z_c (I - M_c)^-1 R^-T e_j|^2

Correlations from few blocks, shrunk towards those of white noise.

n blocks give a covariance of rank n - 1 at most. With fewer blocks than parameters some
combinations would seem to be known exactly, and predictions along them to have no error. The
standard deviations of single parameters are not affected, but their correlations are. The latter are

r = (1 - w) r_blocks + w r_white        w = sum Var(r_blocks) / sum (r_blocks - r_white)^2

over all pairs (Schaefer and Strimmer 2005, with the classical correlations as the target), where
Var(r) = (1 - r^2)^2 / (n - 1). The standard deviations do not change.

Correction of the small-sample bias of the jackknife.

Leaving out a block with leverages M_c shows its noise and also the information that the fit loses: under
white noise the variance of parameter j is overestimated, on average by the factor

b_j = (n - 1)/n  sum_c  e_j^T R^-1 M_c (I - M_c)^-1 R^-T e_j  /  (e_j^T R^-1 R^-T e_j)

which is known in advance: about 1 for many blocks, 2 for 60 parameters from 20 blocks, and 30 for 110
parameters from 190 rows. With noise correlated in time the jackknife variance is smaller: errors of
neighbouring blocks are similar, and the fit absorbs slow errors. Blocks joined to pairs show by how much.
With F(L) the squared scores of blocks of length L, each relative to its expectation for white noise,
F(L) = F (1 - T/L) for a correlation time T well below L, so that

g = F / F(L) = 2 F(2 L) / F(L) - 1

The variances are divided by b_j / g if that is above one. They are never below the right ones for white
noise, and never above those of the jackknife. After Bell and McCaffrey (2002), who correct by b_j only.

Moving-block bootstrap: the fit repeated on blocks of time drawn with replacement.

(sum_c n_c M_c) z = sum_c n_c s_c        chi* - chi = R^-1 z        n_c: how often cluster c was drawn

Blocks are windows of neighbouring clusters (Kunsch 1989), so that noise with a correlation time shorter
than a block keeps its correlation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int
from dynid.common.batched import cholesky, eigh, inv, solve
from dynid.common.notices import Notice
from dynid.common.paged import in_parts
from dynid.statistics.clusters import Clusters

# 1 - leverage below this: without the cluster the direction is lost, and rounding is all that is left.
_LOST = 1e-8
# A parameter with more than this part of its variance in such directions depends on one cluster alone.
_ALONE = 1e-3
_TOGETHER = 16  # clusters or parameters whose products a thread computes at a time


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
    """Reach of the Bartlett weights in clusters: Andrews (1991), an AR(1) for each score inside runs."""
    s, inside = clusters.s, clusters.runs[:-1] == clusters.runs[1:]
    if not inside.any():
        return 0.0
    before, after = s[:-1][inside], s[1:][inside]
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

    def of_clusters(part: slice) -> tuple[Array, Array, Array]:
        seen = inverse[part] @ clusters.root.T  # (n, p, parameters)
        U = clusters.M[part] @ seen
        return U, np.einsum("cip,cip->cp", seen, U), np.einsum("cip,cip->cp", U, U)

    parts = in_parts(of_clusters, len(inverse), _TOGETHER)
    U, leverage, squares = (np.concatenate(part) for part in zip(*parts, strict=True))

    def of_parameters(part: slice) -> Array:
        products = U[:, :, part].transpose(2, 1, 0) @ U[:, :, part].transpose(2, 0, 1)
        return np.asarray(np.sum(products**2, axis=(1, 2)))

    fourth = np.concatenate(in_parts(of_parameters, U.shape[2], _TOGETHER))
    first = np.sum(leverage - squares, axis=0)
    second = np.sum(leverage**2 - 2.0 * leverage * squares, axis=0) + fourth
    known = (first > 0) & (second > 0)
    dof = np.maximum(np.divide(first**2, second, out=np.ones_like(first), where=known), 1.0)
    return dof, first / np.sum(clusters.root**2, axis=1)


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


# Pairs of blocks needed to detect a correlation time.
_PAIRS = 3


def calibrated(clusters: Clusters) -> tuple[Spread, Float[Array, "k"]]:
    """The jackknife with its variances divided, and by what, shape (k,)."""
    spread = jackknife(clusters)
    overstated = np.maximum(spread.white / remembered(clusters), 1.0)
    root = np.sqrt(overstated)
    return replace(spread, covariance=spread.covariance / np.outer(root, root)), overstated


def remembered(clusters: Clusters) -> float:
    """g: how much larger variances are than blocks of this length show; infinite if not known.

    Runs, and instants of a table, are taken as independent of each other.
    """
    if clusters.instants or clusters.n_runs == len(clusters):
        return 1.0
    pairs = clusters.joined(_in_pairs(clusters.runs))
    if len(clusters) - len(pairs) < _PAIRS:
        return float("inf")
    short, long = _per_white(clusters), _per_white(pairs)
    return max(1.0, 2.0 * long / short - 1.0) if short > 0 else 1.0


def _in_pairs(runs: Int[Array, "n"]) -> Int[Array, "n"]:
    """Labels that join neighbours by twos, never over the end of a run."""
    first = np.searchsorted(runs, runs)
    begins = (np.arange(len(runs)) - first) % 2 == 0
    return np.asarray(np.cumsum(begins) - 1)


def _per_white(clusters: Clusters) -> float:
    """Squared scores over those of white noise, E |s_c|^2 = tr(M_c - M_c^2), up to a common factor."""
    leverage = np.trace(clusters.M, axis1=1, axis2=2) - np.einsum("cij,cij->c", clusters.M, clusters.M)
    return float(np.sum(clusters.s**2) / np.sum(leverage))


# Eigenvalues of the drawn leverages below this: the draw has lost a direction.
_LOST_DRAW = 1e-8
_DRAWS = 256  # fits whose matrices are in memory at a time, in each thread


def moving_blocks(clusters: Clusters, width: int, draws: int, seed: int) -> tuple[Float[Array, "p p"], int]:
    """Covariance of the resampled estimates in SI, and how many draws could be fitted.

    A draw without any cluster that determines some direction has no fit; it is not counted.

    Args:
        clusters: Short ones, in time order.
        width: How many of them make a block.
        draws: Resampled fits.
        seed: Of the draws.
    """
    n, p, q = len(clusters), len(clusters.root), clusters.M.shape[1]
    windows, chosen = _drawn(clusters, width, draws, seed)
    kept = _LOST_DRAW * np.eye(q)

    def fits(part: slice) -> Float[Array, "d q"]:
        times = np.zeros((len(chosen[part]), len(windows)))
        np.add.at(times, (np.arange(len(times))[:, None], chosen[part]), 1.0)
        counts = times @ windows
        M = (counts @ clusters.M.reshape(n, -1)).reshape(-1, q, q)
        fitted = np.isfinite(cholesky(M - kept)).all(axis=(1, 2))
        return np.asarray(solve(M[fitted], (counts @ clusters.s)[fitted, :, None])[:, :, 0])

    z = np.concatenate(in_parts(fits, draws, _DRAWS))
    if len(z) < 2:
        return np.zeros((p, p)), len(z)
    z -= z.mean(axis=0)
    spread = z.T @ z / (len(z) - 1)
    return np.asarray(clusters.root @ spread @ clusters.root.T), len(z)


def _drawn(
    clusters: Clusters, width: int, draws: int, seed: int
) -> tuple[Float[Array, "w n"], Int[Array, "d k"]]:
    """Blocks, and which of them are in each draw; a draw is about as long as the data.

    Windows are numbered by their leverage: the order of runs draws no others.
    """
    windows = _windows(clusters.runs, width)
    windows = windows[np.argsort(windows @ np.trace(clusters.M, axis1=1, axis2=2), kind="stable")]
    size = max(1, round(len(clusters) / float(np.mean(windows.sum(axis=1)))))
    return windows, np.random.default_rng(seed).integers(len(windows), size=(draws, size))


def _windows(runs: Int[Array, "n"], width: int) -> Float[Array, "w n"]:
    """Every window of `width` neighbours inside one run (a whole run where it is shorter)."""
    n = len(runs)
    windows = []
    for run in np.unique(runs):
        members = np.flatnonzero(runs == run)
        size = min(width, len(members))
        for first in range(len(members) - size + 1):
            window = np.zeros(n)
            window[members[first : first + size]] = 1.0
            windows.append(window)
    return np.array(windows)
