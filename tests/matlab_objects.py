"""Writers of MATLAB objects: timetables, tables and data sets of Simulink, in files of version 5 and 7.3.

Values: arrays, texts, lists (cells), mappings (structs) and `Handle` (an object).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Handle:
    """An object: its number and the number of its class, both from 1."""

    number: int
    cls: int
    name: str

    @property
    def integers(self) -> np.ndarray:
        return np.array([0xDD000000, 2, 1, 1, self.number, self.cls], np.uint32)


@dataclass
class Objects:
    """All objects of a file, and the hidden cells that contain them."""

    names: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    made: list[tuple[int, bool, dict[str, int]]] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def make(self, cls: str, properties: dict[str, Any]) -> Handle:
        """A new object; classes that save themselves in their own way have one property, `any`."""
        if cls not in self.classes:
            self.classes.append(cls)
        numbers = {}
        for name, value in properties.items():
            numbers[name] = len(self.values)
            self.values.append(value)
        self.made.append((self.classes.index(cls) + 1, "any" in properties, numbers))
        return Handle(len(self.made), self.classes.index(cls) + 1, cls)

    def cells(self) -> list[Any]:
        classes, table, blocks = [0] * 4, [0] * 6, {True: [0, 0], False: [0, 0]}
        for cls in self.classes:
            space, _, name = cls.rpartition(".")
            classes += [self._name(space) if space else 0, self._name(name), 0, 0]
        counts = {True: 0, False: 0}
        for kind, saved, numbers in self.made:
            counts[saved] += 1
            table += [kind, 0, 0, counts[True] * saved, counts[False] * (not saved), 0]
            block = [len(numbers), *(k for name, n in numbers.items() for k in (self._name(name), 1, n))]
            blocks[saved] += block + [0] * (len(block) % 2)
        text = b"".join(name.encode() + b"\0" for name in self.names)
        text += b"\0" * (-len(text) % 8)
        parts = [
            np.array(part, "<u4").tobytes() for part in (classes, blocks[True], table, blocks[False], [0, 0])
        ]
        ends = np.cumsum([40 + len(text), *map(len, parts)])
        head = np.array([4, len(self.names), *ends, ends[-1], ends[-1]], "<u4").tobytes()
        raw = np.frombuffer(head + text + b"".join(parts), np.uint8)
        empty = [{}] * (len(self.classes) + 1)
        return [raw, np.zeros(0), *self.values, empty, np.zeros(len(empty), np.int32), empty]

    def _name(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name) + 1


def _element(kind: int, data: bytes) -> bytes:
    return np.array([kind, len(data)], "<u4").tobytes() + data + b"\0" * (-len(data) % 8)


def _matrix(value: Any, name: str = "") -> bytes:
    """A value as an element of version 5."""
    if isinstance(value, Handle):
        words = b"".join(_element(1, text.encode()) for text in (name, "MCOS", value.name))
        return _element(14, _element(6, np.array([17, 0], "<u4").tobytes()) + words + _matrix(value.integers))
    if isinstance(value, str):
        kind, shape, rest = 4, (1, len(value)), _element(16, value.encode())
    elif isinstance(value, list):
        kind, shape, rest = 1, (len(value), 1), b"".join(map(_matrix, value))
    elif isinstance(value, dict):
        fields = b"".join(key.encode().ljust(64, b"\0") for key in value)
        rest = _element(5, np.array([64], "<i4").tobytes()) + _element(1, fields)
        kind, shape, rest = 2, (1, 1), rest + b"".join(map(_matrix, value.values()))
    else:
        x = value[:, None] if value.ndim == 1 else value
        code, kind = {"f": (9, 6), "c": (9, 6)}.get(x.dtype.kind, (None, None))
        code, kind = {"uint8": (2, 9), "uint32": (6, 13), "int32": (5, 12)}.get(str(x.dtype), (code, kind))
        parts = [np.real(x), np.imag(x)] if x.dtype.kind == "c" else [x]
        shape, rest = x.shape, b"".join(_element(code, part.tobytes(order="F")) for part in parts)
        kind |= 0x800 * (x.dtype.kind == "c")
    flags = _element(6, np.array([kind, 0], "<u4").tobytes())
    head = flags + _element(5, np.array(shape, "<i4").tobytes()) + _element(1, name.encode())
    return _element(14, head + rest)


def write_mat5(path: Path, variables: dict[str, Any], objects: Objects) -> Path:
    """A file of version 5: the objects are a small file inside an array without a name."""
    words = b"".join(_element(1, text) for text in (b"", b"MCOS", b"FileWrapper__"))
    wrapper = _element(14, _element(6, np.array([17, 0], "<u4").tobytes()) + words + _matrix(objects.cells()))
    fields = _element(5, np.array([64], "<i4").tobytes()) + _element(1, b"MCOS".ljust(64, b"\0"))
    head = _element(6, np.array([2, 0], "<u4").tobytes()) + _element(5, np.array([1, 1], "<i4").tobytes())
    inner = b"\x00\x01IM\0\0\0\0" + _element(14, head + _element(1, b"") + fields + wrapper)
    body = b"".join(_matrix(value, name) for name, value in variables.items())
    body += _matrix(np.frombuffer(inner, np.uint8))
    path.write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + body)
    return path


def write_mat73(path: Path, variables: dict[str, Any], objects: Objects) -> Path:
    """A file of version 7.3: cells are references into one group, objects are in another."""
    import h5py

    with h5py.File(path, "w") as file:
        store = file.create_group("#refs#")

        def put(group: Any, name: str, value: Any) -> Any:
            if isinstance(value, dict) and value:
                made = group.create_group(name)
                for key, each in value.items():
                    put(made, key, each)
                made.attrs["MATLAB_class"] = np.bytes_(b"struct")
                return made
            if isinstance(value, list):
                made = group.create_dataset(name, (1, len(value)), dtype=h5py.ref_dtype)
                for k, each in enumerate(value):
                    made[0, k] = put(store, f"r{len(store)}", each).ref
                made.attrs["MATLAB_class"] = np.bytes_(b"cell")
                return made
            kind = {"f": b"double", "c": b"double", "u": b"uint32", "i": b"int32"}
            if isinstance(value, Handle):
                made, cls = group.create_dataset(name, data=value.integers[None]), value.name.encode()
                made.attrs["MATLAB_object_decode"] = np.int32(3)
            elif isinstance(value, str):
                made, cls = (
                    group.create_dataset(name, data=np.array([[ord(c)] for c in value], np.uint16)),
                    b"char",
                )
            elif isinstance(value, dict) or not value.size:
                made, cls = group.create_dataset(name, data=np.zeros(2, np.uint64)), b"double"
                made.attrs["MATLAB_empty"] = np.uint8(1)
            else:
                x = np.atleast_2d(value) if value.ndim == 1 else value.T
                if x.dtype.kind == "c":
                    x = x.astype(complex).view([("real", float), ("imag", float)])
                made = group.create_dataset(name, data=x)
                cls = b"uint8" if value.dtype == np.uint8 else kind[value.dtype.kind]
            made.attrs["MATLAB_class"] = np.bytes_(cls)
            return made

        for name, value in variables.items():
            put(file, name, value)
        wrapper = put(file.create_group("#subsystem#"), "MCOS", objects.cells())
        wrapper.attrs["MATLAB_class"] = np.bytes_(b"FileWrapper__")
    return path


def duration(objects: Objects, t: Any) -> Handle:
    return objects.make("duration", {"millis": np.round(1e3 * t, 6), "fmt": "s"})


def timetable(objects: Objects, times: Any, columns: dict[str, Any], units: dict[str, str]) -> Handle:
    count = len(next(iter(columns.values())))
    saved = {
        "numRows": np.array([float(count)]),
        "varNames": list(columns),
        "varUnits": [units.get(name, "") for name in columns] if units else np.zeros(0),
        "data": list(columns.values()),
        "rowTimes": times,
    }
    return objects.make("timetable", {"any": saved})


def dataset(objects: Objects, t: Any, parts: dict[str, Any]) -> Handle:
    """Signals of Simulink; vectors along the last axis, as it stores them."""
    elements = []
    for name, x in parts.items():
        series = objects.make("timeseries", {"Name": name, "Time_": t, "Data_": x.T[:, None, :]})
        elements.append(objects.make("Simulink.SimulationData.Signal", {"Name": name, "Values": series}))
    storage = objects.make("Simulink.SimulationData.Storage.RamDatasetStorage", {"Elements": elements})
    return objects.make("Simulink.SimulationData.Dataset", {"Name": "logsout", "Storage_": storage})
