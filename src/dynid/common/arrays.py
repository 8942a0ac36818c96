"""The array type of annotations: `Float[Array, "n 3"]` names axes, and tests check them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]
else:
    Array = np.ndarray

__all__ = ["Array"]
