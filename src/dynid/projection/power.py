"""Model `power`: one equation per sample, N = dq.

    dq^T W_tree chi = dq^T B tau

Unique for any internal tension of a redundantly actuated robot: tension does no work.
"""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.mechanism import Mechanism
from dynid.projection.model import Model, rows_of
from dynid.projection.projection import Directions
from dynid.projection.structure import structural_factor


def power_directions(mechanism: Mechanism) -> Directions:
    """The one row of the power model; every effort acts in it."""

    def moving(N: Float[Array, "n v d"], dq: Float[Array, "n v"]) -> Float[Array, "n v k"]:
        return dq[:, :, None]

    return Directions(("power",), ("W",), None, np.ones((1, len(mechanism.actuators))), moving, jumps=False)


POWER = Model(
    "power",
    "one equation per sample, unaffected by internal tension",
    power_directions,
    rows_of,
    structural_factor,
    measures="power",
    per_sample=True,
    promised_by="power",
)
