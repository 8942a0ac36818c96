"""Clusters: all rows of one interval of time, in the coordinates where the fit is orthonormal.

With the weighted rows A = Q R and Z_c = A_c R^-1 the rows of cluster c, two small sums contain all
that sandwiches, jackknives and bootstraps need,

M_c = Z_c^T Z_c  (p x p, the M_c add up to I)        s_c = Z_c^T rho_c  (p)

and both add over clusters: longer blocks and whole runs are sums of shorter ones. A cluster contains
all groups (joints) of its interval, because their errors are correlated too. M_c is not a normal matrix
of the data: its eigenvalues are the leverages of the cluster, for any condition number of W.
Intervals that repeat a motion have the same model errors: `distinct` joins them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.estimator.ols import least_squares
from dynid.motion.repeats import Stretch, first_alike
from dynid.projection.factor import Factor
from dynid.projection.projection import Group, System

# More clusters do not improve the result, and each has a p x p matrix.
MOST_CLUSTERS = 512
# Standard deviations: a sixth of logs with independent errors is above, errors of a model far above.
_RESEMBLING = 1.0


@dataclass(frozen=True, eq=False)
class Clusters:
    """Intervals of time and the contribution of each to the fit.

    Attributes:
        root: R^-1, so that chi moves by root @ z; shape (p, p), SI; or of combinations L chi: L R^-1.
        M: Leverages Z_c^T Z_c, shape (n, p, p), dimensionless.
        s: Scores Z_c^T rho_c, shape (n, p), unit of a weighted row.
        rows: Number of rows, shape (n,).
        runs: Number of the run (a log, or a segment of it) of each cluster, shape (n,).
        seconds: Mean length of a cluster in [s].
        instants: Whether clusters are made of instants of a table, which have no length.
        single: Whether each of them is one instant.
        first: Number of the first cluster with the same motion, shape (n,); None: no motion comes twice.
    """

    root: Float[Array, "k p"]
    M: Float[Array, "n p p"]
    s: Float[Array, "n p"]
    rows: Int[Array, "n"]
    runs: Int[Array, "n"]
    seconds: float
    instants: bool = False
    single: bool = False
    first: Int[Array, "n"] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return int(self.runs.max()) + 1

    def joined(self, labels: Int[Array, "n"]) -> Clusters:
        """Clusters with the same label (0, 1, ...) as one."""
        n = int(labels.max()) + 1
        runs = np.zeros(n, dtype=int)
        runs[labels] = self.runs
        belongs = labels == np.arange(n)[:, None]
        M, s, rows = (np.tensordot(belongs.astype(x.dtype), x, 1) for x in (self.M, self.s, self.rows))
        return Clusters(self.root, M, s, rows, runs, self.seconds * len(self) / n, self.instants)

    def by_run(self) -> Clusters:
        """One cluster a run."""
        return self.joined(self.runs)

    def distinct(self) -> Clusters:
        """One cluster for each different motion, all repeats joined; its run is that of the first."""
        if self.first is None:
            return self
        origins, labels = np.unique(self.first, return_inverse=True)
        return replace(self.joined(labels), runs=_numbered(self.runs[origins]))

    @property
    def recurring(self) -> bool:
        """Whether errors come again with a motion."""
        return self.first is not None and recurring(self.first, self.M, self.s)

    def by_motion(self) -> Clusters:
        """One cluster a motion: runs that repeat most of another run belong to it."""
        if self.first is None:
            return self.by_run()
        motions = np.arange(self.n_runs)
        for run in range(self.n_runs):
            origins = self.runs[self.first[self.runs == run]]
            counts = np.bincount(origins, minlength=self.n_runs)
            other = int(np.argmax(counts))
            motions[run] = motions[other] if 2 * counts[other] > len(origins) else run
        return self.joined(_numbered(motions)[self.runs])

    def restricted(self, kept: Sequence[int], chi: Float[Array, "p"]) -> tuple[Clusters, Float[Array, "k"]]:
        """The same clusters for the fit of some parameters alone, and that fit.

        R[:, kept] = Q' R': the rows are Z Q', the residuals grow by what the others explained.

        Args:
            kept: Numbers of the parameters that stay; the others are zero.
            chi: The fit of all of them, shape (p,), SI.
        """
        R = np.linalg.inv(self.root)
        Q, triangle = np.linalg.qr(R[:, list(kept)])
        z = R @ chi
        lost = z - Q @ (Q.T @ z)
        root = np.linalg.inv(triangle)
        s = (self.s + self.M @ lost) @ Q
        return replace(self, root=root, M=Q.T @ self.M @ Q, s=s), root @ (Q.T @ z)


def recurring(first: Int[Array, "n"], M: Float[Array, "n p p"], s: Float[Array, "n p"]) -> bool:
    """Whether errors come again with a motion: scores of repeats resemble each other.

    With x_cd = s_c^T s_d + sigma^2 tr(M_c M_d) over all pairs of repeats, whose second part undoes what
    the fit takes from both, z = sum x / sqrt(sum x^2) has mean 0 and variance 1 for independent errors.

    Args:
        first: Number of the first cluster with the same motion, shape (n,).
        M: Leverages, shape (n, p, p).
        s: Scores, shape (n, p).
    """
    p = M.shape[1]
    leverage = np.trace(M, axis1=1, axis2=2).sum() - np.sum(M**2)
    variance = np.sum(s**2) / max(float(leverage), np.finfo(float).tiny)
    total = squares = 0.0
    for origin in np.unique(first):
        alike = first == origin
        L, t = M[alike].reshape(-1, p * p), s[alike]
        pairs = (t @ t.T + variance * (L @ L.T))[np.tril_indices(len(t), -1)]
        total, squares = total + float(pairs.sum()), squares + float(pairs @ pairs)
    return bool(total > _RESEMBLING * np.sqrt(squares))


def clusters_of(
    system: System,
    chi: Float[Array, "p"],
    weights: Float[Array, "g"],
    seconds: float,
    whole: System | None = None,
    doubt: Float[Array, "k"] | None = None,
) -> Clusters:
    """Cut every run into equal stretches of about `seconds`, never shorter than a block.

    Columns D of `doubt` do not belong to the estimate: it takes their coefficients x as zero. The scores are
    those of the residuals rho - D x of the fit with them, M_c the leverages of W and D, and `root` moves chi
    alone: leaving out a cluster shows the noise in chi, not the part of the residual that D explains.

    Args:
        system: With its blocks, over the parameters of `chi`.
        chi: The estimate, shape (p,), SI.
        weights: Of the groups, shape (g,).
        seconds: Wanted length in [s]; longer where there would be more than `MOST_CLUSTERS`.
        whole: The same equations with few blocks, which saves merging many again.
        doubt: Prior deviations of the coefficients of further columns of `system`, its last ones, over the
            deviation of a weighted row, shape (k,); None: there are none.
    """
    labels, runs, length = stretches(system, seconds)
    factor = (whole or system).factor(weights)
    if doubt is None:
        _, root, _ = least_squares(factor)
        shown = root
    else:
        root, chi = _with_columns(factor, chi, doubt)
        shown = np.array(root[: -len(doubt)])
        shown[:, -len(doubt) :] = 0.0
    p, n = len(chi), len(runs)
    M, s, rows = np.zeros((n, p, p)), np.zeros((n, p)), np.zeros(n, dtype=int)
    for group, weight in zip(system.groups, weights, strict=True):
        root_part, part = root[group.columns], chi[group.columns]
        R, parts = group.stretches(labels)
        Z, rho = weight * (R[:, :-1] @ root_part), weight * (R[:, -1] - R[:, :-1] @ part)
        for c, at, count in parts:
            M[c] += Z[at].T @ Z[at]
            s[c] += Z[at].T @ rho[at]
            rows[c] += count
    instants = all(group.instants for group in system.groups)
    first = repeated(system, labels)
    return Clusters(shown, M, s, rows, runs, length, instants, instants and length >= 1.0, first)


def _with_columns(
    factor: Factor, chi: Float[Array, "p"], doubt: Float[Array, "k"]
) -> tuple[Float[Array, "q q"], Float[Array, "q"]]:
    """Root of (A^T A)^-1 for A = [W D] over the prior of x, upper triangular in blocks, and the fit of both.

    Args:
        factor: Of [W D Y], weighted.
        chi: The fit of W alone, shape (p,), SI.
        doubt: Prior deviations of x, shape (k,).
    """
    p, k = len(chi), len(doubt)
    W, D = factor.W[:, :p], factor.W[:, p:]
    _, root, _ = least_squares(Factor(np.column_stack([W, factor.Y]), factor.n_rows))
    along = root @ ((W @ root).T @ D)
    left = np.vstack([D - W @ along, np.diag(1.0 / doubt)])
    triangle = np.linalg.qr(left, mode="r")
    inner = np.linalg.inv(triangle)
    x = inner @ (inner.T @ (left[: len(D)].T @ (factor.Y - W @ chi)))
    both = np.zeros((p + k, p + k))
    both[:p, :p], both[:p, p:], both[p:, p:] = root, -along @ inner, inner
    return both, np.concatenate([chi - along @ x, x])


def _numbered(labels: Int[Array, "n"]) -> Int[Array, "n"]:
    """The same labels as 0, 1, ... in growing order."""
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def repeated(system: System, labels: dict[tuple[str, int, int], int]) -> Int[Array, "n"] | None:
    """Number of the first cluster with the same motion, shape (n,); None where no motion comes twice.

    Args:
        system: Whose groups know how the robot moved.
        labels: Cluster of each (log, run, number), as `stretches` gives them.
    """
    paths = {group.log: group.path for group in system.groups if group.path is not None}
    if len(paths) < len({group.log for group in system.groups}):
        return None
    logs = _logs(system)
    spans: dict[int, Stretch] = {}
    for (log, run, number), c in labels.items():
        places, length = logs[log]
        start = number * length - paths[log][run][2]
        stop = start + places[run, number] * length
        low, high = spans[c][2:] if c in spans else (start, stop)
        spans[c] = (log, run, min(low, start), max(high, stop))
    first = first_alike(paths, [spans[c] for c in range(len(spans))])
    return None if np.array_equal(first, np.arange(len(first))) else first


def equal_parts(groups: Sequence[Group], most: int) -> dict[tuple[str, int, int], int]:
    """Part of each (log, run, number): at most so many parts of as many blocks, runs laid end to end."""
    places = [(*run, number) for run, numbers in _by_content(groups).items() for number in numbers]
    return {place: k * min(most, len(places)) // len(places) for k, place in enumerate(places)}


def _by_content(groups: Sequence[Group]) -> dict[tuple[str, int], list[int]]:
    """Numbers of the blocks of each (log, run), the longest first, of equal ones that with smaller efforts.

    So the order in which logs and runs are given decides nothing. Without efforts, rows decide.
    """
    spans: dict[tuple[str, int], dict[int, int]] = {}
    for group in groups:
        for run, number in group.places:
            spans.setdefault((group.log, run), {})[number] = group.lasting[run, number]
    lengths = {run: sum(parts.values()) for run, parts in spans.items()}
    several = Counter(lengths.values())
    sizes = {run: [0.0, 0.0] for run in spans if several[lengths[run]] > 1}
    for group in groups if sizes else ():
        for (run, _), block in zip(group.places, group.blocks, strict=True):
            size = sizes.get((group.log, run), [0.0, 0.0])
            size[0] += float(block.Y @ block.Y)
            size[1] += float(np.vdot(block.R, block.R))
    return {run: sorted(spans[run]) for run in sorted(spans, key=lambda x: (-lengths[x], *sizes.get(x, ())))}


def duration(system: System) -> float:
    """Length of all runs together in [s]."""
    return sum(sum(places.values()) * seconds for places, seconds in _logs(system).values())


def lengths(system: System) -> tuple[float, ...]:
    """Length of each run in [s], in the order of logs and runs."""
    counts: dict[tuple[str, int], int] = {}
    logs = _logs(system)
    for log, (places, _) in logs.items():
        for (run, _), span in places.items():
            counts[log, run] = counts.get((log, run), 0) + span
    return tuple(count * logs[log][1] for (log, _), count in counts.items())


def _logs(system: System) -> dict[str, tuple[dict[tuple[int, int], int], float]]:
    """Places (run, number) of the blocks of each log, in order, with their spans; length of a span in [s]."""
    by_log: dict[str, dict[tuple[int, int], int]] = {}
    lengths: dict[str, float] = {}
    for group in system.groups:
        by_log.setdefault(group.log, {}).update(group.lasting)
        lengths[group.log] = group.seconds
    return {log: (dict(sorted(places.items())), lengths[log]) for log, places in by_log.items()}


def stretches(
    system: System, seconds: float, finer: int = 1
) -> tuple[dict[tuple[str, int, int], int], Int[Array, "n"], float]:
    """Cluster of each (log, run, number), run of each cluster, and the mean length in [s].

    Args:
        system: With its blocks.
        seconds: Wanted length, as of `clusters_of`.
        finer: Each of these clusters is cut into so many; or into its blocks if these are few.
    """
    logs = _logs(system)
    seconds = max(seconds, duration(system) / MOST_CLUSTERS)
    labels: dict[tuple[str, int, int], int] = {}
    runs: list[int] = []
    for n_runs, ((log, run), numbers) in enumerate(_by_content(system.groups).items()):
        places, length = logs[log]
        spans = np.array([places[run, number] for number in numbers])
        ends = np.cumsum(spans)
        parts = finer * max(1, round(float(ends[-1]) * length / seconds))
        if min(finer, 2) * parts > len(numbers):
            parts = len(numbers)
        at = _numbered((ends - spans) * parts // ends[-1])  # a block longer than a part leaves numbers out
        labels.update(((log, run, n), len(runs) + k) for n, k in zip(numbers, at.tolist(), strict=True))
        runs += [n_runs] * (int(at[-1]) + 1)
    return labels, np.array(runs, dtype=int), duration(system) / len(runs)
