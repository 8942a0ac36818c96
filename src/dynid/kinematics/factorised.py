"""Factorised closure Jacobians of a batch: tangent directions and minimum-norm steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.common.batched import pinv, qr, solve_or_nearest, svd
from dynid.kinematics.sensors import Sensors


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


def least_squares(N: Float[Array, "n v d"], y: Float[Array, "n m"], sensors: Sensors) -> Float[Array, "n d"]:
    """X with (N x) nearest to y at the measured coordinates, for every sample."""
    M = N[:, sensors.velocity]
    if M.shape[1] == M.shape[2]:
        return solve_or_nearest(M, y)
    M = M * sensors.weight[:, None]
    return np.asarray(np.einsum("ndm,nm->nd", pinv(M), y * sensors.weight))
