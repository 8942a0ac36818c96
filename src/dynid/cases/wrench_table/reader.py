"""Reader of wrench tables: a row per body and instant, from columns with names and units to a BodyTable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.strict_number import is_count
from dynid.mechanism.mechanism import BASE, Mechanism
from dynid.motion.body_table import QUANTITIES, RATES, SPOKEN, BodyTable, TableLog, table_log
from dynid.motion.column_units import check_units
from dynid.motion.columns import match
from dynid.motion.gather import si_values
from dynid.motion.logs import digest, read_table, text_column
from dynid.motion.settings import ColumnMap, LogEntry, WrenchSettings
from dynid.motion.slots import Slot, position_units
from dynid.motion.table import Table
from dynid.motion.units import factor, last_figures
from dynid.motion.vocabulary import ACCELERATION, FITTING, FORCE, LENGTH, TIME_UNITS, TORQUE, VELOCITY

_NEEDED = ("force", "moment")
_UNITS = {
    "quaternion": (),
    "position": LENGTH,
    "omega": FITTING[VELOCITY, True],
    "alpha": FITTING[ACCELERATION, True],
    "acceleration": FITTING[ACCELERATION, False],
    "centroid": FITTING[ACCELERATION, False],
    "force": FORCE,
    "moment": TORQUE,
}
# Of a quaternion's length from 1: printing with few figures stays far below, other columns far above.
_LENGTH_OFF, _LENGTH_REFUSED = 1e-3, 0.1


def read_wrench_table(
    entry: LogEntry | str | Path,
    mechanism: Mechanism,
    settings: WrenchSettings,
    columns: Mapping[str, ColumnMap | str] | None = None,
) -> TableLog:
    """Read a table of bodies and check what can be checked without the robot's geometry.

    Args:
        entry: A path, or an entry of the experiment with `file`, `payloads` and `columns`.
        mechanism: Says which bodies there are.
        settings: Names of bodies in the table.
        columns: Where names, units or zeros differ: canonical name -> column of the file.
    """
    entry = entry if isinstance(entry, LogEntry) else LogEntry(str(entry))
    path = Path(entry.file)
    raw = read_table(path)
    known = tuple(_slots(mechanism))
    names = (*raw.columns, *raw.skipped)
    chosen = match(names, known, {**(columns or {}), **(entry.columns or {})}, path)
    _check_columns(chosen, names, path)
    check_units(chosen, known, path)
    body = _body_numbers(raw, chosen["body"].name, mechanism, settings, path)
    rows = _Rows(raw, chosen, body, path)
    table = rows.table(mechanism)
    table, notices = unit_quaternions(table, rows.place, path)
    unused = [name for name in names if name not in {column.name for column in chosen.values()}]
    choices = {"unused columns": ", ".join(unused)} if unused else {}
    shown = f"{len(table.t)} instants, {int(table.present.sum())} rows, {table.figures_of:.0f} figures"
    return table_log(
        table,
        path.stem,
        sha256=digest(path),
        payloads=tuple(entry.payloads),
        notices=(*raw.notices, *notices),
        mapping={key: column.name for key, column in chosen.items()},
        choices={**raw.choices, **choices, "table": shown},
    )


def _slots(mechanism: Mechanism) -> Iterator[Slot]:
    """Every quantity a table may have."""
    yield Slot("t", "t", 0, ("t", "time"), "time", units=TIME_UNITS)
    yield Slot("segment", "segment", 0, ("segment",), "the segment number")
    yield Slot("body", "body", 0, ("body",), "the body's name or number")
    for quantity, columns in QUANTITIES.items():
        for i, key in enumerate(columns):
            yield Slot(key, quantity, i, (key,), f"{key} of the {SPOKEN[quantity]}", units=_UNITS[quantity])
    for rate in RATES:
        for i, name in enumerate(mechanism.measured_positions):
            spellings = (f"{rate}_{i + 1}", f"{rate}{i + 1}", f"{rate}_{name}", f"{rate}{name}")
            units = position_units(mechanism, name, rate)
            label = f"{rate} of '{name}'"
            yield Slot(f"{rate}_{i + 1}", rate, i, tuple(dict.fromkeys(spellings)), label, units=units)


def _check_columns(chosen: Mapping[str, ColumnMap], names: Sequence[str], path: Path) -> None:
    """Refuse a table without time, bodies or wrenches, with a part of a vector, or with delays."""
    late = next((key for key, column in chosen.items() if column.delay != 0.0), None)
    if late is not None:
        raise InputError(
            "a table of instants has no delays", place=f"columns.{late}.delay", remedy="remove the key"
        )
    for key, label in (("t", "time"), ("body", "body")):
        if key not in chosen:
            raise InputError(
                f"no {label} column '{key}'; columns are {', '.join(names)}",
                file=path,
                place="header",
                remedy=f"name it {key}, or map it: columns: {{{key}: <its name>}}",
            )
    for quantity, columns in QUANTITIES.items():
        given = [key for key in columns if key in chosen]
        missing = [key for key in columns if key not in chosen]
        if missing and (given or quantity in _NEEDED):
            raise InputError(
                f"the {SPOKEN[quantity]} needs {', '.join(columns)}; {', '.join(missing)} is missing",
                file=path,
                place="header",
                remedy=f"map it under `columns:`, e.g. {missing[0]}: <its name>",
            )


def _body_numbers(
    raw: Table, column: str, mechanism: Mechanism, settings: WrenchSettings, path: Path
) -> Int[Array, "r"]:
    """Number (from 0) of the body of each row; names through `wrench: {names: ...}`."""
    bodies = list(mechanism.bodies)
    numbers = raw.columns.get(column)
    _check_names(settings, mechanism)
    cells, first, inverse = np.unique(
        text_column(path, column) if numbers is None else numbers, return_index=True, return_inverse=True
    )
    place = []
    for row, value in sorted(zip(first.tolist(), cells.tolist(), strict=True)):
        cell = value if isinstance(value, str) else f"{value:g}"
        name = settings.names.get(cell, cell)
        if name in bodies:
            place.append((row, bodies.index(name)))
        elif is_count(name) and 1 <= int(name) <= len(bodies):
            place.append((row, int(name) - 1))
        elif name.lower() in (BASE, "ground", "0"):
            place.append((row, -1))  # printed by some programs; the base has no equations
        else:
            raise InputError(
                f"unknown body '{cell}'" + nearest(cell, bodies),
                file=path,
                place=f"data row {row + 1}, column '{column}'",
                remedy="name or number the bodies as the robot file does, or map them: wrench: {names:"
                f" {{{cell}: {bodies[0]}}}}}",
            )
    number = dict(place)
    return np.array([number[row] for row in first.tolist()], dtype=np.int64)[inverse.reshape(-1)]


def _check_names(settings: WrenchSettings, mechanism: Mechanism) -> None:
    for name in (*settings.names.values(), *(settings.bodies or ())):
        if name not in mechanism.bodies:
            raise InputError(
                f"no body '{name}' in robot '{mechanism.name}'" + nearest(name, mechanism.bodies),
                place="wrench",
                remedy="use the names of bodies in the robot file",
            )


class _Rows:
    """Rows of a file sorted into instants and bodies.

    Args:
        body: Number of the body of each row, -1 for the base, shape (r,).
    """

    def __init__(
        self, raw: Table, chosen: Mapping[str, ColumnMap], body: Int[Array, "r"], path: Path
    ) -> None:
        self.raw, self.chosen, self.path = raw, chosen, path
        self.use = np.flatnonzero(body >= 0)
        self.body = body[self.use]
        t = self._values("t")
        run = self._values("segment") if "segment" in chosen else np.zeros(len(t))
        moments = np.column_stack([run, t])
        instants, self.instant = np.unique(moments, axis=0, return_inverse=True)
        self.instant = self.instant.reshape(-1)
        self.t, self.runs = instants[:, 1], np.unique(instants[:, 0], return_inverse=True)[1].reshape(-1)
        self.place = np.full((len(instants), int(self.body.max(initial=0)) + 1), -1)
        self._refuse_twice()
        self.place[self.instant, self.body] = self.use

    def _refuse_twice(self) -> None:
        key = self.instant * self.place.shape[1] + self.body
        _, first, count = np.unique(key, return_index=True, return_counts=True)
        if np.any(count > 1):
            row = int(first[np.argmax(count > 1)])
            again = int(np.flatnonzero(key == key[row])[1])
            raise InputError(
                f"two rows for body number {self.body[row] + 1} at t = {self.t[self.instant[row]]:g} s",
                file=self.path,
                place=f"data rows {self.use[row] + 1} and {self.use[again] + 1}",
                remedy="give a row per body and instant; number independent runs in a column 'segment'",
            )

    def _values(self, key: str) -> Float[Array, "r"]:
        column = self.chosen[key]
        if column.name not in self.raw.columns:
            raise InputError(
                f"the column '{column.name}' (for {key}) holds text", file=self.path, remedy="give numbers"
            )
        values = si_values(self.raw.columns[column.name], column, key, self.path)[self.use]
        bad = ~np.isfinite(values)
        if bad.any():
            raise InputError(
                f"{column.name} is {values[np.argmax(bad)]}",
                file=self.path,
                place=f"data row {self.use[np.argmax(bad)] + 1}, column '{column.name}'",
                remedy="remove the row, or give the number",
            )
        return values

    def _figures(self, key: str) -> Float[Array, "r"]:
        column = self.chosen[key]
        gain = abs(column.scale) * factor(column.unit, column=column.name, file=self.path)
        return gain * last_figures(np.asarray(self.raw.columns[column.name], float))[self.use]

    def table(self, mechanism: Mechanism) -> BodyTable:
        """The rows as arrays of instants and bodies."""
        n, b = len(self.t), len(mechanism.bodies)
        present = np.zeros((n, b), dtype=bool)
        present[self.instant, self.body] = True
        signals, figures = {}, {}
        for quantity, columns in QUANTITIES.items():
            if columns[0] in self.chosen:
                values, units = np.full((n, b, len(columns)), np.nan), np.zeros((n, b, len(columns)))
                for i, key in enumerate(columns):
                    values[self.instant, self.body, i] = self._values(key)
                    units[self.instant, self.body, i] = self._figures(key)
                signals[quantity], figures[quantity] = values, units
        joints = {rate: self._joints(rate, mechanism) for rate in RATES}
        return BodyTable(
            self.t,
            self.runs,
            tuple(mechanism.bodies),
            present,
            signals,
            figures,
            {rate: pair[0] for rate, pair in joints.items() if pair is not None},
            {rate: pair[1] for rate, pair in joints.items() if pair is not None},
            str(self.path),
        )

    def _joints(
        self, rate: str, mechanism: Mechanism
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]] | None:
        """Joint coordinates of each instant: the same in all its rows; None where one is missing."""
        m = len(mechanism.measured_positions)
        if m == 0 or any(f"{rate}_{i + 1}" not in self.chosen for i in range(m)):
            return None
        values, units = np.zeros((len(self.t), m)), np.zeros((len(self.t), m))
        for i in range(m):
            column, figures = self._values(f"{rate}_{i + 1}"), self._figures(f"{rate}_{i + 1}")
            values[self.instant, i], units[self.instant, i] = column, figures
            off = np.abs(column - values[self.instant, i]) > 2.0 * figures
            if off.any():
                row = int(np.argmax(off))
                raise InputError(
                    f"{rate}_{i + 1} is {column[row]:g} here and {values[self.instant[row], i]:g} in another"
                    " row of the same instant",
                    file=self.path,
                    place=f"data row {self.use[row] + 1}",
                    remedy="joint coordinates must be the same in all rows of one t",
                )
        return values, units


# Orientations of a table: quaternions of norm 1, their signs continued from one instant to the next.


def unit_quaternions(
    table: BodyTable, place: Int[Array, "n b"], path: Path
) -> tuple[BodyTable, tuple[Notice, ...]]:
    """Quaternions of length 1 whose sign does not jump; what is no attitude is refused.

    Args:
        table: As read.
        place: Row of the file, from 0, of each instant and body.
        path: Of the file, for messages.
    """
    if "quaternion" not in table.signals:
        return table, ()
    q = table.signals["quaternion"].copy()
    length = np.linalg.norm(q, axis=2)
    # A printed quaternion misses the length 1 by its last figures at most.
    rounding = 2.0 * np.max(table.figures["quaternion"], axis=2)
    off = np.where(table.present, np.abs(length - 1.0), 0.0)
    notices = []
    worst = np.unravel_index(int(np.argmax(off)), off.shape)
    i, body = int(worst[0]), int(worst[1])
    if off[worst] > _LENGTH_REFUSED:
        raise InputError(
            f"the quaternion of '{table.bodies[body]}' at t = {table.t[i]:g} s has the norm"
            f" {length[worst]:.4g} instead of 1",
            file=path,
            place=f"data row {place[worst] + 1}",
            remedy="check which columns are qw, qx, qy, qz (qw is the scalar) and their scale",
        )
    if off[worst] > max(_LENGTH_OFF, float(rounding[worst])):
        notices.append(notice("quaternion-length", off=off[worst], body=table.bodies[body], t=table.t[i]))
    q /= length[:, :, None]
    flips = _straightened(q, table)
    if flips:
        notices.append(notice("quaternion-sign", count=flips))
    return replace(table, signals={**table.signals, "quaternion": q}), tuple(notices)


def _straightened(q: Float[Array, "n b 4"], table: BodyTable) -> int:
    """Turn the sign of quaternions that point away from the one before, in place; how many jumped."""
    flips = 0
    for body in range(q.shape[1]):
        for run in np.unique(table.runs):
            at = np.flatnonzero(table.present[:, body] & (table.runs == run))
            away = np.sum(q[at[1:], body] * q[at[:-1], body], axis=1) < 0.0
            flips += int(away.sum())
            q[at[1:], body] *= np.where(np.cumsum(away) % 2, -1.0, 1.0)[:, None]
    return flips
