"""What the pages of a Parquet file declare, before a library allocates it.

pyarrow believes the sizes in the headers of pages, which no checksum covers: one wrong bit there makes it
allocate up to 2 GB. Footer and headers are records of Thrift in its compact form: fields with a number and a
type, integers in groups of seven bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, BinaryIO

from dynid.common.errors import InputError
from dynid.motion.reading import check_size, size_of

_NUMBER = 8  # bytes of one value in memory
_DEEPEST = 20
_HEADER, _LARGEST_HEADER = 1 << 9, 1 << 24  # bytes
_TAIL = 8  # bytes: the size of the footer, and PAR1
_GROUPS, _CHUNKS, _ABOUT = 4, 1, 3  # fields of the footer, of a row group, of a column in it
_PATH, _VALUES, _DATA, _DICTIONARY = 3, 5, 9, 11  # fields of what is said about a column in a row group
_UNPACKED, _PACKED = 2, 3  # fields of a page header: bytes after and before decompression
_PAGE, _DICTIONARY_PAGE, _PAGE_2 = 5, 7, 8  # kinds of pages; each says in field 1 how many values it has


class _Wrong(ValueError):
    """A record that cannot be right."""


def check_pages(path: Path, names: Set[str]) -> None:
    """Refuse a file if pages of the columns `names` declare too much, or if footer or headers are damaged."""
    total, place = 0, None
    try:
        with path.open("rb") as file:
            for chunk in _chunks(file):
                column = str(chunk[_PATH][0], "utf-8", "replace")
                if column in names:
                    place = f"column '{column}'"
                    for header, count in _pages(file, chunk):
                        total += max(header[_UNPACKED], _NUMBER * count)
                    check_size(total, size_of(path), path, place=place)
    except (_Wrong, KeyError, IndexError, TypeError) as error:
        said = str(error) if isinstance(error, _Wrong) else "footer or headers of pages are incomplete"
        raise InputError(
            f"not a readable Parquet file: {said}",
            file=path,
            place=place,
            remedy="write the file again; the copy may be truncated",
        ) from error


def _chunks(file: BinaryIO) -> Iterator[dict[int, Any]]:
    """What the footer says about each column in each row group."""
    end = file.seek(-_TAIL, 2)
    size = int.from_bytes(file.read(4), "little")
    if size > end:
        raise _Wrong("the footer is longer than the file")
    file.seek(end - size)
    footer = _Record(file.read(size)).struct()
    yield from (chunk[_ABOUT] for group in footer[_GROUPS] for chunk in group[_CHUNKS])


def _pages(file: BinaryIO, chunk: dict[int, Any]) -> Iterator[tuple[dict[int, Any], int]]:
    """Header and number of values of each page of a column in a row group, until it has all its values."""
    end = file.seek(0, 2)
    at, missing = min(chunk[_DATA], chunk.get(_DICTIONARY) or chunk[_DATA]), chunk[_VALUES]
    while missing > 0:
        header, size = _header(file, at)
        at += size + header[_PACKED]
        if min(header[_PACKED], header[_UNPACKED]) < 0 or at > end:
            raise _Wrong("a page is longer than the file")
        data = header.get(_PAGE) or header.get(_PAGE_2)
        count = (data or header.get(_DICTIONARY_PAGE) or {1: 0})[1]
        if count < 0:
            raise _Wrong("a page has a negative number of values")
        yield header, count
        missing -= count if data else 0


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """The header of a page, and its size; most are short."""
    if at < 0:
        raise _Wrong("a page before the file")
    for size in (_HEADER, _LARGEST_HEADER):
        file.seek(at)
        record = _Record(file.read(size))
        try:
            return record.struct(), record.at
        except _Wrong:
            if len(record.data) < size:
                raise
    raise _Wrong("the header of a page is too long")


class _Record:
    """Reads records from bytes: structs by number of field, lists, integers and bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Fields of a struct by number."""
        if depth > _DEEPEST:
            raise _Wrong("records are nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (mark := self._byte()) != 0:
            number = number + (mark >> 4) if mark >> 4 else self._integer()
            fields[number] = self._value(mark & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true and false have no bytes of their own in a field
            return kind == 1
        if kind in (4, 5, 6):
            return self._integer()
        if kind in (9, 10):
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        return self._take(self._unsigned() if kind == 8 else {3: 1, 7: 8}[kind])

    def _list(self, depth: int) -> list[Any]:
        mark = self._byte()
        count = mark >> 4 if mark >> 4 < 15 else self._unsigned()
        kind = mark & 15
        if kind in (1, 2):
            return list(self._take(count))
        return [self._value(kind, depth) for _ in range(count)]

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _unsigned(self) -> int:
        value = 0
        for shift in itertools.count(0, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            if shift > 63:
                raise _Wrong("a number is too long")
        raise AssertionError

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _Wrong("a record ends too early")
        self.at += count
        return self.data[self.at - count : self.at]
