"""The jackknife without what few blocks make it overstate.

Leaving out a block whose leverages are M_c answers for its noise and for what the fit then loses: under
white noise the variance of parameter j comes out larger than it is, on average by

b_j = (n - 1)/n  sum_c  e_j^T R^-1 M_c (I - M_c)^-1 R^-T e_j  /  (e_j^T R^-1 R^-T e_j)

which is known beforehand: about one where blocks are many, 2 where 60 parameters rest on 20 blocks, and 30
where 190 rows tell 110 parameters. Noise with a memory makes it come out smaller: neighbouring blocks err
together, and the fit takes up what lasts. By how much, blocks joined to pairs tell. With F(L) the squared
scores of blocks of length L, each over what white noise would make them, F(L) = F (1 - T/L) for a memory T
well below L, so that

g = F / F(L) = 2 F(2 L) / F(L) - 1

The variances are divided by b_j / g where that is more than one: at most to what is right for white noise,
and never to more than the jackknife itself. After Bell and McCaffrey (2002), whose correction stops at b_j.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.statistics.clusters import Clusters
from dynid.statistics.sandwich import Sandwich, jackknife

# Pairs of blocks with which a memory can be told from none.
_PAIRS = 3


def calibrated(clusters: Clusters) -> tuple[Sandwich, Float[Array, "k"]]:
    """The jackknife with its variances divided, and by what, shape (k,)."""
    found = jackknife(clusters)
    overstated = np.maximum(found.white / remembered(clusters), 1.0)
    root = np.sqrt(overstated)
    return replace(found, covariance=found.covariance / np.outer(root, root)), overstated


def remembered(clusters: Clusters) -> float:
    """g: how much larger variances are than blocks of this length show; infinite where nobody can say.

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
