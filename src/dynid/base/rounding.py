"""Rank of a description whose numbers are rounded.

With six digits per dimension, parallel axes and equal lengths differ by 5e-7 of the size of the robot.
Columns that are dependent or zero by design then have a residual of about that, relative to the largest
column of their kind: the largest of them is 0.1 to 20 roundings on serial arms, hexapods and Sarrus linkages
in random frames, far from singular poses. Geometry leaves 1e-5 to 1.
Columns below the gap between the two count as dependent, and a notice reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from dynid.base.base import BaseSet
from dynid.base.rank import DECIDED_GAP
from dynid.common.arrays import Array, Float
from dynid.common.notices import notice

# Numbers with fewer digits are exact as written (0.31 m), numbers with more digits too. With four digits
# rounding and geometry overlap in some robots: the count may then be wrong, but a notice says so.
_DIGITS = range(4, 10)
# Largest residual over rounding: a chain of bodies adds up the roundings of its dimensions.
_GROWTH = 50.0
_SURE = 0.3  # part of the rounding: what is smaller is certainly not geometry


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
    base: BaseSet, rounding: float, again: Callable[..., BaseSet], singular: Callable[[], Float[Array, "k"]]
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
    """
    old = base.rank.rank
    if clear_of_rounding(base, rounding):
        return base
    count, gap = max(
        (_below_gap(values, rounding) for values in (np.sort(base.rank.effects), singular()[:old][::-1])),
        key=lambda pair: pair[1],
    )
    if count == 0:
        return base
    reduced = _without(count, base, again, rounding)
    new = reduced.rank.rank
    if gap < DECIDED_GAP or new != old - count:
        undecided = notice("rank-undecided", "rounding", rounding=rounding, count=old - new, new=new, old=old)
        return replace(base, notices=(*base.notices, undecided))
    rounded = notice("rounded-geometry", rounding=rounding, count=old - new, new=new, old=old)
    return replace(reduced, notices=(rounded,))


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
