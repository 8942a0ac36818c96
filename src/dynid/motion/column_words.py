"""Column names as words: the kind of a signal, the joint or number it belongs to, and its unit.

`/joint_states/elbow/position` is (joint, states, elbow, position): the kind word `position`, the joint
`elbow`, and words without a meaning here. `J1_position [deg]` has the number 1 and the unit deg. Every
reading of a name has a confidence between 0 and 1, the product of those of its words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from dynid.motion.units import canonical_unit
from dynid.motion.vocabulary import (
    ACCELERATION,
    AMPERES,
    AROUND_TIME,
    ASKED,
    ASKED_EFFORT,
    CLOCKS,
    CONTROL,
    COUNTED,
    CURRENTS,
    DESIRED,
    EFFORT,
    FITTING,
    KINDS,
    LOAD,
    LOAD_IS_EFFORT,
    MODELLED,
    NEUTRAL,
    OTHERS,
    POSITION,
    RATES,
    REFERENCE,
    SET,
    SETPOINTS,
    SHARE,
    SHARES,
    SIGNS,
    SUFFIXES,
    TIME,
    TIME_UNITS,
    VELOCITY,
)

_UNKNOWN = 0.95  # confidence per word without a meaning here
_LEAST_WORDS = 0.7
_EXTRA_NUMBER = 0.8
_LAST_KIND = 0.9  # of several kind words: `/position_controller/elbow/velocity`
_BY_NUMBER, _SQUEEZED, _BY_UNIT = 0.9, 0.9, 0.9

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_BRACKETS = {"]": "[", ")": "(", "}": "{"}


class Owner(NamedTuple):
    """A joint or motor whose signals are searched.

    Attributes:
        label: Its name.
        aliases: Its names as words, without what all names have in common.
        turns: Whether it is rotary; else linear.
    """

    label: str
    aliases: tuple[tuple[str, ...], ...]
    turns: bool


class Reading(NamedTuple):
    """One meaning of a column name.

    Attributes:
        column: The name.
        quantity: q, dq, ddq, q_ref or tau.
        owner: Place of the joint or motor it names; None: it has a number.
        number: As written; None: it has a name.
        pattern: The words with the owner replaced: columns of one pattern are one family.
        unit: From the name; None: not given.
        confidence: Between 0 and 1.
        current: Whether it is a motor current, a load or a share, whose scale is unknown.
    """

    column: str
    quantity: str
    owner: int | None
    number: int | None
    pattern: tuple[str, ...]
    unit: str | None
    confidence: float
    current: bool


class _Kind(NamedTuple):
    quantity: str
    confidence: float
    current: bool


def words_of(text: str) -> tuple[str, ...]:
    """Lower-case words of a name: cut at signs, digits and capitals."""
    return tuple(word.lower() for word in _WORD.findall(text))


@dataclass(frozen=True)
class Column:
    """A column name cut into words; a unit in brackets at its end is apart."""

    name: str

    @cached_property
    def bracket(self) -> str | None:
        """What is in brackets at the end, unless it is a number: `deg` of `pos_1 [deg]`."""
        text = self.name.rstrip()
        begin = text.rfind(_BRACKETS[text[-1]]) if text[-1:] in _BRACKETS else -1
        inside = text[begin + 1 : -1].strip() if begin >= 0 else ""
        return inside if inside and not inside.isdecimal() else None

    @cached_property
    def base(self) -> str:
        """The name without that."""
        if self.bracket is None:
            return self.name
        text = self.name.rstrip()
        return text[: text.rfind(_BRACKETS[text[-1]])].rstrip()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of the base, and of a bracket that is no unit."""
        known = self.bracket is not None and canonical_unit(self.bracket) is not None
        text = self.base if known else self.name
        for sign, word in SIGNS.items():
            text = text[:1] + text[1:].replace(sign, word)  # `%time` is no share
        return words_of(text)

    def units(
        self, quantity: str, turns: bool, rest: Sequence[str] | None = None
    ) -> tuple[bool, str | None, int]:
        """Whether the unit fits the kind, the unit if there is one, and the words at the end that give it.

        `rest` are the words without the joint: before its name or number stand only units of several letters,
        since `torque_A1` is that of axis A1. `pos_deg` of a slide has a unit that does not fit.
        """
        kind = POSITION if quantity == REFERENCE else quantity
        fitting, others = FITTING[kind, turns], FITTING[kind, not turns]
        unit = None if self.bracket is None else canonical_unit(self.bracket)
        if unit is not None:
            return unit in fitting or unit == "1", unit, 0
        for count in (3, 2, 1):
            letters = " ".join(self.words[-count:])
            suffix = SUFFIXES.get(letters)
            clear = suffix in others and suffix != "rev" and len(letters) > 1
            if (suffix in fitting or clear) and len(self.words) > count:
                return suffix in fitting, suffix, count
        inner = [*(self.words if rest is None else rest)]
        while inner and (not inner[-1] or inner[-1].isdecimal()):
            inner.pop()
        for count in (3, 2, 1):
            letters = " ".join(inner[-count:])
            suffix = SUFFIXES.get(letters)
            if suffix in fitting and suffix != "rev" and len(letters) > 1 and len(inner) > count:
                return True, suffix, 0
        return True, None, 0


def aliases(names: Sequence[str]) -> list[tuple[tuple[str, ...], ...]]:
    """Words of each name, in full and without what all have in common at their start and end."""
    whole = [words_of(name) for name in names]
    start = end = 0
    if len(whole) > 1:
        shortest = min(map(len, whole))
        while start < shortest and len({parts[start] for parts in whole}) == 1:
            start += 1
        while end < shortest - start and len({parts[len(parts) - 1 - end] for parts in whole}) == 1:
            end += 1
    made: list[tuple[tuple[str, ...], ...]] = []
    for words in whole:
        short = words[start : len(words) - end]
        # A number alone is an index: it is read with the others of its family.
        usable = bool(short) and short != words and not all(word.isdecimal() for word in short)
        made.append((words, short) if usable else (words,))
    return made


def readings(
    name: str, joints: Sequence[Owner], motors: Sequence[Owner], counted: bool = False
) -> Iterator[Reading]:
    """Every meaning that a column name may have.

    Args:
        joints: Owners of positions and rates.
        motors: Owners of efforts.
        counted: Whether encoder counts are understood, because drives give their resolution.
    """
    column = Column(name)
    for owners, efforts in ((joints, False), (motors, True)):
        if not owners:
            continue
        for owner, number, rest, confidence in _owned(column.words, owners):
            # Which joint has a number follows from the whole family; its unit is compared then.
            ways = {candidate.turns for candidate in owners} if owner is None else {owners[owner].turns}
            kind = _kind(rest, counted) or next(
                filter(None, (_kind_of_unit(column, rest, x) for x in ways)), None
            )
            if kind is None or (kind.quantity == EFFORT) != efforts:
                continue
            found = [column.units(kind.quantity, turns, rest) for turns in sorted(ways)]
            fits, unit, used = max(found, key=lambda match: (match[0], match[1] is not None))
            if not fits or (kind.current and unit not in (None, "A", "mA")):
                continue
            pattern = rest[:-used] if used else rest
            left = [word for word in pattern if word and word not in KINDS]
            confidence *= kind.confidence * _plainness(left)
            yield Reading(name, kind.quantity, owner, number, pattern, unit, confidence, kind.current)


def time_unit(name: str) -> tuple[bool, str | None]:
    """Whether a column name means time, and its unit."""
    column = Column(name)
    words = list(column.words)
    if len(words) == 1 and words[0] in CLOCKS and column.bracket is None:
        return True, CLOCKS[words[0]]
    unit = None if column.bracket is None else canonical_unit(column.bracket)
    if unit is None and len(words) > 1 and SUFFIXES.get(words[-1]) in TIME_UNITS:
        unit = SUFFIXES[words.pop()]
    if unit not in (None, *TIME_UNITS) or not words:
        return False, None
    is_time = words[-1] in TIME and all(word in TIME | AROUND_TIME for word in words)
    return is_time, unit


def _owned(
    words: tuple[str, ...], owners: Sequence[Owner]
) -> Iterator[tuple[int | None, int | None, tuple[str, ...], float]]:
    """Owner or number, the other words (an empty one where it was), and the confidence of that."""
    named = [
        (len(alias), i, at)
        for i, owner in enumerate(owners)
        for alias in owner.aliases
        for at in range(len(words) - len(alias) + 1)
        if words[at : at + len(alias)] == alias
    ]
    longest = max((length for length, _, _ in named), default=0)
    for i, at in dict.fromkeys((i, at) for length, i, at in named if length == longest):
        rest = (*words[:at], "", *words[at + longest :])
        yield i, None, rest, _EXTRA_NUMBER ** sum(word.isdecimal() for word in rest)
    if not named:
        yield from _squeezed(words, owners)
    inside = {k for length, _, at in named if length == longest for k in range(at, at + length)}
    for at, word in enumerate(words):
        if word.isdecimal() and word.isascii() and len(word) < 4 and at not in inside:
            yield None, int(word), (*words[:at], "", *words[at + 1 :]), _BY_NUMBER
    if len(owners) == 1 and not named and not any(word.isdecimal() for word in words):
        yield 0, None, words, _BY_NUMBER


def _squeezed(
    words: tuple[str, ...], owners: Sequence[Owner]
) -> Iterator[tuple[int, None, tuple[str, ...], float]]:
    """A name joined to its kind word: `elbowpos`, `poselbow`."""
    for i, owner in enumerate(owners):
        name = "".join(owner.aliases[0])
        for at, word in enumerate(words):
            for kind in {word.removeprefix(name), word.removesuffix(name)} - {word}:
                if kind in KINDS:
                    yield i, None, (*words[:at], "", kind, *words[at + 1 :]), _SQUEEZED


def _kind(rest: tuple[str, ...], counted: bool) -> _Kind | None:
    """Kind of a signal from its words without the owner; None if it has none, or is another signal."""
    if any(word in OTHERS and not (counted and word in COUNTED) for word in rest):
        return None
    setpoint = any(pair == SETPOINTS for pair in pairwise(rest))
    if "as" in rest:  # `current_as_torque` is a torque
        rest = rest[rest.index("as") + 1 :]
    kinds = [KINDS[word] for word in rest if word in KINDS]
    only_load = not kinds and LOAD in rest
    if only_load:
        kinds = [(EFFORT, LOAD_IS_EFFORT)]
    if not kinds:
        return None
    quantity, confidence = kinds[-1]
    shared = any(word in SHARES for word in rest)
    if (shared and quantity != EFFORT) or _is_modelled(rest):
        return None
    if len({kind for kind, _ in kinds}) > 1:
        confidence *= _LAST_KIND
    # `torque_current` is a current.
    confidence = min(confidence, *(trust for kind, trust in kinds if kind == quantity), 1.0)
    dots = sum({"dot": 1, "ddot": 2}.get(word, 0) for word in rest)
    if dots and quantity in RATES:
        at = RATES.index(quantity) + dots
        if at >= len(RATES):
            return None
        quantity = RATES[at]
    if setpoint or is_asked(rest):
        if quantity in (VELOCITY, ACCELERATION):
            return None  # the log has no place for references of rates
        quantity = REFERENCE if quantity == POSITION else quantity
        confidence *= ASKED_EFFORT if quantity == EFFORT else 1.0
    confidence *= SHARE if shared else 1.0
    return _Kind(quantity, confidence, shared or only_load or any(word in CURRENTS for word in rest))


def _is_modelled(rest: tuple[str, ...]) -> bool:
    """Whether a model gave the effort: `torque_model_1`, `tau_g_1`; in a path `model` is a name."""
    efforts = {word for word in rest if KINDS.get(word, ("",))[0] == EFFORT}
    return any(MODELLED & {*pair} and efforts & {*pair} for pair in pairwise(rest))


def _kind_of_unit(column: Column, rest: tuple[str, ...], turns: bool) -> _Kind | None:
    """Kind of a column that has only its owner and a unit: `J1 [deg]`, `elbow_Nm`."""
    for quantity in (*RATES, EFFORT):
        fits, unit, used = column.units(quantity, turns)
        words = rest[: len(rest) - used]
        if fits and unit not in (None, "1", "rev") and all(not word or word in NEUTRAL for word in words):
            return _Kind(quantity, _BY_UNIT, unit in AMPERES)
    return None


def says_current(name: str) -> bool:
    """Whether words or unit of a column say that it is a current or a share: `I_1 [A]`, `torque_1 (%)`."""
    column = Column(name)
    words = column.words[column.words.index("as") + 1 :] if "as" in column.words else column.words
    return any(word in CURRENTS | SHARES for word in words) or column.units(EFFORT, True)[1] in AMPERES


def is_effort(name: str) -> bool:
    """Whether the words of a column say that it is an effort, with or without a joint, and no current."""
    kind = _kind(Column(name).words, counted=False)
    return kind is not None and kind.quantity == EFFORT and not kind.current


def strange_unit(name: str, quantity: str, owners: Collection[str]) -> str | None:
    """What is in brackets at the end of a name if it seems to be a unit, but none that is known.

    Round brackets often have remarks (`q_1 (filtered)`): there only a fraction or a power is a unit. Of a
    time everything is one that is no word about time.
    """
    inside = Column(name).bracket
    if inside is None or canonical_unit(inside) is not None:
        return None
    words = {word for word in words_of(inside) if not word.isdecimal()}
    if quantity == "t":
        return inside if words - TIME - AROUND_TIME else None
    known = {
        *KINDS,
        *ASKED,
        *OTHERS,
        *NEUTRAL,
        *SHARES,
        *(word for owner in owners for word in words_of(owner)),
    }
    marked = name.rstrip().endswith("]") or any(sign in inside for sign in "/^·°")
    return inside if marked and words - known else None


def has_kind(name: str) -> bool:
    """Whether a word of a name is a kind of signal."""
    return any(word in KINDS or word == LOAD for word in words_of(name))


def is_asked(words: Sequence[str]) -> bool:
    """Whether the words are those of a reference or a command, not of a measured signal."""
    plain = [word for word in words if word and not word.isdecimal()]
    commanded = any(word == SET and after in KINDS for word, after in pairwise(plain))
    return commanded or any(word in ASKED for word in plain) or plain[1:][-1:] == [DESIRED]


def is_command(name: str) -> bool:
    """Whether a column of efforts has what a controller asked for: `target_torque_1`, `ctrl_0`."""
    words = words_of(name)
    efforts = {word for word in words if KINDS.get(word, ("",))[0] == EFFORT}
    return is_asked(words) or (bool(efforts) and efforts <= CONTROL)


def _plainness(words: Sequence[str]) -> float:
    known = NEUTRAL | ASKED | SHARES | COUNTED | {SET, "dot", "ddot", LOAD, DESIRED}
    strange = sum(1 for word in words if word not in known and not word.isdecimal())
    return max(_UNKNOWN**strange, _LEAST_WORDS)
