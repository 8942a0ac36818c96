"""Which column of the logs is which signal: the table that the page shows, and a change of one line of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.common.errors import InputError, nearest
from dynid.experiment.experiment import Experiment
from dynid.mechanism.mechanism import Mechanism
from dynid.motion.column_words import Column, time_unit
from dynid.motion.columns import Matching, match, matched
from dynid.motion.guess import Guess
from dynid.motion.logs import read_table
from dynid.motion.settings import ColumnMap, LogEntry
from dynid.motion.slots import Slot, slots
from dynid.motion.sources import each_log
from dynid.motion.units import canonical_unit
from dynid.motion.vocabulary import FITTING

_HINTED = ("t", "q", "tau")  # shown also if nothing is matched; others may be absent from a log


@dataclass(frozen=True)
class Columns:
    """Columns of the first log and what they are read as.

    Attributes:
        names: Of the columns, as in the file.
        chosen: Signal -> column.
        guesses: Those found by other than canonical names.
        refusal: Why the columns could not be matched; empty: they were.
    """

    names: tuple[str, ...] = ()
    chosen: Mapping[str, ColumnMap] = field(default_factory=dict)
    guesses: tuple[Guess, ...] = ()
    refusal: str = ""


def columns_of(mechanism: Mechanism, experiment: Experiment) -> Columns:
    """Of the first log; all logs share the mapping."""
    entry = next(each_log(experiment.logs), None)
    if not isinstance(entry, LogEntry):
        return Columns()
    path = Path(entry.file)
    try:
        table = read_table(path, experiment.drop_bad_rows)
    except InputError as error:
        return Columns(refusal=error.message)
    names, known = tuple(table.columns), slots(mechanism)
    asked = table.mapped({**experiment.columns, **(entry.columns or {})})
    try:
        matching = matched(table, known, asked, path)
    except InputError as error:
        return Columns(names, _certain(names, mechanism, experiment, path), refusal=error.message)
    return Columns(names, matching.chosen, matching.guesses)


def _certain(
    names: tuple[str, ...], mechanism: Mechanism, experiment: Experiment, path: Path
) -> Mapping[str, ColumnMap]:
    """What is sure although the header as a whole is refused."""
    try:
        return Matching(match(names, slots(mechanism), experiment.columns, path)).chosen
    except InputError:
        return {key: column for key, column in experiment.columns.items() if column.name in names}


def column_rows(mechanism: Mechanism, columns: Columns, experiment: Experiment) -> list[dict[str, Any]]:
    """Lines of the table: signal, column, unit, units that fit it, scale, offset, delay, and why."""
    guessed = {guess.key: guess for guess in columns.guesses}
    rows = []
    for slot in slots(mechanism):
        taken, asked = columns.chosen.get(slot.key), experiment.columns.get(slot.key)
        if taken is None and slot.quantity not in _HINTED:
            continue
        why = "chosen" if asked is not None else "" if taken is None else "same name"
        if asked is None and slot.key in guessed:
            why = f"by its name, {guessed[slot.key].confidence:.0%}"
        shown = asked or taken
        unit = (shown.unit if shown else None) or ""
        rows.append(
            {
                "key": slot.key,
                "label": slot.label,
                "column": "" if taken is None else taken.name,
                "unit": unit,
                "units": list(dict.fromkeys(name for name in ("1", *slot.units, unit) if name)),
                "scale": asked.scale if asked else 1.0,
                "offset": asked.offset if asked else 0.0,
                "delay": asked.delay if asked else 0.0,
                "why": why,
            }
        )
    return rows


def unit_in_name(mechanism: Mechanism, key: str, column: str) -> str | None:
    """The unit that the name of a column has, read as this signal: `deg` of `Axis1 [deg]`; None: no unit."""
    slot = next((slot for slot in slots(mechanism) if slot.key == key), Slot(key, "", 0, (), key))
    kind, name = ("q" if slot.quantity == "q_ref" else slot.quantity, slot.turns), Column(column)
    if kind in FITTING:
        return name.units(slot.quantity, slot.turns)[1]
    return canonical_unit(name.bracket or "") or time_unit(column)[1]


def plain_number(name: str, value: Any) -> float:
    """What a person typed as a scale, an offset or a delay."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} '{value}' is not a number", remedy="write a number such as 0.5") from None


def remapped(
    mechanism: Mechanism, columns: Columns, experiment: Experiment, key: str, column: ColumnMap | None
) -> Experiment:
    """The experiment with another column for one signal; None: the column that dynid would take.

    Columns that were guessed are kept as they are: a mapping of one of them would end the search for the
    others. A column that another signal has is exchanged with it; the unit goes with the column. Columns that
    are numbered like that of the first signal of its kind follow it, with its unit and scale: `Axis1` for
    `q_1` gives `Axis2` for `q_2`.
    """
    units = {slot.key: slot.units for slot in slots(mechanism)}
    keys = list(units)
    if key not in keys:
        raise InputError(f"no signal '{key}'" + nearest(key, keys), remedy="choose one of the table")
    kept = {hit.key: ColumnMap(hit.column, hit.unit) for hit in columns.guesses} | dict(experiment.columns)
    before = columns.chosen.get(key)
    if column is None:
        kept.pop(key, None)
        return experiment.changed(columns=kept)
    if column.name not in columns.names:
        raise InputError(
            f"no column '{column.name}'" + nearest(column.name, columns.names), remedy="choose one of the log"
        )
    for other, taken in columns.chosen.items():
        if other != key and taken.name == column.name:
            kept.pop(other, None)
            if before is not None:
                entry = experiment.columns.get(other) or taken
                kept[other] = entry.changed(name=before.name, unit=before.unit)
    return experiment.changed(
        columns={**kept, **_alike(units, columns.names, kept, key, column), key: column}
    )


def _alike(
    units: Mapping[str, Sequence[str]],
    names: Sequence[str],
    kept: Mapping[str, ColumnMap],
    key: str,
    column: ColumnMap,
) -> dict[str, ColumnMap]:
    """Columns of the other signals of a kind, if the one of the first is numbered as they are.

    A signal that the unit of the first does not fit, as degrees a slide, has none but that of its header.
    """
    kind, first, number = key.rpartition("_")
    places = [match.span() for match in re.finditer(r"\d+", column.name)]
    if number != "1" or not first or not places:
        return {}
    found: dict[str, ColumnMap] = {}
    for other in units:
        if other.rpartition("_")[0] != kind or other == key:
            continue
        step = int(other.rpartition("_")[2]) - 1
        for a, b in places:
            name = f"{column.name[:a]}{int(column.name[a:b]) + step:0{b - a}d}{column.name[b:]}"
            if name in names and kept.get(other, ColumnMap(name)).name == name:
                before = kept.get(other, ColumnMap(name))
                fits = column.unit is None or canonical_unit(column.unit) in ("1", *units[other])
                found[other] = before.changed(unit=column.unit if fits else None, scale=column.scale)
                break
    return found
