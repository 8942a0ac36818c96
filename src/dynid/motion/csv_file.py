"""Reader of CSV and other delimited text; encoding, delimiter and decimal sign are found or refused.

Times written as text: durations of MATLAB ("0.002 sec", "00:00:00.002") and dates of ISO 8601.
"""

from __future__ import annotations

import gzip
import lzma
import mmap
import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common import strict_number
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.strict_number import UNSIGNED
from dynid.motion.csv_cells import read_numbers
from dynid.motion.csv_dialect import SAMPLE_LINES, Dialect, decode, is_number, sniff, split
from dynid.motion.reading import extra, inflated, readable, size_of
from dynid.motion.series import Merged, Series, merged
from dynid.motion.spoken import check_constant, named_entries, with_stamps
from dynid.motion.table import PLOTJUGGLER, Table, as_text, check_names, time_name

_SAMPLE_BYTES = 1 << 18
_MAPPED = 1 << 26  # bytes; larger files are not copied into memory
_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # byte-order marks
_ZSTD_WINDOW = 2**27  # bytes; the largest that the command `zstd` writes without further options


def read_csv(path: Path, drop_bad_rows: bool = False) -> Table:
    """Columns of a delimited text file with a header line, compressed or not.

    Non-numeric cells are refused with row, column and text. With `drop_bad_rows` such rows are
    dropped and counted in a notice. Times written as text become seconds.
    """
    data = content(path)
    sample, encoding = decode(_start(data), path)
    # Not splitlines(): that also cuts at form feeds and the like, and rows would be miscounted.
    lines = sample.split("\n")
    dialect = sniff(lines, path)
    names = list(dialect.names)
    if names[-1] == "":  # a delimiter at the end of every line
        names = names[:-1]
    # pandas writes the numbers of the rows first, without a name: they are no signal.
    check_names(names[1:] if names[0] == "" else names, path)
    body = _Body(data, dialect, lines, path)
    notices: tuple[Notice, ...] = ()
    try:
        columns = body.columns()
    except ValueError:
        columns, notices = body.sorted_out(drop_bad_rows)
    choices = {"format": dialect.words(encoding), **body.choices}
    texts = {name: dialect.texts[i] for i, name in enumerate(names) if name and i in dialect.texts}
    texts = {name: cell for name, cell in texts.items() if name not in columns}
    skipped = {name: as_text(cell) for name, cell in texts.items()}
    entries = named_entries(texts, columns)
    if entries is not None:
        check_constant(
            body.text, dialect.delimiter, [texts[cell] for cell in entries.cells], path, entries.cells[0]
        )
        choices["joints"] = f"named in {', '.join(entries.cells)}"
    columns = with_stamps(columns)
    time = time_name(list(columns))
    joined = _own_clocks(columns, path) if time == PLOTJUGGLER else Merged(columns, {}, {})
    return Table(
        joined.columns,
        tuple(skipped),
        choices | joined.choices,
        notices,
        texts=skipped,
        time=time,
        outside=joined.outside,
        spoken={} if entries is None else entries.spoken,
    )


def _start(data: Any) -> bytes:
    """Whole lines at the beginning of a file, to decide how it is read."""
    if len(data) <= _SAMPLE_BYTES or data[:2] in _UTF16:
        return bytes(data[:])
    start = bytes(data[:_SAMPLE_BYTES])
    end = max(start.rfind(b"\n"), start.rfind(b"\r"))
    return start[: end + 1] if end > 0 else bytes(data[:])


def content(path: Path) -> Any:
    """Bytes (or a map of them) of a text file, decompressed by its ending; too large contents are refused."""
    kind = path.suffix.lower()
    if kind == ".gz":
        with readable("gzip file", path), gzip.open(path) as stream:
            return inflated(stream, size_of(path), path)
    if kind == ".xz":
        with readable("xz file", path), lzma.open(path) as stream:
            return inflated(stream, size_of(path), path)
    if kind == ".zst":
        with extra("ros", "zstd", path):
            import zstandard
        with readable("zstd file", path), path.open("rb") as file:
            limited = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
            return inflated(limited.stream_reader(file, read_across_frames=True), size_of(path), path)
    if size_of(path) < _MAPPED:
        return path.read_bytes()
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Body:
    """What follows the header: rows as bytes and, where that is not enough, as text.

    Attributes:
        choices: What was decided about times written as text.
    """

    def __init__(self, data: Any, dialect: Dialect, sample: list[str], file: Path) -> None:
        self.data, self.dialect, self.file = data, dialect, file
        self.choices: dict[str, str] = {}
        filled = (line for line in sample[dialect.header_line + 1 :] if line.strip())
        rows = [split(line, dialect.delimiter) for line in islice(filled, SAMPLE_LINES)]
        rows = [row for row in rows if len(row) == len(dialect.names)]
        kinds = {i: {_kind(row[i]) for row in rows} for i in dialect.text_columns}
        self.times = {i for i, kind in kinds.items() if len(kind) == 1 and kind != {""}}
        self.used = [
            i
            for i, name in enumerate(dialect.names)
            if name and i not in {*dialect.text_columns} - self.times
        ]
        # Stamps in nanoseconds do not fit a float.
        self.whole = [i for i in self.used if rows and all(_is_long(row[i]) for row in rows)]

    @cached_property
    def text(self) -> str:
        """The rows as text, times in seconds."""
        whole, _ = decode(self.data[:], self.file)
        position = 0
        for _ in range(self.dialect.header_line + 1):
            position = whole.index("\n", position) + 1
        return self._with_seconds(whole[position:]) if self.times else whole[position:]

    def _with_seconds(self, body: str) -> str:
        """Rows whose cells of time are numbers; cells that are no times stay, and are refused later."""
        delimiter, lines = self.dialect.delimiter, body.split("\n")
        rows = [split(line, delimiter) if line.strip() else [] for line in lines]
        for i in sorted(self.times):
            cells = [row[i] if len(row) > i else "" for row in rows]
            numbers, words = seconds(cells)
            self.choices[f"times in '{self.dialect.names[i]}'"] = words
            for row, number in zip(rows, numbers, strict=True):
                if number:
                    row[i] = number.replace(".", self.dialect.decimal)
        return "\n".join(
            delimiter.join(f'"{cell}"' if delimiter in cell else cell for cell in row) for row in rows
        )

    def columns(self) -> dict[str, Any]:
        """Columns of all rows; a ValueError if a cell is no number or a row has another number of cells."""
        if self.times or self.data[:2] in _UTF16 or b"\n" not in self.data[:65536]:
            return self._read(self.text.encode())
        start = 0
        for _ in range(self.dialect.header_line + 1):
            start = self.data.find(b"\n", start) + 1
        return self._read(self.data, start)

    def _read(self, data: Any, start: int = 0) -> dict[str, Any]:
        names = self.dialect.names
        kinds = [-1 if i not in self.used else int(i in self.whole) for i in range(len(names))]
        columns = read_numbers(data, start, self.dialect.delimiter, self.dialect.decimal, kinds)
        return {names[i]: values for i, values in zip(self.used, columns, strict=True)}

    def sorted_out(self, drop: bool) -> tuple[dict[str, Any], tuple[Notice, ...]]:
        """Columns of the good rows and a notice of the bad ones, which are refused unless dropped."""
        body, names = self.text, self.dialect.names
        if PLOTJUGGLER in names:  # a cell is blank where a signal has no sample
            mark = re.escape(self.dialect.delimiter)
            body = re.sub(rf"(?<={mark})(?={mark}|\r?$)", "nan", body, flags=re.MULTILINE)
        good, dropped = _sorted_rows(body, self.dialect, self.used, self.file, drop)
        try:
            columns = self._read("\n".join(good).encode())
        except ValueError as error:
            raise InputError(
                f"rows that cannot be read: {error}",
                file=self.file,
                remedy="write plain decimal numbers without quotes",
            ) from None
        if not dropped:
            return columns, ()
        first = ", ".join(map(str, dropped[:5])) + (", ..." if len(dropped) > 5 else "")
        return columns, (notice("bad-rows-dropped", count=len(dropped), kept=len(good), rows=first),)


def _is_long(cell: str) -> bool:
    """Whether a cell is a whole number that fits 64 bits, but not a float."""
    return strict_number.is_count(cell) and 15 < len(cell) < 20 and int(cell) < 2**63


def _own_clocks(columns: dict[str, Any], file: Path) -> Merged:
    """PlotJuggler writes a row whenever any signal has a sample; each signal gets its own clock back."""
    groups: dict[bytes, dict[str, Any]] = {}
    for name, values in columns.items():
        if name != PLOTJUGGLER:
            groups.setdefault(np.isnan(values).tobytes(), {})[name] = values
    if len(groups) < 2:
        return Merged(columns, {}, {})
    series = []
    for group in groups.values():
        sampled = ~np.isnan(next(iter(group.values())))
        if sampled.any():
            samples = {name: values[sampled] for name, values in group.items()}
            series.append(Series(", ".join(group), columns[PLOTJUGGLER][sampled], samples))
    return merged(series, file, PLOTJUGGLER)


def _sorted_rows(
    body: str, dialect: Dialect, used: list[int], file: Path, drop: bool
) -> tuple[list[str], list[int]]:
    """Good lines and the line numbers of bad ones; the first bad one is refused unless dropped.

    Walks line by line: only files already known to be bad come here.
    """
    good: list[str] = []
    bad: list[int] = []
    for number, line in enumerate(body.split("\n"), start=dialect.header_line + 2):
        if not line.strip():
            continue
        fault = _fault(split(line, dialect.delimiter), dialect, used)
        if fault is None:
            good.append(line)
            continue
        if not drop:
            column, text = fault
            raise InputError(
                text,
                file=file,
                place=f"row {number}, {column}",
                remedy="correct the cell, or let identify, check or validate drop and count such rows:"
                " --drop-bad-rows",
            )
        bad.append(number)
    if not good:
        raise InputError("no row contains only numbers", file=file, remedy="check delimiter and decimal sign")
    return good, bad


def _fault(cells: list[str], dialect: Dialect, used: list[int]) -> tuple[str, str] | None:
    """Column and description of the first bad cell of a row; None when the row is good."""
    width = len(dialect.names)
    for column in used:
        if column < len(cells) and not is_number(cells[column], dialect.decimal):
            shown = f"'{cells[column]}' is not a number" if cells[column] else "the cell is empty"
            return f"column '{dialect.names[column]}'", shown
    if len(cells) != width:
        return f"{len(cells)} cells", f"the row has {len(cells)} cells, the header {width}"
    return None


_UNITS = {
    **dict.fromkeys(("ns",), Fraction(1, 10**9)),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
    **dict.fromkeys(("ms",), Fraction(1, 10**3)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(3600)),
}
_DURATION = re.compile(rf"(-?{UNSIGNED})\s*({'|'.join(_UNITS)})\Z")
_CLOCK = re.compile(r"(-?)(?:([0-9]{1,6})[.: ])??([0-9]{1,3}):([0-9]{2}):([0-9]{2}(?:[.,][0-9]{1,12})?)\Z")
_DATE = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})[T ]([0-9]{2}):?([0-9]{2}):?([0-9]{2}(?:[.,][0-9]{1,12})?)"
    r"(?: ?(?:Z|UTC|([-+])([0-9]{2}):?([0-9]{2})?))?\Z"
)
_WORDS = {
    "duration": "durations with a unit",
    "clock": "durations as hours:minutes:seconds",
    "date": "dates of ISO 8601",
}


def seconds(cells: Sequence[str]) -> tuple[list[str], str]:
    """Each cell as decimal text in [s] (empty: it is no time), and what was decided, in words.

    Dates are counted from the first one, in exact fractions: floats would round stamps of today.
    """
    kind = next((known for cell in cells if (known := _kind(cell))), "")
    exact = [_exact(cell) if _kind(cell) == kind else None for cell in cells]
    origin = (
        next((value for value in exact if value is not None), Fraction(0)) if kind == "date" else Fraction(0)
    )
    first = next((cell for cell in cells if cell), "")
    words = f"{_WORDS.get(kind, 'text')}, first '{first}'" + ("; counted from it" if kind == "date" else "")
    return ["" if value is None else repr(float(value - origin)) for value in exact], words


def _kind(cell: str) -> str:
    for name, form in (("duration", _DURATION), ("clock", _CLOCK), ("date", _DATE)):
        if form.match(cell):
            return name
    return ""


def _exact(cell: str) -> Fraction | None:
    """Seconds: of a duration, or since the year 1; None for dates that do not exist."""
    if parts := _DURATION.match(cell):
        return Fraction(parts[1]) * _UNITS[parts[2]]
    if parts := _CLOCK.match(cell):
        sign, days, hours, minutes, rest = parts.groups()
        total = (
            86400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + Fraction(rest.replace(",", "."))
        )
        return -total if sign else total
    parts = _DATE.match(cell)
    if parts is None:
        return None
    year, month, day, hours, minutes, rest, sign, zone_h, zone_m = parts.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
    zone = (3600 * int(zone_h or 0) + 60 * int(zone_m or 0)) * (-1 if sign == "-" else 1)
    clock = 3600 * int(hours) + 60 * int(minutes) + Fraction(rest.replace(",", "."))
    return 86400 * days + clock - zone


def csv_texts(path: Path, name: str) -> list[str]:
    """Cells of one column as text."""
    text, _ = decode(content(path)[:], path)
    lines = text.split("\n")
    dialect = sniff(lines, path)
    place = dialect.names.index(name)
    body = (line for line in lines[dialect.header_line + 1 :] if line.strip())
    return [split(line, dialect.delimiter)[place] for line in body]
