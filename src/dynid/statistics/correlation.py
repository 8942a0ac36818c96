"""Pairs of parameters that these data hardly separate, and the combination that they determine.

For standard deviations sigma_a, sigma_b and correlation r the sum a - r (sigma_a / sigma_b) b has the
standard deviation sigma_a sqrt(1 - r^2): if |r| is near one, it is known far better than a or b.

A square matrix whose rows and columns have the names of parameters.

Data frames of pandas, which is not a dependency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from dynid.base.grouping import signed_term
from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, InputError, nearest
from dynid.common.notices import Notice, notice

_WORTH_LISTING = 0.9
_MOST_PAIRS = 20
# Such a pair is known seven times better together than apart.
_HARDLY_APART = 0.99


@dataclass(frozen=True)
class Correlation:
    """Two parameters, and the combination of them that is known best.

    Attributes:
        value: Correlation of the estimates, between -1 and 1.
        factor: a + factor b is known best; unit of a over unit of b.
        gain: How many times better it is known than a alone.
    """

    a: str
    b: str
    value: float
    factor: float
    gain: float


def strongest(names: Sequence[str], covariance: Float[Array, "p p"]) -> tuple[Correlation, ...]:
    """The most correlated pairs, strongest first.

    Args:
        names: Of the parameters.
        covariance: The classical one, shape (p, p), SI: it shows how the motion couples the
            parameters; a covariance from few blocks has random correlations.
    """
    sigma = np.sqrt(np.diag(covariance))
    known = sigma > 0
    scale = np.where(known, sigma, 1.0)
    r = np.triu(covariance / np.outer(scale, scale), 1) * np.outer(known, known)
    rows, columns = np.nonzero(np.abs(r) >= _WORTH_LISTING)
    order = np.argsort(-np.abs(r[rows, columns]), kind="stable")[:_MOST_PAIRS]
    return tuple(
        _pair(names, sigma, float(np.clip(r[i, k], -1.0, 1.0)), int(i), int(k))
        for i, k in zip(rows[order], columns[order], strict=True)
    )


def _pair(names: Sequence[str], sigma: Float[Array, "p"], r: float, i: int, k: int) -> Correlation:
    left = max(1.0 - r**2, np.finfo(float).eps)
    return Correlation(names[i], names[k], r, float(-r * sigma[i] / sigma[k]), float(1.0 / np.sqrt(left)))


def correlated(pairs: Sequence[Correlation]) -> tuple[Notice, ...]:
    """A warning about the pairs that these data hardly separate."""
    close = [pair for pair in pairs if abs(pair.value) > _HARDLY_APART]
    if not close:
        return ()
    shown = "; ".join(_words(pair) for pair in close[:3])
    more = f"; and {len(close) - 3} more" if len(close) > 3 else ""
    return (notice("correlated", shown=shown, more=more),)


def _words(pair: Correlation) -> str:
    both = pair.a + signed_term(pair.factor, pair.b)
    return (
        f"{pair.a} and {pair.b} (correlation {pair.value:.4f}); their combination {both}"
        f" is known {pair.gain:.0f} times better than either"
    )


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """Entries by name: `matrix["Fv_elbow", "Fs_elbow"]`; NumPy functions take it as an array.

    Attributes:
        names: Of rows and columns.
        values: Shape (p, p), SI.
    """

    names: tuple[str, ...]
    values: Float[Array, "p p"]

    def __getitem__(self, pair: tuple[str, str] | str) -> float:
        """The entry of two parameters."""
        if isinstance(pair, str):
            raise DynidError(f"one name is given: an entry has two, e.g. ['{pair}', '{pair}']")
        row, column = (self._place(name) for name in pair)
        return float(self.values[row, column])

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise DynidError(f"no parameter '{name}' with a deviation" + nearest(name, self.names))
        return self.names.index(name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Float[Array, "p p"]:
        """The values."""
        return np.array(self.values, dtype=dtype, copy=True)

    @property
    def correlation(self) -> NamedMatrix:
        """Entries divided by the deviations of row and column, dimensionless."""
        sigma = np.sqrt(np.diag(self.values))
        scale = np.outer(sigma, sigma)
        return NamedMatrix(
            self.names, np.divide(self.values, scale, out=np.zeros_like(scale), where=scale > 0)
        )

    def to_dataframe(self) -> Any:
        """As a pandas data frame."""
        return pandas().DataFrame(self.values, index=list(self.names), columns=list(self.names))

    def __repr__(self) -> str:
        """Its size; `to_dataframe()` shows all entries."""
        return f"NamedMatrix({len(self.names)} parameters: {', '.join(self.names[:3])}, ...)"


def pandas() -> Any:
    """The package pandas, or an error that names it."""
    try:
        return import_module("pandas")
    except ImportError:
        raise InputError("pandas is not installed", remedy="pip install pandas") from None
