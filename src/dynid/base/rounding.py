"""Rank of a description whose numbers are rounded.

With six digits per dimension, parallel axes and equal lengths differ by 5e-7. Columns that are dependent
by design then have a residual of a few times that: far above floating-point rounding (1e-12) and far below
residuals due to geometry (1e-3). Such columns count as dependent, and a notice reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from dynid.base.base import BaseSet
from dynid.base.rank import DECIDED_GAP
from dynid.common.notices import notice

# Numbers with fewer digits are exact as written (0.3102 m), numbers with more digits too. With four digits,
# rounding could not be distinguished from geometry.
_DIGITS = range(5, 10)
# Residual over rounding: a chain of bodies adds up the roundings of its dimensions.
_GROWTH = 100.0


def rounding_of(values: Iterable[float]) -> float:
    """Half a unit of the last digit of the numbers that look rounded; 0 if none does.

    One in ten rounded numbers ends in zero and looks coarser than it is: the coarsest quarter is left out.

    Args:
        values: Dimensions of a description, in [m].
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
    """Whether every kept column is independent by more than `rounding` [m] can cause."""
    return base.rank.smallest_kept > _GROWTH * rounding


def allowing_rounding(base: BaseSet, rounding: float, again: Callable[..., BaseSet]) -> BaseSet:
    """The base set without columns that are independent only because of rounding in the description.

    Args:
        base: Decided as if every number were exact.
        rounding: Of the description's dimensions, in [m].
        again: The base set for another `rounding`, see `base_set`.
    """
    if clear_of_rounding(base, rounding):
        return base
    found = again(rounding=_GROWTH * rounding)
    if found.rank.rank == base.rank.rank:
        return base
    new, old = found.rank.rank, base.rank.rank
    if found.rank.gap < DECIDED_GAP:
        undecided = notice("rank-undecided", "rounding", rounding=rounding, count=old - new, new=new, old=old)
        return replace(base, notices=(*base.notices, undecided))
    rounded = notice("rounded-geometry", rounding=rounding, count=old - new, new=new, old=old)
    return replace(found, notices=(*found.notices, rounded))
