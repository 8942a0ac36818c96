"""Reader of CSV and other delimited text; encoding, delimiter and decimal sign are found or refused."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.common import strict_number
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.table import Table, check_names

_SAMPLE_CHARACTERS = 1 << 16
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "space"}
_SAMPLE_LINES = 40


def read_csv(path: Path, drop_bad_rows: bool = False) -> Table:
    """Columns of a delimited text file with a header line.

    Non-numeric cells are refused with row, column and text. With `drop_bad_rows` such rows are
    dropped and counted in a notice.
    """
    text, encoding = decode(path.read_bytes(), path)
    sample = text[:_SAMPLE_CHARACTERS]
    whole = len(sample) == len(text)
    # Not splitlines(): that also cuts at form feeds and the like, and rows would be miscounted.
    lines = sample.split("\n") if whole else sample.split("\n")[:-1]
    dialect = sniff(lines, path)
    names = list(dialect.names)
    if names[-1] == "":  # a delimiter at the end of every line
        names = names[:-1]
    check_names(names, path)
    used = [i for i in range(len(names)) if i not in dialect.text_columns]
    body = _body(text, dialect)
    notices: tuple[Notice, ...] = ()
    try:
        values = _parse(body, dialect, used)
    except ValueError:
        good, dropped = _sorted_rows(body, dialect, used, path, drop_bad_rows)
        values = _parsed_again("\n".join(good), dialect, used, path)
        notices = (_dropped(dropped, len(good)),)
    columns = {names[i]: np.ascontiguousarray(values[:, k]) for k, i in enumerate(used)}
    skipped = tuple(names[i] for i in dialect.text_columns if i < len(names))
    return Table(columns, skipped, {"format": dialect.words(encoding)}, notices)


def _body(text: str, dialect: Dialect) -> str:
    """What follows the header line."""
    position = 0
    for _ in range(dialect.header_line + 1):
        position = text.index("\n", position) + 1
    return text[position:]


def _parse(body: str, dialect: Dialect, used: list[int]) -> Float[Array, "n c"]:
    if dialect.decimal == ",":
        body = body.replace(",", ".")
    delimiter = None if dialect.delimiter == " " else dialect.delimiter
    rows = np.loadtxt(
        StringIO(body), delimiter=delimiter, comments=None, ndmin=2, quotechar='"', usecols=used
    )
    # With usecols a row that is too long passes; the count of delimiters detects it.
    if delimiter is not None:
        expected = (len(dialect.names) - 1) * len(rows)
        if body.count(delimiter) != expected:
            raise ValueError("rows of different length")
    return rows


def _parsed_again(body: str, dialect: Dialect, used: list[int], file: Path) -> Float[Array, "n c"]:
    """Rows in which each cell is a number; rows that NumPy still refuses give its error text."""
    try:
        return _parse(body, dialect, used)
    except ValueError as error:
        raise InputError(
            f"rows that cannot be read: {error}",
            file=file,
            remedy="write plain decimal numbers without quotes",
        ) from None


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
                remedy="correct the cell, or use `identify --drop-bad-rows` to drop and count such rows",
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


def _dropped(numbers: list[int], kept: int) -> Notice:
    first = ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
    return notice("bad-rows-dropped", count=len(numbers), kept=kept, rows=first)


@dataclass(frozen=True)
class Dialect:
    """How the text of a file is split into numbers.

    Attributes:
        delimiter: One character; " " means any run of blanks.
        decimal: "." or ",".
        names: The header's cells.
        header_line: Index of the header among the lines of the file.
        text_columns: Indices of columns without any number.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    header_line: int
    text_columns: tuple[int, ...]

    def words(self, encoding: str) -> str:
        """The decision in words, for the report."""
        sign = "point" if self.decimal == "." else "comma"
        return f"CSV, delimiter {_DELIMITERS[self.delimiter]}, decimal {sign}, encoding {encoding}"


def decode(data: bytes, file: object) -> tuple[str, str]:
    """Text of a file and the name of its encoding: byte-order mark, UTF-8, else Latin-1.

    Lines end in a line feed, for files of any operating system.
    """
    text, encoding = _decoded(data, file)
    return (text if "\n" in text else text.replace("\r", "\n")), encoding


def _decoded(data: bytes, file: object) -> tuple[str, str]:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding), f"{encoding.removesuffix('-sig')} with byte-order mark"
    if b"\x00" in data[:4096]:
        raise InputError("binary data, not text", file=file, remedy="give a CSV or Parquet file")
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def split(line: str, delimiter: str) -> list[str]:
    """Cells of a line, blanks and pairs of quotes removed."""
    cells = line.split() if delimiter == " " else line.rstrip("\r\n").split(delimiter)
    return [_unquoted(cell.strip()) for cell in cells]


def _unquoted(cell: str) -> str:
    return cell[1:-1].strip() if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def is_number(cell: str, decimal: str) -> bool:
    """Whether a cell reads as a number with this decimal sign."""
    # A comma at the end of a cell is the delimiter of "0, 5", not a decimal sign.
    if decimal == "," and ("." in cell or cell.startswith(",") or cell.endswith(",")):
        return False
    return strict_number.is_number(_with_point(cell, decimal), finite=False)


def _with_point(cell: str, decimal: str) -> str:
    return cell.replace(",", ".") if decimal == "," else cell


def sniff(lines: list[str], file: object) -> Dialect:
    """Decide the dialect from the header and the first data lines.

    A candidate must split the header into at least two cells and most data lines into as many. Among
    these, the candidate with most numeric cells is chosen. A tie between different readings is
    refused, as is a file in which no candidate finds two columns.
    """
    header_line = _header_line(lines)
    sample = [] if header_line is None else [line for line in lines[header_line + 1 :] if line.strip()]
    if header_line is None or not sample:
        raise InputError("no header line followed by data", file=file, remedy="give a header and rows")
    header = lines[header_line].lstrip("#").strip("\r\n")
    scored = [
        (score, delimiter, decimal)
        for delimiter in _DELIMITERS
        for decimal in (".", ",")
        if (delimiter, decimal) != (",", ",")
        and (score := _score(header, sample[:_SAMPLE_LINES], delimiter, decimal)) > 0.0
    ]
    if not scored:
        raise InputError(
            f"fewer than 2 columns found in the header '{header[:80]}'",
            file=file,
            place=f"line {header_line + 1}",
            remedy="separate the columns by comma, semicolon, tab or space, the same in header and rows",
        )
    scored.sort(key=lambda entry: -entry[0])
    _refuse_tie(scored, sample, file)
    _, delimiter, decimal = scored[0]
    names = split(header, delimiter)
    if all(is_number(name, decimal) for name in names if name):
        raise InputError(
            f"the first line '{header[:60]}' holds numbers, not column names",
            file=file,
            place=f"line {header_line + 1}",
            remedy="add a header line: t, q_1, ..., tau_1, ...",
        )
    text = _text_columns([split(line, delimiter) for line in sample[:_SAMPLE_LINES]], len(names), decimal)
    return Dialect(delimiter, decimal, tuple(names), header_line, text)


def _header_line(lines: list[str]) -> int | None:
    """First line that is neither blank nor a comment, and is followed by another.

    A `#` line is a comment, unless it has delimiters and numbers follow directly: then it is the header.
    """
    filled = [i for i, line in enumerate(lines) if line.strip()]
    for i, following in pairwise(filled):
        if not lines[i].startswith("#"):
            return i
        has_delimiters = any(mark in lines[i].lstrip("# ").strip() for mark in ",;\t")
        if has_delimiters and _begins_with_number(lines[following]):
            return i
    return None


def _begins_with_number(line: str) -> bool:
    first = line.strip().replace(";", ",").replace("\t", ",").replace(" ", ",").split(",")[0]
    return is_number(first.strip('"'), ".")


def _score(header: str, sample: list[str], delimiter: str, decimal: str) -> float:
    """Share of numeric cells, 0 when the numbers of columns do not agree."""
    width = len(split(header, delimiter))
    rows = [split(line, delimiter) for line in sample]
    if width < 2 or 2 * sum(len(row) == width for row in rows) <= len(rows):
        return 0.0
    cells = [cell for row in rows for cell in row if cell]
    numeric = sum(is_number(cell, decimal) for cell in cells)
    return numeric / len(cells) if cells else 0.0


def _refuse_tie(scored: list[tuple[float, str, str]], sample: list[str], file: object) -> None:
    """Refuse when a candidate as good as the best one reads other numbers."""
    best, *others = scored
    for other in others:
        if best[0] - other[0] < 1e-9 and _reading(sample, *best[1:]) != _reading(sample, *other[1:]):
            options = " or ".join(f"{_DELIMITERS[d]} with decimal '{p}'" for _, d, p in (best, other))
            raise InputError(
                f"the delimiter is ambiguous: {options} read the rows equally well",
                file=file,
                remedy="write the file with one delimiter that occurs nowhere else",
            )


def _reading(sample: list[str], delimiter: str, decimal: str) -> list[list[str]]:
    """Cells with decimal points."""
    rows = [split(line, delimiter) for line in sample[:_SAMPLE_LINES]]
    return [[_with_point(cell, decimal) for cell in row] for row in rows]


def _text_columns(rows: list[list[str]], width: int, decimal: str) -> tuple[int, ...]:
    """Columns in which no cell of the sample is a number and none is blank."""
    full = [row for row in rows if len(row) == width]
    return tuple(
        column
        for column in range(width)
        if all(row[column] and _is_word(row[column], decimal) for row in full)
    )


def _is_word(cell: str, decimal: str) -> bool:
    return not is_number(cell, decimal) and strict_number.is_word(_with_point(cell, decimal))
