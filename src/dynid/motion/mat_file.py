"""Reader of MATLAB files: version 5 to 7 here, 7.3 (which is HDF5) by `hdf5_file`.

The format: "MAT-File Format", MathWorks. Elements are a tag (type, number of bytes) and data; a matrix is an
element whose data are elements. Every size is checked against the bytes that are there before it is used.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.errors import InputError
from dynid.motion.mat_objects import Reference, resolved
from dynid.motion.reading import check_size, readable
from dynid.motion.series import Unread, table_of_tree
from dynid.motion.table import Table

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _FUNCTION, _OPAQUE = 1, 2, 3, 4, 5, 16, 17
_NUMERIC = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_DEEPEST = 20
_HEADER = 128
_HDF5 = b"\x89HDF\r\n\x1a\n"
OBJECTS = (
    "save as struct: s = table2struct(timetable2table(tt), 'ToScalar', true); save(file, '-struct', 's')"
)
SIGNALS = (
    "save as struct: for k = 1:logsout.numElements, e = logsout{k};"
    " s.(matlab.lang.makeValidName(e.Name)) = struct('Time', e.Values.Time, 'Data', e.Values.Data); end;"
    " save(file, '-struct', 's')"
)


def read_mat(path: Path, drop_bad_rows: bool = False) -> Table:
    """Variables of a MATLAB file: vectors, matrices, structs, Simulink's time series as structs."""
    data = path.read_bytes()
    if data[:8] == _HDF5 or data[512:520] == _HDF5:
        from dynid.motion.hdf5_file import read_mat73

        return read_mat73(path)
    with readable("MATLAB file", path):
        tree = _Mat(data, path).variables()
    return matlab_table(tree, path, "MATLAB 5")


def matlab_table(tree: dict[str, Any], path: Path, kind: str) -> Table:
    """The table of a file's variables; objects hide their content, so a file of only these is refused."""
    hidden = [name for name, value in tree.items() if isinstance(value, Unread) and value.object_class]
    try:
        table = table_of_tree(tree, path, kind)
    except InputError:
        if not hidden:
            raise
        table = None
    if hidden and (table is None or not (table.time or {"t", "time"} & {*table.columns})):
        unread = tree[hidden[0]]
        raise InputError(
            f"'{hidden[0]}' is an object of class {unread.object_class}, whose content was not found",
            file=path,
            place=f"variable '{hidden[0]}'",
            remedy=SIGNALS if unread.object_class.startswith("Simulink") else OBJECTS,
        )
    if table is None:
        raise AssertionError  # refused above
    return table


@dataclass
class _Element:
    """Type and bytes of one element."""

    kind: int
    data: memoryview


class _Mat:
    """The elements of a file."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.path = path
        self.stored = len(data)
        mark = data[126:128]
        if len(data) < _HEADER or mark not in (b"IM", b"MI"):
            raise InputError(
                "not a MATLAB file of version 5 or later",
                file=path,
                remedy="save it again with save(..., '-v7')",
            )
        self.order = "<" if mark == b"IM" else ">"
        self.data = memoryview(data)[_HEADER:]
        self.inflated = 0

    def variables(self) -> dict[str, Any]:
        """Name -> arrays, texts, structs and objects as mappings, cells and arrays of structs as lists."""
        values: dict[str, Any] = {}
        for element in self._elements(self.data):
            inflated = self._inflated(element) if element.kind == _COMPRESSED else element
            if inflated.kind == _MATRIX:
                name, value = self._matrix(inflated.data, 0)
                values[name] = value
        hidden = values.pop("", None)  # the content of objects, a small file in itself
        wrapper = self._wrapper(hidden.tobytes()) if isinstance(hidden, np.ndarray) else None
        return resolved(values, wrapper, self.order)

    def _wrapper(self, data: bytes) -> Any:
        """Cells with the content of objects; None if there are none."""
        self.order = ">" if data[2:4] == b"MI" else "<"
        for element in self._elements(memoryview(data)[8:]):
            _, fields = self._matrix(element.data, 0) if element.kind == _MATRIX else ("", None)
            if isinstance(fields, dict) and isinstance(fields.get("MCOS"), Reference):
                return fields["MCOS"].content
        return None

    def _inflated(self, element: _Element) -> _Element:
        """The element inside a compressed one; it may not grow beyond reason."""
        stream, parts = zlib.decompressobj(), []
        block = bytes(element.data)
        while block:
            parts.append(stream.decompress(block, 1 << 22))
            self.inflated += len(parts[-1])
            check_size(self.inflated, self.stored, self.path)
            block = stream.unconsumed_tail if parts[-1] else b""
        if not stream.eof:
            raise InputError(
                "a compressed variable ends too early", file=self.path, remedy="copy the file again"
            )
        return next(self._elements(memoryview(b"".join(parts))))

    def _elements(self, data: memoryview) -> Iterator[_Element]:
        at = 0
        while at + 8 <= len(data):
            first = int(np.frombuffer(data, self.order + "u4", 1, at)[0])
            if first >> 16:  # small element: size and type in four bytes, data in the next four
                kind, size, start, end = first & 0xFFFF, first >> 16, at + 4, at + 8
            else:
                kind, size, start = first, int(np.frombuffer(data, self.order + "u4", 1, at + 4)[0]), at + 8
                end = start + size + (0 if kind == _COMPRESSED else -size % 8)
            if size > (4 if start == at + 4 else len(data) - start):
                raise InputError(
                    f"an element declares {size} bytes, but {len(data) - start} follow",
                    file=self.path,
                    place=f"byte {at}",
                    remedy="copy the file again; it may be truncated",
                )
            yield _Element(kind, data[start : start + size])
            at = end

    def _matrix(self, data: memoryview, depth: int) -> tuple[str, Any]:
        """Name and value."""
        if depth > _DEEPEST:
            raise InputError(
                f"structs are nested deeper than {_DEEPEST}", file=self.path, remedy="save them flat"
            )
        if len(data) == 0:
            return "", np.zeros(0)
        parts = list(self._elements(data))
        flags = int(np.frombuffer(parts[0].data, self.order + "u4", 1)[0])
        kind = flags & 0xFF
        if kind == _OPAQUE:
            name, system, cls = (self._text(part) for part in parts[1:4])
            content = self._matrix(parts[4].data, depth + 1)[1] if len(parts) > 4 else None
            return name, Reference(cls or system, content)
        shape = [int(size) for size in np.frombuffer(parts[1].data, self.order + "i4")]
        name, rest = self._text(parts[2]), parts[3:]
        if kind in _NUMERIC:
            return name, self._numbers(rest, shape, kind, bool(flags & 0x800))
        if kind == _CHAR:
            return name, Unread(self._text(rest[0]) if rest else "")
        if kind == _CELL:
            return name, [self._matrix(cell.data, depth + 1)[1] for cell in rest if cell.kind == _MATRIX]
        if kind == _STRUCT:
            return name, self._struct(rest, shape, depth)
        words = {_SPARSE: "a sparse matrix", _FUNCTION: "a function", _OBJECT: "an object"}
        return name, Unread(
            words=words.get(kind, f"of class {kind}"), object_class="object" if kind == _OBJECT else ""
        )

    def _numbers(self, rest: list[_Element], shape: list[int], kind: int, is_complex: bool) -> Any:
        if is_complex and len(rest) > 1:
            return self._numbers(rest[:1], shape, kind, False) + 1j * self._numbers(
                rest[1:], shape, kind, False
            )
        stored = rest[0] if rest else _Element(9, memoryview(b""))
        if stored.kind not in _NUMBERS:
            raise InputError(f"numbers of unknown type {stored.kind}", file=self.path, remedy="save it again")
        raw = np.frombuffer(stored.data, self.order + _NUMBERS[stored.kind])
        if min(shape, default=0) < 0 or math.prod(shape) != len(raw):
            raise InputError(
                f"a matrix of shape {tuple(shape)} has {len(raw)} numbers",
                file=self.path,
                remedy="save it again",
            )
        with np.errstate(invalid="ignore", over="ignore"):  # floats stored for a variable of integers
            return raw.astype(_NUMERIC[kind]).reshape(shape, order="F")

    def _struct(self, rest: list[_Element], shape: list[int], depth: int) -> Any:
        """A mapping of the fields, or a list of them for an array of structs."""
        width = int(np.frombuffer(rest[0].data, self.order + "i4", 1)[0])
        names = bytes(rest[1].data)
        if width <= 0 or len(names) % width:
            raise InputError(
                "the field names of a struct are damaged", file=self.path, remedy="save it again"
            )
        fields = [names[i : i + width].split(b"\0")[0].decode("latin-1") for i in range(0, len(names), width)]
        values = [self._matrix(element.data, depth + 1)[1] for element in rest[2:]]
        if not fields:
            return {}
        if len(values) != math.prod(shape) * len(fields):
            raise InputError(
                f"a struct of shape {tuple(shape)} and {len(fields)} fields has {len(values)} values",
                file=self.path,
                remedy="save it again",
            )
        rows = [values[i : i + len(fields)] for i in range(0, len(values), len(fields))]
        each = [dict(zip(fields, row, strict=True)) for row in rows]
        return each[0] if len(each) == 1 else each

    def _text(self, element: _Element) -> str:
        coding = _TEXTS.get(element.kind, "latin-1")
        if coding in ("utf-16", "utf-32"):
            coding += "-le" if self.order == "<" else "-be"
        return bytes(element.data).decode(coding, errors="replace")
