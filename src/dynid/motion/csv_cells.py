"""Numbers of delimited text, block by block in threads; cells that the compiled loop leaves are read here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynid.common import strict_number
from dynid.common.arrays import Array, Int, Shaped
from dynid.common.paged import in_order
from dynid.motion.csv_dialect import is_number, unquoted, with_point

_BLOCK = 1 << 18  # bytes that are read at once


def read_numbers(data: Any, start: int, delimiter: str, decimal: str, kinds: Sequence[int]) -> list[Any]:
    """Used columns of the lines from byte `start` on.

    Args:
        data: Text as bytes, or a map of a file, in an encoding that contains ASCII.
        start: First byte after the header.
        delimiter: One character; " " means any run of blanks.
        decimal: "." or ",".
        kinds: Per column -1: not used, 0: a float, 1: an integer.

    Raises:
        ValueError: A cell is no number, a row has another number of cells, or there is no row.
    """
    from dynid.motion.csv_kernels import read_cells

    text = np.frombuffer(data, np.uint8)
    marks, wanted = np.array([ord(delimiter), ord(decimal)]), np.array(kinds)
    whole = [kind == 1 for kind in kinds if kind >= 0]

    def numbers(bounds: tuple[int, int]) -> list[Any]:
        first, last = bounds
        most = (last - first) // len(kinds) + 1  # a row has as many bytes as cells, at least
        values = np.empty((len(whole), most))
        odd = np.empty((len(whole) * most, 4), int)
        rows, n_odd = read_cells(text, first, last, marks, wanted, values, values.view(np.int64), odd)
        if rows < 0:
            raise ValueError("rows of different length")
        columns = [x.view(np.int64)[:rows] if w else x[:rows] for x, w in zip(values, whole, strict=True)]
        _fill(columns, odd[:n_odd], text, decimal)
        return columns

    size = len(data) - start
    columns = _gathered(in_order(numbers, _blocks(data, start)), size)
    if not columns:
        raise ValueError("no row")
    return columns


def _blocks(data: Any, start: int) -> Iterator[tuple[int, int]]:
    """Start and end of parts that contain whole lines."""
    while start < len(data):
        end = data.find(b"\n", min(start + _BLOCK, len(data))) + 1 or len(data)
        yield start, end
        start = end


def _fill(columns: list[Any], odd: Int[Array, "o 4"], text: Shaped[Array, "n"], decimal: str) -> None:
    """Read the cells that are infinite, quoted, or rounded with difficulty."""
    for row, column, start, end in odd.tolist():
        cell = unquoted(text[start:end].tobytes().decode("latin-1").strip())
        is_whole = columns[column].dtype == np.int64
        fits = strict_number.is_count(cell) and int(cell) < 2**63 if is_whole else is_number(cell, decimal)
        if not fits:
            raise ValueError(f"'{cell}' is not a number")
        columns[column][row] = int(cell) if is_whole else float(with_point(cell, decimal))


def _gathered(blocks: Iterator[list[Any]], size: int) -> list[Any]:
    """Columns of all blocks, which have `size` bytes together; a block is freed after it is copied."""
    columns: list[Any] = []
    count = room = 0
    for block in blocks:
        rows = len(block[0])
        if count + rows > room:
            # Rows of the first block give the number of all; memory that is not written to costs nothing.
            room = max(2 * room if count else int(1.05 * rows * size / _BLOCK), count) + 2 * rows
            larger = [np.empty(room, values.dtype) for values in block]
            for old, new in zip(columns, larger, strict=False):
                new[:count] = old[:count]
            columns = larger
        for values, part in zip(columns, block, strict=True):
            values[count : count + rows] = part
        count += rows
    return [values[:count] for values in columns] if count else []
