"""Rework: equations rewritten so that an estimate is their weighted least-squares solution.

Everything computed from rows later (classical and cluster covariances, bootstraps, essential
parameters) then works for every estimator: it uses the rewritten equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError, nearest
from dynid.estimator.history import History
from dynid.estimator.row_access import SecondPass
from dynid.estimator.wls import Solver, Weighting, Weights
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor
from dynid.projection.projection import System


@dataclass(frozen=True, eq=False)
class Reworked:
    """Rewritten equations, with the weights of their groups.

    Attributes:
        system: Same parameters and groups as the system given, with blocks.
        chi: The estimate, if it is more accurate than the solution of `system`.
        history: How it came about, of recursive estimators.
        spent: Degrees of freedom used in addition to one for each parameter.
    """

    system: System
    weights: Weights
    chi: Float[Array, "p"] | None = None
    history: History | None = None
    spent: int = 0


Rework = Callable[[System, Weighting, Solver, SecondPass | None], Reworked]


def mapped_columns(
    system: System, columns: Float[Array, "p1 q1"], parameters: tuple[Parameter, ...] | None = None
) -> System:
    """Every row [W Y] of the system times `columns`, block by block; parameters default to its own."""
    groups = []
    for group in system.groups:
        own = columns[[*group.columns, -1]]
        blocks = tuple(Factor(block.R @ own, block.n_rows) for block in group.blocks)
        groups.append(replace(group, columns=np.arange(columns.shape[1] - 1), blocks=blocks))
    return System(parameters or system.parameters, tuple(groups))


def check_option(what: str, value: object, valid: tuple[str, ...]) -> None:
    """Refuse a word that is not one of the valid ones."""
    if value not in valid:
        raise InputError(
            f"{what} '{value}' is not known" + nearest(str(value), valid),
            remedy="use one of " + ", ".join(valid),
        )


def check_positive(what: str, value: float) -> float:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{what} {value!r} is not a positive number", remedy="give a positive number")
    return float(value)
