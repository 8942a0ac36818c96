"""Reader of CSV and other delimited text."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
from jaxtyping import Float

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.motion.sniff import Dialect, decode, is_number, sniff, split
from dynid.motion.table import Table, check_names

_SAMPLE_CHARACTERS = 1 << 16


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
