"""Optimality criteria: functions of the information matrix G = W^T Sigma^-1 W, and their gradients.

| name      | minimised, and reported                                              |
|-----------|----------------------------------------------------------------------|
| logdet    | -log det G                                    reported: log det G    |
| condition | sqrt(l_max / l_min), by p-norms of eigenvalues during optimisation   |
| emin      | 1 / sqrt(l_min): the worst sigma of any combination                   |
| c003      | (s_1 + 1) / s_min of [CableRobot, eq. 40], s = sqrt(l)                |
| sigma     | root mean square of the named parameters' sigma over their scale     |

G is that of scaled base parameters: columns of W divided by their typical norm for this robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import eigvalsh
from dynid.common.errors import InputError, nearest

CRITERIA = ("logdet", "condition", "emin", "c003", "sigma")
_SMALLEST = 1e-14  # of the largest eigenvalue: below it a direction counts as not excited


@dataclass(frozen=True)
class Criterion:
    """A function of the information matrix, to be minimised.

    Attributes:
        name: One of CRITERIA.
        picked: For `sigma`, which base parameters.
        power: Of the p-norm that replaces largest and smallest eigenvalues during optimisation.
    """

    name: str
    picked: tuple[int, ...] = ()
    power: float = 12.0

    def __post_init__(self) -> None:
        if self.name not in CRITERIA:
            raise InputError(f"no criterion '{self.name}'" + nearest(self.name, CRITERIA))
        if self.name == "sigma" and not self.picked:
            raise InputError("criterion 'sigma' needs parameters", remedy="name them with --sigma NAME")

    def smooth(self, G: Float[Array, "b b"]) -> tuple[float, Float[Array, "b b"]]:
        """The minimised value, and its gradient with respect to G (symmetric).

        Logarithm of the reported value, so that steps do not depend on the size of the problem; infinite
        if G is singular.
        """
        if self.name == "logdet":
            value = _log_determinant(G)
            return value, -np.linalg.inv(G) if np.isfinite(value) else np.zeros_like(G)
        if self.name == "sigma":
            return _named(G, self.picked)
        values, vectors = np.linalg.eigh(G)
        value, slope = self._of_eigenvalues(values)
        return value, (vectors * slope) @ vectors.T

    def smooth_value(self, G: Float[Array, "b b"]) -> float:
        """Only the value, which is cheaper: most trial steps are not accepted."""
        if self.name == "logdet":
            return _log_determinant(G)
        if self.name == "sigma":
            return _named(G, self.picked)[0]
        return self._of_eigenvalues(np.linalg.eigvalsh(G))[0]

    def _of_eigenvalues(self, values: Float[Array, "b"]) -> tuple[float, Float[Array, "b"]]:
        if not values[0] > _SMALLEST * values[-1]:
            return np.inf, np.zeros_like(values)
        low, low_slope = _norm(1.0 / values, self.power)  # log of the largest 1 / l
        value, slope = 0.5 * low, -0.5 * low_slope / values**2
        if self.name == "condition":
            high, high_slope = _norm(values, self.power)
            value, slope = value + 0.5 * high, slope + 0.5 * high_slope
        elif self.name == "c003":
            high, high_slope = _norm(values, self.power)
            s = np.exp(0.5 * high)
            value, slope = value + np.log1p(s), slope + 0.5 * s / (1.0 + s) * high_slope
        return float(value), slope

    def value(self, G: Float[Array, "b b"]) -> float:
        """The exact reported value: log det should be large, all others small."""
        if self.name == "logdet":
            sign, value = np.linalg.slogdet(G)
            return float(value) if sign > 0 else -np.inf
        if self.name == "sigma":
            return float(np.exp(_named(G, self.picked)[0]))
        values = np.linalg.eigvalsh(G)
        if not values[0] > _SMALLEST * values[-1]:
            return np.inf
        if self.name == "emin":
            return float(1.0 / np.sqrt(values[0]))
        top = np.sqrt(values[-1]) + (1.0 if self.name == "c003" else 0.0)
        return float(top / np.sqrt(values[0]))

    def costs(self, G: Float[Array, "m b b"]) -> Float[Array, "m"]:
        """Values of many matrices at once; smaller is better."""
        if self.name == "sigma":
            return np.array([self.value(gram) for gram in G])
        values = eigvalsh(G)
        seen = values[:, 0] > _SMALLEST * values[:, -1]
        values = np.where(seen[:, None], values, np.nan)
        if self.name == "logdet":
            costs = -np.log(values).sum(axis=1)
        elif self.name == "emin":
            costs = 1.0 / np.sqrt(values[:, 0])
        else:
            costs = (np.sqrt(values[:, -1]) + (self.name == "c003")) / np.sqrt(values[:, 0])
        return np.asarray(np.nan_to_num(costs, nan=np.inf))

    @property
    def larger_is_better(self) -> bool:
        """Whether a larger reported value is better."""
        return self.name == "logdet"


def criterion_of(name: str, sigma: Sequence[str], names: Sequence[str]) -> Criterion:
    """A criterion by name; parameters of `sigma` by name among the base parameters."""
    picked = []
    for wanted in sigma:
        plain = [name.removesuffix("_R") for name in names]
        if wanted not in names and wanted not in plain:
            raise InputError(f"no base parameter '{wanted}'" + nearest(wanted, names))
        picked.append(list(names).index(wanted) if wanted in names else plain.index(wanted))
    return Criterion(name, tuple(picked))


def _log_determinant(G: Float[Array, "b b"]) -> float:
    try:
        L = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return np.inf
    return -2.0 * float(np.log(np.diag(L)).sum())


def _named(G: Float[Array, "b b"], picked: Sequence[int]) -> tuple[float, Float[Array, "b b"]]:
    """Half the log of the mean variance of some parameters."""
    try:
        np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(G)
    columns = np.linalg.solve(G, np.eye(len(G))[:, list(picked)])
    mean = float(np.mean([columns[i, k] for k, i in enumerate(picked)]))
    return float(0.5 * np.log(mean)), -0.5 / (mean * len(picked)) * columns @ columns.T


def _norm(values: Float[Array, "b"], power: float) -> tuple[float, Float[Array, "b"]]:
    """Log of the p-norm of positive values, and its gradient with respect to them."""
    top = values.max()
    parts = (values / top) ** power
    total = parts.sum()
    return float(np.log(top) + np.log(total) / power), parts / (total * values)
