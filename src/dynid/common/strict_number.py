"""Numbers written as text: ASCII digits, one sign, a decimal point; the same rule for every file and option.

`float()` and `int()` also accept digits of other scripts, underscores and blanks. NumPy, YAML and log
writers do not, so such a text would be a number in one place and not in another.
"""

from __future__ import annotations

import re

UNSIGNED = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_NUMBER = re.compile(rf"[-+]?{UNSIGNED}\Z")
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf|infinity)\Z", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]+\Z")


def is_number(text: str, *, finite: bool = True) -> bool:
    """Whether `text` is a decimal number; with `finite=False` also nan and inf, as logs have them."""
    return _NUMBER.match(text) is not None or (not finite and _NOT_FINITE.match(text) is not None)


def is_word(text: str) -> bool:
    """Whether `text` is not meant as a number; digits of another script are, and are refused as invalid."""
    try:
        float(text)
    except ValueError:
        return True
    return False


def is_count(text: str) -> bool:
    """Whether `text` is an integer without sign."""
    return _COUNT.match(text) is not None
