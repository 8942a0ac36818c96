"""Standard parameters as scaled variables: chi = T (scale x) + c, and the bodies they make.

Inertial variables are scaled by the mass and size of their body, the others by their linear estimate, so
data, bodies and bounds all have numbers of order one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.estimator.rigid_bodies import WHOLE, RigidBody
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.parameters import Parameter

# Standstill, then speeds at which friction brakes, in [rad/s] or [m/s]; a Stribeck speed is far below them.
_SPEEDS = np.concatenate([[1e-12], np.geomspace(1e-3, 1e2, 24)])
_CURVES = {
    symbol: np.concatenate(
        [sign * term.column(sign * _SPEEDS, 0.0 * _SPEEDS, 0.0 * _SPEEDS, 1e-6) for sign in (1.0, -1.0)]
    )
    for symbol, term in DRIVE_TERMS.items()
    if term.curve and term.friction
}


@dataclass(frozen=True, eq=False)
class StandardSpace:
    """Standard parameters with what is known of them: equal and known values, bodies, and the data.

    Its variables are first the x of chi = T (scale x) + c, then missing entries of bodies.

    Attributes:
        T, c: Ties and known values, shapes (p, t) and (p,) (see `base.base.tying`).
        U: The data are |U (G chi - estimate)|^2: triangle with U^T U = C^-1, shape (v, v), one over the units
            of the base parameters.
        G: chi_base = G chi, shape (v, p).
        estimate: The linear one of the base parameters, shape (v,), SI.
        E: Combinations that are zero, E chi = 0 (ties after regrouping), shape (e, p).
    """

    parameters: tuple[Parameter, ...]
    T: Float[Array, "p t"]
    c: Float[Array, "p"]
    bodies: tuple[RigidBody, ...]
    U: Float[Array, "v v"]
    G: Float[Array, "v p"]
    estimate: Float[Array, "v"]
    E: Float[Array, "e p"] | None = None

    def less_sure(self, root: Float[Array, "v r"]) -> StandardSpace:
        """The same with the covariance C + root root^T of the estimate.

        Args:
            root: Of what is added, shape (v, r), SI.
        """
        U_inverse = np.linalg.inv(self.U)
        R = np.linalg.qr(np.hstack([U_inverse, root]).T, mode="r")
        return replace(self, U=np.asarray(np.linalg.qr(np.linalg.inv(R).T, mode="r")))

    def distance(self, chi: Float[Array, "p"]) -> float:
        """|U (G chi - estimate)|: how many deviations standard parameters are from the estimate."""
        return float(np.linalg.norm(self.U @ (self.G @ chi - self.estimate)))

    @property
    def n_x(self) -> int:
        """Number of the x."""
        return int(self.T.shape[1])

    @cached_property
    def b(self) -> Float[Array, "v"]:
        """Right side of the data |A x - b|, in deviations."""
        return np.asarray(self.U @ (self.estimate - self.G @ self.c))

    @cached_property
    def deviation(self) -> Float[Array, "t"]:
        """Standard deviation of each x if the others were known, shape (t,), SI; one if in no row."""
        return _inverse(np.linalg.norm(self._rows, axis=0))

    @cached_property
    def A(self) -> Float[Array, "v t"]:
        """Matrix of the data |A x - b|, in deviations."""
        return np.asarray(self._rows * self.scale)

    @cached_property
    def _rows(self) -> Float[Array, "v t"]:
        return np.asarray(self.U @ self.G @ self.T)

    @cached_property
    def scale(self) -> Float[Array, "t"]:
        """Size of each x, SI: of the body for inertias, of the linear estimate or one deviation otherwise."""
        unit = np.zeros(len(self.parameters))
        for body in self.bodies[::-1]:
            for i, size in zip(body.columns, body.unit, strict=True):
                if i >= 0:
                    unit[i] = size
        unit = unit[np.argmax(self.T != 0, axis=0)]
        start = np.linalg.lstsq(self._rows * self.deviation, self.b, rcond=None)[0]
        estimate = self.deviation * np.maximum(1.0, np.abs(start))
        return np.asarray(np.where(unit > 0, unit, estimate))

    @cached_property
    def n(self) -> int:
        """Number of variables."""
        return self.n_x + sum(i < 0 for body in self.bodies for i in body.columns)

    @cached_property
    def every(self) -> dict[str, RigidBody]:
        """Bodies by name, as functions of the variables."""
        by_name, start = {}, self.n_x
        for body in self.bodies:
            by_name[body.name] = self._over_variables(body, start)
            start += sum(i < 0 for i in body.columns)
        return by_name

    @cached_property
    def distinct(self) -> list[RigidBody]:
        """The same, tied bodies once."""
        every = list(self.every.values())
        first = {(body.variables.tobytes(), body.u.tobytes()): body for body in every[::-1]}
        return [body for body in every if body in first.values()]

    @cached_property
    def signed(self) -> Int[Array, "s"]:
        """Variables that cannot be negative."""
        rows = [i for i, p in enumerate(self.parameters) if p.positive and p.name == f"{p.symbol}_{p.owner}"]
        return np.flatnonzero(np.any(self.T[rows] != 0, axis=0))

    @cached_property
    def braking(self) -> tuple[Float[Array, "s n"], Float[Array, "s"]]:
        """Friction brakes at every speed, although Fk or Fr alone may be negative: rows x + right >= 0.

        Of owners with such a term, in both directions: Fs + Fk at standstill, Fs + Fr sqrt(v) + Fv v at
        speeds v of all sizes. Rows are scaled.
        """
        owned: dict[str, dict[str, int]] = {}
        for i, p in enumerate(self.parameters):
            symbol, _, owner = p.name.partition("_")
            if p.kind == "drive" and symbol in _CURVES:
                owned.setdefault(owner, {})[symbol] = i
        rows, right = [], []
        for places in owned.values():
            if all(DRIVE_TERMS[symbol].positive for symbol in places):
                continue
            at = list(places.values())
            for factors in np.unique([_CURVES[symbol] for symbol in places], axis=1).T:
                row = np.zeros(self.n)
                row[: self.n_x] = factors @ self.T[at] * self.scale
                size = float(np.abs(row).max(initial=0.0))
                if size > 0.0:
                    rows.append(row / size)
                    right.append(float(factors @ self.c[at]) / size)
        return np.array(rows).reshape(len(rows), self.n), np.array(right)

    @cached_property
    def bodiless(self) -> Int[Array, "k"]:
        """Variables that belong to no body: drive parameters and terms."""
        inertial = [i for body in self.bodies for i in body.columns if i >= 0]
        return np.flatnonzero(~np.any(self.T[inertial] != 0, axis=0))

    @cached_property
    def unfelt(self) -> Int[Array, "k"]:
        """Those of them that act in no row."""
        return np.asarray(self.bodiless[~np.any(self.A[:, self.bodiless] != 0, axis=0)])

    def name(self, k: int) -> str:
        """Standard parameter behind variable k, the first of tied ones."""
        return self.parameters[int(np.argmax(self.T[:, k] != 0))].name

    def chi(self, x: Float[Array, "n"]) -> Float[Array, "p"]:
        """Standard parameters, SI."""
        return np.asarray(self.T @ (self.scale * x[: self.n_x]) + self.c)

    def _over_variables(self, body: RigidBody, start: int) -> RigidBody:
        """A body as a function of the variables; its missing entries are numbered from `start`."""
        u, u0 = np.zeros((10, self.n)), np.zeros(10)
        for k, i in enumerate(body.columns):
            if i < 0:  # an entry that the body does not have is free
                u[k, start] = 1.0
                start += 1
            else:
                u[k, : self.n_x] = self.T[i] * self.scale / body.unit[k]
                u0[k] = self.c[i] / body.unit[k]
        used = np.flatnonzero(np.any(u != 0, axis=0))
        whole = replace(body, variables=used, u=u[:, used], u0=u0, faces=WHOLE)
        present = [bool(np.any(whole.F[:, i, i] != 0) or whole.g[i, i] != 0) for i in WHOLE]
        return replace(whole, faces=tuple(i for i in WHOLE if present[i]))


def _inverse(sizes: Float[Array, "t"]) -> Float[Array, "t"]:
    return np.asarray(np.divide(1.0, sizes, out=np.ones_like(sizes), where=sizes > 0))
