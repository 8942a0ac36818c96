"""Objects in MATLAB files: tables, timetables, time series, durations, dates, data sets of Simulink.

A variable only has the numbers of its objects. Their classes and properties are in one hidden variable, a
cell array (`FileWrapper__`): the first cell has names, classes and properties as integers, the third and
following ones the values of properties, the last one the default values of each class. The project mat-io
documents this layout (github.com/foreverallama/matio, `docs/subsystem_data_format.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from dynid.common.arrays import Array
from dynid.motion.series import Unread
from dynid.motion.units import canonical_unit

_MARK = 0xDD000000  # first integer of a reference to objects
_DEEPEST = 20
_MOST_TEXTS = 1000
_CELLS = 2  # before the values of properties


@dataclass(frozen=True, eq=False)
class Reference:
    """A variable whose content is elsewhere: class, and what the variable itself contains."""

    object_class: str
    content: Any


def resolved(tree: Mapping[str, Any], wrapper: Any, order: str = "<") -> dict[str, Any]:
    """Variables with objects as mappings and arrays; objects that cannot be read are `Unread`.

    Args:
        tree: Variables of a file.
        wrapper: The cells of `FileWrapper__`; None if the file has none.
        order: Byte order of the integers in the first cell.
    """
    objects = _Objects(wrapper, order) if isinstance(wrapper, list) and len(wrapper) > _CELLS else None
    return {name: _resolved(value, objects, 0) for name, value in tree.items()}


def _resolved(node: Any, objects: _Objects | None, depth: int) -> Any:
    if depth > _DEEPEST:
        return Unread(words="nested too deep")
    if isinstance(node, Reference):
        value = None if objects is None else objects.value(node.content, depth)
        unread = Unread(words=f"an object of class {node.object_class}", object_class=node.object_class)
        return unread if value is None else value
    if isinstance(node, Mapping):
        return {name: _resolved(value, objects, depth + 1) for name, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value, objects, depth + 1) for value in node]
    if isinstance(node, np.ndarray) and _is_reference(node) and objects is not None:
        value = objects.value(node, depth)
        return node if value is None else value
    return node


def _is_reference(x: Any) -> bool:
    return x.dtype.kind in "iu" and x.size >= 6 and int(x.ravel()[0]) == _MARK


class _Objects:
    """Objects of a file, by their numbers."""

    def __init__(self, cells: Sequence[Any], order: str) -> None:
        raw = np.ravel(cells[0]).astype(np.uint8).tobytes()
        integers = np.frombuffer(raw, order + "u4", len(raw) // 4).astype(int)
        ends = integers[2:10]
        parts = [integers[a // 4 : b // 4] for a, b in pairwise(ends)]
        self.names = ["", *(name.decode("utf-8", "replace") for name in raw[40 : ends[0]].split(b"\0"))]
        self.classes = [".".join(filter(None, self._named(row[:2]))) for row in parts[0].reshape(-1, 4)]
        self.table = parts[2].reshape(-1, 6)
        self.saved, self.plain = _blocks(parts[1]), _blocks(parts[3])
        self.values = cells[_CELLS:]
        self.defaults = cells[-1] if isinstance(cells[-1], list) else []
        self.known: dict[int, Any] = {}  # None while an object is being read: it may contain itself

    def _named(self, numbers: Any) -> list[str]:
        return [self.names[k] if k < len(self.names) else "" for k in numbers]

    def value(self, reference: Any, depth: int) -> Any:
        """What a reference (mark, dimensions, their sizes, numbers of objects, class) stands for, or None."""
        if not isinstance(reference, np.ndarray) or not _is_reference(reference):
            return None
        numbers = [int(k) for k in np.ravel(reference)]
        each = [self._object(k, depth + 1) for k in numbers[2 + numbers[1] : -1]]
        if not each or any(entry is None for entry in each):
            return None
        return each[0] if len(each) == 1 else each

    def _object(self, number: int, depth: int) -> Any:
        if number in self.known or not 0 < number < len(self.table) or depth > _DEEPEST:
            return self.known.get(number)
        self.known[number] = None
        kind, _, _, saved, plain, _ = (int(k) for k in self.table[number])
        blocks, block = (self.saved, saved) if saved else (self.plain, plain)
        if not 0 <= kind < len(self.classes) or not 0 <= block < len(blocks):
            return None
        default = self.defaults[kind] if kind < len(self.defaults) else {}
        properties = dict(default) if isinstance(default, Mapping) else {}
        for name, form, value in blocks[block]:
            if form == 1 and value < len(self.values):
                properties[self._named([name])[0]] = self.values[value]
        read = {name: _resolved(value, self, depth + 1) for name, value in properties.items()}
        self.known[number] = _CLASSES.get(self.classes[kind], _struct)(read)
        return self.known[number]


def _blocks(integers: Any) -> list[list[tuple[int, int, int]]]:
    """Properties (name, form, value) of each object; blocks begin with their number, at even places."""
    at, blocks = 0, []
    while at < len(integers):
        n = int(integers[at])
        rows = integers[at + 1 : at + 1 + 3 * n]
        if n < 0 or len(rows) < 3 * n:
            break
        blocks.append([(int(a), int(b), int(c)) for a, b, c in rows.reshape(-1, 3)])
        at += 1 + 3 * n
        at += at % 2
    return blocks


def _struct(read: dict[str, Any]) -> Any:
    """An object of another class: its properties; what a class saves in its own way is called `any`."""
    return read["any"] if list(read) == ["any"] else read


def _duration(read: dict[str, Any]) -> Any:
    """Seconds."""
    millis = read.get("millis")
    return np.real(millis) / 1e3 if _is_array(millis) else Unread(words="durations")


def _datetime(read: dict[str, Any]) -> Any:
    """Seconds from the first date; milliseconds since 1970 are the sum of two floats, stored as complex."""
    data = read.get("data")
    if not _is_array(data) or not data.size:
        return Unread(words="dates")
    first = data.ravel()[0]
    return (np.real(data) - np.real(first) + (np.imag(data) - np.imag(first))) / 1e3


def _string(read: dict[str, Any]) -> Any:
    """Texts: version, dimensions and their sizes, lengths, then all characters in UTF-16."""
    packed = read.get("any")
    if not _is_array(packed) or packed.size < 3:
        return Unread(words="text")
    words = np.ravel(packed).astype(np.uint64)
    start = 2 + int(words[1])
    count = int(np.prod(words[2:start].astype(float)))
    if not 0 < count <= len(words) - start:
        return Unread(words="text")
    characters = words[start + count :].tobytes().decode("utf-16-le", errors="replace")
    ends = np.cumsum([0, *words[start : start + min(count, _MOST_TEXTS)].astype(float)])
    texts = tuple(characters[int(a) : int(b)] for a, b in pairwise(ends))
    return Unread(texts[0], texts=texts if count == len(texts) > 1 else ())


def _table(read: dict[str, Any]) -> Any:
    """Variables by name, with their units."""
    properties = read.get("props")
    units = properties.get("VariableUnits") if isinstance(properties, Mapping) else None
    return _variables(read.get("data"), read.get("varnames"), units)


def _timetable(read: dict[str, Any]) -> Any:
    """The same with the time of the rows, which may be given by start and step or rate."""
    saved = read.get("any", read)
    if not isinstance(saved, Mapping):
        return Unread(words="a timetable of another version")
    times = saved.get("rowTimes")
    columns = _variables(saved.get("data"), saved.get("varNames"), saved.get("varUnits"))
    rows = max((len(x) for x in columns.values() if _is_array(x)), default=0)
    if isinstance(times, Mapping):
        times = _regular(times, rows)
    return {"Time": times, **columns} if _is_array(times) else {"Time": Unread(words="dates"), **columns}


def _regular(times: Mapping[str, Any], count: int) -> Any:
    """Times of equal distance, in [s]; None if the distance is one of the calendar."""
    start, step, rate, by_rate = (
        _number(times.get(name)) for name in ("origin", "stepSize", "sampleRate", "specifiedAsRate")
    )
    samples = np.arange(count)
    if by_rate and rate:
        return (start or 0.0) + samples / rate
    return None if step is None else (start or 0.0) + samples * step


def _variables(data: Any, names: Any, units: Any) -> dict[str, Any]:
    """Columns of a table; a matrix becomes one per joint, so that each has its unit in its name."""
    columns: dict[str, Any] = {}
    data, names = (x if isinstance(x, list) else [] for x in (data, names))
    units = units if isinstance(units, list) and len(units) == len(names) else [None] * len(names)
    for values, name, unit in zip(data, map(_text, names), map(_text, units), strict=False):
        mark = f" [{unit}]" if unit and canonical_unit(unit) is not None else ""
        if mark and _is_array(values) and values.ndim == 2 and values.shape[1] > 1:
            columns |= {f"{name}_{k + 1}{mark}": values[:, k] for k in range(values.shape[1])}
        else:
            columns[f"{name}{mark}"] = values
    return columns


def _series(read: dict[str, Any]) -> Any:
    """A `timeseries`: time and data, whose names end in an underscore; equal steps are start and distance."""
    named = {name.rstrip("_").lower(): value for name, value in read.items()}
    time, data, spacing = named.get("time"), named.get("data"), named.get("timeinfo")
    if (not _is_array(time) or not time.size) and isinstance(spacing, Mapping):
        given = {name.rstrip("_").lower(): value for name, value in spacing.items()}
        start, step, count = (_number(given.get(name)) for name in ("start", "increment", "length"))
        if start is not None and step is not None and count is not None and _is_array(data):
            time = start + step * np.arange(min(int(count), data.size))
    return {"Time": time, "Data": data} if _is_array(time) and _is_array(data) else read


def _dataset(read: dict[str, Any]) -> Any:
    """Signals of Simulink by name."""
    signals: dict[str, Any] = {}
    for number, (name, values) in enumerate(_signals(read), start=1):
        signals[name if name and name not in signals else f"{name or 'signal'}_{number}"] = values
    return signals or read


def _signals(node: Any) -> Iterator[tuple[str, Any]]:
    """Name and values of elements, wherever a version of Simulink stores them."""
    if isinstance(node, Mapping) and "Values" in node:
        yield _text(node.get("Name")) or _text(node.get("PropagatedName")), node["Values"]
    else:
        for child in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
            yield from _signals(child)


_CLASSES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "duration": _duration,
    "datetime": _datetime,
    "string": _string,
    "table": _table,
    "timetable": _timetable,
    "timeseries": _series,
    "categorical": lambda read: Unread(words="categories"),
    "calendarDuration": lambda read: Unread(words="durations of the calendar"),
    "Simulink.SimulationData.Dataset": _dataset,
}


def _is_array(x: Any) -> TypeGuard[Array]:
    return isinstance(x, np.ndarray) and x.dtype.kind in "biufc"


def _number(x: Any) -> float | None:
    """The first number of an array; None if it has none."""
    return float(np.real(x).ravel()[0]) if _is_array(x) and x.size else None


def _text(x: Any) -> str:
    return x.text.strip() if isinstance(x, Unread) else ""
