"""Columns of a file as a table, and the recording made of them before it is cleaned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from dynid.common.arrays import Array, Bool, Float, Int, Shaped
from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.common.paged import empty, ranges
from dynid.motion.column_words import Column

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Table:
    """Numeric columns of one file, in file order.

    Attributes:
        columns: Name -> values, each shape (n,), as stored (no unit applied); a file may be read when a
            column is asked for.
        skipped: Columns without numbers.
        choices: What the reader decided about the format, in words.
        texts: What skipped columns contain, where it is known: `text: '0.002 sec'`, `an object of class X`.
        time: Column that is the time by the conventions of the format, if its name is not `t` or `time`.
        outside: Columns with their own clock -> samples before their first and after their last value.
        spoken: Columns whose names alone say too little -> the name by which they are matched to joints.
        secondary: Columns that are searched only for what the others lack.
    """

    columns: Mapping[str, Any]
    skipped: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    time: str = ""
    outside: Mapping[str, Bool[Array, "n"]] = field(default_factory=dict)
    spoken: Mapping[str, str] = field(default_factory=dict)
    secondary: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """Number of samples."""
        if isinstance(self.columns, BlockColumns):
            return self.columns.count
        return len(next(iter(self.columns.values()), ()))

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Shaped[Array, "b"]]]]:
        """First sample and columns of each block of samples; formats with blocks read them one by one."""
        if isinstance(self.columns, BlockColumns):
            yield from self.columns.blocks(names)
            return
        for start, stop in ranges(self.count):
            yield start, {name: self.columns[name][start:stop] for name in names}

    def same(self, first: str, second: str) -> bool:
        """Whether two columns have equal values in every sample."""
        return first == second or all(
            np.array_equal(block[first], block[second], equal_nan=block[first].dtype.kind == "f")
            for _, block in self.blocks([first, second])
        )

    def mapped(self, given: Mapping[str, T]) -> Mapping[str, T | str]:
        """A column map, with the time of the format if the map does not name another column."""
        names = {entry if isinstance(entry, str) else getattr(entry, "name", "") for entry in given.values()}
        if self.time in ("", *_TIMES[:2], *names) or {"t", "time"} & {*given}:
            return given
        return {"t": self.time, **given}

    def listing(self) -> str:
        """All columns for a message, and what those without numbers contain."""
        texts = [f"column '{name}' is {self.texts.get(name, 'text')}" for name in self.skipped]
        return "; ".join([", ".join(self.columns), *texts])


class BlockColumns(Mapping[str, Any]):
    """Columns that stay in their file: a column is read when it is asked for, or all in blocks.

    Attributes:
        names: Of the columns, in their order.
        count: Number of samples.
    """

    names: tuple[str, ...]
    count: int

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Shaped[Array, "b"]]]]:
        """First sample and columns of each block."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        """A whole column."""
        if name not in self.names:
            raise KeyError(name)
        whole = None
        for start, block in self.blocks([name]):
            part = block[name]
            if whole is None:
                whole = empty(self.count, part.dtype)
            if whole.dtype.kind in "iu" and part.dtype.kind == "f":  # a part has no value somewhere
                whole = whole.astype(float)
            whole[start : start + len(part)] = part
        return np.zeros(0) if whole is None else whole

    def __iter__(self) -> Iterator[str]:
        """Names in order."""
        return iter(self.names)

    def __len__(self) -> int:
        """Number of columns."""
        return len(self.names)


class _Renamed(BlockColumns):
    """Columns that stay in their file, under other names: new name -> name in the file."""

    def __init__(self, columns: BlockColumns, names: Mapping[str, str]) -> None:
        self.columns, self.own = columns, names
        self.names, self.count = tuple(names), columns.count

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Shaped[Array, "b"]]]]:
        """First sample and columns of each block."""
        for start, block in self.columns.blocks([self.own[name] for name in names]):
            yield start, {name: block[self.own[name]] for name in names}


def with_unit(name: str, unit: object) -> str:
    """The name of a column with a unit that stands beside it: `q_1 [deg]`."""
    given = isinstance(unit, str) and unit.strip() not in ("", "1")
    return f"{name} [{unit}]" if given and Column(name).bracket is None else name


def with_units(table: Table, units: object) -> Table:
    """The table with units, by column, in the names of its columns."""
    known = units if isinstance(units, Mapping) else {}
    names = {with_unit(name, known.get(name)): name for name in table.columns}
    if all(name == own for name, own in names.items()) or len(names) < len(table.columns):
        return table
    held = table.columns
    renamed = (
        _Renamed(held, names) if isinstance(held, BlockColumns) else {n: held[x] for n, x in names.items()}
    )
    return replace(table, columns=renamed, time=with_unit(table.time, known.get(table.time)))


def as_text(cell: str) -> str:
    """What a column of text contains, by its first cell."""
    return f"text: '{cell[:40]}'"


# Time in the files of MATLAB, Simulink, PlotJuggler, rostopic, UR and others, the most certain ones first.
PLOTJUGGLER = "__time"
_STAMPS = ("field.header.stamp", "header.stamp")  # of messages; a time beside them is that of the recorder
# `x_value` is that of LabVIEW.
_TIMES = ("t", "time", PLOTJUGGLER, "%time", "timestamp", "timestamps", "stamp", "tout", "x_value")


def time_name(names: Sequence[str]) -> str:
    """The column of time by its name, whatever its case and unit (`Time [s]`); empty if there is none."""
    plain = {name: name.casefold().split("[")[0].split("(")[0].strip() for name in names}
    for known in (*(name for name in _TIMES[:2] if name in names), *_STAMPS, *_TIMES):
        matches = [name for name in names if plain[name] == known]
        if matches:
            return known if known in matches else matches[0]
    return ""


def check_names(names: Sequence[str], file: object) -> None:
    """Refuse a header in which a name occurs twice or is empty."""
    for number, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                "a column has no name", file=file, place=f"header, column {number}", remedy="name it"
            )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError(
            f"column name '{doubled[0]}' occurs {names.count(doubled[0])} times",
            file=file,
            place="header",
            remedy="give every column a unique name",
        )


def numbers(values: Any) -> Any:
    """Integers stay integers; dates and durations become seconds, dates since the first one; NaT is NaN."""
    if values.dtype.kind in "Mm":
        missing = np.isnat(values)
        first = values[~missing].ravel()[:1]
        since = values - first if values.dtype.kind == "M" and first.size else values
        seconds = since.astype("timedelta64[ns]").astype(np.int64) * 1e-9
        return np.where(missing, np.nan, seconds) if missing.any() else seconds
    return values if values.dtype.kind in "iu" else values.astype(float)


def any_finite(values: Float[Array, "n k"]) -> Bool[Array, "k"]:
    """Columns with at least one finite value."""
    has_finite = np.isfinite(values[:1]).any(axis=0)
    for start, stop in ranges(0 if has_finite.all() else len(values)):
        has_finite |= np.isfinite(values[start:stop]).any(axis=0)
        if has_finite.all():
            break
    return np.asarray(has_finite)


@dataclass(frozen=True, eq=False)
class Record:
    """Raw samples in file order.

    Attributes:
        t: Time in its own unit until the clock is understood, shape (n,).
        q, dq, ddq, tau: As in Log.
        breaks: Where a new run begins, shape (n,); the first sample is always one.
        file: For messages.
        q_ref: As in Log.
    """

    t: Float[Array, "n"]
    q: Float[Array, "n m"]
    dq: Float[Array, "n m"] | None
    ddq: Float[Array, "n m"] | None
    tau: Float[Array, "n a"]
    breaks: Bool[Array, "n"]
    file: str | None = None
    q_ref: Float[Array, "n m"] | None = None

    def rows(self, index: Int[Array, "k"]) -> Record:
        """The samples `index`; a run that loses its first sample begins at the next one kept."""
        runs = np.cumsum(self.breaks)[index]
        breaks = np.ones(len(index), dtype=bool)
        breaks[1:] = runs[1:] != runs[:-1]
        return replace(
            self,
            t=self.t[index],
            q=self.q[index],
            dq=None if self.dq is None else self.dq[index],
            ddq=None if self.ddq is None else self.ddq[index],
            tau=self.tau[index],
            breaks=breaks,
            q_ref=None if self.q_ref is None else self.q_ref[index],
        )

    def runs(self, segments: Sequence[tuple[int, int]]) -> Record:
        """The samples of ranges [start, stop), each a run of its own; no sample may be in two of them."""
        if not segments:
            raise InputError("the list of segments is empty", remedy="leave it out to use all samples")
        end = 0
        for start, stop in sorted(segments):
            if not 0 <= start < stop <= len(self.t):
                raise InputError(
                    f"segment ({start}, {stop}) is outside the {len(self.t)} samples",
                    remedy="give ranges (start, stop) of samples, with start before stop",
                )
            if start < end:
                raise InputError(
                    f"segment ({start}, {stop}) begins before another one ends ({end}): samples would count"
                    " twice",
                    remedy="give ranges without common samples",
                )
            end = stop
        index = np.concatenate([np.arange(start, stop) for start, stop in segments])
        whole = len(index) == len(self.t) and bool(np.all(np.diff(index) == 1))
        chosen = self if whole else self.rows(index)
        breaks = np.zeros(len(index), dtype=bool)
        breaks[np.cumsum([0, *(stop - start for start, stop in segments)])[:-1]] = True
        return replace(chosen, breaks=breaks)

    def signals(self) -> list[Float[Array, "n c"]]:
        """Every two-dimensional array the record has."""
        return [x for x in (self.q, self.dq, self.ddq, self.q_ref, self.tau) if x is not None]
