"""BaseSystem: the data's equations over the base parameters identifiable from these data.

[W Y] [[S, -c], [0, 1]] = [W_base, Y - W c]: selection, ties and known values are one map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.base.base import BaseSet, regrouped_name, relations, undecided
from dynid.base.grouping import Symbols, grouping_text, invisible, listed
from dynid.base.rank import DATA_RTOL, ColumnRank, independent_columns
from dynid.common.arrays import Array, Float, Int
from dynid.common.brief import one_line
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.paged import together
from dynid.mechanism.drive_terms import DRIVE_TERMS
from dynid.mechanism.parameters import Parameter
from dynid.projection.projection import Group, System

# If a column is this many times its norm due to noise alone, noise in W biases its estimate by about 1 %.
_NOISE = 10.0


@dataclass(frozen=True, eq=False)
class BaseSystem:
    """W chi = Y over the base parameters identifiable from these data.

    Attributes:
        base: The structural set it comes from.
        system: Equations over these parameters; one block per group.
        source: The system before, over the standard parameters, with all blocks.
        indices: Standard index that each of these parameters keeps.
        S: Standard column combination of each of their columns, shape (p, v).
        G: chi = G chi_standard, what is grouped by structure and by these data, shape (v, p).
        unseen: Base parameters these data do not determine -> why.
        rank: The decision on the data.
        measured_norms: ||Y|| and ||Y - mean(Y)|| of each group before known values were moved to Y, shape
            (g, 2), unit of Y. The second is NaN without a constant column: a factor lacks the sum of Y then.
        equations: Equations with their blocks that replace those of the source, where an
            estimator has modified its rows; None: the rows are those of the source.
    """

    base: BaseSet
    system: System
    source: System
    indices: tuple[int, ...]
    S: Float[Array, "p v"]
    G: Float[Array, "v p"]
    unseen: Mapping[str, str]
    rank: ColumnRank
    measured_norms: Float[Array, "g 2"]
    notices: tuple[Notice, ...] = ()
    equations: System | None = None

    __repr__ = one_line

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters to estimate."""
        return tuple(parameter.name for parameter in self.system.parameters)

    def relations(self) -> tuple[dict[str, float], ...]:
        """For each parameter: standard name -> coefficient, the kept one first."""
        return relations(self.base.standard, self.indices, self.G)

    def groupings(self, symbols: Symbols | None = None) -> tuple[str, ...]:
        """The relation of each parameter as text.

        A symbol found for the structure is used only where these data do not change the
        coefficient.
        """
        structural = self.base.coefficients()
        rows = self.relations()
        return tuple(grouping_text(row, _still_valid(row, structural, symbols or {})) for row in rows)

    def invisible(self) -> dict[str, str]:
        """Standard parameters that no motion identifies separately -> the sums in which they act."""
        base, rows = self.base, self.base.relations()
        grouped = (base.standard[i] for i in base.dependent)
        reasons = {parameter.name: invisible(parameter, rows) for parameter in grouped}
        return reasons | dict.fromkeys(
            base.eliminated, "it has no effect on the efforts used, for any motion"
        )

    def values_of(self, standard: Mapping[str, float]) -> dict[str, float | None]:
        """Base values from standard ones (priors, truth); None where a required one is missing."""
        rows = zip(self.names, self.relations(), strict=True)
        return {
            name: sum(k * standard[member] for member, k in row.items())
            if row.keys() <= standard.keys()
            else None
            for name, row in rows
        }

    def blocked(self) -> System:
        """The same equations as `system` with the blocks of the source, rows in their order."""
        if self.equations is not None:
            return self.equations
        return mapped_blocks(self.source, self.S, self.base.c, self.system.parameters)

    def of(self, system: System) -> BaseSystem:
        """The same parameters in equations of a slightly different robot or log: no rank decision."""
        mapped = _mapped(system, self.S, self.base.c, self.system.parameters)
        return replace(self, system=mapped, source=system, equations=None)

    def with_equations(self, equations: System) -> BaseSystem:
        """The same parameters in other equations: those whose least-squares solution an estimate is."""
        groups = [
            replace(group, blocks=(group.merged,), times=None, runs=None, spans=None)
            for group in equations.groups
        ]
        return replace(self, system=replace(equations, groups=tuple(groups)), equations=equations)


def base_system(system: System, base: BaseSet, *, rtol: float = DATA_RTOL) -> BaseSystem:
    """Restrict the data to base columns and find which of them are identifiable from these data.

    Refuses fewer rows than parameters; names every base parameter that the data do not determine.

    Args:
        system: Over the same standard parameters as `base`; its known values must be those of
            the base set.
        base: Structural base set.
        rtol: Residual below which a column is not identifiable, relative to its norm.
    """
    _check(system, base)
    mapped = _mapped(system, base.S, base.c, _parameters(base.standard, base.indices, base.names))
    floor = None if system.noise is None else _NOISE * np.sqrt(np.square(base.S.T) @ np.square(system.noise))
    rank = independent_columns(mapped.factor().W, range(len(base.indices)), rtol=rtol, floor=floor)
    kept = list(rank.kept)
    G = base.G[kept] + rank.K @ base.G[list(rank.dependent)]
    indices = tuple(base.indices[k] for k in kept)
    names = tuple(regrouped_name(row) for row in relations(base.standard, indices, G))
    seen = _parameters(base.standard, indices, names)
    whole = len(kept) == len(base.indices)
    final = replace(mapped, parameters=seen) if whole else _mapped(system, base.S[:, kept], base.c, seen)
    unseen = _unseen(base, rank, relations(base.standard, indices, G), system.why)
    return BaseSystem(
        base=base,
        system=final,
        source=system,
        indices=indices,
        S=base.S[:, kept],
        G=G,
        unseen=unseen,
        rank=rank,
        measured_norms=np.array([_norms(group, system.parameters) for group in system.groups]),
        notices=base.notices + undecided(rank, "these data") + _missing(unseen, len(base.indices)),
    )


def _check(system: System, base: BaseSet) -> None:
    if tuple(p.name for p in system.parameters) != tuple(p.name for p in base.standard):
        raise InputError("the data and the base set have different standard parameters")
    for i, value in system.known.items():
        if base.c[i] != value:
            raise InputError(
                f"'{system.parameters[i].name}' is fixed to {value} in the data,"
                f" to {base.c[i]} in the base set",
                remedy="build the base set with the fixed values of the system",
            )
    n_rows = sum(group.n_rows for group in system.groups)
    if n_rows <= len(base.indices):
        raise InputError(
            f"{n_rows} rows cannot determine {len(base.indices)} base parameters and their uncertainty",
            remedy="add more time instants"
            if all(group.instants for group in system.groups)
            else "use a longer log, or decimate less",
        )
    for group in system.groups:
        if not np.all(np.isfinite(group.merged.R)):
            raise InputError(f"rows of '{group.name}' in {group.log} are not finite (NaN or infinity)")


def _parameters(
    standard: Sequence[Parameter], indices: Sequence[int], names: Sequence[str]
) -> tuple[Parameter, ...]:
    return tuple(replace(standard[i], name=name) for i, name in zip(indices, names, strict=True))


def _affine(
    group: Group, S: Float[Array, "p v"], c: Float[Array, "p"]
) -> tuple[Int[Array, "k"], Float[Array, "c1 k1"]]:
    """Which new columns a group of rows has, and [[S, -c], [0, 1]] over them: Y minus the known part."""
    S_group = S[group.columns]
    columns = np.flatnonzero(np.any(S_group != 0, axis=0))
    affine = np.zeros((len(S_group) + 1, len(columns) + 1))
    affine[:-1, :-1], affine[:-1, -1], affine[-1, -1] = S_group[:, columns], -c[group.columns], 1.0
    return columns, affine


def mapped_blocks(
    system: System, S: Float[Array, "p v"], c: Float[Array, "p"], parameters: tuple[Parameter, ...]
) -> System:
    """The equations over other columns, W S chi = Y - W c, block by block, rows in their order."""

    def mapped(group: Group) -> Group:
        columns, affine = _affine(group, S, c)
        return replace(group, columns=columns, blocks=group.multiplied(affine))

    return System(parameters, tuple(together(mapped, system.groups)))


def _mapped(
    system: System, S: Float[Array, "p v"], c: Float[Array, "p"], parameters: tuple[Parameter, ...]
) -> System:
    groups = []
    for group in system.groups:
        columns, affine = _affine(group, S, c)
        factor = group.merged.mapped(affine)
        groups.append(replace(group, columns=columns, blocks=(factor,), times=None, runs=None, spans=None))
    return System(parameters, tuple(groups))


def _norms(group: Group, parameters: Sequence[Parameter]) -> tuple[float, float]:
    factor = group.merged
    norm = float(np.linalg.norm(factor.Y))
    for k, i in enumerate(group.columns):
        ones = factor.W[:, k]
        # An offset of ratio one that acts all the time is a column of ones.
        offset = parameters[i].kind == "drive" and not DRIVE_TERMS[parameters[i].symbol].moves
        if offset and abs(ones @ ones / group.n_rows - 1.0) < 1e-6:
            about_mean = norm**2 - float(ones @ factor.Y) ** 2 / group.n_rows
            return norm, float(np.sqrt(max(about_mean, 0.0)))
    return norm, float("nan")


def _unseen(
    base: BaseSet, rank: ColumnRank, rows: Sequence[Mapping[str, float]], why: Mapping[str, str]
) -> dict[str, str]:
    parameters = {k: base.standard[base.indices[k]] for k in (*rank.zero, *rank.dependent)}
    reasons = {k: why.get(parameters[k].name) or _why_zero(parameters[k]) for k in rank.zero}
    for k in rank.dependent:
        reasons[k] = invisible(parameters[k], rows, " in these data")
        reasons[k] += f"; {why[parameters[k].name]}" if parameters[k].name in why else ""
    return {base.names[k]: reasons[k] for k in sorted(reasons)}


def _why_zero(parameter: Parameter) -> str:
    text = "its column is zero in these data: "
    if parameter.drive_term is not None and parameter.drive_term.moves:
        return text + f"{parameter.owner} does not move"
    return text + f"the motion of {parameter.owner} does not make it act on an effort used"


def _missing(unseen: Mapping[str, str], n_base: int) -> tuple[Notice, ...]:
    if not unseen:
        return ()
    names = listed(list(unseen))
    return (notice("not-excited", found=n_base - len(unseen), total=n_base, names=names),)


def _still_valid(
    row: Mapping[str, float], structural: Mapping[tuple[str, str], float], symbols: Symbols
) -> dict[tuple[str, str], str]:
    kept = next(iter(row))
    return {
        (kept, name): symbols[kept, name]
        for name, value in row.items()
        if (kept, name) in symbols
        and np.isclose(structural.get((kept, name), np.nan), value, rtol=1e-9, atol=0)
    }
