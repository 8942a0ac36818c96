"""What the batches of an Arrow file or stream declare, before a library decompresses them.

A compressed buffer begins with its size in memory, which pyarrow allocates without asking. Where the buffers
are is said by records of FlatBuffers: tables whose fields are found through a table of offsets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

FILE_MAGIC = b"ARROW1"
_NUMBER = 8  # bytes of one value in memory
_CONTINUED = b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # kinds of messages that have data
_LARGEST_MESSAGE = 1 << 28  # bytes


def declared_size(path: Path) -> float:
    """Bytes in memory of all batches and dictionaries; any error of the content is an exception."""
    with path.open("rb") as file:
        places = _listed(file) if file.read(6) == FILE_MAGIC else _in_order(file)
        return float(sum(_size(file, message, body) for message, body in places))


def _listed(file: BinaryIO) -> Iterator[tuple[_Table, int]]:
    """Messages of a file in the order of its footer, and where the data of each begin."""
    end = file.seek(-10, 2)
    size = int.from_bytes(file.read(4), "little")
    file.seek(max(end - size, 0))
    footer = _Table.root(file.read(size))
    for field in (_DICTIONARY, _BATCH):
        for at, _, _ in footer.structs(field, "<qi4xq"):
            yield _message(file, at)


def _in_order(file: BinaryIO) -> Iterator[tuple[_Table, int]]:
    """Messages of a stream one after the other, and where the data of each begin."""
    at, end = 0, file.seek(0, 2)
    while at + 4 <= end:
        message, body = _message(file, at)
        if message.is_end:
            return
        yield message, body
        at = body + max(message.number(3, "<q"), 0)


def _message(file: BinaryIO, at: int) -> tuple[_Table, int]:
    file.seek(at)
    mark = file.read(4)
    mark = file.read(4) if mark == _CONTINUED else mark
    size = int.from_bytes(mark, "little")
    data = file.read(min(size, _LARGEST_MESSAGE))
    return _Table.root(data), file.tell()


def _size(file: BinaryIO, message: _Table, body: int) -> int:
    """Bytes in memory of the data of a message."""
    kind, batch = message.number(1, "<B"), message.table(2)
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if kind not in (_DICTIONARY, _BATCH) or batch is None:
        return 0
    values = _NUMBER * sum(max(count, 0) for count, _ in batch.structs(1, "<qq"))
    if batch.table(3) is None:  # not compressed
        return values
    return max(values, sum(_unpacked(file, body + at) for at, size in batch.structs(2, "<qq") if size >= 8))


def _unpacked(file: BinaryIO, at: int) -> int:
    file.seek(at)
    return max(int.from_bytes(file.read(8), "little", signed=True), 0)


class _Table:
    """A table of FlatBuffers: bytes, where it begins in them, and where its offsets are."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.offsets = at - self._read("<i", at) if data else 0

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """The outermost table; no bytes are the end of a stream."""
        return cls(data, int.from_bytes(data[:4], "little"))

    @property
    def is_end(self) -> bool:
        """Whether it is the mark after the last message."""
        return not self.data

    def number(self, field: int, form: str) -> int:
        """A number, 0 if it is not stored."""
        place = self._place(field)
        return int(self._read(form, place)) if place else 0

    def table(self, field: int) -> _Table | None:
        """A table inside this one."""
        place = self._place(field)
        return _Table(self.data, place + self._read("<I", place)) if place else None

    def structs(self, field: int, form: str) -> Iterator[tuple[int, ...]]:
        """Entries of a list."""
        place = self._place(field)
        if not place:
            return iter(())
        first = place + self._read("<I", place)
        count, size = self._read("<I", first), struct.calcsize(form)
        return struct.iter_unpack(form, self.data[first + 4 : first + 4 + count * size])

    def _place(self, field: int) -> int:
        """Where a field is; 0 if it is not stored."""
        known = (self._read("<H", self.offsets) - 4) // 2
        offset = self._read("<H", self.offsets + 4 + 2 * field) if field < known else 0
        return self.at + offset if offset else 0

    def _read(self, form: str, at: int) -> Any:
        if at < 0:
            raise ValueError("an offset before the record")
        return struct.unpack_from(form, self.data, at)[0]
