"""Columns as people write them: `current_1*11.9`, `Zeit[ms]`, `tau_1 delay 0.003`, and as a file has them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from dynid.common.errors import InputError, nearest
from dynid.common.strict_number import UNSIGNED
from dynid.motion.column_words import Column
from dynid.motion.settings import ColumnMap
from dynid.motion.slots import Slot
from dynid.motion.units import canonical_unit
from dynid.motion.vocabulary import JOINT_SIGNALS

_SIGNED = rf"[+-]?\s*{UNSIGNED}"
# Brackets with a number are an index and belong to the name. An offset follows a unit, a scale or a blank.
_COLUMN = re.compile(
    r"\s*(?P<name>.+?)\s*(?P<unit>\[[^\[\]]*[^\[\]\d\s][^\[\]]*\])?"
    rf"(?P<scale>(?:\s*\*\s*{_SIGNED})*)(?P<offset>\s*[+-]\s*{UNSIGNED})?"
    rf"(?:\s+delay\s+(?P<delay>{_SIGNED}))?\s*\Z"
)

# `q_2-1.57`: an offset if the file has q_2 and no column of the whole name. `axis-2` stays a name.
_CLOSE_OFFSET = re.compile(r"(?P<name>.+?)(?P<offset>[+-]\d*\.\d+)\Z")


def written_column(text: str) -> ColumnMap | None:
    """`NAME[unit]*scale+offset delay S`, each part after the name optional; None without a name."""
    parts = _COLUMN.match(text)
    if parts is None:
        return None
    name, offset = parts["name"], parts["offset"] or ""
    plain = not parts["unit"] and not parts["scale"] and not parts["delay"]
    apart = offset[:1].isspace() or text[parts.start("offset") - 1].isspace() if offset else False
    if offset and plain and not apart:
        name, offset = name + offset, ""  # `axis-2` is a name
    unit = parts["unit"][1:-1].strip() if parts["unit"] else None
    factors = [_number(factor) for factor in parts["scale"].split("*")[1:]]
    delay = _number(parts["delay"]) if parts["delay"] else 0.0
    return ColumnMap(name, unit, math.prod(factors), _number(offset) if offset else 0.0, delay)


def _number(text: str) -> float:
    return float("".join(text.split()))


def in_file(column: ColumnMap, names: Sequence[str]) -> ColumnMap | None:
    """The column with its name in the file; None: the file does not have it.

    `pos_1` may be `pos_1 [deg]` in the file, if no other column has this name. A name that is given without
    unit and scale may contain both, or a decimal offset; the unit of a header counts, unless another one is
    given.
    """
    open_unit = column.unit is None and column.scale == 1.0
    if column.name in names:
        return column.changed(unit=with_unit(column.name)[1]) if open_unit else column
    written = written_column(column.name) if open_unit else None
    split = _CLOSE_OFFSET.match(column.name) if open_unit else None
    if split is not None and split["name"] in names:
        return column.changed(name=split["name"], offset=_number(split["offset"]) + column.offset)
    if written is not None:
        column = written.changed(offset=written.offset + column.offset, delay=written.delay + column.delay)
    if column.name in names:
        return column
    pairs = ((name, *with_unit(name)) for name in names)
    headed = {name: unit for name, base, unit in pairs if unit and base == column.name}
    same = [name for name, unit in headed.items() if unit == canonical_unit(column.unit or "")]
    matches = same if len(same) == 1 else list(headed)
    if len(matches) != 1:
        return None
    unit = headed[matches[0]] if column.unit is None and column.scale == 1.0 else column.unit
    return column.changed(name=matches[0], unit=unit)


def with_unit(name: str) -> tuple[str, str | None]:
    """The name without what is in brackets at its end, and the unit that this is; None: it is none."""
    column = Column(name)
    return column.base, None if column.bracket is None else canonical_unit(column.bracket)


def spelled(name: str) -> str:
    """The name without a unit in brackets."""
    base, unit = with_unit(name)
    return name if unit is None else base


def expanded(
    columns: Mapping[str, ColumnMap | str], names: Sequence[str], known: Sequence[Slot], file: object
) -> dict[str, ColumnMap]:
    """Patterns as columns: `tau_{i}: effort_{name}`, with {i} from 1, {i0} from 0 and {name} on the right.

    A pattern names the columns that the file has of it; at least one. Columns given by name have priority.
    """
    given = {key: ColumnMap(entry) if isinstance(entry, str) else entry for key, entry in columns.items()}
    made = {key: entry for key, entry in given.items() if "{" not in key}
    spelled = {spelling: slot.key for slot in known for spelling in slot.spellings}
    exact = {spelled.get(key, key) for key in made}
    for key, column in given.items():
        if "{" not in key:
            continue
        symbols = ("q_ref", "ddq", "dq", "tau", "q")
        quantity = next((symbol for symbol in symbols if key in quantity_patterns(symbol)), None)
        same_slots = [slot for slot in known if slot.quantity == quantity]
        if quantity is None or not same_slots:
            raise InputError(
                f"'{key}' is not a pattern of this robot's quantities",
                place=f"columns.{key}",
                remedy="use q_{i}, dq_{i}, ddq_{i}, q_ref_{i} or tau_{i}",
            )
        filled = {slot.key: column.changed(name=_filled(column.name, slot)) for slot in same_slots}
        present = {slot: target for slot, target in filled.items() if in_file(target, names)}
        if not present or len({target.name for target in filled.values()}) < len(filled):
            first = next(iter(filled.values())).name
            raise InputError(
                f"no column of the pattern '{column.name}' is in the file, e.g. '{first}'"
                + nearest(first, names)
                if not present
                else f"the pattern '{column.name}' is the same column for every joint",
                file=file,
                place=f"columns.{key}",
                remedy=f"give another one, e.g. --column '{key}=NAME_{{i}}': with {{i}} (from 1), {{i0}}"
                " (from 0) or {name}",
            )
        made |= {slot: target for slot, target in present.items() if slot not in exact}
    return made


def quantity_patterns(quantity: str) -> tuple[str, ...]:
    """Keys that stand for a quantity of all joints."""
    return tuple(f"{quantity}_{{{mark}}}" for mark in ("i", "name"))


def _filled(pattern: str, slot: Slot) -> str:
    name = slot.owner or slot.spellings[0]
    marks = {"{i}": str(slot.index + 1), "{i0}": str(slot.index), "{name}": name}
    for mark, text in marks.items():
        pattern = pattern.replace(mark, text)
    return pattern


def mapped_columns(
    names: Sequence[str], known: Sequence[Slot], columns: Mapping[str, ColumnMap | str], file: object
) -> dict[str, ColumnMap]:
    """Canonical key -> the column of the file that the user gives for it; unknown ones are refused."""
    by_spelling = {spelling: slot for slot in reversed(known) for spelling in slot.spellings}
    chosen: dict[str, ColumnMap] = {}
    users: dict[str, str] = {}
    entries = expanded(columns, names, known, file)
    _check_keys([key for key in entries if key not in by_spelling], by_spelling)
    found = {key: in_file(entry, names) for key, entry in entries.items()}
    _check_present({key: entries[key].name for key, column in found.items() if column is None}, names, file)
    for key, column in found.items():
        slot = by_spelling[key]
        assert column is not None  # noqa: S101 (checked above)
        if column.name in users or slot.key in chosen:
            other = users.get(column.name, slot.key)
            raise used_twice(key, other, "column" if column.name in users else "quantity", file)
        users[column.name] = key
        chosen[slot.key] = _by_suffix(column, slot)
    return chosen


def used_twice(key: str, other: str, what: str, file: object) -> InputError:
    """That two keys mean the same column or quantity."""
    return InputError(
        f"'{key}' and '{other}' use the same {what}",
        file=file,
        place="columns",
        remedy="map every quantity once, each to its own column",
    )


def _by_suffix(column: ColumnMap, slot: Slot) -> ColumnMap:
    """The column with the unit at the end of its name, as in `elbow_deg`, if none is given.

    Not of currents, whose torque constants are given elsewhere, nor of `rev`, which may mean reverse.
    """
    canonical = column.name in slot.spellings
    if canonical or column.unit is not None or column.scale != 1.0 or slot.quantity not in JOINT_SIGNALS:
        return column
    unit = Column(column.name).units(slot.quantity, slot.turns)[1]
    return column if unit in (None, "A", "mA", "rev") else column.changed(unit=unit)


def _check_keys(unknown: Sequence[str], valid: Collection[str]) -> None:
    """Refuse keys that are no quantity, all at once."""
    if unknown:
        several = len(unknown) > 1
        listed = ", ".join(f"'{key}'" for key in unknown)
        raise InputError(
            f"{listed} {'are not quantities' if several else 'is not a quantity'} of this robot"
            + nearest(unknown[0], valid),
            place="columns",
            remedy="use t, segment, q_1.., dq_1.., ddq_1.., q_ref_1.., tau_1.. or the joints' names; for all"
            " joints q_{i}, of a matrix x: q_{i}: x_{i}",
        )


def _check_present(absent: Mapping[str, str], names: Sequence[str], file: object) -> None:
    """Refuse columns that the file does not have, all at once."""
    if absent:
        listed = ", ".join(f"'{name}' (for {key})" for key, name in absent.items())
        key, name = next(iter(absent.items()))
        several = len(absent) > 1
        raise InputError(
            f"{'columns' if several else 'column'} {listed} {'are' if several else 'is'} not in the file"
            + nearest(name, names),
            file=file,
            place="columns" if several else f"columns.{key}",
        )
