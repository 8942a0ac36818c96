"""The types of array annotations: `Float[Array, "n 3"]` names axes, and tests check them.

Annotations are text while nobody checks them. jaxtyping, which takes as long to import as numpy, is then
not needed: tests import it before dynid. Beside them, samples spread over an array.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:
    Array = np.ndarray

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Complex, Float, Inexact, Int, Shaped
else:

    class Shaped:
        """An array whose axes nobody checks."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Array

    Bool = Complex = Float = Inexact = Int = Shaped

__all__ = ["Array", "Bool", "Complex", "Float", "Inexact", "Int", "Shaped", "read_only", "spread"]


def read_only(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """The same values, which cannot be written to."""
    seen = np.asarray(values).view()
    seen.flags.writeable = False
    return seen


def spread(count: int, most: int) -> Int[Array, "m"]:
    """Numbers from 0 to count - 1: all of them, or `most` spread over them, both ends included."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, most)).astype(int))
