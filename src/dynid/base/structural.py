"""The base set of a mechanism from random feasible states, and its groupings with named dimensions.

Rank of a description whose numbers are rounded.

With six digits per dimension, parallel axes and equal lengths differ by 5e-7 of the size of the robot.
Columns that are dependent or zero by design then have a residual of about that, relative to the largest
column of their kind: the largest of them is 0.1 to 20 roundings on serial arms, hexapods and Sarrus linkages
in random frames, far from singular poses. Geometry leaves 1e-5 to 1.
Columns below the gap between the two count as dependent, and a notice reports it. Long rods and short cranks
leave as little with four digits. What rounding has caused changes when the last digits do; what geometry
has caused hardly does. This is asked where all directions are exact, along axes of frames: only lengths are
then rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dynid.base.base import BaseSet, base_like, base_set, singular_values, tied_columns
from dynid.base.grouping import Symbols
from dynid.base.rank import DECIDED_GAP
from dynid.base.symbols import recover_symbols
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.notices import at_level, notice
from dynid.kinematics.assembly import assembly_of
from dynid.mechanism.description import at_values
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
        other = partial(
            _singular_elsewhere,
            mechanism,
            model,
            parameters,
            directions,
            loads,
            stretch,
            (order, known, groups),
        )
        candidates.append(allowing_rounding(again(), rounding, again, singular, other))
        if candidates[-1].rank.gap >= _CLEAR_GAP or _has(candidates[-1], "rounded-geometry"):
            return candidates[-1]
    # None is clear: the clearest one is returned, with its own notice when it is undecided.
    return max(candidates, key=lambda base: (not _has(base, "rank-undecided"), base.rank.gap))


def _singular_elsewhere(
    mechanism: Mechanism,
    model: Model,
    parameters: Sequence[Parameter],
    directions: Directions | None,
    loads: Loads,
    stretch: float,
    columns: tuple[Sequence[int], Mapping[int, float], Sequence[Sequence[int]]],
) -> Float[Array, "k"] | None:
    """Singular values for dimensions off by half of their last digit; None where there is no such robot.

    Args:
        columns: Order, known columns and ties.
    """
    halves = {name: _half_digit(value) for name, value in mechanism.geometry.items()}
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(halves))
    values = {
        name: mechanism.geometry[name] + float(sign) * half
        for (name, half), sign in zip(halves.items(), signs, strict=True)
        if half
    }
    if mechanism.rebuild is None or not values or not _exact_directions(mechanism):
        return None
    order, known, ties = columns
    try:
        factor = model.structure(
            at_values(mechanism, values), parameters, directions, loads=loads, stretch=stretch
        )
    except InputError:
        return None
    return singular_values(parameters, factor, order, known, ties=ties, unit=_unit(mechanism))


def _exact_directions(mechanism: Mechanism) -> bool:
    """Whether all axes lie along axes of frames that are turned by quarters, exactly."""
    frames = [frame for joint in mechanism.joints for frame in (joint.placement, joint.body)]
    frames += [frame for loop in mechanism.loops for frame in (loop.a, loop.b)]
    axes = [axis for joint in mechanism.joints for axis in joint.axes]
    entries = np.concatenate([np.ravel(x) for x in (*(frame.R for frame in frames), *axes)])
    return bool(np.all(np.abs(entries - np.round(entries)) < _EXACT))


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
    parameters = parameter_table(mechanism)  # names and units, which dimensions do not change

    def base_of(robot: Mechanism, like: BaseSet | None = None) -> BaseSet:
        chosen = structural_rows(robot, model, rows)
        return structural_base(robot, model, parameters, chosen, ties=ties, loads=loads, like=like)

    nominal = base or base_of(mechanism)

    def coefficients(robot: Mechanism) -> Mapping[tuple[str, str], float]:
        if robot.is_closed:
            assembly_of(robot, near=mechanism)
        return (nominal if robot is mechanism else base_of(robot, nominal)).coefficients()

    units = {parameter.name: parameter.unit for parameter in parameters}
    return recover_symbols(mechanism, coefficients, units=units)


def structural_rows(robot: Mechanism, model: Model, rows: Sequence[str] | None = None) -> Directions | None:
    """Rows of a tree; None for a closed mechanism, of which all tangent directions are taken."""
    return None if robot.is_closed else choose_rows(model.directions(robot), rows)


# Numbers with fewer digits are exact as written (0.31 m), numbers with more digits too. With four digits
# rounding and geometry overlap in some robots: the count may then be wrong, but a notice says so.
_DIGITS = range(4, 10)
# Largest residual over rounding: a chain of bodies adds up the roundings of its dimensions.
_GROWTH = 50.0
_SURE = 0.3  # part of the rounding: what is smaller is certainly not geometry
# Change of a singular value with the last digits: some 1 if rounding has caused it, 0.01 if geometry has.
_STEADY = 0.2
_EXACT = 1e-12  # of a direction: some roundings of floating-point numbers


def rounding_of(values: Iterable[float]) -> float:
    """Half a unit of the last digit of the numbers that look rounded; 0 if none does.

    One in ten rounded numbers ends in zero and looks coarser than it is: the coarsest quarter is left out.

    Args:
        values: Dimensions of a description, in its unit.
    """
    halves = sorted(filter(None, map(_half_digit, values)), reverse=True)
    return halves[len(halves) // 4] if halves else 0.0


def _half_digit(value: float) -> float:
    if value == 0.0 or not math.isfinite(value):
        return 0.0
    digits = next((k for k in range(1, 16) if float(f"{value:.{k - 1}e}") == value), 16)
    if digits not in _DIGITS:
        return 0.0
    return float(0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1))


def clear_of_rounding(base: BaseSet, rounding: float) -> bool:
    """Whether every kept column is independent by more than `rounding`, in units of the size, can cause."""
    return bool(base.rank.effects.min(initial=1.0) > _GROWTH * rounding)


def allowing_rounding(
    base: BaseSet,
    rounding: float,
    again: Callable[..., BaseSet],
    singular: Callable[[], Float[Array, "k"]],
    elsewhere: Callable[[], Float[Array, "k"] | None] = lambda: None,
) -> BaseSet:
    """The base set without columns that are independent only because of rounding in the description.

    How many there are is read from the effects of the kept columns, or from the singular values of all
    columns: whichever has the wider gap. Effects depend on the order of columns: one that is nearly parallel
    to an earlier column by chance has a small effect.

    Args:
        base: Decided as if every number were exact.
        rounding: Of the description's dimensions, in units of its size.
        again: The base set for another `rounding`, see `base_set`.
        singular: Singular values of all columns over their largest norm, descending.
        elsewhere: The same for other last digits of the dimensions; None: not known.
    """
    old = base.rank.rank
    if clear_of_rounding(base, rounding):
        return base
    count, gap = max(
        (_below_gap(values, rounding) for values in (np.sort(base.rank.effects), singular()[:old][::-1])),
        key=lambda pair: pair[1],
    )
    if count == 0 or _steady(singular()[old - count : old], elsewhere(), old):
        return base
    reduced = _without(count, base, again, rounding)
    new = reduced.rank.rank
    if gap < DECIDED_GAP or new != old - count:
        undecided = notice("rank-undecided", "rounding", rounding=rounding, count=old - new, new=new, old=old)
        # All columns are kept, and sigma shows which are weak: nothing to take care of.
        return replace(base, notices=(*base.notices, at_level(undecided, "good")))
    rounded = notice("rounded-geometry", rounding=rounding, count=old - new, new=new, old=old)
    return replace(reduced, notices=(rounded,))


def _steady(least: Float[Array, "count"], other: Float[Array, "k"] | None, rank: int) -> bool:
    """Whether the least singular values of `rank` hardly change with the last digits of the dimensions."""
    if other is None or len(other) < rank:
        return False
    return bool(np.all(np.abs(other[rank - len(least) : rank] - least) < _STEADY * least))


def _below_gap(values: Float[Array, "kept"], rounding: float) -> tuple[int, float]:
    """How many values rounding has probably caused, and the ratio of the gap above them.

    Products of two roundings are far smaller than one: a gap below `_SURE` roundings does not count.

    Args:
        values: Ascending, relative to the largest column.
    """
    least = np.maximum(values, _SURE * rounding)
    above = np.append(least[1:], 1.0)
    possible = np.flatnonzero(values <= _GROWTH * rounding)
    if not len(possible):
        return 0, float(values.min(initial=1.0) / rounding)
    last = int(possible[np.argmax(above[possible] / least[possible])])
    return last + 1, float(above[last] / least[last])


def _without(count: int, base: BaseSet, again: Callable[..., BaseSet], rounding: float) -> BaseSet:
    """The base set with `count` columns less, or with the next smaller number that a level gives.

    A column that depends on a dropped one enlarges its rounding: the level is raised until no such column is
    kept.
    """
    reduced, level = base, _SURE * rounding
    while reduced.rank.rank > base.rank.rank - count:
        reduced = again(rounding=level)
        level = max(1.5 * level, float(reduced.rank.effects.min(initial=1.0)))
    return reduced
