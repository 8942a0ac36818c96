"""Cosine and sine of a tile, written so that the compiler can vectorise.

The library functions are called one number at a time, which took a third of the whole regressor.
Here x = n pi/2 + r with |r| <= pi/4, and Taylor sums of sin r and cos r, whose first omitted
terms (r^19/19!, r^18/18!) are below rounding.
"""

from __future__ import annotations

from fractions import Fraction
from inspect import unwrap
from math import factorial

import numpy as np
from numba.core import types
from numba.extending import overload

from dynid.kinematics.tile import LANES

# pi/2 in three parts of which the first two have 32 bits: n times each is exact up to n = 2^20.
_HALF_PI = Fraction("1.5707963267948966192313216916397514420985846996875529104874722961")
_FIRST = float(Fraction(int(_HALF_PI * 2**31), 2**31))
_SECOND = float(Fraction(int((_HALF_PI - Fraction(_FIRST)) * 2**63), 2**63))
_THIRD = float(_HALF_PI - Fraction(_FIRST) - Fraction(_SECOND))
_PER_QUARTER = float(1 / _HALF_PI)
_LARGEST = 1e6
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17 = (
    (-1.0) ** (k // 2) / factorial(k) for k in (3, 5, 7, 9, 11, 13, 15, 17)
)
_C4, _C6, _C8, _C10, _C12, _C14, _C16 = ((-1.0) ** (k // 2) / factorial(k) for k in (4, 6, 8, 10, 12, 14, 16))


def cos_sin(x: object) -> None:
    """Replace the first LANES numbers of x by their cosines, the next by their sines."""
    raise TypeError("cos_sin serves compiled kernels only")


@overload(cos_sin)
def _compiled(x):
    if isinstance(x.dtype, types.Complex):
        return unwrap(_library)
    return unwrap(_vector)


def _library(x):
    for k in range(LANES):
        c, s = np.cos(x[k]), np.sin(x[k])
        x[k] = c
        x[LANES + k] = s


def _vector(x):
    largest = 0.0
    for k in range(LANES):
        largest = max(largest, abs(x[k]))
    if not largest < _LARGEST:
        for k in range(LANES):
            c, s = np.cos(x[k]), np.sin(x[k])
            x[k] = c
            x[LANES + k] = s
        return
    for k in range(LANES):
        n = np.floor(x[k] * _PER_QUARTER + 0.5)
        r = ((x[k] - n * _FIRST) - n * _SECOND) - n * _THIRD
        z = r * r
        odd = _S9 + z * (_S11 + z * (_S13 + z * (_S15 + z * _S17)))
        s = r + r * z * (_S3 + z * (_S5 + z * (_S7 + z * odd)))
        even = _C10 + z * (_C12 + z * (_C14 + z * _C16))
        c = 1.0 - 0.5 * z + z * z * (_C4 + z * (_C6 + z * (_C8 + z * even)))
        quarter = n - 4.0 * np.floor(0.25 * n)
        turned = quarter == 1.0 or quarter == 3.0
        cosine = s if turned else c
        sine = c if turned else s
        x[k] = -cosine if quarter == 1.0 or quarter == 2.0 else cosine
        x[LANES + k] = -sine if quarter >= 2.0 else sine
