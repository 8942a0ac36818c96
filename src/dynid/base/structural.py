"""The base set of a mechanism from random feasible states, and its groupings with named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dynid.base.base import BaseSet, base_like, base_set, singular_values
from dynid.base.grouping import Symbols
from dynid.base.rounding import allowing_rounding, clear_of_rounding, rounding_of
from dynid.base.symbols import recover_symbols
from dynid.base.ties import tied_columns
from dynid.common.errors import InputError, nearest
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import Parameter, considered_order, known_columns, parameter_table
from dynid.projection.model import Model
from dynid.projection.projection import Directions, choose_rows

# A decision this clear needs no wider states: geometry leaves 1e-3, rounding 1e-13.
_CLEAR_GAP = 1e6
_FEW_ROWS = 1.5  # per column: enough to confirm a decision that more rows have made
_STRETCHES = (1.0, 2.0, 4.0, 0.5)
# A dense triangle of so many columns takes 70 MB and some seconds; humanoids have a third.
_MOST_PARAMETERS = 3000

Loads = Sequence[tuple[str, ...]]


def structural_base(
    mechanism: Mechanism,
    model: Model,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    *,
    ties: Sequence[str] = (),
    loads: Loads = ((),),
    like: BaseSet | None = None,
) -> BaseSet:
    """Base set at random feasible states, drawn wider until the rank decision is clear.

    Args:
        directions: Rows in use; None for all tangent directions of a closed mechanism.
        like: The base set of the same robot with other dimensions: it only saves time.
    """
    if len(parameters) > _MOST_PARAMETERS:
        raise InputError(
            f"robot '{mechanism.name}' has {len(parameters)} parameters; base parameters are computed for at"
            f" most {_MOST_PARAMETERS}",
            file=mechanism.file,
            remedy="use a sub-chain (bodies), or fix joints that do not move",
        )
    known = known_columns(mechanism, parameters)
    groups = tie_groups(mechanism, parameters, ties)
    order = considered_order(mechanism, parameters)
    unit = _unit(mechanism)
    rounding = rounding_of(mechanism.geometry.values()) / unit
    if like is not None and like.standard == tuple(parameters):
        few = model.structure(mechanism, parameters, directions, loads=loads, rows_per_column=_FEW_ROWS)
        same = base_like(like, few, order, known, ties=groups, unit=unit)
        if same is not None and same.rank.gap >= _CLEAR_GAP and clear_of_rounding(same, rounding):
            return same
    candidates: list[BaseSet] = []
    for stretch in _STRETCHES:
        factor = model.structure(mechanism, parameters, directions, loads=loads, stretch=stretch)
        again = partial(base_set, parameters, factor, order, known, ties=groups, unit=unit)
        singular = partial(singular_values, parameters, factor, order, known, ties=groups, unit=unit)
        candidates.append(allowing_rounding(again(), rounding, again, singular))
        if candidates[-1].rank.gap >= _CLEAR_GAP or _has(candidates[-1], "rounded-geometry"):
            return candidates[-1]
    # None is clear: the clearest one is returned, with its own notice when it is undecided.
    return max(candidates, key=lambda base: (not _has(base, "rank-undecided"), base.rank.gap))


def _unit(mechanism: Mechanism) -> float:
    """Largest dimension of the description, in its unit: no decision depends on the size of a robot."""
    return max(map(abs, mechanism.geometry.values()), default=0.0) or 1.0


def _has(base: BaseSet, code: str) -> bool:
    return any(notice.code == code for notice in base.notices)


def tie_groups(
    mechanism: Mechanism, parameters: Sequence[Parameter], ties: Sequence[str]
) -> list[tuple[int, ...]]:
    """Columns that the named ties make equal."""
    groups: list[tuple[int, ...]] = []
    for name in ties:
        if name not in mechanism.ties:
            raise InputError(
                f"no tie '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.ties),
                remedy="describe it under `ties:` of the robot file",
            )
        groups += tied_columns(mechanism, mechanism.ties[name], parameters)
    return groups


def grouping_symbols(
    mechanism: Mechanism,
    model: Model,
    *,
    ties: Sequence[str] = (),
    rows: Sequence[str] | None = None,
    loads: Loads = ((),),
    base: BaseSet | None = None,
) -> Symbols:
    """Named dimensions in the coefficients of the structural grouping, where they match.

    Args:
        rows: Equations in use; None for all of the model.
        base: The structural base set of these equations, where it is known already.
    """

    def base_of(robot: Mechanism, like: BaseSet | None = None) -> BaseSet:
        parameters = parameter_table(robot)
        chosen = structural_rows(robot, model, rows)
        return structural_base(robot, model, parameters, chosen, ties=ties, loads=loads, like=like)

    nominal = base or base_of(mechanism)

    def coefficients(robot: Mechanism) -> Mapping[tuple[str, str], float]:
        if robot.is_closed:
            assembly_of(robot, near=mechanism)
        return (nominal if robot is mechanism else base_of(robot, nominal)).coefficients()

    units = {parameter.name: parameter.unit for parameter in parameter_table(mechanism)}
    return recover_symbols(mechanism, coefficients, units=units)


def structural_rows(robot: Mechanism, model: Model, rows: Sequence[str] | None = None) -> Directions | None:
    """Rows of a tree; None for a closed mechanism, of which all tangent directions are taken."""
    return None if robot.is_closed else choose_rows(model.directions(robot), rows)
