"""System: the linear equations W chi = Y in triangular form, whichever model made them.

Everything after this file is ignorant of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from dynid.arrays import Array
from dynid.conditioning.factor import Factor, merge
from dynid.mechanism.parameters import Parameter


@dataclass(frozen=True, eq=False)
class Directions:
    """Tangent directions of a model: its rows are N^T W_tree chi = effort_map tau.

    Attributes:
        names, units: Of the rows.
        N: Tree velocities per unit velocity of each row, shape (n_v, k).
        effort_map: What each row feels of the efforts, N^T B, shape (k, a).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    N: Float[Array, "v k"]
    effort_map: Float[Array, "k a"]


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one kind: one effort (or one power equation) in one log.

    Attributes:
        name: The effort or equation, e.g. `joint_2`.
        log: The log it comes from.
        unit: Of Y.
        columns: Indices of the system's parameters that can be non-zero in these rows; all
            other columns are zero here by structure.
        blocks: Factors over `columns` of consecutive pieces of about a second, in time order.
        inflation: How much larger the variance of a fit is than independent rows would promise,
            because the row filter correlates neighbours.
    """

    name: str
    log: str
    unit: str
    columns: Int[Array, "c"]
    blocks: tuple[Factor, ...]
    inflation: float = 1.0

    @property
    def n_rows(self) -> int:
        """Number of equations."""
        return sum(block.n_rows for block in self.blocks)

    def factor(self, n_parameters: int) -> Factor:
        """The group's rows as one factor over all parameters of the system."""
        own = merge(self.blocks)
        R = np.zeros((own.R.shape[0], n_parameters + 1))
        R[:, self.columns] = own.W
        R[:, -1] = own.Y
        return Factor(R, own.n_rows)


@dataclass(frozen=True, eq=False)
class System:
    """W chi = Y over the standard parameters, as triangular factors per group of rows.

    Attributes:
        parameters: One per column of W.
        known: Columns whose values are given (index -> value); they belong to the right side.
    """

    parameters: tuple[Parameter, ...]
    groups: tuple[Group, ...]
    known: dict[int, float] = field(default_factory=dict)

    def factor(self, weights: Float[Array, "g"] | None = None) -> Factor:
        """All rows as one factor, each group scaled by its weight (1 over its deviation)."""
        p = len(self.parameters)
        factors = []
        for i, group in enumerate(self.groups):
            one = group.factor(p)
            scale = 1.0 if weights is None else float(weights[i])
            factors.append(Factor(one.R * scale, one.n_rows))
        return merge(factors)
