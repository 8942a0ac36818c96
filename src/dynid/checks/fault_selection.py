"""Which suspects the residuals accuse: forward selection with block-robust significance.

With the weighted rows A = [W, accused so far] and z~ what a test column has beside A,

s_hat = z~^T rho / z~^T z~
cluster c moves it by  z~_c^T (rho_c - z~_c s_hat) / (z~^T z~ - z~_c^T z~_c)

The suspect that explains most of the residuals joins A; the others are judged again beside it, so
that a delay is not also taken for friction. It ends when none is both significant and of a size
that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynid.checks.fault_columns import Suspect
from dynid.common.arrays import Array
from dynid.common.batched import pinv
from dynid.estimator.ols import column_scale, least_squares
from dynid.projection.factor import Factor, merge, triangle
from dynid.projection.projection import System
from dynid.statistics.clusters import stretches

# Some tens of suspects at this level: about one clean log in forty accuses somebody.
SIGNIFICANT = 1e-3
# A column with less than this part of itself beside W cannot be told from the parameters.
_HIDDEN = 1e-2
# A column this small beside the measured side per SI unit of its suspect is rounding.
_NOTHING = 1e-7
_MOST_ACCUSED = 8
_LEAST = 2  # clusters


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the residuals say about one suspect.

    Attributes:
        size: Estimate of its columns' coefficients, shape (c,), units of the suspect.
        sigma: Their deviations, shape (c,).
        dof: Degrees of freedom of these.
        p_value: Of its innocence.
        explains: Part of the residual sum of squares of the rows concerned, 0 to 1.
        gain: The same as a number of weighted squares.
        share: What it explains, in parts of the measured norm of these rows.
    """

    suspect: Suspect
    size: Float[Array, "c"]
    sigma: Float[Array, "c"]
    dof: float
    p_value: float
    explains: float
    gain: float
    share: float


Relevant = Callable[[Verdict], bool]


def accused(
    system: System,
    weights: Float[Array, "g"],
    suspects: Sequence[Suspect],
    n_tests: int,
    relevant: Relevant,
    seconds: float,
) -> tuple[list[Verdict], dict[Suspect, Verdict]]:
    """Suspects that are guilty, in the order found, and the first verdict on every one.

    Args:
        system: Over the parameters, then the test columns, with its blocks.
        weights: Of the groups, shape (g,).
        suspects: Columns numbered from the first test column.
        n_tests: Number of test columns.
        relevant: Whether a verdict is about something that matters.
        seconds: Length of a cluster in [s]; one cluster alone has no deviation, and accuses nobody.
    """
    p = len(system.parameters) - n_tests
    data = _Rows(system, weights, p, seconds)
    if data.n < _LEAST:
        return [], {}
    joined: list[int] = []
    left = list(suspects)
    guilty: list[Verdict] = []
    first: dict[Suspect, Verdict] = {}
    while left and len(guilty) < _MOST_ACCUSED:
        verdicts = data.judge(left, joined)
        first = first or {one.suspect: one for one in verdicts}
        serious = [one for one in verdicts if one.p_value < SIGNIFICANT and relevant(one)]
        if not serious:
            break
        worst = max(serious, key=lambda one: one.gain)
        guilty.append(worst)
        joined += [p + c for c in worst.suspect.columns]
        left.remove(worst.suspect)
    return guilty, first


class _Rows:
    """Weighted blocks with their clusters."""

    def __init__(self, system: System, weights: Float[Array, "g"], p: int, seconds: float) -> None:
        labels, runs, _ = stretches(system, seconds)
        size = len(system.parameters)
        self.p, self.n = p, len(runs)
        self.blocks: list[tuple[int, Array]] = []
        for group, weight in zip(system.groups, weights, strict=True):
            at = np.append(group.columns, size)
            own: dict[int, list[Factor]] = {}
            for place, block in zip(group.places, group.blocks, strict=True):
                own.setdefault(labels[group.log, *place], []).append(block)
            for label, blocks in own.items():
                one = merge(blocks)
                R = np.zeros((len(one.R), size + 1))
                R[:, at] = weight * one.R
                self.blocks.append((label, R))
        stacked = np.concatenate([R for _, R in self.blocks])
        self.measured = stacked[:, -1]
        self.scale = column_scale(stacked)
        self.whole = triangle(stacked / self.scale)

    def raw(self, columns: Sequence[int]) -> Float[Array, "r c"]:
        """Some columns of all blocks."""
        return np.concatenate([block[:, list(columns)] for _, block in self.blocks])

    def judge(self, suspects: Sequence[Suspect], joined: Sequence[int]) -> list[Verdict]:
        """Verdicts beside the parameters and the columns joined."""
        A = [*range(self.p), *joined]
        columns = [self.p + c for one in suspects for c in one.columns]
        kept = _independent(self.whole, A)
        Q, R = np.linalg.qr(self.whole[:, kept])
        sides = self.whole[:, [*columns, -1]]
        coefficients = np.linalg.solve(R, Q.T @ sides)
        freed = sides - Q @ (Q.T @ sides)
        wanted = [*columns, -1]
        Z = self.raw(wanted) / self.scale[wanted]
        Z -= (self.raw(kept) / self.scale[kept]) @ coefficients
        labels = np.repeat([c for c, _ in self.blocks], [len(block) for _, block in self.blocks])
        found, at = [], 0
        for one in suspects:
            own = slice(at, at + len(one.columns))
            at += len(one.columns)
            size = np.linalg.norm(sides[:, own], axis=0)
            hidden = np.linalg.norm(freed[:, own], axis=0) <= _HIDDEN * size
            hidden |= size * self.scale[columns[own]] <= _NOTHING * self.scale[-1]
            if not hidden.all():
                index = np.arange(own.start, own.stop)[~hidden]
                found.append(self._verdict(one, Z, labels, index, [columns[i] for i in index]))
        return found

    def _verdict(
        self, suspect: Suspect, Z: Float[Array, "r t"], labels: Array, index: Array, columns: Sequence[int]
    ) -> Verdict:
        from scipy.special import fdtrc

        z, rho = Z[:, index], Z[:, -1]
        concerned = np.any(self.raw(columns) != 0, axis=1)
        fit = least_squares(Factor(triangle(np.column_stack([z, rho])), len(z)))
        size = fit.chi
        n, c = self.n, len(index)
        M, s = np.zeros((n, c, c)), np.zeros((n, c))
        white = z @ fit.root
        np.add.at(M, labels, white[:, :, None] * white[:, None, :])
        np.add.at(s, labels, white * (rho - z @ size)[:, None])
        inside = np.eye(c) - M
        moves = np.einsum("nij,nj->ni", pinv(inside), s)
        covariance = (n - 1) / n * moves.T @ moves
        leverage = np.einsum("nii->ni", M)
        dof = float(np.clip(1.0 / np.max(np.sum(leverage**2, axis=0)), 1.0, n - 1.0))
        y = np.linalg.solve(fit.root, size)
        wald = float(y @ np.linalg.pinv(covariance, hermitian=True) @ y)
        # Hotelling's correction: c directions estimated from `dof` clusters.
        free = max(dof - c + 1.0, 1.0)
        p_value = float(fdtrc(c, free, wald * free / (dof * c)))
        before = float(rho[concerned] @ rho[concerned])
        after = float(np.sum((rho - z @ size)[concerned] ** 2))
        units = self.scale[-1] / self.scale[columns]
        sigma = np.sqrt(np.maximum(np.diag(fit.root @ covariance @ fit.root.T), 0.0))
        explains = 1.0 - after / before if before > 0 else 0.0
        gain = max(before - after, 0.0) * self.scale[-1] ** 2
        norm = float(np.linalg.norm(self.measured[concerned]))
        share = float(np.sqrt(gain)) / norm if norm > 0.0 else 0.0
        return Verdict(suspect, size * units, sigma * units, dof, p_value, max(explains, 0.0), gain, share)


def _independent(R: Float[Array, "k t"], columns: Sequence[int]) -> list[int]:
    """Columns with something of their own (test columns may repeat what W has)."""
    from dynid.base.rank import independent_columns

    return sorted(independent_columns(R, list(columns), rtol=1e-9).kept)
