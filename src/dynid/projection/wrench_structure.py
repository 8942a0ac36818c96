"""Structural identifiability from the balance of a freely moving body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor, factor_rows
from dynid.projection.projection import Directions
from dynid.projection.wrench import balanced_bodies, entries_of
from dynid.regressor.wrench import body_kernel, carried_kernel

_SEED = 20200311
_STATES = 12  # random motions of a free body: 72 rows for ten columns


def wrench_structure(
    mechanism: Mechanism,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    loads: Sequence[tuple[str, ...]] = ((),),
    stretch: float = 1.0,
    rows_per_column: float = 4.0,  # not used: few states are drawn anyway
    seed: int = _SEED,
) -> Factor:
    """Factor of the balances of freely moving bodies.

    A body's balance does not depend on its joints; motion that these prevent shows in the data.

    Args:
        directions: Not used: all six equations of a body are used.
        loads: Payloads mounted in each kind of table: only tables with and without separate them.
    """
    rng = np.random.default_rng(seed)
    index = {parameter.name: i for i, parameter in enumerate(parameters)}
    rows = []
    for mounted in dict.fromkeys(loads):
        for body in balanced_bodies(mechanism):
            omega, alpha, a = stretch * rng.normal(size=(3, _STATES, 3))
            W = np.zeros((6 * _STATES, len(parameters)))
            _place(W, body, body_kernel(omega, alpha, a), index)
            for name in mounted:
                payload = mechanism.payloads[name]
                if payload.body == body:
                    _place(W, name, carried_kernel(omega, alpha, a, payload.frame), index)
            rows.append(W)
    whole = np.concatenate(rows)
    return factor_rows(whole, np.zeros(len(whole)))


def _place(W: Float[Array, "r p"], owner: str, kernel: Float[Array, "n 6 10"], index: dict[str, int]) -> None:
    for i in entries_of(owner, index):
        W[:, index[f"{SYMBOLS[i]}_{owner}"]] = kernel[:, :, i].ravel()
