"""How the text of a CSV file is split into numbers: encoding, delimiter, decimal sign and header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from dynid.common import strict_number
from dynid.common.errors import InputError
from dynid.motion.units import canonical_unit

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "space"}
_COMMENTS = "#%"
SAMPLE_LINES = 40


@dataclass(frozen=True)
class Dialect:
    """How the text of a file is split into numbers.

    Attributes:
        delimiter: One character; " " means any run of blanks.
        decimal: "." or ",".
        names: The header's cells, with the unit of a second line of units: `q_1 [deg]`.
        header_line: Index of the last line of the header among the lines of the file.
        text_columns: Indices of columns without any number.
        texts: First cell of these.
        preamble: Number of lines before the header that are not part of the table.
    """

    delimiter: str
    decimal: str
    names: tuple[str, ...]
    header_line: int
    text_columns: tuple[int, ...]
    texts: Mapping[int, str]
    preamble: int = 0

    def words(self, encoding: str) -> str:
        """The decision in words, for the report."""
        sign = "point" if self.decimal == "." else "comma"
        skipped = f", {self.preamble} lines before the header not used" if self.preamble else ""
        return f"CSV, delimiter {_DELIMITERS[self.delimiter]}, decimal {sign}, encoding {encoding}{skipped}"


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
    """Cells of a line, blanks and pairs of quotes removed; a delimiter inside quotes does not separate."""
    cells = line.split() if delimiter == " " else line.rstrip("\r\n").split(delimiter)
    return [unquoted(cell.strip()) for cell in (_rejoined(cells, delimiter) if '"' in line else cells)]


def _rejoined(cells: list[str], delimiter: str) -> list[str]:
    """Cells with those joined again that quotes hold together; a quote without its pair changes nothing."""
    joined: list[str] = []
    open_at: int | None = None
    for cell in cells:
        joined.append(cell)
        if open_at is None and cell.lstrip().startswith('"') and cell.count('"') % 2:
            open_at = len(joined) - 1
        elif open_at is not None and cell.rstrip().endswith('"') and cell.count('"') % 2:
            joined[open_at:] = [delimiter.join(joined[open_at:])]
            open_at = None
    return joined


def unquoted(cell: str) -> str:
    """A cell without a pair of quotes around it; two quotes inside them are one."""
    return cell[1:-1].replace('""', '"').strip() if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def is_number(cell: str, decimal: str) -> bool:
    """Whether a cell reads as a number with this decimal sign."""
    # A comma at the end of a cell is the delimiter of "0, 5", not a decimal sign.
    if decimal == "," and ("." in cell or cell.startswith(",") or cell.endswith(",")):
        return False
    return strict_number.is_number(with_point(cell, decimal), finite=False)


def with_point(cell: str, decimal: str) -> str:
    """A number with a decimal point."""
    return cell.replace(",", ".") if decimal == "," else cell


def sniff(lines: list[str], file: object) -> Dialect:
    """The dialect of a table; lines of another form may stand before it, as measuring programs write them."""
    try:
        return _sniffed(lines, file)
    except InputError:
        start = _preamble(lines)
        if start == 0:
            raise
        dialect = _sniffed(lines[start:], file)
        return replace(dialect, header_line=dialect.header_line + start, preamble=start)


def _sniffed(lines: list[str], file: object) -> Dialect:
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
    header = header[1:] if header.startswith("% ") else header  # `%time` is a name that ROS 1 writes
    scored = [
        (score, delimiter, decimal)
        for delimiter in _DELIMITERS
        for decimal in (".", ",")
        if ((delimiter, decimal) != (",", ",") or '"' in sample[0])
        and (score := _score(header, sample[:SAMPLE_LINES], delimiter, decimal)) > 0.0
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
    names = _names(header, sample, delimiter)
    if 2 * sum(is_number(name, decimal) for name in names) > len([name for name in names if name]):
        raise InputError(
            f"the first line '{header[:60]}' holds numbers, not column names",
            file=file,
            place=f"line {header_line + 1}",
            remedy="add a header line: t, q_1, ..., tau_1, ...",
        )
    units = _units(split(sample[0], delimiter), len(names)) if len(sample) > 1 else None
    if units:
        pairs = zip(names, units, strict=True)
        names = [f"{name} [{unit}]" if name and unit else name for name, unit in pairs]
        header_line = lines.index(sample.pop(0), header_line + 1)
    rows = [split(line, delimiter) for line in sample[:SAMPLE_LINES]]
    text = _text_columns(rows, len(names), decimal)
    first = next((row for row in rows if len(row) == len(names)), names)
    return Dialect(delimiter, decimal, tuple(names), header_line, text, {i: first[i] for i in text})


def _names(header: str, sample: list[str], delimiter: str) -> list[str]:
    """Cells of the header, with a blank one at the end if and only if rows end with a delimiter."""
    names = split(header, delimiter)
    widths = {len(split(line, delimiter)) for line in sample[:SAMPLE_LINES]}
    closed = all(line.rstrip("\r\n ").endswith(delimiter) for line in sample[:SAMPLE_LINES])
    if names[-1] and closed and widths == {len(names) + 1}:
        return [*names, ""]
    return names[:-1] if not names[-1] and widths == {len(names) - 1} else names


def _units(cells: list[str], width: int) -> list[str] | None:
    """Units in the line below the header, empty where a column has none; None: it is no line of units."""
    bare = [cell.strip("[]()") for cell in cells]
    known = [bool(unit) and not unit.isdecimal() and canonical_unit(unit) is not None for unit in bare]
    blank = [unit in ("", "-") for unit in bare]
    is_line = len(cells) == width and any(known) and all(a or b for a, b in zip(known, blank, strict=True))
    return [unit if fits else "" for unit, fits in zip(bare, known, strict=True)] if is_line else None


def _header_line(lines: list[str]) -> int | None:
    """First line that is neither blank nor a comment, and is followed by another.

    A line that begins with `#` or `%` is a comment, unless it has delimiters and numbers follow directly:
    then it is the header. So is one with as many words as the next line has numbers.
    """
    filled = [i for i, line in enumerate(lines) if line.strip()]
    for i, following in pairwise(filled):
        if not lines[i].startswith(tuple(_COMMENTS)):
            return i
        text = lines[i].lstrip(_COMMENTS + " ").strip()
        same = len(text.split()) == len(lines[following].split()) > 1
        has_delimiters = same or any(mark in text for mark in ",;\t")
        if has_delimiters and _begins_with_number(lines[following]):
            return i
    return None


def _preamble(lines: list[str]) -> int:
    """Number of lines before the one that precedes the first two lines of numbers; 0 without such lines."""
    filled = [i for i, line in enumerate(lines) if line.strip()]
    numeric = [_begins_with_number(lines[i]) for i in filled]
    for k in range(2, len(filled) - 1):
        if not numeric[k - 1] and numeric[k] and numeric[k + 1]:
            return filled[k - 1]
    return 0


def _begins_with_number(line: str) -> bool:
    first = line.strip().replace(";", ",").replace("\t", ",").replace(" ", ",").split(",")[0]
    return is_number(first.strip('"'), ".")


def _score(header: str, sample: list[str], delimiter: str, decimal: str) -> float:
    """Share of numeric cells, 0 when the numbers of columns do not agree."""
    width = len(_names(header, sample, delimiter))
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
    rows = [split(line, delimiter) for line in sample[:SAMPLE_LINES]]
    return [[with_point(cell, decimal) for cell in row] for row in rows]


def _text_columns(rows: list[list[str]], width: int, decimal: str) -> tuple[int, ...]:
    """Columns in which no cell of the sample is a number and none is blank."""
    full = [row for row in rows if len(row) == width]
    return tuple(
        column
        for column in range(width)
        if all(row[column] and _is_word(row[column], decimal) for row in full)
    )


def _is_word(cell: str, decimal: str) -> bool:
    return not is_number(cell, decimal) and strict_number.is_word(with_point(cell, decimal))
