"""Reader of Parquet files: declared sizes are checked before data are read, checksums while they are read.

Feather and Arrow IPC files are read by the same package.

LeRobot data sets: a folder with meta/info.json and Parquet files, in which signals are lists.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.common.strict_json import read_json
from dynid.motion import arrow_batches
from dynid.motion.parquet_pages import check_pages
from dynid.motion.reading import check_size, extra, readable, size_of
from dynid.motion.spoken import of_data_set
from dynid.motion.table import BlockColumns, Table, check_names, time_name, with_units

_NUMBER = 8  # bytes
_BATCH = 1 << 16  # samples
_BUFFER = 1 << 20  # bytes of each column that are read at once


def read_parquet(path: Path, drop_bad_rows: bool = False) -> Table:
    """Columns of a Parquet file; nulls become NaN, time stamps seconds since the first one.

    Lists of k numbers become `name_1` to `name_k`; then the file is held in memory.
    """
    pa, file = _opened(path)
    names = list(file.schema_arrow.names)
    check_names(names, path)
    used = [field.name for field in file.schema_arrow if is_used(pa, field.type)]
    lists = [field.name for field in file.schema_arrow if _is_list(pa, field.type)]
    with _checked(path, pa, file, used):
        _check_declared(path, file.metadata, [*used, *lists])
    skipped = tuple(name for name in names if name not in used and name not in lists)
    if lists:
        columns: dict[str, Any] = {}
        for name, values in parquet_columns(path).items():
            columns |= _expanded(name, [values], None, [path])
        check_names(list(columns), path)
        table = Table(columns, skipped, {"format": "Parquet"}, time=time_name(used))
    else:
        stored = _Columns(path, pa, file, used)
        table = Table(stored, skipped, {"format": "Parquet"}, time=time_name(used))
    return with_units(table, _units(file.schema_arrow))


def _units(schema: Any) -> object:
    """Units by column as pandas keeps them: `attrs["units"]` of the frame that was written."""
    metadata = schema.metadata or {}
    try:
        frame = json.loads(metadata.get(b"pandas", b"{}"))
        attributes = json.loads(metadata.get(b"PANDAS_ATTRS", b"{}")) or frame.get("attributes")
        return attributes.get("units")
    except (ValueError, AttributeError, RecursionError):  # of another program
        return None


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
    missing = np.zeros(len(column), dtype=bool)
    if column.null_count:
        missing = _plain(pa, column.is_null()) > 0.0
    ticks = _plain(pa, column.cast(pa.int64()).fill_null(0))  # floats would round stamps of today
    if not missing.all():
        first.setdefault(field.name, ticks[~missing][0])
    seconds = (ticks - first.get(field.name, 0)) * _tick(field.type.unit)
    return np.where(missing, np.nan, seconds) if missing.any() else seconds


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
    """Cells of one column as text; equal cells share one text, which a dictionary in the file has once."""
    pa, file = _opened(path, [name])
    shared: dict[str, str] = {}
    texts: list[str] = []
    for chunk in _read(path, pa, file, [name])[name].chunks:
        if pa.types.is_dictionary(chunk.type):
            known = [*map(str, chunk.dictionary.to_pylist()), str(None)]
            texts += [known[-1 if i is None else i] for i in chunk.indices.to_pylist()]
        else:
            texts += [shared.setdefault(text, text) for text in map(str, chunk.to_pylist())]
    return texts


def _opened(path: Path, texts: Sequence[str] = ()) -> tuple[Any, Any]:
    """pyarrow, and the file with its footer read; pages are checked against their checksums when read.

    Columns `texts` keep their dictionaries.
    """
    with extra("parquet", "Parquet", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        # Without buffers ahead: they would hold the whole file.
        return pa, pq.ParquetFile(
            path,
            page_checksum_verification=True,
            pre_buffer=False,
            buffer_size=_BUFFER,
            read_dictionary=list(texts),
        )
    except (pa.ArrowException, OSError, ValueError) as error:  # also names that are no text
        raise _unreadable(path, error) from error


def _read(path: Path, pa: Any, file: Any, names: list[str]) -> Any:
    """The columns `names`, after a check of their size."""
    with _checked(path, pa, file, names):
        _check_declared(path, file.metadata, names)
        return file.read(columns=names)


def _check_declared(path: Path, footer: Any, names: list[str]) -> None:
    """Refuse a file that would fill the memory, by what its footer and the headers of its pages declare.

    Of pyarrow only totals are used: it ends the process if it is asked for a damaged column.
    """
    check_size(_NUMBER * footer.num_rows * len(names), size_of(path), path)
    check_pages(path, set(names))


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


_FEATHER_1 = b"FEA1"


def read_arrow(path: Path, drop_bad_rows: bool = False) -> Table:
    """Numeric columns of a Feather (version 1 or 2) or Arrow file or stream; nulls become NaN."""
    with extra("parquet", "Feather", path):
        import pyarrow as pa
    with readable("Feather file", path):
        table, names = _table(path, pa)
        check_names(names, path)
        numeric = arrow_columns(pa, table, "Feather")
    skipped = tuple(name for name in names if name not in numeric.columns)
    return with_units(replace(numeric, skipped=skipped), _units(table.schema))


def _table(path: Path, pa: Any) -> tuple[Any, list[str]]:
    """The columns that are used, checked; and the names of all."""
    with path.open("rb") as stream:
        start = stream.read(6)
    if start[:4] == _FEATHER_1:
        from pyarrow import feather

        table = feather.read_table(path, memory_map=False)
        table.validate(full=True)
        return table, list(table.schema.names)
    check_size(arrow_batches.declared_size(path), size_of(path), path)
    opened = pa.ipc.open_file if start == arrow_batches.FILE_MAGIC else pa.ipc.open_stream
    with pa.OSFile(str(path)) as source:
        schema = opened(source).schema
        used = [i for i, field in enumerate(schema) if is_used(pa, field.type)]
    with pa.OSFile(str(path)) as source:
        reader = opened(source, options=pa.ipc.IpcReadOptions(included_fields=used, use_threads=False))
        batches = []
        count = reader.num_record_batches if start == arrow_batches.FILE_MAGIC else None
        blocks = reader if count is None else (reader.get_batch(i) for i in range(count))
        for batch in blocks:
            batch.validate(full=True)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema), list(schema.names)


INFO = "meta/info.json"
_MOST_FILES = 100_000


def read_lerobot(folder: Path, drop_bad_rows: bool = False) -> Table:
    """All episodes, each its own segment; entries of lists have the names that the data set gives them."""
    info = read_json(folder / INFO, "download the data set again")
    features, fps = _described(info, folder)
    files = sorted((folder / "data").glob("chunk-*/*.parquet"))[:_MOST_FILES]
    if not files:
        raise InputError("no data/chunk-*/*.parquet", file=folder, remedy="download the data of the data set")
    parts = [parquet_columns(file) for file in files]
    names = list(parts[0])
    for file, part in zip(files, parts, strict=True):
        if list(part) != names:
            raise InputError("other columns than the first file", file=file, remedy="convert it again")
    columns: dict[str, Any] = {}
    for name in names:
        columns |= _expanded(name, [part[name] for part in parts], features.get(name), files)
    for needed in ("episode_index", "frame_index"):
        if needed not in columns:
            raise InputError(
                f"no column '{needed}'", file=files[0], remedy="check that it is a LeRobot data set"
            )
    check_names(list(columns), folder)
    # Stamps are stored with seven digits, and the frames are numbered.
    columns = {"t": columns["frame_index"] / fps, "segment": columns["episode_index"], **columns}
    episodes = len(np.unique(columns["segment"]))
    choices = {"format": f"LeRobot, {episodes} episodes", "time": f"frame_index at {fps:g} Hz"}
    return Table(columns, (), choices, spoken=of_data_set(list(columns)))


def _described(info: Any, folder: Path) -> tuple[dict[str, Any], float]:
    """Features by name, and frames per second."""
    features = info.get("features") if isinstance(info, dict) else None
    fps = info.get("fps") if isinstance(info, dict) else None
    if not isinstance(features, dict) or not isinstance(fps, int | float) or not 0.0 < fps < 1e6:
        raise InputError(
            "no features or fps", file=folder / INFO, remedy="check that it is a LeRobot data set"
        )
    return features, float(fps)


def _expanded(name: str, parts: list[Any], feature: Any, files: list[Path]) -> dict[str, Any]:
    """A column, or one per entry of its lists."""
    widths = {part.shape[1] if part.ndim == 2 else 0 for part in parts}
    if len(widths) > 1:
        raise InputError(
            f"the lists of '{name}' have different lengths", file=files[0], remedy="convert it again"
        )
    values = np.concatenate(parts)
    if values.ndim == 1:
        return {name: values}
    labels = _labels(feature.get("names") if isinstance(feature, dict) else None)
    if len(labels) != values.shape[1] or len(set(labels)) != len(labels):
        return {f"{name}_{k + 1}": values[:, k] for k in range(values.shape[1])}
    return {f"{name}/{label}": values[:, k] for k, label in enumerate(labels)}


def _labels(names: Any) -> list[str]:
    """Names of the entries: a list, or a list in a mapping (`{motors: [..]}`)."""
    if isinstance(names, dict):
        names = [label for group in names.values() for label in (group if isinstance(group, list) else [])]
    return [str(label) for label in names] if isinstance(names, list) else []
