"""Columns in memory as a table: a mapping of arrays, or a data frame of any library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.table import Table, check_names


@runtime_checkable
class DataFrame(Protocol):
    """What pandas, polars and others have in common: column names, and a column by its name."""

    @property
    def columns(self) -> Any:
        """Names in order."""

    def __getitem__(self, name: Any, /) -> Any:
        """The column of that name."""


def table_from_columns(source: Mapping[str, Any] | DataFrame, name: str) -> Table:
    """Columns by name as a table; a two-dimensional array `q` becomes q_1, q_2, ...

    Args:
        source: Name -> array of shape (n,), or (n, k) for k columns at once.
        name: Of the log, for messages.
    """
    names = list(source if isinstance(source, Mapping) else source.columns)
    check_names([str(one) for one in names], name)
    arrays: dict[str, Any] = {}
    for one in names:
        values = np.asarray(source[one])
        if values.ndim == 2:
            arrays |= {f"{one}_{k + 1}": values[:, k] for k in range(values.shape[1])}
        else:
            arrays[str(one)] = values
    _check_shapes(arrays, name)
    numeric = {key: _numbers(values) for key, values in arrays.items() if values.dtype.kind in "biufM"}
    skipped = tuple(key for key in arrays if key not in numeric)
    return Table(numeric, skipped, {"format": "arrays in memory"})


def _check_shapes(arrays: Mapping[str, Any], name: str) -> None:
    lengths = {key: np.shape(values) for key, values in arrays.items()}
    first = next(iter(lengths.items()), ("t", (0,)))
    for key, shape in lengths.items():
        if len(shape) != 1 or shape != first[1]:
            raise InputError(
                f"'{key}' has shape {shape}, but '{first[0]}' has {first[1]}",
                place=name,
                remedy="give arrays of n samples, or of n rows and one column per joint",
            )


def _numbers(values: Any) -> Any:
    """Integers stay integers, dates become seconds since the first one."""
    if values.dtype.kind == "M":
        return (values - values[:1]).astype("timedelta64[ns]").astype(np.int64) * 1e-9
    return values if values.dtype.kind in "iu" else values.astype(float)
