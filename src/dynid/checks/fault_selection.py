"""Which suspects are flagged by the residuals: forward selection with block-robust significance.

With the weighted rows A = [W, flagged so far] and z~ the part of a test column orthogonal to A,

s_hat = G^-1 g,     G = z~^T z~,  g = z~^T rho

With the rows U_c = A_c R^-1 of cluster c (A = Q R), the same without this cluster are G - K_c and g - k_c,

[K k]_c = [z~ rho]_c^T [z~ rho]_c + X_c^T (I - U_c^T U_c)^-1 X_c,     X_c = U_c^T [z~ rho]_c

The second part is the effect of fitting A again: in a short log A follows z~ closely, and a jackknife
with fixed A is too optimistic (p below 0.05 in 12 % of clean tests of 10 s, measured).

Values taken as known have errors e = root x, whose columns W_0 root belong to A. What is known of x are
further rows [0 1] x = 0 of unit variance, which are a cluster that is never left out.

`moderated.py` averages the variances of all suspects, which few clusters leave uncertain.

The suspect with the largest evidence is added to A: its log likelihood ratio less that of c free columns,

evidence = -n/2 log(1 - gain / |rho|^2) - c/2 log n         (n rows; Schwarz)

The others are tested again with it, so
that a delay is not also reported as friction. The selection ends when no suspect is both significant and
large enough to matter.

Where z is a measured effort (the share of one of several motors in a row), its noise n is in z~ and in rho,
and without any fault s_hat tends to |n|^2 / |z~|^2: between 0 and |rho|^2 / |z~|^2, at most 1. Only what is
beyond counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dynid.base.rank import independent_columns
from dynid.checks.family_level import Relevant, levels
from dynid.checks.moderated import usual_factor, with_known
from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import eigh
from dynid.common.distributions import f_tail
from dynid.common.lapack import cholesky_solve, is_positive, solve_upper
from dynid.common.paged import together
from dynid.estimator.ols import column_scale, least_squares
from dynid.projection.factor import Factor, triangle
from dynid.projection.projection import Group, System
from dynid.statistics.assemble import MANY
from dynid.statistics.clusters import recurring, repeated, stretches
from dynid.statistics.known_errors import KnownErrors

if TYPE_CHECKING:
    from dynid.checks.fault_columns import Suspect

# A column with a smaller part orthogonal to W is confounded with the parameters.
_HIDDEN = 1e-2
# Part of a column's norm below which it does not concern an equation: differences leave 1e-9 of nothing.
_UNCONCERNED = 1e-6
# A column this small relative to the measured side, per SI unit of its suspect, is rounding.
_NOTHING = 1e-7
# The noise of an effort that makes up more than this part of its own column hides its gain.
_DROWNED = 0.25
# Above this cosine between their parts orthogonal to W, two suspects are not separable.
_ALIKE = 0.98
# A column of which less than this part is left is a combination of the others.
_RTOL = 1e-9
_MOST_FLAGGED = 8
LEAST_CLUSTERS = 2
# A direction of which the other clusters hold less than this part counts as if they held so much.
_LEAST_ELSEWHERE = 1e-3


def flagged_suspects(
    system: System,
    weights: Float[Array, "g"],
    suspects: Sequence[Suspect],
    n_tests: int,
    relevant: Relevant,
    seconds: float,
    known: KnownErrors | None = None,
) -> tuple[list[Suspect], dict[tuple[int, ...], Suspect]]:
    """Flagged suspects in the order found, and the first result of every suspect by its columns.

    Args:
        system: Over the parameters, then the test columns, with its blocks.
        weights: Of the groups, shape (g,).
        suspects: Columns numbered from the first test column.
        n_tests: Number of test columns.
        relevant: Whether a result is large enough to matter.
        seconds: Length of a cluster in [s]; with one cluster alone nothing can be tested.
        known: Errors of known values, in units of which the last parameters are; None: these are exact.
    """
    data = _Rows(system, weights, len(system.parameters) - n_tests, seconds, known)
    if data.n < LEAST_CLUSTERS:
        return [], {}
    tested, bases = data.judge(suspects)
    level, first = levels(tested, bases, relevant), {trial.columns: trial for trial in tested}
    left = list(suspects)
    flagged: list[Suspect] = []
    while len(flagged) < _MOST_FLAGGED:
        serious = [trial for trial in tested if trial.p_value < level(trial) and relevant(trial)]
        if not serious:
            break
        worst = max(serious, key=data.evidence)
        flagged.append(worst)
        data.join(worst.columns)
        left = [trial for trial in left if trial.columns != worst.columns]
        tested, _ = data.judge(left)
    return flagged, first


class _Rows:
    """Weighted rows with their clusters, as products of [U Z]: U of A (orthonormal), Z of the others.

    The rows are orthogonalised once. A column that joins A then changes all products by a map of low rank.

    Attributes:
        n: Number of clusters.
        rows, free: Number of rows, and the same less columns of A.
        scale: Of each test column and of the measured side, shape (t + 1,).
        touched: Whether each row is of an equation that the test column concerns, shape (r, t). All rows of
            an equation of a log count: zeros of its triangle only mean the order of columns.
        sides: Triangle of these columns, scaled, before anything was removed, shape (k, t + 1).
        freed: Their parts orthogonal to A, in the coordinates of that triangle, shape (k, t + 1).
        Z: The same for all rows, shape (r, t + 1).
        products: [U Z]^T [U Z] of each cluster, then of what is known of errors, shape (n + 1, a + t + 1,
            a + t + 1).
        known_dof: Degrees of freedom of what is known.
    """

    def __init__(
        self,
        system: System,
        weights: Float[Array, "g"],
        p: int,
        seconds: float,
        known: KnownErrors | None = None,
    ) -> None:
        labels, runs, _ = stretches(system, seconds)
        self.n = len(runs)
        rows, owners, ends = _by_cluster(system, weights, labels, self.n)
        wholes = [weight * triangle(g.merged.R) for g, weight in zip(system.groups, weights, strict=True)]
        placed = [_placed(whole, g, system) for whole, g in zip(wholes, system.groups, strict=True)]
        u = 0 if known is None else known.root.shape[1]
        prior = np.eye(u, len(system.parameters) + 1, p - u)
        self.known_dof = MANY if known is None else known.dof
        stacked = np.concatenate([*placed, prior])
        scale = column_scale(stacked)
        whole = triangle(stacked / scale)
        norms = np.array([np.linalg.norm(part[:, p:-1], axis=0) for part in placed])
        self.touched = (norms > _UNCONCERNED * np.linalg.norm(norms, axis=0))[owners]
        self.measured = rows[:, -1].copy()
        rows /= scale
        kept = sorted(independent_columns(whole, range(p), rtol=_RTOL).kept)  # others repeat these
        Q, R = np.linalg.qr(whole[:, kept])
        self.scale, self.sides = scale[p:], whole[:, p:]
        self.freed = self.sides - Q @ (Q.T @ self.sides)
        removed = Q.T @ self.sides

        def orthogonal(cluster: Float[Array, "m p1"]) -> tuple[Array, Array]:
            U = solve_upper(R, cluster[:, kept], from_right=True)  # U R = A
            Z = cluster[:, p:] - U @ removed
            both = np.hstack([U, Z])
            return Z, both.T @ both

        parts = together(orthogonal, [*np.split(rows, ends), prior / scale])
        self.Z, self.products = np.concatenate([Z for Z, _ in parts[:-1]]), np.array([x for _, x in parts])
        self._join_repeats(repeated(system, labels), len(kept))
        self.rows = sum(group.n_rows for group in system.groups) + u
        self.free = max(self.rows - len(kept), 1)

    def _join_repeats(self, first: Int[Array, "n"] | None, a: int) -> None:
        """One cluster for each different motion, if errors of the model come again with it.

        Args:
            first: Number of the first cluster with the same motion; None: no motion comes twice.
            a: Columns of A.
        """
        *clusters, known = self.products
        each = np.array(clusters)
        if first is not None and recurring(first, each[:, :a, :a], each[:, :a, -1]):
            labels = np.unique(first, return_inverse=True)[1]
            joined = np.zeros((int(labels.max()) + 1, *self.products.shape[1:]))
            np.add.at(joined, labels, each)
            self.products, self.n = np.array([*joined, known]), len(joined)

    def join(self, columns: Sequence[int]) -> None:
        """Add test columns to A: U gains their directions, which the others lose."""
        alone, size = self._alone(columns)
        new_columns = [c for c, separate in zip(columns, alone > _RTOL * size, strict=True) if separate]
        if not new_columns:
            return
        q, r = np.linalg.qr(self.freed[:, new_columns])
        M, B = np.linalg.inv(r), q.T @ self.freed
        a = self.products.shape[1] - self.Z.shape[1]
        at = a + np.array(new_columns)
        wide = self.products
        new = wide[:, :, at] @ M
        wide = np.concatenate([wide[:, :, :a], new, wide[:, :, a:] - new @ B], axis=2)
        new = M.T @ wide[:, at]
        self.products = np.concatenate([wide[:, :a], new, wide[:, a:] - B.T @ new], axis=1)
        self.Z -= (self.Z[:, new_columns] @ M) @ B
        self.freed = self.freed - q @ B

    def evidence(self, suspect: Suspect) -> float:
        """For a tested suspect, as the logarithm of a likelihood ratio."""
        whole = float(np.sum(self.freed[:, -1] ** 2)) * self.scale[-1] ** 2
        left = max(1.0 - suspect.gain / max(whole, 1e-300), 1e-300)
        return -0.5 * self.rows * float(np.log(left)) - 0.5 * len(suspect.places) * float(np.log(self.rows))

    def judge(self, suspects: Sequence[Suspect]) -> tuple[list[Suspect], list[Array]]:
        """Results of suspects, given the parameters and columns that have joined them; their free columns."""
        K = self._refitted()
        results, bases = [], []
        for candidate in suspects:
            numbers = np.array(candidate.columns)
            alone, size = self._alone(candidate.columns)
            hidden = alone <= _HIDDEN * size
            hidden |= size * self.scale[numbers] <= _NOTHING * self.scale[-1]
            index = numbers[~hidden]
            if not len(index):
                continue
            estimated = self._estimated(candidate, K, index)
            tested = estimated.suspect
            drowned = tested.bias > _DROWNED and 0.0 <= tested.size[0] <= 1.1 * tested.bias
            if not drowned:
                results.append(estimated)
                bases.append(np.linalg.qr(self.freed[:, index])[0])
        usual, free = usual_factor(
            [result.factor for result in results], [result.suspect.dof for result in results]
        )
        return _compared([_moderated(result, usual, free) for result in results], bases), bases

    def _alone(self, columns: Sequence[int]) -> tuple[Float[Array, "c"], Float[Array, "c"]]:
        """Norm of the part of each column orthogonal to A and to the columns before it, and of the column."""
        index = list(columns)
        size = np.linalg.norm(self.sides[:, index], axis=0)
        return np.abs(np.diag(np.linalg.qr(self.freed[:, index], mode="r"))), size

    def _refitted(self) -> Float[Array, "2 n t t"]:
        """What each cluster adds to the products of the columns Z: as they are, and with A fitted again."""
        a = self.products.shape[1] - self.Z.shape[1]
        X = self.products[:-1, :a, a:]
        K = np.stack([self.products[:-1, a:, a:]] * 2)
        for c, left in enumerate(np.eye(a) - self.products[:-1, :a, :a]):
            K[1, c] += X[c].T @ _bounded_solve(left, X[c])
        return K

    def _estimated(self, suspect: Suspect, K: Float[Array, "2 n t t"], index: Array) -> _Estimated:
        """Size of a suspect over its columns `index`, and its covariance from its own clusters."""
        concerned = np.flatnonzero(np.any(self.touched[:, index], axis=1))
        z, rho = self.Z[np.ix_(concerned, index)], self.Z[concerned, -1]
        size, root, _ = least_squares(Factor(triangle(self.freed[:, [*index, -1]]), len(self.Z)))
        n, c = self.n, len(index)
        # In the coordinates where the products of all clusters together are the unit matrix.
        plain, clustered = root.T @ K[:, :, index][..., index] @ root
        pull = K[1][:, index, -1] @ root - clustered @ np.linalg.solve(root, size)
        values, vectors = eigh(np.eye(c) - clustered)
        inverse = 1.0 / np.maximum(values, _LEAST_ELSEWHERE)
        moves = -np.einsum("nij,nj,nkj,nk->ni", vectors, inverse, vectors, pull)
        kept = np.clip(values, 0.0, 1.0)
        expected = np.einsum("nij,nj,nkj->ik", vectors, inverse**2 * kept * (1.0 - kept), vectors)
        moves = np.linalg.solve(np.linalg.cholesky(expected), moves.T).T
        leverage = np.einsum("nii->ni", plain)
        total = np.maximum(np.sum(leverage, axis=0), np.finfo(float).tiny)
        dof = float(np.clip(1.0 / np.max(np.sum(leverage**2, axis=0) / total**2), 1.0, n - 1.0))
        units = self.scale[-1] / self.scale[index]
        before = float(rho @ rho)
        bias = 0.0
        if suspect.measured:
            squares = float(np.sum(self.freed[:, index[0]] ** 2))
            bias = min(before * float(units[0]) ** 2 / squares, 1.0)
        after = float(np.sum((rho - z @ size) ** 2))
        gain = max(before - after, 0.0) * self.scale[-1] ** 2
        norm = float(np.linalg.norm(self.measured[concerned]))
        white = max(float(np.sum((self.freed[:, -1] - self.freed[:, index] @ size) ** 2)) / self.free, 1e-300)
        result = replace(
            suspect,
            size=size * units,
            sigma=np.sqrt(white) * np.linalg.norm(root, axis=1) * units,
            bias=bias,
            places=tuple((index - suspect.columns[0]).tolist()),
            dof=dof,
            explains=max(1.0 - after / before, 0.0) if before > 0 else 0.0,
            gain=gain,
            share=float(np.sqrt(gain)) / norm if norm > 0.0 else 0.0,
        )
        a = self.products.shape[1] - self.Z.shape[1]
        share = root.T @ self.products[-1, a:, a:][np.ix_(index, index)] @ root
        known = float(self.scale[-1]) ** -2, self.known_dof
        return _Estimated(result, moves.T @ moves, white, root, units, share, known)


@dataclass(frozen=True, eq=False)
class _Estimated:
    """A suspect with its size, not yet judged.

    Attributes:
        covariance: From its clusters, in the coordinates `root`, shape (c, c).
        white: Variance of a row, which is the covariance there for white noise.
        root: Of the inverse of its products: sizes are root @ coordinates, shape (c, c).
        units: Of sizes, shape (c,).
        share: What is known of errors of known values, as part of all products there, shape (c, c).
        known: Variance of such an error, and its degrees of freedom.
    """

    suspect: Suspect
    covariance: Float[Array, "c c"]
    white: float
    root: Float[Array, "c c"]
    units: Float[Array, "c"]
    share: Float[Array, "c c"]
    known: tuple[float, float]

    @property
    def factor(self) -> float:
        """Covariance over the one for white noise."""
        return float(np.trace(self.covariance)) / (len(self.covariance) * self.white)


def _moderated(trial: _Estimated, usual: float, free: float) -> Suspect:
    """A suspect judged by its covariance, averaged with the usual one of `free` degrees of freedom."""
    suspect, c = trial.suspect, len(trial.covariance)
    total = suspect.dof + free
    covariance = (suspect.dof * trial.covariance + free * usual * trial.white * np.eye(c)) / total
    covariance, total = with_known(covariance, total, trial.share, *trial.known)
    sigma = np.sqrt(np.maximum(np.diag(trial.root @ covariance @ trial.root.T), 0.0))
    y = np.linalg.solve(trial.root, suspect.beyond / trial.units)
    wald = float(y @ np.linalg.pinv(covariance, hermitian=True) @ y)
    # Hotelling's correction: c directions estimated from `total` clusters.
    left = max(total - c + 1.0, 1.0)
    p_value = float(f_tail(c, left, wald * left / (total * c)))
    return replace(suspect, sigma=sigma * trial.units, dof=total, wald=wald, p_value=p_value)


def _placed(R: Float[Array, "k c1"], group: Group, system: System) -> Float[Array, "k p1"]:
    """A triangle of a group over all columns of its system."""
    wide = np.zeros((len(R), len(system.parameters) + 1))
    wide[:, np.append(group.columns, -1)] = R
    return wide


def _by_cluster(
    system: System, weights: Float[Array, "g"], labels: Mapping[tuple[str, int, int], int], n: int
) -> tuple[Float[Array, "r p1"], Int[Array, "r"], Int[Array, "n1"]]:
    """Weighted rows of all groups, cluster after cluster, the group of each, and where each cluster ends."""
    parts: list[list[tuple[int, Array]]] = [[] for _ in range(n)]
    for g, (group, weight) in enumerate(zip(system.groups, weights, strict=True)):
        R, stretches_of = group.stretches(labels)
        for label, at, _ in stretches_of:
            parts[label].append((g, weight * triangle(R[at])))
    ends = np.cumsum([sum(len(piece) for _, piece in part) for part in parts])
    rows, stop = np.zeros((int(ends[-1]), len(system.parameters) + 1)), 0
    owners = np.zeros(len(rows), dtype=int)
    for g, piece in (pair for part in parts for pair in part):
        start, stop = stop, stop + len(piece)
        rows[start:stop, np.append(system.groups[g].columns, -1)] = piece
        owners[start:stop] = g
    return rows, owners, ends[:-1]


def _bounded_solve(M: Float[Array, "a a"], X: Float[Array, "a t"]) -> Float[Array, "a t"]:
    """M^-1 X, with the eigenvalues of M at least `_LEAST_ELSEWHERE`."""
    if not len(M):  # no parameter beside the suspects
        return X
    if is_positive(M - _LEAST_ELSEWHERE * np.eye(len(M))):  # all of them are larger
        solved = cholesky_solve(M, X)
        assert solved is not None  # noqa: S101 (positive with less than M)
        return solved
    values, vectors = eigh(M)
    return np.asarray(vectors @ ((vectors.T @ X) / np.maximum(values, _LEAST_ELSEWHERE)[:, None]))


def _compared(tested: list[Suspect], bases: Sequence[Array]) -> list[Suspect]:
    """Each suspect with those whose columns, orthogonal to W, equal or contain its own."""
    if not tested:
        return []
    starts = np.cumsum([0, *(basis.shape[1] for basis in bases[:-1])])
    every = np.hstack(bases)
    cosines = np.sqrt(np.add.reduceat((every.T @ every) ** 2, starts, axis=0))
    # No singular value of a pair is larger than the length that a basis keeps of each direction.
    bound = np.minimum.reduceat(cosines, starts, axis=1)
    compared = []
    for i, candidate in enumerate(tested):
        alike = [
            tested[k]
            for k in np.flatnonzero(bound[:, i] > _ALIKE).tolist()
            if k != i
            and len(tested[k].places) >= len(candidate.places)
            and float(np.linalg.svd(bases[k].T @ bases[i], compute_uv=False)[-1]) > _ALIKE
        ]
        compared.append(replace(candidate, alike=tuple(alike)))
    return compared
