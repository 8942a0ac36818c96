"""What this stage reads of the experiment's settings, whoever defines them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable


@runtime_checkable
class ColumnLike(Protocol):
    """Which column of the file holds a quantity: SI value = scale * (x in unit) + offset."""

    @property
    def name(self) -> str:
        """Column of the file."""

    @property
    def unit(self) -> str | None:
        """Unit of the column; None: SI."""

    @property
    def scale(self) -> float:
        """Dimensionless factor, e.g. a gear ratio or a drive gain."""

    @property
    def offset(self) -> float:
        """Added in SI units."""


@runtime_checkable
class FilterLike(Protocol):
    """How coordinates are filtered; None leaves the choice to the data."""

    @property
    def cutoff(self) -> float | None:
        """Low-pass on coordinates, in [Hz]."""

    @property
    def decimate(self) -> int | None:
        """Keep one row in so many."""

    @property
    def rows(self) -> float | None:
        """Low-pass on W and Y, in [Hz]."""

    @property
    def kind(self) -> str:
        """`butterworth`, `fir` or `none`."""

    @property
    def order(self) -> int:
        """Order of one pass."""

    @property
    def derivative(self) -> str | None:
        """`central3`, `central5`, `central7` or `spline`."""

    @property
    def velocity(self) -> str:
        """`auto`, `measured` or `derived`."""


@runtime_checkable
class MaskLike(Protocol):
    """Which rows are dropped; None leaves the choice to the data."""

    @property
    def speed(self) -> float | None:
        """Rows of a coordinate slower than this are dropped, in [rad/s] or [m/s]."""

    @property
    def around(self) -> int | None:
        """And so many samples on both sides of them."""

    @property
    def rest(self) -> float | None:
        """Samples at which every coordinate is slower than this are dropped."""


@runtime_checkable
class EntryLike(Protocol):
    """A log of the experiment: its file and the payloads mounted while it was recorded."""

    @property
    def file(self) -> str | Path:
        """Path of the log."""

    @property
    def payloads(self) -> tuple[str, ...]:
        """Names of payloads."""

    @property
    def columns(self) -> Mapping[str, ColumnLike] | None:
        """Column names that only this log has."""
