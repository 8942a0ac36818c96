"""Units of columns, which must fit their signals, and the scales of gears, encoders and torque constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from dynid.common.errors import InputError, nearest
from dynid.motion.column_words import strange_unit
from dynid.motion.settings import ColumnMap, DriveSettings
from dynid.motion.slots import Slot
from dynid.motion.units import canonical_unit


def check_units(
    chosen: Mapping[str, ColumnMap],
    known: Sequence[Slot],
    file: object,
    drives: Mapping[str, DriveSettings] | None = None,
) -> None:
    """Refuse units of another dimension than the signal, and names with an unknown unit.

    A unit in a name does not count where unit or scale are given. A geared motor may turn where its joint
    slides.
    """
    owners = {slot.owner for slot in known}
    for slot in known:
        column = chosen.get(slot.key)
        if column is None:
            continue
        if column.unit is not None:
            if not any(drive.is_geared(slot.quantity) for drive in drives_of(slot, drives or {})):
                _refuse_dimension(column, slot, file)
            continue
        if column.scale != 1.0:
            continue
        unit = strange_unit(column.name, slot.quantity, owners)
        if unit is not None:
            raise InputError(
                f"the unit '{unit}' of {slot.label} is not known",
                file=file,
                place=f"column '{column.name}'",
                remedy=f"give its factor: columns: {{{slot.key}: {{name: '{column.name}', scale: 1.0}}}}",
            )


def _refuse_dimension(column: ColumnMap, slot: Slot, file: object) -> None:
    """Refuse a unit that is known, but does not measure this signal: degrees of a slide."""
    unit = canonical_unit(column.unit or "")
    if unit in (None, "1", *slot.units):
        return
    needs = f"one of {', '.join(slot.units)} is needed" if slot.units else "it has none"
    raise InputError(
        f"the unit '{column.unit}' does not fit {slot.label}: {needs}",
        file=file,
        place=f"column '{column.name}'",
        remedy="check which column this is; if only the unit is wrong: columns:"
        f" {{{slot.key}: {{name: '{column.name}', unit: {slot.units[0] if slot.units else '1'}}}}}; another"
        " factor is `scale` without `unit`, that of a geared motor `ratio` under `drives:`",
    )


def drives_of(slot: Slot, drives: Mapping[str, DriveSettings]) -> list[DriveSettings]:
    """The drive of a slot's owner, by name or else by the last glob that matches; none or one."""
    named = (slot.owner, *slot.also) if slot.owner else ()
    exact = [drives[name] for name in named if name in drives]
    globs = [
        settings for pattern, settings in drives.items() if any(fnmatchcase(name, pattern) for name in named)
    ]
    return exact[:1] or globs[-1:]


def with_drives(
    chosen: Mapping[str, ColumnMap], known: Sequence[Slot], drives: Mapping[str, DriveSettings]
) -> dict[str, ColumnMap]:
    """Columns with the scales of gears, encoders and torque constants."""
    for pattern in drives:
        owned = [slot for slot in known if slot.owner]
        if not any(fnmatchcase(name, pattern) for slot in owned for name in (slot.owner, *slot.also)):
            labels = dict.fromkeys(slot.owner for slot in owned)
            raise InputError(
                f"'{pattern}' matches no joint and no motor" + nearest(pattern, labels),
                place=f"drives.{pattern}",
                remedy="use the names of `dynid info`, or a glob",
            )
    made = dict(chosen)
    for slot in known:
        for drive in drives_of(slot, drives) if slot.key in chosen else ():
            column = chosen[slot.key]
            made[slot.key] = column.changed(scale=column.scale * drive.scale(slot.quantity, column.unit))
    return made
