"""Factorised closure Jacobians of a batch of poses: rank, tangent directions, Newton steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.batched import pinv, qr, singular_values, solve_or_nearest, svd
from dynid.common.lapack import pivoted_qr
from dynid.kinematics.sensors import Sensors

_RANK_RTOL = 1e-7


def rank_of(A: Float[Array, "n c v"]) -> int:
    """Largest rank among closure Jacobians."""
    if A.shape[1] == 0:
        return 0
    s = singular_values(A)
    return int((s > _RANK_RTOL * s[:, :1]).sum(axis=1).max())


def independent_equations(A: Float[Array, "n c v"], rank: int) -> Int[Array, "r"]:
    """Equations that imply all others at every pose, if their number equals the rank; else all."""
    count = A.shape[1]
    if count == 0:
        return np.arange(0)
    rows = np.concatenate(list(A), axis=1)  # (c, n v)
    _, R, pivot = pivoted_qr(rows.T)
    size = np.abs(np.diag(R))
    found = int((size > _RANK_RTOL * size[0]).sum())
    return np.sort(pivot[:found]) if found == rank else np.arange(count)


@dataclass(frozen=True, eq=False)
class Split:
    """A factorised closure Jacobian: tangent space, and the minimum-norm step for a change of f.

    With A^T = Q R: step = Q R^-T f; with A = U S V^T: step = V S^-1 U^T f.

    Attributes:
        N: Orthonormal tangent directions, shape (n, v, d).
        kept: Equations in the factorisation.
        outer, inner, left: Q and R^T, or V S^-1 and U.
    """

    N: Float[Array, "n v d"]
    kept: Int[Array, "k"]
    outer: Float[Array, "n v r"]
    inner: Float[Array, "n r r"] | None
    left: Float[Array, "n c r"] | None

    def step(self, f: Float[Array, "n c"]) -> Float[Array, "n v"]:
        """The minimum-norm step with A step = f."""
        if self.inner is not None:
            weights = solve_or_nearest(self.inner, f[:, self.kept])
        else:
            weights = np.einsum("ncr,nc->nr", np.asarray(self.left), f)
        return np.asarray(np.einsum("nvr,nr->nv", self.outer, weights))


def split(A: Float[Array, "n c v"], kept: Int[Array, "k"], rank: int) -> Split:
    """Tangent directions and minimum-norm steps of a batch, from one factorisation of A.

    Args:
        A: Closure Jacobians.
        kept: Equations that imply all others at every pose; QR is used where their number equals the rank.
        rank: Of A at generic poses.
    """
    if len(kept) == rank:
        Q, R = qr(np.swapaxes(A[:, kept], 1, 2), complete=True)
        return Split(Q[:, :, rank:], kept, Q[:, :, :rank], np.swapaxes(R[:, :rank], 1, 2), None)
    U, s, Vt = svd(A)
    inverse = 1.0 / np.maximum(s[:, :rank], 1e-300)
    V = np.swapaxes(Vt, 1, 2)
    return Split(V[:, :, rank:], kept, V[:, :, :rank] * inverse[:, None], None, U[:, :, :rank])


def newton_step(
    A: Float[Array, "n c v"],
    f: Float[Array, "n c"],
    units: Float[Array, "v"],
    sensors: Sensors | None = None,
    miss: Float[Array, "n m"] | None = None,
) -> Float[Array, "n v"]:
    """Steps with A step = -f, A of full row rank: no tangent directions are needed, which take most time.

    Args:
        A: Jacobians of independent closure equations.
        f: Their values.
        units: Of the coordinates, in which the norm of a step is least.
        sensors: As many measured coordinates as degrees of freedom, whose steps are given instead.
        miss: Their steps.
    """
    if sensors is None or miss is None:
        scaled = A * units
        weights = solve_or_nearest(scaled @ np.swapaxes(scaled, 1, 2), -f)
        return np.asarray(units * np.einsum("ncv,nc->nv", scaled, weights))
    rows = np.zeros((len(A), sensors.count, A.shape[2]))
    rows[:, np.arange(sensors.count), sensors.velocity] = 1.0
    return solve_or_nearest(np.concatenate([A, rows], axis=1), np.concatenate([-f, miss], axis=1))


def drawn_along(
    N: Float[Array, "n v d"], Q: Float[Array, "n w d"], rng: np.random.Generator
) -> Float[Array, "n v"]:
    """Random vectors in the space of N: N Q^T x with normal numbers x.

    Numbers for the columns of N would not do: which basis a factorisation gives is a matter of rounding,
    which differs from one CPU to the next.

    Args:
        N: Directions of every sample.
        Q: The same ones with orthonormal columns: in other units, or some rows alone.
        rng: Of x.
    """
    return np.asarray(np.einsum("nvd,nd->nv", N, np.einsum("nwd,nw->nd", Q, rng.normal(size=Q.shape[:2]))))


def least_squares(N: Float[Array, "n v d"], y: Float[Array, "n m"], sensors: Sensors) -> Float[Array, "n d"]:
    """X with (N x) nearest to y at the measured coordinates, for every sample."""
    M = N[:, sensors.velocity]
    if M.shape[1] == M.shape[2]:
        return solve_or_nearest(M, y)
    M = M * sensors.weight[:, None]
    return np.asarray(np.einsum("ndm,nm->nd", pinv(M), y * sensors.weight))
