"""Times written as text: durations of MATLAB ("0.002 sec", "00:00:00.002") and dates of ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from dynid.common.strict_number import UNSIGNED

_UNITS = {
    **dict.fromkeys(("ns",), Fraction(1, 10**9)),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
    **dict.fromkeys(("ms",), Fraction(1, 10**3)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(3600)),
}
_DURATION = re.compile(rf"(-?{UNSIGNED})\s*({'|'.join(_UNITS)})\Z")
_CLOCK = re.compile(r"(-?)(?:([0-9]{1,6})[.: ])??([0-9]{1,3}):([0-9]{2}):([0-9]{2}(?:[.,][0-9]{1,12})?)\Z")
_DATE = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})[T ]([0-9]{2}):?([0-9]{2}):?([0-9]{2}(?:[.,][0-9]{1,12})?)"
    r"(?: ?(?:Z|UTC|([-+])([0-9]{2}):?([0-9]{2})?))?\Z"
)
_WORDS = {
    "duration": "durations with a unit",
    "clock": "durations as hours:minutes:seconds",
    "date": "dates of ISO 8601",
}


def is_time_text(cells: Sequence[str]) -> bool:
    """Whether all cells are times of one kind."""
    return len({_kind(cell) for cell in cells}) == 1 and _kind(cells[0]) != ""


def seconds(cells: Sequence[str]) -> tuple[list[str], str]:
    """Each cell as decimal text in [s] (empty: it is no time), and what was decided, in words.

    Dates are counted from the first one, in exact fractions: floats would round stamps of today.
    """
    kind = next((known for cell in cells if (known := _kind(cell))), "")
    exact = [_exact(cell) if _kind(cell) == kind else None for cell in cells]
    origin = (
        next((value for value in exact if value is not None), Fraction(0)) if kind == "date" else Fraction(0)
    )
    first = next((cell for cell in cells if cell), "")
    words = f"{_WORDS.get(kind, 'text')}, first '{first}'" + ("; counted from it" if kind == "date" else "")
    return ["" if value is None else repr(float(value - origin)) for value in exact], words


def _kind(cell: str) -> str:
    for name, form in (("duration", _DURATION), ("clock", _CLOCK), ("date", _DATE)):
        if form.match(cell):
            return name
    return ""


def _exact(cell: str) -> Fraction | None:
    """Seconds: of a duration, or since the year 1; None for dates that do not exist."""
    if parts := _DURATION.match(cell):
        return Fraction(parts[1]) * _UNITS[parts[2]]
    if parts := _CLOCK.match(cell):
        sign, days, hours, minutes, rest = parts.groups()
        total = (
            86400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + Fraction(rest.replace(",", "."))
        )
        return -total if sign else total
    parts = _DATE.match(cell)
    if parts is None:
        return None
    year, month, day, hours, minutes, rest, sign, zone_h, zone_m = parts.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    zone = (3600 * int(zone_h or 0) + 60 * int(zone_m or 0)) * (-1 if sign == "-" else 1)
    clock = 3600 * int(hours) + 60 * int(minutes) + Fraction(rest.replace(",", "."))
    return 86400 * days + clock - zone
