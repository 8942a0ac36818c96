"""Number formatting: as many digits as the uncertainty supports, not more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dynid.base.grouping import readable

if TYPE_CHECKING:
    from dynid.statistics.estimate import ParameterEstimate

_NEAR_TEN, _WHOLE = 9.95, 20.0  # percent: 10.0 and 10.4 differ where 10 % is a limit
_PLAIN = 1e5  # 930 N m reads better than 9.3e+02 N m
_MOST_DIGITS = 5  # decimals in scientific notation: exact data would fill the line with noise
_MOST_FIGURES = 8  # of a plain number, for the same reason
_MOST_DECIMALS = 6  # beyond these, scientific notation is easier to read


def number(value: float | None, digits: int = 4) -> str:
    """`value` with `digits` significant digits, plain below 100 000; a dash if there is no value."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < _PLAIN else text


def value_text(value: float, sigma: float | None) -> str:
    """`value` rounded to the second significant digit of its `sigma`."""
    if not sigma or not math.isfinite(sigma):
        return number(value)
    last_digit = math.floor(math.log10(sigma)) - 1
    size = math.floor(math.log10(abs(value))) if value else last_digit
    decimals = max(0, -last_digit)
    if 1e-3 <= abs(value) < 1e6 or (decimals <= _MOST_DECIMALS and abs(value) < 1e6):
        return f"{value:z.{min(decimals, max(0, _MOST_FIGURES - 1 - size))}f}"
    return f"{value:.{min(max(0, size - last_digit), _MOST_DIGITS)}e}" if value else "0"


def percent(value: float | None) -> str:
    """Percentages: two digits below 10, one decimal to 20, then whole numbers; `>999` for larger values."""
    if value is None or math.isnan(value):
        return "-"
    if value > 999:
        return ">999"
    if value == 0.0 or abs(value) >= _WHOLE:
        return f"{value:.0f}"
    if abs(value) >= _NEAR_TEN:
        return f"{value:.1f}"
    return f"{value:#.2g}" if abs(value) >= 1e-4 else f"{value:.0e}"


def interval_text(parameter: ParameterEstimate) -> str:
    """The 95 % interval as `[lo, hi]` in the digits of the value."""
    if parameter.ci95 is None:
        return "-"
    low, high = (value_text(bound, parameter.sigma) for bound in parameter.ci95)
    return f"[{low}, {high}]"


def sigma_text(sigma: float | None) -> str:
    """A standard deviation with two significant digits, and as many decimals as its value."""
    return "-" if sigma is None else value_text(sigma, sigma)


def unit_text(unit: str) -> str:
    """`kg m^2` as it is printed; nothing for a number without a unit."""
    return (
        ""
        if unit == "1"
        else unit.replace("^2", "\N{SUPERSCRIPT TWO}").replace("^3", "\N{SUPERSCRIPT THREE}")
    )


def grouping_text(name: str, grouping: str) -> str:
    """The right side of a grouping relation, for use next to the name."""
    return readable(grouping.removeprefix(f"{name} = "))


def plural(count: int, noun: str) -> str:
    """`1 warning`, `3 warnings`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
