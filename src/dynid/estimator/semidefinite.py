"""Small convex programs over cones, solved by Clarabel; the only file that knows the solver.

minimise  1/2 x^T H x + q^T x      so that  F x + g is in a cone, for each block of rows

A body adds a 4 x 4 matrix that must be positive semidefinite, its log-determinant one of 8 x 8:

    log det P >= sum log z_ii   if   [[P, Z], [Z^T, diag(Z)]] >= 0,  Z lower triangular
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.lapack import load_for_solvers

TOLERANCE = 1e-8
# Where rounding stops every attempt before; still far below a deviation.
_ENOUGH = 1e-6
_MOST_ITERATIONS = 100
SOLVED, INFEASIBLE, UNBOUNDED, FAILED = "solved", "infeasible", "unbounded", "not converged"
_STATUS = {"Solved": SOLVED, "PrimalInfeasible": INFEASIBLE, "DualInfeasible": UNBOUNDED}
_NEARLY = "AlmostSolved"


@dataclass
class Program:
    """A convex program, put together block by block; `solve` fills in what it found.

    Attributes:
        n: Number of variables.
        x: Their values at the minimum, shape (n,), in the units of the program.
        status: `solved`, `infeasible`, `unbounded` or `not converged`; at a tolerance of 1e-8.
        reason: The solver's own word.
    """

    n: int
    x: Float[Array, "_"] = field(default_factory=lambda: np.zeros(0))
    status: str = FAILED
    reason: str = ""
    iterations: int = 0
    objective: float = 0.0
    _blocks: list[tuple[str, Int[Array, "k"], Float[Array, "m k"], Float[Array, "m"]]] = field(
        default_factory=list
    )
    _linear: list[tuple[Int[Array, "k"], Float[Array, "k"]]] = field(default_factory=list)
    _squares: list[int] = field(default_factory=list)

    def variables(self, count: int) -> Int[Array, "k"]:
        """Numbers of `count` more variables."""
        self.n += count
        return np.arange(self.n - count, self.n)

    def require(
        self, cone: str, columns: Int[Array, "k"], F: Float[Array, "m k"], g: Float[Array, "m"]
    ) -> None:
        """F x[columns] + g in `cone`: zero, nonnegative, norm (first entry above the rest) or exponential."""
        if len(g):
            self._blocks.append((cone, columns, F, g))

    def minimise(self, columns: Int[Array, "k"], q: Float[Array, "k"]) -> None:
        """Add q^T x[columns] to the objective."""
        self._linear.append((columns, q))

    def minimise_norm(self, columns: Int[Array, "k"], F: Float[Array, "m k"], g: Float[Array, "m"]) -> None:
        """Add 1/2 |F x[columns] + g|^2, as the square of a norm and never as F^T F."""
        norm = self.variables(1)
        rows = np.zeros((len(g) + 1, len(columns) + 1))
        rows[0, -1], rows[1:, :-1] = 1.0, F
        self.require("norm", np.concatenate([columns, norm]), rows, np.concatenate([[0.0], g]))
        self._squares += norm.tolist()

    def semidefinite(
        self, columns: Int[Array, "k"], F: Float[Array, "k m m"], g: Float[Array, "m m"]
    ) -> None:
        """The symmetric matrix sum x[columns_i] F_i + g is positive semidefinite."""
        self.require("semidefinite", columns, packed(F).T, packed(g))

    def log_det(
        self, columns: Int[Array, "k"], F: Float[Array, "k m m"], g: Float[Array, "m m"]
    ) -> Int[Array, "m"]:
        """Numbers of variables whose sum is at most log det of the matrix (which is then definite)."""
        m, k = len(g), len(columns)
        low = np.tril_indices(m)
        Z, logs = self.variables(len(low[0])), self.variables(m)
        big = np.zeros((k + len(Z), 2 * m, 2 * m))
        big[:k, :m, :m] = F
        for n, (i, j) in enumerate(zip(*low, strict=True)):
            big[k + n, i, m + j] = big[k + n, m + j, i] = 1.0
            if i == j:
                big[k + n, m + i, m + i] = 1.0
        constant = np.zeros((2 * m, 2 * m))
        constant[:m, :m] = g
        self.semidefinite(np.concatenate([columns, Z]), big, constant)
        diagonal = Z[np.flatnonzero(low[0] == low[1])]
        for log, z in zip(logs, diagonal, strict=True):
            # exp(log) <= z
            F3 = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
            self.require("exponential", np.array([log, z]), F3, np.array([0.0, 1.0, 0.0]))
        return logs

    def solve(self) -> Program:
        """The program with its minimum, or why there is none."""
        # Long steps without the solver's own scaling are best on problems scaled as here. Where they
        # end near the edge of a cone, shorter steps, and then that scaling, are tried.
        attempts = ((0.99, False), (0.9, False), (0.9, True))
        answers = []
        for step, equilibrate in attempts:
            answers.append(self._attempt(step, equilibrate))
            if str(answers[-1].status) in _STATUS:
                break
        best = [answer for answer in answers if str(answer.status) in _STATUS]
        best += [answer for answer in answers if str(answer.status) == _NEARLY]
        answer = (best or answers)[0]
        self.x, self.reason = np.array(answer.x), str(answer.status)
        self.status = SOLVED if self.reason == _NEARLY else _STATUS.get(self.reason, FAILED)
        self.iterations, self.objective = answer.iterations, answer.obj_val
        return self

    def _attempt(self, step: float, equilibrate: bool) -> Any:
        load_for_solvers()
        import clarabel

        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = _MOST_ITERATIONS
        settings.equilibrate_enable = equilibrate
        settings.max_step_fraction = step
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = _ENOUGH
        H, q, A, b, cones = self._assembled()
        return clarabel.DefaultSolver(H, q, A, b, cones, settings).solve()

    def _assembled(self) -> tuple[Any, Float[Array, "n"], Any, Float[Array, "r"], Sequence[Any]]:
        import clarabel

        made = {
            "zero": clarabel.ZeroConeT,
            "nonnegative": clarabel.NonnegativeConeT,
            "norm": clarabel.SecondOrderConeT,
            "semidefinite": lambda rows: clarabel.PSDTriangleConeT(int((np.sqrt(8 * rows + 1) - 1) / 2)),
            "exponential": lambda _: clarabel.ExponentialConeT(),
        }
        q = np.zeros(self.n)
        for columns, part in self._linear:
            np.add.at(q, columns, part)
        rows, cols, values, right, cones, start = [], [], [], [], [], 0
        for cone, columns, F, g in self._blocks:
            i, j = np.nonzero(F)
            rows.append(i + start)
            cols.append(columns[j])
            values.append(-F[i, j])  # the solver's form: b - A x in the cone
            right.append(g)
            cones.append(made[cone](len(g)))
            start += len(g)
        A = _Sparse.of(np.concatenate(values), np.concatenate(rows), np.concatenate(cols), (start, self.n))
        squares = np.array(self._squares, dtype=int)
        H = _Sparse.of(np.ones(len(squares)), squares, squares, (self.n, self.n))
        return H, q, A, np.concatenate(right), cones


class _Sparse(NamedTuple):
    """A matrix by its columns as the solver reads it: SciPy's form, whose import takes longer than solving.

    Attributes:
        data, indices: Entries and their rows, column after column, rows ascending.
        indptr: Where each column begins, and the end.
    """

    data: Float[Array, "k"]
    indices: Int[Array, "k"]
    indptr: Int[Array, "n1"]
    shape: tuple[int, int]
    has_canonical_format: bool = True

    @classmethod
    def of(cls, values: Array, rows: Array, columns: Array, shape: tuple[int, int]) -> _Sparse:
        """From entries in any order; those of one place are added."""
        place, entry = np.unique(columns * shape[0] + rows, return_inverse=True)
        ends = np.searchsorted(place, shape[0] * np.arange(shape[1] + 1))
        return cls(np.bincount(entry, values, len(place)), place % shape[0], ends, shape)


def packed(matrices: Float[Array, "*k m m"]) -> Float[Array, "*k t"]:
    """Upper triangles column by column, off-diagonal entries times sqrt(2): norms are Frobenius norms."""
    m = matrices.shape[-1]
    j, i = np.tril_indices(m)
    return np.asarray(matrices[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0)))
