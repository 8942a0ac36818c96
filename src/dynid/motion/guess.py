"""Columns with other names than the canonical ones: a guess with its confidence, or a refusal.

Columns that differ only in a joint's name or number are one family. A family (or all columns with joint
names) is one reading of a quantity. The best reading is used if no other comes near, a measured one before a
commanded one; otherwise the log is refused, with the candidates. Whether numbers begin at 0 or
1 follows from all families together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dynid.common.errors import InputError
from dynid.motion.column_words import Owner, Reading, aliases, is_command, readings, time_unit, words_of
from dynid.motion.slots import Slot
from dynid.motion.table import Table
from dynid.motion.vocabulary import ACCELERATION, EFFORT, POSITION, REFERENCE, VELOCITY

_NEAR = 0.8  # of the best confidence: a second reading as good as this makes the first one doubtful
_PARTLY = 0.8  # confidence of efforts that not every motor has
_LEAST = 0.35
_NUMBERED = (POSITION, VELOCITY, ACCELERATION, REFERENCE, EFFORT)
_WANTED = (POSITION, VELOCITY, EFFORT)  # doubtful columns of others are left unused
_LABELS = {POSITION: "the position", VELOCITY: "the velocity", EFFORT: "the effort"}


class Guess(NamedTuple):
    """A column that was matched although its name is not canonical.

    Attributes:
        key: Canonical name, e.g. `q_1`.
        column: Name in the file.
        unit: From the name; None: SI.
        confidence: Between 0 and 1.
        current: Whether it is a motor current that is taken as effort.
    """

    key: str
    column: str
    unit: str | None
    confidence: float
    current: bool = False


@dataclass(frozen=True)
class _Option:
    """One way to read a quantity: place of the owner -> reading; `base` None if it has names, not numbers."""

    chosen: Mapping[int, Reading]
    confidence: float
    base: int | None = None


def guess(
    names: Sequence[str],
    table: Table,
    known: Sequence[Slot],
    wanted: Collection[str],
    file: object,
    *,
    counted: bool = False,
    one_based: bool = False,
) -> list[Guess]:
    """Columns of the wanted quantities, each family as a whole.

    Args:
        names: Columns that are not used yet.
        table: The file: by which names its columns are matched, and which of them have equal values.
        known: What a log of the robot may have.
        wanted: Quantities (and `t`) for which no column is known.
        file: For messages.
        counted: Whether encoder counts are understood.
        one_based: Whether canonical columns of the file are numbered, from 1.

    Raises:
        InputError: Two readings are about equally likely.
    """
    guesses = _time(names, file) if "t" in wanted else []
    slots = {quantity: _owned(known, quantity) for quantity in _NUMBERED}
    joints, motors = (_owners(slots[quantity]) for quantity in (POSITION, EFFORT))
    # Numbers count all coordinates; where some belong to a pose, only names are clear.
    numbered = {
        symbol for symbol in _NUMBERED if len(slots[symbol]) == sum(slot.quantity == symbol for slot in known)
    }
    read = [
        reading._replace(column=name)
        for name in names
        for reading in readings(table.spoken.get(name, name), joints, motors, counted)
        if reading.quantity in wanted
        and reading.confidence >= _LEAST
        and (reading.number is None or reading.quantity in numbered)
    ]
    chosen: dict[str, _Option] = {}
    for quantity in _NUMBERED:
        matching = [candidate for candidate in read if candidate.quantity == quantity]
        owners = motors if quantity == EFFORT else joints
        first = [candidate for candidate in matching if candidate.column not in table.secondary]
        for candidates in (first, matching):
            best = _best(candidates, owners, quantity, table, file) if slots[quantity] else None
            if best is not None:
                chosen[quantity] = best
                break
    _check_bases(chosen, one_based, file)
    for quantity, option in chosen.items():
        by_index = {slot.index: slot.key for slot in slots[quantity]}
        places = {owner.index: i for i, owner in enumerate(slots[quantity])}
        for index, key in by_index.items():
            reading = option.chosen.get(places[index])
            if reading is not None:
                guesses.append(Guess(key, reading.column, reading.unit, option.confidence, reading.current))
    return guesses


def names_owner(column: str, slot: Slot, known: Sequence[Slot]) -> bool:
    """Whether a column has the name of a joint or motor of the robot, not only a number."""
    owners = _owners(_owned(known, slot.quantity))
    both = ((), owners) if slot.quantity == EFFORT else (owners, ())
    return any(reading.owner is not None for reading in readings(column, *both))


def _owned(known: Sequence[Slot], quantity: str) -> list[Slot]:
    return [slot for slot in known if slot.quantity == quantity and slot.owner]


def _owners(slots: Sequence[Slot]) -> list[Owner]:
    named = aliases([slot.owner for slot in slots])
    more = [
        aliases([slot.also[k] for slot in slots]) for k in range(min((len(s.also) for s in slots), default=0))
    ]
    return [
        Owner(
            slot.owner,
            tuple(dict.fromkeys([*named[i], *(alias for other in more for alias in other[i])])),
            slot.turns,
        )
        for i, slot in enumerate(slots)
    ]


def _time(names: Sequence[str], file: object) -> list[Guess]:
    times = [(name, unit) for name in names for is_time, unit in [time_unit(name)] if is_time]
    if len(times) > 1:
        raise _doubt("time", [(name,) for name, _ in times], f"t={times[0][0]}", file)
    return [Guess("t", name, unit, 0.9) for name, unit in times]


def _best(
    candidates: list[Reading], owners: Sequence[Owner], quantity: str, table: Table, file: object
) -> _Option | None:
    options = [
        *_by_name(candidates, owners, quantity, table, file),
        *_families(candidates, owners, quantity, file),
    ]
    options.sort(key=lambda option: -option.confidence)
    if not options:
        return None
    near = [option for option in options if option.confidence >= _NEAR * options[0].confidence]
    measured = [option for option in near if not any(map(is_command, _columns(option)))]
    best, *others = measured or near
    others = [option for option in others if _differ(best, option, table) and not _within(option, best)]
    if not others:
        return best
    if quantity not in _WANTED:
        return None
    shown = [_columns(option) for option in (best, *others)]
    first = min(set(best.chosen) & set(others[0].chosen), default=min(best.chosen))
    label = f"{_LABELS[quantity]} of '{owners[first].label}'"
    raise _doubt(label, shown, _as_option(quantity, best, first), file)


def _differ(a: _Option, b: _Option, table: Table) -> bool:
    """Whether b reads another signal; columns with equal values are one signal."""
    return not all(
        place in a.chosen and table.same(a.chosen[place].column, reading.column)
        for place, reading in b.chosen.items()
    )


def _within(a: _Option, b: _Option) -> bool:
    """Whether a reads some columns of b by another number, which fits fewer joints: `/Out1` in all names."""
    return len(a.chosen) < len(b.chosen) and {*_columns(a)} <= {*_columns(b)}


def _columns(option: _Option) -> tuple[str, ...]:
    return tuple(option.chosen[place].column for place in sorted(option.chosen))


def _by_name(
    candidates: list[Reading], owners: Sequence[Owner], quantity: str, table: Table, file: object
) -> list[_Option]:
    """Columns with joint names, together; each joint has one, or clearly a best one."""
    chosen: dict[int, Reading] = {}
    for place in range(len(owners)):
        ranked = sorted(
            (reading for reading in candidates if reading.owner == place),
            key=lambda reading: -reading.confidence,
        )
        near = [reading for reading in ranked if reading.confidence >= _NEAR * ranked[0].confidence]
        near = [reading for reading in near if not is_command(reading.column)] or near
        if not all(table.same(near[0].column, reading.column) for reading in near):
            if quantity not in _WANTED:
                return []
            label = f"{_LABELS[quantity]} of '{owners[place].label}'"
            shown = [(column,) for column in dict.fromkeys(reading.column for reading in near)]
            raise _doubt(label, shown, _as_named(quantity, near[0].column, owners, place), file)
        if near:
            chosen[place] = near[0]
    if quantity == EFFORT and 0 < len(chosen) < len(owners):
        _refuse_leftovers(candidates, chosen, owners, file)
    return _covering(chosen, owners, quantity, None)


def _refuse_leftovers(
    candidates: list[Reading], chosen: Mapping[int, Reading], owners: Sequence[Owner], file: object
) -> None:
    """Refuse `joint_0 .. joint_4` for motors called joint_1 .. joint_5: one column would be left over."""
    shapes = {_shape(reading.column) for reading in chosen.values()}
    used = {reading.column for reading in chosen.values()}
    left = [
        reading.column
        for reading in candidates
        if reading.column not in used and _shape(reading.column) in shapes
    ]
    if left:
        lost = next(owner.label for i, owner in enumerate(owners) if i not in chosen)
        raise _doubt(
            f"the effort of '{lost}'",
            [tuple(dict.fromkeys([*left, *used]))],
            f"tau_1={left[0]}",
            file,
            why=", but their numbers are not those of the motors",
        )


def _shape(name: str) -> tuple[str, ...]:
    return tuple("#" if word.isdecimal() else word for word in words_of(name))


def _families(
    candidates: list[Reading], owners: Sequence[Owner], quantity: str, file: object
) -> list[_Option]:
    """Numbered columns, one option per pattern."""
    families: dict[tuple[str, ...], dict[int, Reading]] = {}
    for reading in candidates:
        if reading.number is None:
            continue
        family = families.setdefault(reading.pattern, {})
        if reading.number in family and quantity in _WANTED:
            label = f"number {reading.number} of {_LABELS[quantity]}"
            raise _doubt(label, [(family[reading.number].column,), (reading.column,)], "", file)
        family[reading.number] = reading
    made: list[_Option] = []
    for family in families.values():
        base = _base(set(family), len(owners))
        if base is None or (base == _OPEN and quantity != EFFORT):
            continue
        if base == _BOTH:
            if quantity not in _WANTED:
                continue
            raise _doubt(
                _LABELS[quantity],
                [tuple(family[k].column for k in sorted(family))],
                f"{quantity}_{{i}}={'{i0}'.join(family[0].column.rsplit('0', 1))}",
                file,
                why=f", but their numbers may begin at 0 or at 1 ({len(family)} columns,"
                f" {len(owners)} {'motors' if quantity == EFFORT else 'joints'})",
            )
        start = max(base, 0) if base != _OPEN else 1
        chosen = {k - start: member for k, member in family.items() if 0 <= k - start < len(owners)}
        options = _covering(chosen, owners, quantity, base)
        if options:
            _refuse_other_order(owners, quantity, _columns(options[0]), file)
        made += options
    return made


_BOTH, _OPEN = -2, -1


def _base(numbers: set[int], count: int) -> int | None:
    """0 or 1; _BOTH if both are possible, _OPEN if too few numbers show it, None if neither fits."""
    zero, one_based = 0 in numbers, count in numbers
    if zero and one_based:
        return _BOTH
    if zero or one_based:
        return 0 if zero else 1
    return _OPEN if numbers & set(range(1, count)) and count > 1 else None


def _refuse_other_order(
    owners: Sequence[Owner], quantity: str, columns: tuple[str, ...], file: object
) -> None:
    """Joints that carry numbers themselves, in another order than they have in the robot."""
    numbers = [next((int(w) for w in reversed(owner.aliases[0]) if w.isdecimal()), -1) for owner in owners]
    if -1 not in numbers and len(set(numbers)) == len(numbers) and numbers != sorted(numbers):
        order = ", ".join(owner.label for owner in owners)
        raise _doubt(
            _LABELS.get(quantity, quantity),
            [columns],
            f"{quantity}_1={columns[0]}",
            file,
            why=f", but the robot has its joints in the order {order}",
        )


def _covering(
    chosen: Mapping[int, Reading], owners: Sequence[Owner], quantity: str, base: int | None
) -> list[_Option]:
    """The option if it has enough: all joints, or at least one motor."""
    whole = len(chosen) == len(owners)
    if not chosen or not (whole or quantity == EFFORT):
        return []
    confidence = min(reading.confidence for reading in chosen.values()) * (1.0 if whole else _PARTLY)
    return [_Option(chosen, confidence, base)]


def _check_bases(chosen: dict[str, _Option], one_based: bool, file: object) -> None:
    """Numbers of one file begin at 0 or at 1, not both."""
    bases = {option.base for option in chosen.values() if option.base in (0, 1)} | (
        {1} if one_based else set()
    )
    if len(bases) > 1:
        numbered = {key: option for key, option in chosen.items() if option.base in (0, 1)}
        shown = [_columns(option) for option in numbered.values()]
        symbol, example = next(iter(numbered.items()))
        raise _doubt(
            "the joints",
            shown,
            _as_option(symbol, example, min(example.chosen)),
            file,
            why=", but some numbers begin at 0, others at 1",
        )
    for quantity, option in list(chosen.items()):
        if option.base != _OPEN:
            continue
        if not bases:
            first = min(option.chosen)
            raise _doubt(
                _LABELS.get(quantity, quantity),
                [_columns(option)],
                _as_option(quantity, option, first),
                file,
                why=", but their numbers may begin at 0 or at 1",
            )
        if bases == {0}:
            moved = {place + 1: reading for place, reading in option.chosen.items()}
            chosen[quantity] = _Option(moved, option.confidence, 0)


def _as_named(quantity: str, column: str, owners: Sequence[Owner], place: int) -> str:
    """`q_{i}=/joint_states/{name}/position` if the column has the name of its joint, else one column."""
    label = owners[place].label
    if len(owners) > 1 and column.count(label) == 1:
        return f"{quantity}_{{i}}={column.replace(label, '{name}')}"
    return f"{quantity}_{place + 1}={column}"


def _as_option(quantity: str, option: _Option, place: int) -> str:
    """`q_{i}=q_meas_{i}` for a numbered family, else one column."""
    reading = option.chosen[place]
    if reading.number is not None and str(reading.number) in reading.column:
        head, _, tail = reading.column.rpartition(str(reading.number))
        return f"{quantity}_{{i}}={head}{'{i0}' if option.base == 0 else '{i}'}{tail}"
    return f"{quantity}_{place + 1}={reading.column}"


def _doubt(
    meaning: str, candidates: Sequence[tuple[str, ...]], option: str, file: object, why: str = ""
) -> InputError:
    """The refusal of an ambiguous header."""
    lines = "".join(f"\n    {_listed(candidate)}" for candidate in candidates)
    several = "these columns may be" if why or len(candidates) == 1 else "each of these may be"
    remedy = f"choose, e.g. --column '{option}', or under `columns:`" if option else "rename one of them"
    return InputError(f"{several} {meaning}{why}:{lines}", file=file, place="header", remedy=remedy)


def _listed(columns: tuple[str, ...], most: int = 8) -> str:
    return ", ".join(columns[:most]) + (", ..." if len(columns) > most else "")
