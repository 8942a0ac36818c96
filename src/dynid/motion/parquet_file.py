"""Reader of Parquet files: declared sizes are checked before data are read, checksums while they are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.reading import check_size, extra, size_of
from dynid.motion.table import BlockColumns, Table, check_names, time_name

_NUMBER = 8  # bytes
_BATCH = 1 << 16  # samples
_BUFFER = 1 << 20  # bytes of each column that are read at once


def read_parquet(path: Path, drop_bad_rows: bool = False) -> Table:
    """Columns of a Parquet file; nulls become NaN, time stamps seconds since the first one."""
    pa, file = _opened(path)
    names = list(file.schema_arrow.names)
    check_names(names, path)
    used = [field.name for field in file.schema_arrow if is_used(pa, field.type)]
    with _checked(path, pa, file, used):
        _check_declared(path, file.metadata, len(used))
    skipped = tuple(name for name in names if name not in used)
    return Table(_Columns(path, pa, file, used), skipped, {"format": "Parquet"}, time=time_name(used))


class _Columns(BlockColumns):
    """Columns of a file, which is read by row groups, and large row groups in parts."""

    def __init__(self, path: Path, pa: Any, file: Any, names: list[str]) -> None:
        self.path, self.pa, self.file = path, pa, file
        self.names, self.count = tuple(names), file.metadata.num_rows

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """First sample and numbers of each block."""
        start, first = 0, dict[str, Any]()
        with _checked(self.path, self.pa, self.file, list(names)):
            for batch in self.file.iter_batches(_BATCH, columns=list(names), use_threads=True):
                self._check_rows(start + len(batch) <= self.count)
                if len(batch):
                    fields = {name: batch.schema.field(name) for name in names}
                    yield (
                        start,
                        {
                            name: _numbers(self.pa, spec, batch.column(name), first)
                            for name, spec in fields.items()
                        },
                    )
                start += len(batch)
        self._check_rows(start == self.count)
        self.pa.default_memory_pool().release_unused()

    def _check_rows(self, right: bool) -> None:
        if not right:
            raise InputError(
                f"damaged: the footer declares {self.count} rows, the columns have others",
                file=self.path,
                remedy="copy or record it again",
            )


def _numbers(pa: Any, field: Any, column: Any, first: dict[str, Any]) -> Any:
    """Numbers of a part of a column; times in [s] since the first one, which is kept in `first`."""
    if not _is_time(pa, field.type):
        return _plain(pa, column)
    ticks = _plain(pa, column.cast(pa.int64()))
    return (ticks - first.setdefault(field.name, ticks[0])) * _tick(field.type.unit)


def _plain(pa: Any, column: Any) -> Any:
    """Numbers of an Arrow array: integers stay integers (stamps do not fit a float), nulls become NaN.

    Not `to_numpy`, which imports pandas where that is installed.
    """
    whole = pa.types.is_integer(column.type)
    if column.null_count or not (
        whole or pa.types.is_float32(column.type) or pa.types.is_float64(column.type)
    ):
        column = column.cast(pa.float64())  # booleans, half floats, integers with nulls
        if column.null_count:
            column = column.fill_null(float("nan"))
        whole = False
    kind = np.dtype(column.type.to_pandas_dtype())
    values = np.frombuffer(column.buffers()[1], kind, count=column.offset + len(column))[column.offset :]
    return values.astype(np.int64 if whole else np.float64, copy=False)


@contextlib.contextmanager
def _checked(path: Path, pa: Any, file: Any, names: list[str]) -> Iterator[None]:
    """A block that reads columns; damage becomes an input error that names the column."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error, _broken_column(pa, file, names)) from error


def parquet_columns(path: Path) -> dict[str, Any]:
    """Numbers of a file by column, shape (n,), or (n, k) where each cell is a list of k numbers."""
    pa, file = _opened(path)
    lists = [field.name for field in file.schema_arrow if _is_list(pa, field.type)]
    used = [field.name for field in file.schema_arrow if is_used(pa, field.type) or field.name in lists]
    table = _read(path, pa, file, used)
    arrays: dict[str, Any] = dict(arrow_columns(pa, table, "Parquet").columns)
    for name in lists:
        column = table[name].combine_chunks()
        values = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=float)
        lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
        if column.null_count or len(lengths) > 1:
            raise InputError(
                "lists of different lengths", file=path, place=f"column '{name}'", remedy="check it"
            )
        arrays[name] = values.reshape(len(column), -1 if len(column) else 0)
    return {name: arrays[name] for name in used}


def _is_list(pa: Any, kind: Any) -> bool:
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists and _is_numeric(pa, kind.value_type))


def is_used(pa: Any, kind: Any) -> bool:
    """Whether a column of this type has numbers or times."""
    return _is_time(pa, kind) or _is_numeric(pa, kind)


def arrow_columns(pa: Any, table: Any, kind: str) -> Table:
    """Numeric columns of an Arrow table."""
    columns = {}
    for field in table.schema:
        if is_used(pa, field.type):
            first: dict[str, Any] = {}
            parts = [_numbers(pa, field, chunk, first) for chunk in table[field.name].chunks if len(chunk)]
            columns[field.name] = np.concatenate(parts) if parts else np.zeros(0)
    skipped = tuple(name for name in table.schema.names if name not in columns)
    return Table(columns, skipped, {"format": kind}, time=time_name(list(columns)))


def parquet_texts(path: Path, name: str) -> list[str]:
    """Cells of one column as text."""
    pa, file = _opened(path)
    return [str(cell) for cell in _read(path, pa, file, [name])[name].to_pylist()]


def _opened(path: Path) -> tuple[Any, Any]:
    """pyarrow, and the file with its footer read; pages are checked against their checksums when read."""
    with extra("parquet", "Parquet", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        # Without buffers ahead: they would hold the whole file.
        return pa, pq.ParquetFile(
            path, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER
        )
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _read(path: Path, pa: Any, file: Any, names: list[str]) -> Any:
    """The columns `names`, after a check of their size."""
    with _checked(path, pa, file, names):
        _check_declared(path, file.metadata, len(names))
        return file.read(columns=names)


def _check_declared(path: Path, footer: Any, columns: int) -> None:
    """Refuse a file that would fill the memory, by what its footer declares.

    Only totals of row groups are used: pyarrow ends the process if it is asked for a damaged column.
    """
    groups = (footer.row_group(i) for i in range(footer.num_row_groups))
    sizes = sum(max(_NUMBER * group.num_rows * columns, group.total_byte_size) for group in groups)
    check_size(sizes, size_of(path), path)


def _broken_column(pa: Any, file: Any, names: list[str]) -> str | None:
    """The first column that cannot be read on its own."""
    for name in names:
        try:
            file.read(columns=[name])
        except (pa.ArrowException, OSError):
            return f"column '{name}'"
    return None


def _unreadable(path: Path, error: Exception, place: str | None = None) -> InputError:
    said = " ".join(str(error).split())
    if "CRC" in said:
        text, remedy = f"damaged: a checksum does not match ({said})", "copy or record it again"
    else:
        text, remedy = (
            f"not a readable Parquet file: {said}",
            "write the file again; the copy may be truncated",
        )
    return InputError(text, file=path, place=place, remedy=remedy)


def _is_time(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _is_numeric(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _tick(unit: str) -> float:
    return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
