"""Effect of rounding in the table on the estimate: every number is changed within its last digit.

With rows of weight w and their triangle R, an error d of the equations moves the estimate by

    dchi = R^-1 R^-T sum w^2 W^T d,        d = dY - dW chi

so the covariance due to rounding follows from some dozens of perturbed tables. Equal numbers get equal
perturbations: a constant acceleration has one rounding error, not one per instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynid.cases.wrench_table.noise import changes
from dynid.common.arrays import Array, Float
from dynid.projection.wrench import WrenchRows

_SEED = 20200311
# Draws for the covariance of a small table, and what a long one may cost: draws times instants.
_SPARE_DRAWS, _MOST_WORK, _FEWEST = 48, 60_000, 6


@dataclass(frozen=True, eq=False)
class Rounding:
    """Errors of estimate and rows by rounding alone.

    Attributes:
        moves: How each draw moves the estimate, shape (d, v), SI.
        residual: Rms that it leaves in the rows of each group, shape (g,), unit of the group.
    """

    moves: Float[Array, "d v"]
    residual: Float[Array, "g"]

    @property
    def covariance(self) -> Float[Array, "v v"]:
        """C_chi of rounding, shape (v, v), SI."""
        return np.asarray(self.moves.T @ self.moves / len(self.moves))


def rounding(
    sources: Sequence[WrenchRows],
    places: Sequence[Mapping[int, int]],
    S: Float[Array, "p v"],
    chi: Float[Array, "p"],
    root: Float[Array, "v v"],
    weights: Float[Array, "g"],
) -> Rounding:
    """Draw disturbed tables and follow what they do to a weighted least-squares estimate.

    Args:
        sources: Equations of the tables.
        places: Of each source: row -> number of its group.
        S: Standard columns of each parameter, shape (p, v).
        chi: Standard parameters of the estimate, shape (p,), SI.
        root: R^-1 of the weighted rows, shape (v, v), SI.
        weights: Of the groups, shape (g,).
    """
    rng = np.random.default_rng(_SEED)
    instants = sum(len(source.table.t) for source in sources)
    draws = int(np.clip(_MOST_WORK // instants, _FEWEST, 3 * S.shape[1] + _SPARE_DRAWS))
    scores = np.zeros((len(chi), draws))
    squares, counts = np.zeros(len(weights)), np.zeros(len(weights))
    for source, place in zip(sources, places, strict=True):
        layout = source.layout
        group = np.array([place[k] for k in range(len(layout.start) - 1)])
        factors = layout.coefficients(chi)
        for drawn, nominal, change in changes(source, rng, draws):
            e, n, d = change.shape
            moved = layout.sums(change.reshape(e, -1), factors).reshape(-1, n, d)
            rho = change[layout.start[1:] - 1] - moved
            for k, (start, end) in enumerate(pairwise(layout.start)):  # W^T rho, row by row
                columns = layout.columns[start : end - 1]
                scores[columns, drawn] += weights[group[k]] ** 2 * (nominal[start : end - 1] @ rho[k])
            np.add.at(squares, group, np.sum(rho**2, axis=(1, 2)))
            np.add.at(counts, group, n * d)
    return Rounding(scores.T @ S @ root @ root.T, np.sqrt(squares / np.maximum(counts, 1.0)))
