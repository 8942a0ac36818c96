"""A square matrix whose rows and columns have the names of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import DynidError, nearest


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """Entries by name: `matrix["Fv_elbow", "Fs_elbow"]`; NumPy functions take it as an array.

    Attributes:
        names: Of rows and columns.
        values: Shape (p, p), SI.
    """

    names: tuple[str, ...]
    values: Float[Array, "p p"]

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """The entry of two parameters."""
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
        from dynid.common.frames import pandas

        return pandas().DataFrame(self.values, index=list(self.names), columns=list(self.names))

    def __repr__(self) -> str:
        """Its size; `to_dataframe()` shows all entries."""
        return f"NamedMatrix({len(self.names)} parameters: {', '.join(self.names[:3])}, ...)"
