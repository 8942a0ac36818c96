"""Dates of logs, in the forms that names of files have."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from dynid.common.strict_number import is_number

_DAYS = 86400.0
# Year and month, then perhaps day and time, as in names of files: 2026-03, 20260315, 2026-03-15_10-30-00.
_DATE = re.compile(
    r"((?:19|20)\d\d)[-_]?(0[1-9]|1[0-2])(?:[-_]?(0[1-9]|[12]\d|3[01])"
    r"(?:[T_ -]?(\d\d)[-_:]?(\d\d)(?:[-_:]?(\d\d))?Z?)?)?"
)


@lru_cache(maxsize=10_000)
def number_of(date: str) -> float | None:
    """A date as a number, in days since 1970 (UTC) unless it is a number itself; None if it is neither."""
    day = day_of(date.strip())
    return float(date) if day is None and is_number(date.strip()) else day


def form_of(date: str) -> str:
    """`none`, `day`, `number`, or `other` for what is no date."""
    if not date:
        return "none"
    if day_of(date) is not None:
        return "day"
    return "other" if number_of(date) is None else "number"


def day_of(text: str) -> float | None:
    """A date in days since 1970 (UTC); None if it is none, as a number."""
    if match := _DATE.fullmatch(text):
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        text = f"{year}-{month:02}-{day or 1:02}T{hour:02}:{minute:02}:{second:02}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / _DAYS
