"""Settings of the motion stage: columns, logs, filters and masks of an experiment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dynid.common.errors import InputError, nearest

FILTERS = ("butterworth", "fir", "none")
DERIVATIVES = ("central3", "central5", "central7", "spline")
VELOCITIES = ("auto", "measured", "derived")


@dataclass(frozen=True)
class ColumnMap:
    """Where a signal is found: SI value = scale * (column `name` in `unit`) + offset."""

    name: str
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0


def columns_from(given: Mapping[str, Any]) -> dict[str, ColumnMap]:
    """Signal -> where it is found; names and mappings as in a file are accepted."""
    return {signal: _column(signal, one) for signal, one in given.items()}


def _column(signal: str, given: Any) -> ColumnMap:
    """Where a signal is found, from a name or from `{name, unit, scale, offset}` as in a file."""
    if isinstance(given, ColumnMap):
        return given
    if isinstance(given, str):
        return ColumnMap(given)
    if not isinstance(given, Mapping):
        raise InputError(f"column of {signal} is {given!r}", place="columns", remedy="give the column name")
    valid = tuple(one.name for one in fields(ColumnMap))
    for key in given:
        check_choice("key of a column", key, valid)
    return ColumnMap(**{"name": signal, **given})


@dataclass(frozen=True)
class LogEntry:
    """One log: its file, the payloads mounted in it, and column names that only it has.

    Attributes:
        start, stop: Window of time that is used, in [s] of the log (keys `from` and `to`); None: to its end.
        exclude: Intervals that are left out, in [s] of the log.
        runs: Runs that are used, numbered from 1; None: all.
    """

    file: str
    payloads: tuple[str, ...] = ()
    columns: Mapping[str, ColumnMap] | None = None
    start: float | None = None
    stop: float | None = None
    exclude: tuple[tuple[float, float], ...] = ()
    runs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        ends = [(self.start, self.stop)] if self.start is not None and self.stop is not None else []
        for start, stop in (*ends, *self.exclude):
            if not start < stop:
                raise InputError(
                    f"the interval from {start:g} to {stop:g} s is empty",
                    place="logs",
                    remedy="give the earlier time first",
                )


def entry_of(source: LogEntry | str | os.PathLike[str]) -> LogEntry:
    """A log entry from a file path alone; other entries unchanged."""
    if isinstance(source, LogEntry):
        return source
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"a log cannot be made from {type(source).__name__}",
            remedy="give a file, a Log (see log_from_arrays), a data frame, or a dict of arrays by name",
        )
    return LogEntry(os.fspath(source))


@dataclass(frozen=True)
class FilterSettings:
    """How coordinates are filtered and rows decimated; None: chosen from the data.

    Attributes:
        cutoff: Of the zero-phase low-pass on coordinates, in [Hz].
        decimate: Keep one row in this many.
        rows: Low-pass of W and Y, in [Hz]; default 0.8 fs / (2 decimate).
        kind: butterworth, fir or none.
        order: Of the Butterworth filter, in one direction.
        derivative: central3, central5, central7 or spline.
        velocity: auto, measured (dq of the log) or derived (from q).
    """

    cutoff: float | None = None
    decimate: int | None = None
    rows: float | None = None
    kind: str = "butterworth"
    order: int = 4
    derivative: str | None = None
    velocity: str = "auto"

    def __post_init__(self) -> None:
        _check_positive(
            "filter", cutoff=self.cutoff, decimate=self.decimate, rows=self.rows, order=self.order
        )
        check_choice("filter kind", self.kind, FILTERS)
        check_choice("filter velocity", self.velocity, VELOCITIES)
        if self.derivative is not None:
            check_choice("filter derivative", self.derivative, DERIVATIVES)


@dataclass(frozen=True)
class MaskSettings:
    """Which rows are dropped; None: chosen from the data.

    Attributes:
        speed: A joint slower than this is near a reversal, in [rad/s] or [m/s].
        around: Samples dropped on either side of a reversal.
        rest: Samples where every joint is slower than this are at rest, in [rad/s] or [m/s].
    """

    speed: float | None = None
    around: int | None = None
    rest: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("around", self.around), ("rest", self.rest)):
            if value is not None and not value >= 0:
                raise InputError(f"mask {name} {value} is negative", remedy="give a number of at least 0")


def check_choice(what: str, value: str, valid: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the valid ones."""
    if value not in valid:
        raise InputError(
            f"{what} '{value}' is not known" + nearest(value, valid), remedy="use one of " + ", ".join(valid)
        )


def _check_positive(what: str, **values: float | int | None) -> None:
    for name, value in values.items():
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"{what} {name} {value} is not positive", remedy="give a positive number")
