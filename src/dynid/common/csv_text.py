"""Rows of CSV text: cells with a comma, a quote or an end of line are quoted, as RFC 4180 has it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


class RowWriter:
    """Rows of CSV that end in a line feed; cells with a line feed or a carriage return are quoted."""

    def __init__(self, text: io.StringIO) -> None:
        self._text = text
        writer = csv.writer(self)  # which quotes the characters of its own line end, CR LF
        self.writerow, self.writerows = writer.writerow, writer.writerows

    def write(self, row: str) -> None:
        """Take one row of the writer."""
        self._text.write(row.removesuffix("\r\n") + "\n")


def csv_line(cells: Iterable[str]) -> str:
    """One row without its end, such as a header."""
    text = io.StringIO()
    RowWriter(text).writerow(cells)
    return text.getvalue().removesuffix("\n")
