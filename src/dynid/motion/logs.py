"""Readers of log files: from columns with names and units to a Log.

To add a format: write `read_<format>(path, drop_bad_rows) -> Table`, and a line in READERS. A reader is
chosen by the ending of the file, or, for a folder, by a file that it contains.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.registry import Registry
from dynid.mechanism.joint import JointKind
from dynid.mechanism.load import load_robot
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.clean import Cleaned, aligned, clean, windowed
from dynid.motion.column_words import time_unit
from dynid.motion.columns import Matching, matched
from dynid.motion.gather import Gathered, check_order, gather
from dynid.motion.in_memory import Columns, Values, given_array, has_columns, table_from_columns
from dynid.motion.log import Log
from dynid.motion.reading import check_place
from dynid.motion.settings import ColumnMap, DriveSettings, LogEntry, column_maps, no_log
from dynid.motion.slots import quaternion_starts, slots
from dynid.motion.table import Record, Table

LogSource = str | os.PathLike[str] | LogEntry | Log | Columns
READERS: Registry[Callable[[Path, bool], Table]] = Registry(
    "dynid.readers",
    {
        ".csv": "dynid.motion.csv_file:read_csv",
        ".tsv": "dynid.motion.csv_file:read_csv",
        ".txt": "dynid.motion.csv_file:read_csv",
        ".dat": "dynid.motion.csv_file:read_csv",
        ".csv.gz": "dynid.motion.csv_file:read_csv",
        ".csv.xz": "dynid.motion.csv_file:read_csv",
        ".csv.zst": "dynid.motion.csv_file:read_csv",
        ".parquet": "dynid.motion.parquet_file:read_parquet",
        ".pq": "dynid.motion.parquet_file:read_parquet",
        ".feather": "dynid.motion.parquet_file:read_arrow",
        ".arrow": "dynid.motion.parquet_file:read_arrow",
        ".npz": "dynid.motion.array_file:read_npz",
        ".npy": "dynid.motion.array_file:read_npy",
        ".mat": "dynid.motion.mat_file:read_mat",
        ".h5": "dynid.motion.hdf5_file:read_hdf5",
        ".hdf5": "dynid.motion.hdf5_file:read_hdf5",
        ".mcap": "dynid.motion.mcap_file:read_mcap",
        ".db3": "dynid.motion.bag_file:read_db3",
        ".bag": "dynid.motion.bag_file:read_bag",
        # Folders that are one log, by a file that they contain.
        "/metadata.yaml": "dynid.motion.bag_file:read_rosbag2",
        "/meta/info.json": "dynid.motion.parquet_file:read_lerobot",
    },
    gives=("dynid.motion.table:Table",),
)
Choose = Callable[[Sequence[str], Mapping[str, ColumnMap | str]], Mechanism]

# Common formats that are not read; in particular pickled objects are never opened.
_OTHERS = dict.fromkeys(
    (".pkl", ".pickle", ".xlsx", ".xls", ".json", ".jsonl", ".tdms", ".ulg", ".lvm"),
    "save its signals as a table with a column t:",
)


def read_log(
    entry: LogEntry | str | Path,
    mechanism: str | os.PathLike[str] | Mechanism,
    *,
    columns: Mapping[str, ColumnMap | str | Mapping[str, Any]] | None = None,
    angles: str = "xyz",
    cutoff: float | None = None,
    drop_bad_rows: bool = False,
    need_effort: bool = True,
    choose: Choose | None = None,
    drives: Mapping[str, DriveSettings] | None = None,
) -> Log:
    """Read, convert to SI and clean one log file.

    Args:
        entry: A path, or an entry of the experiment with `file`, `payloads` and `columns`.
        mechanism: Defines the measured joints and the efforts: a built-in name, a file or a Mechanism.
        columns: Where names, units or zeros differ: canonical name -> column of the file.
        angles: Order of roll, pitch, yaw: `xyz` or `zyx`.
        cutoff: Low-pass the coordinates will get, in [Hz], if it is known already: gaps longer
            than a quarter of its period split the log.
        drop_bad_rows: Drop rows with non-numeric cells, and count them.
        need_effort: Refuse a log without any effort.
        choose: Function that selects the robot from the columns of the file and their mapping, instead of
            `mechanism`.
        drives: Joint or motor -> gear, encoder and torque constant, which scale its columns.
    """
    mechanism = load_robot(mechanism)
    path, payloads, mapped = _place(entry)
    check_order(mechanism, angles, path)
    check_place(path)
    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(digest, path)  # while it is read
        table = read_table(path, drop_bad_rows)
        log = _log_of_table(
            table,
            mechanism,
            {**column_maps(columns), **mapped},
            path,
            angles,
            cutoff,
            need_effort,
            choose,
            drives,
        )
        log = replace(log, name=name_of(path), file=str(path), sha256=hashed.result(), payloads=payloads)
    if not isinstance(entry, LogEntry):
        return log
    asked = {key: value for key, value in entry.tree().items() if key not in ("file", "payload")}
    return windowed(replace(log, entry=asked), entry)


def log_from_columns(
    source: Columns,
    mechanism: str | os.PathLike[str] | Mechanism,
    *,
    name: str = "log",
    columns: Mapping[str, ColumnMap | str | Mapping[str, Any]] | None = None,
    angles: str = "xyz",
    cutoff: float | None = None,
    need_effort: bool = True,
    choose: Choose | None = None,
    drives: Mapping[str, DriveSettings] | None = None,
) -> Log:
    """A Log from columns in memory, a mapping of arrays or a data frame, treated as those of a file.

    Args:
        source: Name -> array; names as in a log file (`t`, `q_1`, `tau_1`, ...), or `t`, `q`, `tau` with a
            column for each joint; the fields of a structured array. Masked samples are missing.
        mechanism: Defines the measured joints and the efforts: a built-in name, a file or a Mechanism.
        name: Shown in reports.
        columns, angles, cutoff, need_effort, choose, drives: As for `read_log`.
    """
    if isinstance(source, Mechanism):
        raise InputError("the robot comes after the columns", remedy="log_from_columns(columns, robot)")
    if not has_columns(source):
        raise no_log(source)
    mechanism = load_robot(mechanism)
    check_order(mechanism, angles, name)
    table = table_from_columns(source, name)
    log = _log_of_table(
        table, mechanism, column_maps(columns), name, angles, cutoff, need_effort, choose, drives
    )
    return replace(log, name=name)


def _with_time(table: Table, given: Mapping[str, ColumnMap | str]) -> Mapping[str, ColumnMap | str]:
    """A column map, with the time of the format and the unit in its header, unless the map names it."""
    whole, unit = table.mapped(given), time_unit(table.time)[1]
    return whole if whole is given or unit is None else {**whole, "t": ColumnMap(table.time, unit)}


def _log_of_table(
    table: Table,
    mechanism: Mechanism,
    mapped: Mapping[str, ColumnMap | str],
    path: object,
    angles: str,
    cutoff: float | None,
    need_effort: bool,
    choose: Choose | None,
    drives: Mapping[str, DriveSettings] | None,
) -> Log:
    """Columns matched, converted to SI and cleaned; `path` is for messages."""
    mapped = _with_time(table, mapped)
    if choose is not None:
        try:
            mechanism = choose(tuple(table.columns), mapped)
        except InputError as error:
            raise InputError(
                error.text, file=error.file or path, place=error.place, remedy=error.remedy
            ) from None
    known = slots(mechanism)
    matching = matched(table, known, mapped, path, drives)
    chosen = matching.chosen
    gathered = gather(table, mechanism, known, chosen, angles, path)
    if need_effort and not gathered.effort_present.any():
        wanted = ", ".join(actuator.name for actuator in mechanism.actuators)
        raise InputError(
            f"no effort column found (actuators: {wanted}; columns: {table.listing()})",
            file=path,
            remedy="name them tau_1.. in the order of the actuators, or map them under `columns:`"
            " (--column 'tau_{i}=NAME_{i}')",
        )
    time = chosen["t"]
    time_given = time.unit is not None or time.scale != 1.0 or "time unit" in gathered.choices
    cleaned = clean(
        gathered.record,
        angles=_turning(mechanism),
        quaternions=(quaternions := tuple(quaternion_starts(mechanism).values())),
        cutoff=cutoff,
        time_unit_given=time_given,
    )
    cleaned = aligned(cleaned, known, chosen, quaternions)
    log = _log(mechanism, cleaned, gathered, name=str(path), notices=table.notices, choices=table.choices)
    return _with_guesses(log, matching)


def _with_guesses(log: Log, matching: Matching) -> Log:
    """The log with what was guessed of its columns, as a choice too."""
    if not matching.guesses:
        return replace(log, notices=(*log.notices, *matching.notices))
    words = "; ".join(
        f"{item.key} from '{item.column}'{f' in {item.unit}' if item.unit else ''} ({item.confidence:.0%})"
        for item in matching.guesses
    )
    return replace(
        log,
        notices=(*log.notices, *matching.notices),
        guesses=matching.guesses,
        choices={**log.choices, "columns by their names": words},
    )


def log_from_arrays(
    mechanism: str | os.PathLike[str] | Mechanism,
    t: Values,
    q: Values,
    tau: Values | None,
    dq: Values | None = None,
    ddq: Values | None = None,
    name: str = "log",
    segments: Sequence[tuple[int, int]] | None = None,
    payloads: Sequence[str] = (),
    cutoff: float | None = None,
    q_ref: Values | None = None,
) -> Log:
    """A Log from arrays, cleaned as a file would be; arrays that need no correction are not copied.

    Args:
        mechanism: Defines the measured joints and the efforts: a built-in name, a file or a Mechanism.
        t: Time, shape (n,), in [s], or dates. Masked values of arrays are missing samples.
        q: Positions in the order of the measured joints, shape (n, m), SI.
        tau: Efforts in the order of the actuators, shape (n, a), SI; a NaN column is absent.
        dq: Measured rates of q, shape (n, m), per second.
        ddq: Measured second rates of q, shape (n, m), per second squared.
        name: Shown in reports.
        segments: Ranges [start, stop) of independent runs, without common samples; samples outside are
            excluded.
        payloads: Payloads of the mechanism mounted during this recording.
        cutoff: As for `read_log`.
        q_ref: Reference (commanded) positions, shape (n, m), SI.
    """
    mechanism = load_robot(mechanism)
    times = given_array(t, "t", None, name)
    shape = len(times), len(mechanism.measured_positions)
    more = {"dq": dq, "ddq": ddq, "q_ref": q_ref}
    rates = {key: None if x is None else given_array(x, key, shape, name) for key, x in more.items()}
    efforts = np.full((len(times), len(mechanism.actuators)), np.nan)
    record = Record(
        times,
        given_array(q, "q", shape, name),
        rates["dq"],
        rates["ddq"],
        efforts if tau is None else given_array(tau, "tau", efforts.shape, name),
        _first_only(len(times)),
        q_ref=rates["q_ref"],
    )
    if segments is not None:
        record = record.runs([(int(start), int(stop)) for start, stop in segments])
    present = np.any(np.isfinite(record.tau), axis=0)
    cleaned = clean(
        record,
        angles=_turning(mechanism),
        quaternions=tuple(quaternion_starts(mechanism).values()),
        cutoff=cutoff,
        time_unit_given=True,
    )
    gathered = Gathered(record, present, {}, {}, ())
    return _log(mechanism, cleaned, gathered, name=name, payloads=tuple(payloads))


def _place(
    entry: LogEntry | str | Path,
) -> tuple[Path, tuple[str, ...], Mapping[str, ColumnMap | str]]:
    """File, payloads, and columns that only this log has."""
    if isinstance(entry, str | Path):
        return Path(entry), (), {}
    return Path(entry.file), tuple(entry.payloads), dict(entry.columns or {})


def read_table(path: Path, drop_bad_rows: bool = False) -> Table:
    """The columns of a log file as stored; the file extension selects the reader."""
    kind = ending(path)
    if path.is_dir() and kind not in READERS:
        raise InputError("this is a folder, not a file", file=path, remedy="list its log files one by one")
    check_place(path)
    reader = READERS.get(kind)
    if reader is None:
        raise InputError(
            f"no reader for files ending in '{path.suffix}'",
            file=path,
            remedy=f"{_OTHERS.get(kind, 'give')} one of {', '.join(k for k in READERS if k[0] != '/')}",
        )
    return reader(path, drop_bad_rows)


def ending(path: Path) -> str:
    """What selects the reader: the last extension, or the last two if files of both are read (`.csv.gz`).

    For a folder it is `/` and the file that shows its format; `/` alone if the folder is not a log.
    """
    if path.is_dir():
        marks = (kind for kind in READERS.built_in if kind.startswith("/"))
        return next((kind for kind in marks if (path / kind[1:]).is_file()), "/")
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in READERS else path.suffix.lower()


def name_of(path: Path) -> str:
    """Name of a log in reports: that of its file without the ending."""
    kind = ending(path)
    return (
        path.name[: -len(kind)]
        if path.name.lower().endswith(kind) and len(path.name) > len(kind)
        else path.stem
    )


def digest(path: Path) -> str:
    """SHA-256 of a log; of a folder, that of the names and hashes of its files."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        lines = "".join(f"{digest(file)}  {file.relative_to(path).as_posix()}\n" for file in files)
        return hashlib.sha256(lines.encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _turning(mechanism: Mechanism) -> Array:
    """Which measured positions are plain angles."""
    kinds = [mechanism.joint_of_position[name].kind for name in mechanism.measured_positions]
    return np.array([kind in (JointKind.REVOLUTE, JointKind.UNIVERSAL) for kind in kinds], dtype=bool)


def _first_only(count: int) -> Array:
    breaks = np.zeros(count, dtype=bool)
    breaks[:1] = True
    return breaks


def _log(
    mechanism: Mechanism,
    cleaned: Cleaned,
    gathered: Gathered,
    *,
    name: str,
    payloads: tuple[str, ...] = (),
    notices: tuple[Notice, ...] = (),
    choices: Mapping[str, str] | None = None,
) -> Log:
    record = cleaned.record
    return Log(
        name=name,
        file=None,
        sha256=None,
        t=record.t,
        q=record.q,
        dq=record.dq,
        ddq=record.ddq,
        tau=record.tau,
        effort_present=gathered.effort_present,
        position_names=mechanism.measured_positions,
        effort_names=tuple(actuator.name for actuator in mechanism.actuators),
        segments=cleaned.segments,
        dt=cleaned.dt,
        valid=cleaned.valid,
        payloads=payloads,
        notices=(*notices, *gathered.notices, *cleaned.notices),
        mapping=gathered.mapping,
        choices={**(choices or {}), **gathered.choices, **cleaned.choices},
        q_ref=record.q_ref,
    )


def text_column(path: Path, name: str) -> list[str]:
    """Cells of one column of a file, as text, blanks at their ends removed."""
    if path.suffix.lower() in (".parquet", ".pq"):
        from dynid.motion.parquet_file import parquet_texts as texts
    else:
        from dynid.motion.csv_file import csv_texts as texts
    return texts(path, name)
