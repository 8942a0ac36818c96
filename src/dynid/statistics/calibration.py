"""Correction of the small-sample bias of the jackknife.

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
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.statistics.clusters import Clusters
from dynid.statistics.sandwich import Spread, jackknife

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
