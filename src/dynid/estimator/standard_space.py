"""Standard parameters as scaled variables: chi = T (scale x) + c, and the bodies they make.

Inertial variables are scaled by the mass and size of their body, the others by their linear estimate, so
data, bodies and bounds all have numbers of order one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from dynid.common.arrays import Array
from dynid.mechanism.inertia import pseudo_inertia
from dynid.mechanism.parameters import Parameter

if TYPE_CHECKING:
    from dynid.estimator.rigid_bodies import RigidBody

# Stribeck friction Fk may be negative: what must not is all dry friction at standstill, Fs + Fk.
NON_NEGATIVE = ("Ia", "Fv", "Fs", "Fv+", "Fv-", "Fs+", "Fs-", "Fr", "Fl")
_WHOLE = (0, 1, 2, 3)
_BASIS = np.array([pseudo_inertia(one) for one in np.eye(10)])  # P' = sum u_k _BASIS[k]


@dataclass(frozen=True, eq=False)
class DataTerm:
    """The data as a quadratic term in the base parameters.

    Attributes:
        U: Triangle with U^T U = C^-1, shape (v, v), one over the parameters' units.
        G: chi_base = G chi, shape (v, p).
        chi: The linear estimate, shape (v,), SI.
    """

    U: Float[Array, "v v"]
    G: Float[Array, "v p"]
    chi: Float[Array, "v"]

    def less_sure(self, root: Float[Array, "v r"]) -> DataTerm:
        """The same estimate with the covariance C + root root^T.

        Args:
            root: Of what is added, shape (v, r), SI.
        """
        own = np.linalg.inv(self.U)
        R = np.linalg.qr(np.hstack([own, root]).T, mode="r")
        return replace(self, U=np.asarray(np.linalg.qr(np.linalg.inv(R).T, mode="r")))

    def distance(self, chi: Float[Array, "p"]) -> float:
        """|U (G chi - chi_hat)|: how many deviations standard parameters are from the estimate."""
        return float(np.linalg.norm(self.U @ (self.G @ chi - self.chi)))


@dataclass(frozen=True, eq=False)
class StandardSpace:
    """Standard parameters chi = T x + c with what is equal or known, and the bodies they make.

    Attributes:
        T, c: Ties and known values, shapes (p, t) and (p,) (see `base.ties.tying`).
        E: Combinations that are zero, E chi = 0 (ties after regrouping), shape (e, p).
    """

    parameters: tuple[Parameter, ...]
    T: Float[Array, "p t"]
    c: Float[Array, "p"]
    bodies: tuple[RigidBody, ...]
    E: Float[Array, "e p"] | None = None


@dataclass(frozen=True, eq=False)
class Pencil:
    """A body's scaled pseudo-inertia as a function of the variables: P' = sum x_i F_i + g.

    Attributes:
        u, u0: Scaled ten = u x[columns] + u0, shapes (10, k) and (10,).
        faces: Rows of P' that are not zero by what is known.
    """

    body: RigidBody
    columns: Int[Array, "k"]
    u: Float[Array, "10 k"]
    u0: Float[Array, "10"]
    faces: tuple[int, ...] = _WHOLE

    @cached_property
    def F(self) -> Float[Array, "k f f"]:
        """Coefficients on the faces."""
        return self._on_faces(np.einsum("ik,iab->kab", self.u, _BASIS))

    @cached_property
    def g(self) -> Float[Array, "f f"]:
        """Constant part on the faces."""
        return self._on_faces(np.einsum("i,iab->ab", self.u0, _BASIS))

    @cached_property
    def P0(self) -> Float[Array, "f f"] | None:
        """Scaled prior on the faces."""
        if self.body.prior is None:
            return None
        return self._on_faces(pseudo_inertia(self.body.prior / self.body.unit))

    @property
    def whole(self) -> Pencil:
        """The same with all four rows."""
        return replace(self, faces=_WHOLE)

    @property
    def is_free(self) -> bool:
        """Whether anything about the body is unknown."""
        return bool(self.faces) and len(self.columns) > 0

    def value(self, x: Float[Array, "n"]) -> Float[Array, "f f"]:
        """P' on the faces."""
        return np.asarray(np.einsum("k,kab->ab", x[self.columns], self.F) + self.g)

    def _on_faces(self, matrices: Float[Array, "*k m m"]) -> Float[Array, "*k f f"]:
        faces = list(self.faces)
        return np.asarray(matrices[..., faces, :][..., :, faces])


class Variables:
    """The scaled variables of a problem: first the x of chi = T x + c, then missing entries of bodies.

    Attributes:
        scale: Size of each x, shape (t,), SI.
        deviation: Standard deviation of each x if the others were known, shape (t,), SI; one if in no row.
        A, b: The data term |A x - b| in deviations, shapes (v, t) and (v,).
        every: Pencil of each body by name; `pencils` has tied bodies once.
    """

    def __init__(self, space: StandardSpace, data: DataTerm) -> None:
        self.space, self.data = space, data
        self.n_x = space.T.shape[1]
        self.b = data.U @ (data.chi - data.G @ space.c)
        rows = data.U @ data.G @ space.T
        self.deviation = _inverse(np.linalg.norm(rows, axis=0))
        self.scale = self._scales(rows)
        self.A = rows * self.scale
        missing = [sum(i < 0 for i in body.columns) for body in space.bodies]
        starts = self.n_x + np.concatenate([[0], np.cumsum(missing)]).astype(int)
        self.n = int(starts[-1])
        pencils = [
            self._pencil(body, int(start)) for body, start in zip(space.bodies, starts[:-1], strict=True)
        ]
        self.every = {one.body.name: one for one in pencils}
        distinct = {(one.columns.tobytes(), one.u.tobytes()): one for one in pencils[::-1]}
        self.pencils = [one for one in pencils if one in distinct.values()]

    @cached_property
    def signed(self) -> Int[Array, "s"]:
        """Variables that cannot be negative."""
        rows = [
            i
            for i, p in enumerate(self.space.parameters)
            if p.kind == "drive" and p.symbol in NON_NEGATIVE and p.name == f"{p.symbol}_{p.owner}"
        ]
        return np.flatnonzero(np.any(self.space.T[rows] != 0, axis=0))

    @cached_property
    def dry(self) -> tuple[Float[Array, "s n"], Float[Array, "s"]]:
        """Sums Fs + Fk (Fs+ and Fs- alike; Fk alone where there is neither) as rows x + right, scaled."""
        place = {p.name: i for i, p in enumerate(self.space.parameters) if p.kind == "drive"}
        rows, right = [], []
        for name, k in place.items():
            symbol, _, owner = name.partition("_")
            if symbol != "Fk":
                continue
            dry = [place[f"{s}_{owner}"] for s in ("Fs", "Fs+", "Fs-") if f"{s}_{owner}" in place]
            for both in [[k, i] for i in dry] or [[k]]:
                row = np.zeros(self.n)
                row[: self.n_x] = self.space.T[both].sum(axis=0) * self.scale
                size = float(np.abs(row).max(initial=0.0))
                if size > 0.0:
                    rows.append(row / size)
                    right.append(float(self.space.c[both].sum()) / size)
        return np.array(rows).reshape(len(rows), self.n), np.array(right)

    @cached_property
    def bodiless(self) -> Int[Array, "k"]:
        """Variables that belong to no body: drive parameters and terms."""
        inertial = [i for body in self.space.bodies for i in body.columns if i >= 0]
        return np.flatnonzero(~np.any(self.space.T[inertial] != 0, axis=0))

    @cached_property
    def unfelt(self) -> Int[Array, "k"]:
        """Those of them that act in no row."""
        return np.asarray(self.bodiless[~np.any(self.A[:, self.bodiless] != 0, axis=0)])

    def name(self, k: int) -> str:
        """Standard parameter behind variable k, the first of tied ones."""
        return self.space.parameters[int(np.argmax(self.space.T[:, k] != 0))].name

    def chi(self, x: Float[Array, "n"]) -> Float[Array, "p"]:
        """Standard parameters, SI."""
        return np.asarray(self.space.T @ (self.scale * x[: self.n_x]) + self.space.c)

    def _scales(self, rows: Float[Array, "v t"]) -> Float[Array, "t"]:
        """Size of the body for inertias; of the linear estimate, or one deviation, for the rest."""
        unit = np.zeros(len(self.space.parameters))
        for body in self.space.bodies[::-1]:
            for i, size in zip(body.columns, body.unit, strict=True):
                if i >= 0:
                    unit[i] = size
        unit = unit[np.argmax(self.space.T != 0, axis=0)]
        start = np.linalg.lstsq(rows * self.deviation, self.b, rcond=None)[0]
        estimate = self.deviation * np.maximum(1.0, np.abs(start))
        return np.asarray(np.where(unit > 0, unit, estimate))

    def _pencil(self, body: RigidBody, start: int) -> Pencil:
        u, u0 = np.zeros((10, self.n)), np.zeros(10)
        for k, i in enumerate(body.columns):
            if i < 0:  # an entry that the body does not have is free
                u[k, start] = 1.0
                start += 1
            else:
                u[k, : self.n_x] = self.space.T[i] * self.scale / body.unit[k]
                u0[k] = self.space.c[i] / body.unit[k]
        columns = np.flatnonzero(np.any(u != 0, axis=0))
        pencil = Pencil(body, columns, u[:, columns], u0)
        there = [bool(np.any(pencil.F[:, i, i] != 0) or pencil.g[i, i] != 0) for i in _WHOLE]
        return replace(pencil, faces=tuple(i for i in _WHOLE if there[i]))


def _inverse(sizes: Float[Array, "t"]) -> Float[Array, "t"]:
    return np.asarray(np.divide(1.0, sizes, out=np.ones_like(sizes), where=sizes > 0))
