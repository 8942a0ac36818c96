"""Reader of Feather and Arrow IPC files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.motion.parquet_file import arrow_columns, is_used
from dynid.motion.reading import check_size, extra, readable, size_of
from dynid.motion.table import Table, check_names

_FILE_MAGIC, _FEATHER_1 = b"ARROW1", b"FEA1"


def read_arrow(path: Path, drop_bad_rows: bool = False) -> Table:
    """Numeric columns of a Feather (version 1 or 2) or Arrow file or stream; nulls become NaN."""
    with extra("parquet", "Feather", path):
        import pyarrow as pa
    with readable("Feather file", path):
        table, names = _table(path, pa)
        check_names(names, path)
        numeric = arrow_columns(pa, table, "Feather")
    return replace(numeric, skipped=tuple(name for name in names if name not in numeric.columns))


def _table(path: Path, pa: Any) -> tuple[Any, list[str]]:
    """The columns that are used, checked; and the names of all."""
    with path.open("rb") as stream:
        start = stream.read(6)
    if start[:4] == _FEATHER_1:
        from pyarrow import feather

        table = feather.read_table(path, memory_map=False)
        table.validate(full=True)
        return table, list(table.schema.names)
    opened = pa.ipc.open_file if start == _FILE_MAGIC else pa.ipc.open_stream
    with pa.OSFile(str(path)) as source:
        schema = opened(source).schema
        used = [i for i, field in enumerate(schema) if is_used(pa, field.type)]
    with pa.OSFile(str(path)) as source:
        reader = opened(source, options=pa.ipc.IpcReadOptions(included_fields=used, use_threads=False))
        batches, total = [], 0
        count = reader.num_record_batches if start == _FILE_MAGIC else None
        blocks = reader if count is None else (reader.get_batch(i) for i in range(count))
        for batch in blocks:
            batch.validate(full=True)
            total += batch.nbytes
            check_size(total, size_of(path), path)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema), list(schema.names)
