"""Small systems from dense rows, for tests of everything after System."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import factor_rows
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
