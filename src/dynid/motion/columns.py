"""Which column of a file contains which quantity: the user's mapping, canonical names, then other names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.strict_number import is_count
from dynid.motion.column_text import (
    mapped_columns,
    quantity_patterns,
    spelled,
    used_twice,
    with_unit,
    written_column,
)
from dynid.motion.column_units import check_units, drives_of, with_drives
from dynid.motion.column_words import Column, is_command, is_effort, says_current, strange_unit
from dynid.motion.guess import Guess, guess, names_owner
from dynid.motion.settings import ColumnMap, DriveSettings
from dynid.motion.slots import Slot
from dynid.motion.table import Table
from dynid.motion.vocabulary import AMPERES


@dataclass(frozen=True)
class Matching:
    """Columns of a log.

    Attributes:
        chosen: Canonical key -> column of the file.
        guesses: Those that were found by other than canonical names.
        notices: About columns that may be meant otherwise.
    """

    chosen: dict[str, ColumnMap]
    guesses: tuple[Guess, ...] = ()
    notices: tuple[Notice, ...] = ()


def match(
    names: Sequence[str],
    known: Sequence[Slot],
    columns: Mapping[str, ColumnMap | str],
    file: object,
) -> dict[str, ColumnMap]:
    """Canonical key -> column of the file, the user's mapping first, then canonical names.

    An entry without a name (`tau_1: {delay: 0.003}`) changes the column that is found without it.

    Raises:
        InputError: A key or column that does not exist, a column used twice, or two
            columns that fit the same quantity.
    """
    named, changes = _nameless(columns, known, names, file)
    chosen = _canonical(names, known, named, changes, file)
    return _with_changes(chosen, changes, names, known, file)


def _canonical(
    names: Sequence[str],
    known: Sequence[Slot],
    named: Mapping[str, ColumnMap | str],
    changes: Mapping[str, ColumnMap],
    file: object,
) -> dict[str, ColumnMap]:
    """Columns by the entries that name them and by canonical names, not yet changed."""
    chosen = mapped_columns(names, known, named, file)
    # Of two canonical names, that of the entry is meant.
    meant = [key if "{" in entry.name else entry.name for key, entry in changes.items() if key not in chosen]
    chosen = mapped_columns(names, known, {**named, **{name: name for name in meant if name in names}}, file)
    taken = {column.name for column in chosen.values()}
    owners = {slot.owner for slot in known}
    headed = {name: with_unit(name) for name in names if Column(name).bracket is not None}
    for slot in known:
        if slot.key in chosen:
            continue
        matches = [name for name in names if name in slot.spellings and name not in taken] or [
            name
            for name, (base, unit) in headed.items()
            if base in slot.spellings
            and name not in taken
            and (unit is not None or strange_unit(name, slot.quantity, owners) is not None)
        ]
        if len(matches) > 1:
            raise InputError(
                f"columns {' and '.join(repr(name) for name in matches)} both match {slot.label}",
                file=file,
                place="header",
                remedy=f"choose one: columns: {{{slot.key}: {matches[0]}}}",
            )
        if matches:
            chosen[slot.key] = ColumnMap(matches[0], headed.get(matches[0], ("", None))[1])
            taken.add(matches[0])
    return chosen


def matched(
    table: Table,
    known: Sequence[Slot],
    columns: Mapping[str, ColumnMap | str],
    file: object,
    drives: Mapping[str, DriveSettings] | None = None,
) -> Matching:
    """The same, then other names by their words, with their units; and the scales of the drives.

    A quantity of which some columns are canonical is not searched further; where some are mapped, the others
    are found by the names of their joints.

    Raises:
        InputError: As `match`, or two readings of the header are about equally likely.
    """
    names = tuple(table.columns)
    named, changes = _nameless(columns, known, names, file)
    chosen = _canonical(names, known, named, changes, file)
    mapped = mapped_columns(names, known, named, file)
    _drop_zero_based(chosen, names, known, mapped)
    for slot in known:  # numbers follow from names where the file names the joints
        name = table.spoken.get(chosen[slot.key].name) if slot.key in chosen else None
        if name and slot.key not in mapped and names_owner(name, slot, known):
            del chosen[slot.key]
    quantities = dict.fromkeys(slot.quantity for slot in known)
    given = {slot.quantity for slot in known if slot.key in chosen}
    headed = [
        slot.key for slot in known if slot.key in chosen and chosen[slot.key].unit and slot.key not in mapped
    ]
    taken = {column.name for column in chosen.values()}
    search = partial(
        guess,
        table=table,
        known=known,
        file=file,
        counted=any(drive.counts_per_turn for drive in (drives or {}).values()),
        one_based=any(
            is_count(key.rpartition("_")[2]) and key == spelled(chosen[key].name) for key in chosen
        ),
    )
    guesses = [
        Guess(key, chosen[key].name, chosen[key].unit, 1.0, chosen[key].unit in AMPERES) for key in headed
    ]
    guesses += search(
        [name for name in names if name not in taken],
        wanted=[kind for kind in quantities if kind not in given],
    )
    guesses += _beside(mapped, chosen, table, known, search)
    chosen |= {guessed.key: ColumnMap(guessed.column, guessed.unit) for guessed in guesses}
    chosen = _with_changes(chosen, changes, names, known, file)
    check_units(chosen, known, file, drives or {})
    return Matching(
        with_drives(chosen, known, drives or {}),
        tuple(sorted(guesses, key=lambda guessed: list(chosen).index(guessed.key))),
        _notices(chosen, names, known, guesses, drives or {}),
    )


def of_positions(
    columns: Mapping[str, ColumnMap], table: Table, known: Sequence[Slot], file: object
) -> dict[str, ColumnMap]:
    """Those entries of a map, made for other files, that this one has: of times, positions and rates.

    Delays are left out: only signals of one recording can be late.
    """
    wanted = [slot for slot in known if slot.quantity not in ("tau", "q_ref")]
    keys = {key for slot in wanted for key in (*slot.spellings, *quantity_patterns(slot.quantity))}
    usable = {key: entry.changed(delay=0.0) for key, entry in columns.items() if key in keys}
    named = {key: entry for key, entry in usable.items() if entry.name != key}
    named = {key: entry for key, entry in named.items() if _is_in({key: entry}, table, wanted, file)}
    changes = {key: entry for key, entry in usable.items() if entry.name == key}
    found = matched(table, known, named, file).chosen if changes else {}
    usual = {key for slot in wanted if slot.key in found for key in slot.spellings}
    usual |= {key for slot in wanted if slot.key in found for key in quantity_patterns(slot.quantity)}
    return {key: entry for key, entry in usable.items() if key in named or (key in changes and key in usual)}


def _is_in(columns: Mapping[str, ColumnMap], table: Table, known: Sequence[Slot], file: object) -> bool:
    try:
        return bool(mapped_columns(tuple(table.columns), known, columns, file))
    except InputError:
        return False


def _beside(
    mapped: Mapping[str, ColumnMap],
    chosen: Mapping[str, ColumnMap],
    table: Table,
    known: Sequence[Slot],
    search: Callable[..., list[Guess]],
) -> list[Guess]:
    """Columns with the names of the joints that the user's mapping of some of them leaves out."""
    found: list[Guess] = []
    for quantity in dict.fromkeys(slot.quantity for slot in known if slot.key in mapped and slot.owner):
        slots = {slot.key: slot for slot in known if slot.quantity == quantity}
        if all(key in chosen for key in slots) or any(key in chosen and key not in mapped for key in slots):
            continue
        taken = {column.name for key, column in chosen.items() if key not in slots}
        used = {column.name for column in mapped.values()}
        try:
            guesses = search([name for name in table.columns if name not in taken], wanted=[quantity])
        except InputError:  # nothing is clear without the mapping: it stands alone
            continue
        found += [
            guess
            for guess in guesses
            if guess.key not in mapped
            and guess.column not in used
            and names_owner(table.spoken.get(guess.column, guess.column), slots[guess.key], known)
        ]
    return found


def _nameless(
    columns: Mapping[str, ColumnMap | str], known: Sequence[Slot], names: Sequence[str], file: object
) -> tuple[dict[str, ColumnMap], dict[str, ColumnMap]]:
    """Entries that name a column, and by canonical key those that only change one; those of one joint count.

    An entry without a name has that of its key: so does the text `tau_1*-1` of `tau_1`.
    """
    named: dict[str, ColumnMap] = {}
    changes: dict[str, ColumnMap] = {}
    keys: dict[str, str] = {}
    for key, entry in sorted(columns.items(), key=lambda item: "{" not in item[0]):
        meant = [slot for slot in known if key in (*slot.spellings, *quantity_patterns(slot.quantity))]
        entry = ColumnMap(entry) if isinstance(entry, str) else entry
        if entry == ColumnMap(entry.name) and entry.name not in names:
            written = written_column(entry.name)
            entry = written if written is not None and written.name == key else entry
        if entry.name != key or not meant:
            named[key] = entry
        elif "{" in key:
            changes |= {slot.key: entry for slot in meant}
        else:
            slot = meant[0]
            if slot.key in keys:
                raise used_twice(key, keys[slot.key], "quantity", file)
            keys[slot.key] = key
            changes[slot.key] = entry
    given = {slot.key for slot in known if any(key in slot.spellings for key in named)}
    return named, {key: change for key, change in changes.items() if key in keys or key not in given}


def _with_changes(
    chosen: Mapping[str, ColumnMap],
    changes: Mapping[str, ColumnMap],
    names: Sequence[str],
    known: Sequence[Slot],
    file: object,
) -> dict[str, ColumnMap]:
    """Columns with what entries without a name say about them; refused if an entry has no column at all."""
    used = {change.name for key, change in changes.items() if key in chosen}
    mapped_columns(
        names, known, {change.name: change for change in changes.values() if change.name not in used}, file
    )
    return {
        key: _changed(column, changes[key]) if key in changes else column for key, column in chosen.items()
    }


def _changed(column: ColumnMap, change: ColumnMap) -> ColumnMap:
    """A column whose values are corrected: s x + o of a value that is already scaled and shifted."""
    return ColumnMap(
        column.name,
        column.unit if change.unit is None else change.unit,
        change.scale * column.scale,
        change.scale * column.offset + change.offset,
        change.delay + column.delay,
    )


def _drop_zero_based(
    chosen: dict[str, ColumnMap], names: Sequence[str], known: Sequence[Slot], mapped: Collection[str]
) -> None:
    """Forget q_1 and q_2 where the three joints are q_0, q_1, q_2: as a whole they are numbered from 0.

    With q_3 too, either the first or the last is of another joint (a gripper): the search refuses them.
    """
    for quantity in dict.fromkeys(slot.quantity for slot in known):
        same_slots = [slot for slot in known if slot.quantity == quantity]
        zero = {f"{quantity}_0", f"{quantity}0"} & {spelled(name) for name in names}
        numbered = {f"{quantity}{sep}{k + 1}" for sep in ("_", "") for k in range(len(same_slots))}
        spellings = {spelled(chosen[slot.key].name) for slot in same_slots if slot.key in chosen}
        whole = len(spellings) == len(same_slots) and not spellings & numbered
        if zero and not whole and not any(slot.key in mapped for slot in same_slots):
            for slot in same_slots:
                chosen.pop(slot.key, None)


def _notices(
    chosen: Mapping[str, ColumnMap],
    names: Sequence[str],
    known: Sequence[Slot],
    guesses: Sequence[Guess],
    drives: Mapping[str, DriveSettings],
) -> tuple[Notice, ...]:
    """Efforts without a motor, and currents and commands that are taken as efforts."""
    notices = []
    used = {column.name for column in chosen.values()}
    efforts = [slot for slot in known if slot.quantity == "tau" and slot.owner]
    if any(slot.key in chosen for slot in efforts):
        left = [name for name in names if name not in used and is_effort(name)]
        lost = any(slot.key not in chosen for slot in efforts)
        # Motor currents, commands and the like beside complete efforts need no remark.
        family = {_without_digits(chosen[slot.key].name) for slot in efforts if slot.key in chosen}
        left = [name for name in left if lost or _without_digits(name) in family]
        if left:
            notices.append(notice("effort-unmatched", names=", ".join(left)))
    loads = {item.key for item in guesses if item.current}
    current = [
        chosen[slot.key].name
        for slot in efforts
        if slot.key in chosen
        and _is_current(chosen[slot.key], slot.key in loads)
        and not any(drive.torque_constant for drive in drives_of(slot, drives))
    ]
    if current:
        others = [n for n in names if n not in used and is_effort(n) and is_command(n)]
        also = f"; the log also has commanded efforts ({', '.join(others)})" if others else ""
        notices.append(notice("effort-from-current", names=", ".join(current), also=also))
    owners = {slot.key for slot in efforts}
    asked = [item.column for item in guesses if item.key in owners and is_command(item.column)]
    if asked:
        notices.append(notice("effort-commanded", names=", ".join(asked)))
    return tuple(notices)


def _is_current(column: ColumnMap, is_load: bool) -> bool:
    """Whether a column is a current or a load to which nobody gave a unit of effort or a factor."""
    plain = column.scale == 1.0 and column.unit in (None, "A", "mA")
    return plain and (is_load or column.unit is not None or says_current(column.name))


def _without_digits(name: str) -> str:
    return "".join("#" if letter.isdigit() else letter for letter in name)
