"""Units of log columns: the factor that turns a value into SI; and the unit of the last digit of a number."""

from __future__ import annotations

import re
from math import pi

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest

_DEGREE = pi / 180.0
_TURN = 2.0 * pi

FACTORS: dict[str, float] = {
    "1": 1.0,
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9,
    "rad": 1.0, "mrad": 1e-3, "deg": _DEGREE, "rev": _TURN,
    "m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": 0.0254,
    "rad/s": 1.0, "mrad/s": 1e-3, "deg/s": _DEGREE, "rev/s": _TURN, "rpm": _TURN / 60.0,
    "m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3,
    "rad/s^2": 1.0, "deg/s^2": _DEGREE, "m/s^2": 1.0, "cm/s^2": 1e-2, "mm/s^2": 1e-3, "g": 9.80665,
    "N": 1.0, "mN": 1e-3, "kN": 1e3,
    "Nm": 1.0, "mNm": 1e-3, "kNm": 1e3, "Ncm": 1e-2, "Nmm": 1e-3,
    "kgfm": 9.80665, "kgfcm": 0.0980665, "lbfft": 1.3558179483314004, "lbfin": 0.1129848290276167,
    "A": 1.0, "mA": 1e-3,
}  # fmt: skip
_SPELLINGS = {
    "µs": "us",
    "µm": "um",
    "rads": "rad",
    "°": "deg",
    "°/s": "deg/s",
    "1/min": "rpm",
    "r/min": "rpm",
    "rev/min": "rpm",
    "RPM": "rpm",
    "turn": "rev",
    "turns": "rev",
    **dict.fromkeys(("kgcm", "cmkgf"), "kgfcm"),
    **dict.fromkeys(("kgm", "mkgf"), "kgfm"),
    **dict.fromkeys(("lbft", "ftlb", "ftlbf"), "lbfft"),
    **dict.fromkeys(("lbin", "inlb", "inlbf"), "lbfin"),
}
_LONG = {"degrees": "deg", "degree": "deg", "radians": "rad", "radian": "rad"}
_LONG |= {"seconds": "s", "second": "s", "sec": "s"}
_LONG |= {"newtons": "N", "newton": "N", "meters": "m", "metres": "m", "meter": "m", "metre": "m"}
_PRODUCTS = {"kg m s-2": "N", "kg m2 s-2": "Nm", "min-1": "1/min"}
_JOINERS = re.compile(r"[ \t*·.]+")
# `rad s-1`, as the CF conventions of netCDF have it. `ms-1` without a space is per millisecond too: unknown.
_PER = re.compile(r"(.+) (s|sec|seconds?|min)-([12])")
_POWERS = str.maketrans("⁻−¹²", "--12")
_MOST = 16  # figures of a float64
_RTOL = 4e-15  # rounding error of a power of ten and a product


def factor(unit: str | None, *, column: str = "", file: object = None) -> float:
    """SI value of one `unit`; None and "1" leave the value as it is.

    Spaces, dots, stars and hyphens between units do not matter: `N m`, `N*m`, `Nm` are the same, and so
    are `rad/s`, `rad s-1`, `rad s^-1`.
    """
    if unit is None:
        return 1.0
    plain = _plain(unit)
    if plain not in FACTORS:
        raise InputError(
            f"unknown unit '{unit}'" + nearest(plain, FACTORS),
            file=file,
            place=f"column '{column}'" if column else None,
            remedy="use one of these units, or give `scale` instead",
        )
    return FACTORS[plain]


def canonical_unit(unit: str) -> str | None:
    """The unit as `FACTORS` spells it; None if it is not one."""
    plain = _plain(unit)
    return plain if plain in FACTORS else None


def _plain(unit: str) -> str:
    tidy = unit.strip().translate(_POWERS).replace("**", "^").replace("^-", "-")
    tidy = _JOINERS.sub(" ", tidy)
    tidy = _PRODUCTS.get(tidy.replace("^", ""), tidy)
    if per := _PER.fullmatch(tidy):
        tidy = f"{per[1]}/{per[2]}{per[3]}".removesuffix("1")
    plain = tidy.replace(" ", "").replace("-", "")
    for long, short in _LONG.items():
        plain = plain.replace(long, short)
    plain = plain.replace("s2", "s^2")
    return _SPELLINGS.get(plain, plain)


def last_figures(x: Float[Array, "n"]) -> Float[Array, "n"]:
    """Unit of the last printed digit of every number of a column: 1e-6 for 1.234567 with seven digits.

    A column is printed with a fixed number of significant digits, or of decimals. The largest count that
    occurs is that of the format, since only single numbers lose trailing zeros. If both are possible, the
    coarser one is used. Numbers of full precision have the spacing of floats.
    """
    known = np.isfinite(x) & (x != 0.0)
    if not known.any():
        return np.zeros(len(x))
    size = np.zeros(len(x))
    size[known] = np.floor(np.log10(np.abs(x[known])))
    figures = _figures(x[known], size[known])
    decimals = np.max(figures - 1.0 - size[known])
    by_figures = 10.0 ** (size - figures.max() + 1.0)
    return np.asarray(np.where(known, np.maximum(by_figures, 10.0**-decimals), 10.0**-decimals))


def _figures(x: Float[Array, "n"], size: Float[Array, "n"]) -> Float[Array, "n"]:
    """Significant figures of each number: the fewest that give it back."""
    digits = np.full(len(x), float(_MOST))
    for count in range(_MOST - 1, 0, -1):
        scaled = x * 10.0 ** (count - 1.0 - size)
        whole = np.rint(scaled)
        digits = np.where(np.abs(scaled - whole) <= _RTOL * np.abs(scaled), float(count), digits)
    return digits
