"""Write a log to CSV or Parquet in the canonical columns: t, q_1.., dq_1.., tau_1.., segment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Shaped
from dynid.common.errors import InputError
from dynid.motion.log import Log


def write_log(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write the valid samples of a log; the extension .csv or .parquet sets the format."""
    return write_columns(log_columns(log), path)


def write_columns(columns: Mapping[str, Shaped[Array, "n"]], path: str | os.PathLike[str]) -> Path:
    """Write columns by name; the extension .csv or .parquet sets the format."""
    target = Path(path)
    if target.suffix == ".csv":
        rows = np.column_stack([np.asarray(column, float) for column in columns.values()])
        # Seventeen digits reproduce every float64 exactly.
        np.savetxt(target, rows, fmt="%.17g", delimiter=",", header=",".join(columns), comments="")
    elif target.suffix == ".parquet":
        _write_parquet(columns, target)
    else:
        raise InputError(f"'{target.name}' is neither .csv nor .parquet", remedy="choose one of the two")
    return target


def log_columns(log: Log) -> dict[str, Shaped[Array, "n"]]:
    """The samples of all segments by canonical column name; missing efforts are omitted."""
    rows = np.concatenate([np.arange(start, stop) for start, stop in log.segments])
    columns: dict[str, Array] = {"t": log.t[rows]}
    for symbol, signal in (("q", log.q), ("dq", log.dq), ("ddq", log.ddq), ("tau", log.tau)):
        if signal is None:
            continue
        for i in range(signal.shape[1]):
            if symbol != "tau" or log.effort_present[i]:
                columns[f"{symbol}_{i + 1}"] = signal[rows, i]
    if len(log.segments) > 1:
        lengths = [stop - start for start, stop in log.segments]
        columns["segment"] = np.repeat(np.arange(len(lengths)), lengths)
    return columns


def _write_parquet(columns: Mapping[str, Shaped[Array, "n"]], target: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "writing Parquet needs pyarrow, which is not installed",
            file=target,
            remedy="pip install 'dynid[parquet]', or write .csv",
        ) from error
    pq.write_table(pa.table(dict(columns)), target, write_page_checksum=True)
