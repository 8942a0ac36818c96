"""Ties: parameters of equal members (the legs of a parallel robot) are one parameter.

chi = T chi_tied + c: one column of T per tied parameter, c the known values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.mechanism.mechanism import Mechanism, Tie
from dynid.mechanism.parameters import Parameter


def tied_columns(
    mechanism: Mechanism, tie: Tie, parameters: Sequence[Parameter]
) -> tuple[tuple[int, ...], ...]:
    """Indices of the parameters that `tie` makes equal, entry by entry, first member first."""
    return tuple(
        group
        for members in tie.groups
        for group in _equal_entries(tie, [_entries(mechanism, member, parameters) for member in members])
    )


def tying(
    parameters: Sequence[Parameter], ties: Sequence[Sequence[int]], known: Mapping[int, float]
) -> tuple[Float[Array, "p t"], Float[Array, "p"]]:
    """T and c from groups of equal parameters and known values.

    A value known for one member is known for all; two different values are refused.

    Returns:
        T: Ones where a standard parameter is the tied one, shape (p, t), dimensionless; the first of each
            column is the parameter that names it.
        c: Known values, zero elsewhere, shape (p,), SI.
    """
    leader = _leaders(len(parameters), ties)
    values: dict[int, float] = {}
    for i, value in known.items():
        if values.setdefault(leader[i], value) != value:
            raise InputError(
                f"'{parameters[i].name}' is fixed to {value}, but the parameter tied to it is fixed"
                f" to {values[leader[i]]}",
                remedy="give one value, or remove the tie",
            )
    first = tuple(i for i in range(len(parameters)) if leader[i] == i and i not in values)
    T = np.zeros((len(parameters), len(first)))
    column = {i: k for k, i in enumerate(first)}
    for i in range(len(parameters)):
        if leader[i] in column:
            T[i, column[leader[i]]] = 1.0
    return T, np.array([values.get(leader[i], 0.0) for i in range(len(parameters))])


def _leaders(n: int, ties: Sequence[Sequence[int]]) -> list[int]:
    """For each parameter the first one it equals, through any chain of ties."""
    leader = list(range(n))
    for group in ties:
        together = {leader[i] for i in group}
        lowest = min(together)
        leader = [lowest if i in together else i for i in leader]
    return leader


def _entries(
    mechanism: Mechanism, member: str, parameters: Sequence[Parameter]
) -> dict[tuple[str, str], int]:
    """(symbol, coordinate suffix) -> index, for all parameters of a body, joint or actuator."""
    owners = {member: ""}
    for joint in mechanism.joints:
        if joint.name == member:
            owners.update({name: name[len(member) :] for name in joint.coordinates})
    indices = {(p.symbol, owners[p.owner]): i for i, p in enumerate(parameters) if p.owner in owners}
    if not indices:
        names = list(dict.fromkeys(p.owner for p in parameters))
        raise InputError(
            f"tie member '{member}' has no parameters" + nearest(member, names),
            file=mechanism.file,
            remedy="name bodies or joints of the robot",
        )
    return indices


def _equal_entries(tie: Tie, tables: Sequence[Mapping[tuple[str, str], int]]) -> list[tuple[int, ...]]:
    for table in tables[1:]:
        different = sorted(set(table) ^ set(tables[0]))
        if different:
            raise InputError(
                f"tie '{tie.name}': its members do not all have '{different[0][0]}'",
                remedy="tie members with the same parameters and drive terms",
            )
    return [tuple(table[entry] for table in tables) for entry in tables[0]]
