"""Reader of Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.table import Table, check_names


def read_parquet(path: Path, drop_bad_rows: bool = False) -> Table:
    """Columns of a Parquet file; nulls become NaN, time stamps seconds since the first one."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "reading Parquet needs pyarrow, which is not installed",
            file=path,
            remedy="pip install 'dynid[parquet]'",
        ) from error
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"not a readable Parquet file: {error}",
            file=path,
            remedy="write it anew; a copy may have been cut short",
        ) from error
    check_names(list(table.column_names), path)
    columns = {}
    skipped = []
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            ticks = table[name].cast(pa.int64()).to_numpy()
            columns[name] = (ticks - ticks[:1]) * _tick(kind.unit)
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            columns[name] = np.asarray(table[name].to_numpy(), dtype=_wide(kind, table[name].null_count))
        else:
            skipped.append(name)
    return Table(columns, tuple(skipped), {"format": "Parquet"})


def _tick(unit: str) -> float:
    return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def _wide(kind: object, nulls: int) -> type:
    """Integers stay integers (nanosecond stamps do not fit a float); all else is float64."""
    return np.int64 if str(kind).startswith(("int", "uint")) and not nulls else np.float64
