"""Compiled loop that reads the numbers of delimited text.

A number of at most 19 digits is w 10^e with a whole w below 2^64. If w and 10^|e| are exact as floats, one
product or quotient is the nearest float [Clinger, "How to read floating point numbers accurately", 1990].
Otherwise the product is formed with twice the digits; if its error could matter for the rounding, the cell is
left to Python, as are all cells of another form.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float, Int, Shaped
from dynid.common.compiled import inner, kernel

_MOST = 250  # largest power of ten of the table: products neither overflow nor lose digits
_LINE, _RETURN, _TAB, _SPACE, _QUOTE = 10, 13, 9, 32, 34
_EXACT = np.array([10.0**k for k in range(23)])  # powers of ten that are floats
_DIGITS = 19  # that fit 64 bits
_MALFORMED = 1 << 20  # as an exponent


def _power_table() -> Float[Array, "k 2"]:
    """10^e for e from -_MOST to _MOST as sums of two floats, shape (2 _MOST + 1, 2)."""
    powers = [Fraction(10) ** e for e in range(-_MOST, _MOST + 1)]
    return np.array([(float(x), float(x - Fraction(float(x)))) for x in powers])


_POWERS = _power_table()


@inner
def _scaled(w: Any, e: int) -> Any:
    """The float nearest to w 10^e for 0 <= w < 2^64, nan if it is not certain."""
    high = float(w)
    if w <= np.uint64(1 << 53) and -23 < e < 23:
        return high * _EXACT[e] if e >= 0 else high / _EXACT[-e]
    if e < -_MOST or e > _MOST or high >= 1.8446744073709550e19:
        return np.nan
    whole = np.uint64(high)
    low = float(w - whole) if w >= whole else -float(whole - w)
    big, small = _POWERS[e + _MOST, 0], _POWERS[e + _MOST, 1]
    product = high * big
    # Error of the product, exactly [Dekker 1971]: both factors are split into halves of 26 digits.
    c = 134217729.0 * high
    a1 = c - (c - high)
    a2 = high - a1
    c = 134217729.0 * big
    b1 = c - (c - big)
    b2 = big - b1
    rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    rest += high * small + low * big
    slack = product * 2.0**-98  # far above what was rounded, 2^-103
    least, most = product + (rest - slack), product + (rest + slack)
    return least if least == most else np.nan


@inner
def _blanks(data: Shaped[Array, "n"], i: int, stop: int, delimiter: int) -> int:
    """First byte from i on that is no blank; if blanks separate cells, a whole run of them is passed."""
    while i < stop and (data[i] == _SPACE or data[i] == _TAB or data[i] == _RETURN):
        if data[i] == delimiter and delimiter != _SPACE:
            break
        i += 1
    return i


@inner
def _skipped(data: Shaped[Array, "n"], i: int, stop: int, delimiter: int) -> int:
    """End of a cell of any content; a delimiter inside quotes does not end it."""
    quoted = False
    while i < stop and data[i] != _LINE:
        byte = data[i]
        if byte == _QUOTE:
            quoted = not quoted
        elif not quoted and (byte == delimiter or (delimiter == _SPACE and byte == _TAB)):
            break
        i += 1
    return i


@inner
def _digits(data: Shaped[Array, "n"], i: int, stop: int, w: Any) -> Any:
    """End of the digits from i on, and w with them appended."""
    while i < stop:
        digit = np.uint8(data[i] - np.uint8(48))
        if digit > 9:
            break
        w = w * np.uint64(10) + np.uint64(digit)
        i += 1
    return i, w


@inner
def _exponent(data: Shaped[Array, "n"], i: int, stop: int) -> Any:
    """End of the number after an `e`, and the number."""
    minus = i < stop and data[i] == 45
    if i < stop and (minus or data[i] == 43):
        i += 1
    end, w = _digits(data, i, stop, np.uint64(0))
    if end == i:
        return end, _MALFORMED
    e = np.int64(w) if end - i < 5 else 9999
    return end, (-e if minus else e)


@inner
def _is_nan(data: Shaped[Array, "n"], i: int, stop: int) -> bool:
    return i + 3 <= stop and (data[i] | 32) == 110 and (data[i + 1] | 32) == 97 and (data[i + 2] | 32) == 110


@inner
def _number(data: Shaped[Array, "n"], i: int, stop: int, decimal: int, whole: bool) -> Any:
    """End of a number that begins at i, its value as float or as integer, and whether it was read."""
    minus = i < stop and data[i] == 45
    if i < stop and (minus or data[i] == 43):
        i += 1
    end, w = _digits(data, i, stop, np.uint64(0))
    count, e = end - i, 0
    if whole:
        return end, 0.0, np.int64(w), 0 < count < _DIGITS and not minus
    if count == 0 and _is_nan(data, i, stop):
        return i + 3, np.nan, 0, True
    first = i
    if end < stop and data[end] == decimal:
        i = end + 1
        end, w = _digits(data, i, stop, w)
        e = i - end
        count -= e
    while count > _DIGITS and (data[first] == 48 or data[first] == decimal):
        count -= data[first] == 48
        first += 1
    formed = 0 < count <= _DIGITS
    if end < stop and (data[end] | 32) == 101:
        end, shift = _exponent(data, end + 1, stop)
        e += shift
        formed &= shift != _MALFORMED
    value = _scaled(w, e) if formed else np.nan
    return end, (-value if minus else value), 0, value == value


@kernel
def read_cells(
    data: Shaped[Array, "n"],
    start: int,
    stop: int,
    marks: Int[Array, "2"],
    kinds: Int[Array, "c"],
    values: Float[Array, "k r"],
    counts: Int[Array, "k r"],
    odd: Int[Array, "o 4"],
) -> tuple[int, int]:
    """Numbers of the lines in data[start:stop]; blank lines are skipped.

    Args:
        data: The text, as bytes.
        start: First byte of a line.
        stop: End of a line, or of the data.
        marks: Bytes of the delimiter and of the decimal sign; a blank stands for any run of blanks and tabs.
        kinds: Per column -1: not used, 0: a float, 1: an integer.
        values: Gets one row per used column.
        counts: The same memory as integers.
        odd: Gets row, used column, start and end of cells that are not read here.

    Returns:
        Number of lines read, -1 if one has another number of cells; number of odd cells.
    """
    delimiter, decimal = marks[0], marks[1]
    row = n_odd = 0
    i = _blanks(data, start, stop, delimiter)
    while i < stop:
        if data[i] == _LINE:
            i = _blanks(data, i + 1, stop, delimiter)
            continue
        used = 0
        for column in range(len(kinds)):
            kind = kinds[column]
            if i < stop and data[i] <= _SPACE:
                i = _blanks(data, i, stop, delimiter)
            begin, good = i, kind < 0
            if not good:
                i, value, whole, good = _number(data, i, stop, decimal, kind == 1)
                last = i
                if i < stop and data[i] <= _SPACE:
                    i = _blanks(data, i, stop, delimiter)
                good &= (
                    i >= stop
                    or data[i] == delimiter
                    or data[i] == _LINE
                    or (delimiter == _SPACE and i > last)
                )
                if good and kind == 0:
                    values[used, row] = value
                elif good:
                    counts[used, row] = whole
                used += 1
            if kind < 0 or not good:
                i = _blanks(data, _skipped(data, begin, stop, delimiter), stop, delimiter)
            if not good:
                odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2], odd[n_odd, 3] = row, used - 1, begin, i
                n_odd += 1
            ends = i >= stop or data[i] == _LINE
            if ends != (column == len(kinds) - 1):
                return -1, n_odd
            i += not ends and delimiter != _SPACE
        row += 1
    return row, n_odd
