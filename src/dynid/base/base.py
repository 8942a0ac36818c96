"""The structural base set: parameters identifiable from some motion of this mechanism.

W_tied = W_base [I K] P: columns that depend on others are grouped into them,

    chi_base = chi_kept + K chi_dependent

Ties: parameters of equal members (the legs of a parallel robot) are one parameter.

chi = T chi_tied + c: one column of T per tied parameter, c the known values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.base.grouping import Symbols, grouped_terms, grouping_text
from dynid.base.rank import STRUCTURAL_RTOL, ZERO_RTOL, ColumnRank, confirmed_columns, independent_columns
from dynid.common.arrays import Array, Float
from dynid.common.brief import one_line
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.mechanism import Mechanism, Tie
from dynid.mechanism.parameters import Parameter
from dynid.projection.factor import Factor


@dataclass(frozen=True, eq=False)
class BaseSet:
    """Structural base parameters of a mechanism.

    Attributes:
        standard: The standard parameters, one per column of the structural factor.
        indices: Standard index of the column that each base parameter keeps.
        S: Standard column combination of each base column (ties summed), shape (p, b).
        c: Known values, zero elsewhere, shape (p,), SI.
        G: chi_base = G chi_standard, shape (b, p); of tied parameters only the first counts.
        dependent: Standard indices of the grouped columns.
        eliminated: Names of parameters without effect on any row.
        tied: Name -> names of all members that are one parameter.
        rank: The rank decision.
        left_out: Base parameters of the robot that the rows in use do not determine -> why.
    """

    standard: tuple[Parameter, ...]
    indices: tuple[int, ...]
    S: Float[Array, "p b"]
    c: Float[Array, "p"]
    G: Float[Array, "b p"]
    dependent: tuple[int, ...]
    eliminated: tuple[str, ...]
    tied: Mapping[str, tuple[str, ...]]
    rank: ColumnRank
    notices: tuple[Notice, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    __repr__ = one_line

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters, `_R` at the end when others are grouped into one."""
        return tuple(regrouped_name(row) for row in self.relations())

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each base parameter."""
        return tuple(self.standard[i].unit for i in self.indices)

    @property
    def grouped(self) -> tuple[str, ...]:
        """Names of the parameters that act only within others."""
        return tuple(self.standard[i].name for i in self.dependent)

    def relations(self) -> tuple[dict[str, float], ...]:
        """For each base parameter: standard name -> coefficient, the kept one first."""
        return relations(self.standard, self.indices, self.G)

    def coefficients(self) -> dict[tuple[str, str], float]:
        """(kept, dependent) -> coefficient, standard names, without zeros."""
        return {
            (kept, name): value
            for row in self.relations()
            for kept in [next(iter(row))]
            for name, value in grouped_terms(row).items()
        }

    def groupings(self, symbols: Symbols | None = None) -> tuple[str, ...]:
        """The relation of each base parameter as text; empty when nothing is grouped into it."""
        return tuple(grouping_text(row, symbols) for row in self.relations())


def base_set(
    parameters: Sequence[Parameter],
    structural_factor: Factor,
    order: Sequence[int],
    known: Mapping[int, float] | None = None,
    *,
    ties: Sequence[Sequence[int]] = (),
    rounding: float = 0.0,
    unit: float = 1.0,
) -> BaseSet:
    """Structural base set from the factor of random feasible states.

    Args:
        parameters: One per column of the factor.
        structural_factor: Rows over the standard parameters; the measured side is not used.
        order: Standard indices in the order in which columns are considered.
        known: Standard index -> value; these columns are excluded.
        ties: Groups of standard indices that are one parameter (see `tied_columns`).
        rounding: If given, residual below which it is dependent, relative to the largest norm of all columns.
        unit: Size of the robot, in the unit of the description: columns are compared in this unit of length,
            so that decisions do not depend on the size.
    """
    tied, considered, scale, T, c = _considered(parameters, structural_factor, order, known, ties, unit)
    rank = independent_columns(
        tied, considered, rtol=rounding or STRUCTURAL_RTOL, common_scale=rounding > 0.0
    )
    return _assemble(tuple(parameters), T, c, _unscaled(rank, scale))


def singular_values(
    parameters: Sequence[Parameter],
    structural_factor: Factor,
    order: Sequence[int],
    known: Mapping[int, float] | None = None,
    *,
    ties: Sequence[Sequence[int]] = (),
    unit: float = 1.0,
) -> Float[Array, "k"]:
    """Singular values of the considered columns over their largest norm, descending; arguments as above."""
    tied, considered, *_ = _considered(parameters, structural_factor, order, known, ties, unit)
    used = tied[:, considered]
    return np.linalg.svd(used / np.linalg.norm(used, axis=0).max(initial=1e-300), compute_uv=False)


def base_like(
    like: BaseSet,
    structural_factor: Factor,
    order: Sequence[int],
    known: Mapping[int, float] | None = None,
    *,
    ties: Sequence[Sequence[int]] = (),
    unit: float = 1.0,
) -> BaseSet | None:
    """The base set of a robot with other dimensions where it has the groups of `like`; else None.

    The result of `base_set`, in a third of the time; arguments as there.
    """
    tied, considered, scale, T, c = _considered(like.standard, structural_factor, order, known, ties, unit)
    rank = confirmed_columns(tied, considered, like.rank)
    return None if rank is None else _assemble(like.standard, T, c, _unscaled(rank, scale))


def _unscaled(rank: ColumnRank, scale: Float[Array, "t"]) -> ColumnRank:
    """The decision with its combinations in the units of the columns."""
    return replace(rank, K=rank.K * scale[list(rank.kept), None] / scale[list(rank.dependent)])


def _considered(
    parameters: Sequence[Parameter],
    structural_factor: Factor,
    order: Sequence[int],
    known: Mapping[int, float] | None,
    ties: Sequence[Sequence[int]],
    unit: float,
) -> tuple[Float[Array, "k t"], list[int], Float[Array, "t"], Float[Array, "p t"], Float[Array, "p"]]:
    """Tied columns, their order, and the scale of each; T and c of `tying`.

    The largest column of a drive gets the norm of the largest inertial one: dimensions change each relative
    to columns of its kind.
    """
    W = structural_factor.W
    if W.ndim != 2 or W.shape[1] != len(parameters):
        raise InputError(f"a factor of shape {W.shape} does not match {len(parameters)} parameters")
    if not np.all(np.isfinite(W)):
        raise InputError("the structural factor has values that are not finite")
    T, c = tying(parameters, ties, known or {})
    first = _first(T)
    column = {i: k for k, i in enumerate(first)}
    tied = W @ T if np.any(T.sum(axis=0) > 1) else W[:, first]
    scale = unit ** np.array([parameters[i].length_power for i in first])
    drive = np.array([parameters[i].kind != "inertial" for i in first], dtype=bool)
    sizes = np.linalg.norm(tied * scale, axis=0)
    largest = sizes.max(initial=0.0)
    if sizes[drive].max(initial=0.0) > ZERO_RTOL * largest:
        scale[drive] *= largest / sizes[drive].max()
    return tied * scale, [column[i] for i in order if i in column], scale, T, c


def _first(T: Float[Array, "p t"]) -> list[int]:
    """Standard index of the parameter that names each column of T."""
    return [int(i) for i in np.argmax(T != 0, axis=0)]


def _members(parameters: Sequence[Parameter], T: Float[Array, "p t"]) -> dict[str, tuple[str, ...]]:
    """Name -> names of all members, for parameters with more than one."""
    several = T.T[T.sum(axis=0) > 1]
    every = [[parameters[i].name for i in np.flatnonzero(column).tolist()] for column in several]
    return {names[0]: tuple(names) for names in every}


def tie_regrouped(base: BaseSet, ties: Sequence[Sequence[int]]) -> BaseSet:
    """Make base parameters equal after regrouping: `apply: regrouped` of an experiment.

    Args:
        base: The base set before.
        ties: Groups of standard indices; members that are not base parameters are ignored.
    """
    place = {i: k for k, i in enumerate(base.indices)}
    groups = [[place[i] for i in group if i in place] for group in ties]
    base_params = tuple(base.standard[i] for i in base.indices)
    T, _ = tying(base_params, [group for group in groups if len(group) > 1], {})
    first = _first(T)
    return replace(
        base,
        indices=tuple(base.indices[k] for k in first),
        S=base.S @ T,
        G=base.G[first],
        tied={**base.tied, **_members(base_params, T)},
    )


def relations(
    standard: Sequence[Parameter], indices: Sequence[int], G: Float[Array, "b p"]
) -> tuple[dict[str, float], ...]:
    """Rows of G by name, the kept parameter first."""
    rows = [{standard[i].name: 1.0} for i in indices]
    places = zip(*(place.tolist() for place in np.nonzero(G)), strict=True)
    for (k, j), value in zip(places, G[G != 0].tolist(), strict=True):
        if j != indices[k]:
            rows[k][standard[j].name] = value
    return tuple(rows)


def regrouped_name(relation: Mapping[str, float]) -> str:
    """Name of a base parameter: the kept one's, with `_R` when others are grouped into it."""
    kept = next(iter(relation))
    return f"{kept}_R" if grouped_terms(relation) else kept


def undecided(rank: ColumnRank, what: str) -> tuple[Notice, ...]:
    """A notice when the rank decision has no clear gap."""
    if rank.decided:
        return ()
    gap = ""
    if rank.clearest_rank != rank.rank:
        gap = f"; the largest gap ({rank.clearest_gap:.0e}) is at rank {rank.clearest_rank}"
    kept, dropped = rank.smallest_kept, rank.largest_dropped
    return (notice("rank-undecided", what=what, rank=rank.rank, kept=kept, dropped=dropped, gap=gap),)


def _assemble(
    parameters: tuple[Parameter, ...], T: Float[Array, "p t"], c: Float[Array, "p"], rank: ColumnRank
) -> BaseSet:
    kept, dependent = list(rank.kept), list(rank.dependent)
    first = np.array(_first(T), dtype=int)
    G = np.zeros((len(kept), len(parameters)))
    G[np.arange(len(kept)), first[kept]] = 1.0
    G[:, first[dependent]] = rank.K
    return BaseSet(
        standard=parameters,
        indices=tuple(first[kept].tolist()),
        S=T[:, kept],
        c=c,
        G=G,
        dependent=tuple(first[dependent].tolist()),
        eliminated=tuple(parameters[i].name for i in first[list(rank.zero)]),
        tied=_members(parameters, T),
        rank=rank,
        notices=undecided(rank, "the structural regressor"),
    )


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
