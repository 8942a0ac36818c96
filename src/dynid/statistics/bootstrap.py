"""Moving-block bootstrap: the fit repeated on blocks of time drawn with replacement.

(sum_c n_c M_c) z = sum_c n_c s_c        chi* - chi = R^-1 z        n_c: how often cluster c was drawn

Blocks are windows of neighbouring clusters (Kunsch 1989), so that noise with a correlation time shorter
than a block keeps its correlation.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import eigvalsh, solve
from dynid.statistics.clusters import Clusters

# Eigenvalues of the drawn leverages below this: the draw has lost a direction.
_LOST = 1e-8


def moving_blocks(clusters: Clusters, width: int, draws: int, seed: int) -> tuple[Float[Array, "p p"], int]:
    """Covariance of the resampled estimates in SI, and how many draws could be fitted.

    A draw without any cluster that determines some direction has no fit; it is not counted.

    Args:
        clusters: Short ones, in time order.
        width: How many of them make a block.
        draws: Resampled fits.
        seed: Of the draws.
    """
    p = len(clusters.root)
    counts = _counts(clusters, width, draws, np.random.default_rng(seed))
    M = (counts @ clusters.M.reshape(len(clusters), -1)).reshape(draws, p, p)
    s = counts @ clusters.s
    fitted = eigvalsh(M)[:, 0] > _LOST
    if np.sum(fitted) < 2:
        return np.zeros((p, p)), int(np.sum(fitted))
    z = solve(M[fitted], s[fitted][:, :, None])[:, :, 0]
    z -= z.mean(axis=0)
    spread = z.T @ z / (len(z) - 1)
    return np.asarray(clusters.root @ spread @ clusters.root.T), int(np.sum(fitted))


def _counts(clusters: Clusters, width: int, draws: int, rng: np.random.Generator) -> Float[Array, "d n"]:
    """How often each cluster is in each draw; a draw is about as long as the data."""
    windows = _windows(clusters.runs, width)
    share = len(clusters) / float(np.mean(windows.sum(axis=1)))
    chosen = rng.integers(len(windows), size=(draws, max(1, round(share))))
    times = np.zeros((draws, len(windows)))
    np.add.at(times, (np.arange(draws)[:, None], chosen), 1.0)
    return np.asarray(times @ windows)


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
