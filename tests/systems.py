"""Small systems from dense rows, for tests of everything after System."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor, factor_rows
from dynid.projection.projection import Group, System


def parameters(p: int, *, symbols: Sequence[str] | None = None) -> tuple[Parameter, ...]:
    names = symbols or [f"P{i}" for i in range(p)]
    return tuple(Parameter(f"{s}_link{i}", s, f"link{i}", "kg m^2", "inertial") for i, s in enumerate(names))


def group(W, Y, *, name="joint_1", log="a.csv", columns=None, blocks=1) -> Group:
    """One group; `columns` are the parameters its rows speak of, `blocks` pieces in time order."""
    columns = np.arange(W.shape[1]) if columns is None else np.asarray(columns)
    pieces = np.array_split(np.arange(len(Y)), blocks)
    factors = tuple(factor_rows(W[rows], Y[rows]) for rows in pieces)
    return Group(name, log, "N m", columns, factors)


def system(W, Y, *, blocks=1, table=None) -> System:
    """All rows in one group."""
    return System(table or parameters(W.shape[1]), (group(W, Y, blocks=blocks),))


def joint_system(Ws, Ys, *, blocks=1, table=None) -> System:
    """One group a joint, each with its own number of rows."""
    pairs = zip(Ws, Ys, strict=True)
    groups = tuple(group(W, Y, name=f"joint_{i + 1}", blocks=blocks) for i, (W, Y) in enumerate(pairs))
    return System(table or parameters(Ws[0].shape[1]), groups)


class DensePass:
    """A `SecondPass` over dense rows: what streaming a log again gives, without a log.

    Args:
        Ws, Ys: Rows of each joint.
        Zs: Instruments; default W itself.
        sigmas: Noise of the columns [W Y] of each joint; default 1 % of a column's rms, none in Y.
    """

    def __init__(self, Ws, Ys, *, Zs=None, sigmas=None, blocks=1, table=None):
        self.Ws, self.Ys, self.blocks, self.table = Ws, Ys, blocks, table
        self.Zs = Ws if Zs is None else Zs
        self.sigmas = sigmas or [np.append(0.01 * np.sqrt(np.mean(W**2, axis=0)), 0.0) for W in Ws]

    def blocked(self):
        return joint_system(self.Ws, self.Ys, blocks=self.blocks, table=self.table)

    def residuals(self, chi, reduce, filtered=False):
        rhos = [Y - W @ chi for W, Y in zip(self.Ws, self.Ys, strict=True)]
        if filtered:  # rows of one instant together
            rho = np.stack(rhos)
            yield reduce(rho, np.ones(rho.shape, bool), np.arange(len(rhos)))
            return
        for g, rho in enumerate(rhos):
            yield reduce(rho[None], np.ones((1, len(rho)), bool), np.array([g]))

    def replaced(self, chi, change):
        Ys = [W @ chi + change(g, Y - W @ chi) for g, (W, Y) in enumerate(zip(self.Ws, self.Ys, strict=True))]
        return joint_system(self.Ws, Ys, blocks=self.blocks, table=self.table)

    def whitened(self, covariance):
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        Ws, Ys = np.einsum("kj,jnp->knp", inverse, np.stack(self.Ws)), inverse @ np.stack(self.Ys)
        return joint_system(list(Ws), list(Ys), blocks=self.blocks, table=self.table)

    def instruments(self, kind, cutoff):
        both = [np.column_stack([Z, W]) for Z, W in zip(self.Zs, self.Ws, strict=True)]
        one = self.blocked().parameters
        return joint_system(both, self.Ys, blocks=self.blocks, table=(*one, *one))

    def noise(self, position, draws=1):
        return tuple(
            Factor(np.sqrt(len(Y)) * np.diag(sigma), len(Y))
            for Y, sigma in zip(self.Ys, self.sigmas, strict=True)
        )

    def centred(self, position):
        return self.blocked()
