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

POSITION, VELOCITY, ACCELERATION, REFERENCE, EFFORT = "q", "dq", "ddq", "q_ref", "tau"
_RATES = (POSITION, VELOCITY, ACCELERATION)
JOINT_SIGNALS = (*_RATES, REFERENCE, EFFORT)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Words that name a kind of signal, with the confidence that they mean it.
_KINDS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(_words("q qpos pos position positions angle angles"), (POSITION, 1.0)),
    **dict.fromkeys(_words("theta θ"), (POSITION, 0.75)),  # beside `q` it is that of the motor
    **dict.fromkeys(_words("ang phi th displacement enc encoder"), (POSITION, 0.9)),
    **dict.fromkeys(_words("dq qd qdot qvel vel velo velocity velocities speed speeds"), (VELOCITY, 1.0)),
    **dict.fromkeys(_words("omega dpos"), (VELOCITY, 0.9)),
    **dict.fromkeys(_words("dtheta v"), (VELOCITY, 0.75)),  # `v` beside `q`, as Drake has it
    **dict.fromkeys(_words("ddq qdd qddot qacc acceleration accelerations accel acc"), (ACCELERATION, 1.0)),
    **dict.fromkeys(_words("tau τ torque torques effort efforts eff trq"), (EFFORT, 1.0)),
    **dict.fromkeys(_words("force forces frc qfrc moment moments tq"), (EFFORT, 0.9)),
    **dict.fromkeys(_words("current currents curr cur"), (EFFORT, 0.65)),
    **dict.fromkeys(_words("ctrl control"), (EFFORT, 0.6)),  # of a motor; a servo gets positions
}
_LOAD = "load"  # an effort, unless another word names a kind: `load_position` is one beyond the gear
_LOAD_IS_EFFORT = 0.6
CURRENTS = frozenset(_words("current currents curr cur"))
_ASKED = frozenset(
    _words(
        "target desired des command commanded cmd ref reference setpoint goal sp ipo planned computed action"
    )
)
_DESIRED = "d"  # at the end: `q_d`, `tau_J_d`
_CONTROL = frozenset(_words("ctrl control"))
_ASKED_EFFORT = 0.6  # a commanded effort is not what the motor gave
_SET = "set"  # before a kind word: `SetPos` of TwinCAT; alone it is a set of data
_MODELLED = frozenset(_words("model g"))  # beside an effort word: `model_torque`, `tau_g`
# Efforts as a share of a rated value, or as a converter gave them: their scale is unknown.
_SHARES = frozenset(_words("percent pct permille promille adc lsb"))
_SHARE = 0.6
_SIGNS = {"%": " percent ", "\u2030": " permille "}
# Signals of a kind that are not the measured one, or not of a joint.
_OTHERS = frozenset(
    _words(
        "error err std sigma variance limit limits min max temp temperature voltage status mode ext external"
        " gravity friction coriolis residual disturbance feedforward ff bias passive constraint tcp tool ee"
        " eef cartesian cart flange ft wrench imu gyro gripper window count counts tick ticks increments"
        " diff difference deviation dev lag predicted modeled modelled fric grav gravcomp rate offset"
    )
)
COUNTED = frozenset(_words("count counts tick ticks increments"))
_NEUTRAL = frozenset(
    _words(
        "joint joints j axis ax a state states robot arm motor actuator drive link actual act measured meas"
        " sensor value values data feedback fb real torso head leg controller"
    )
)
_SETPOINTS = ("as", "pos")  # `ASPos` of KUKA RSI
_CLOCKS = {"ipoc": "ms", "utime": "us"}  # of KUKA RSI and of LCM
_TIME = frozenset(_words("t ts time times timestamp stamp timestamps clock elapsed duration seconds sec"))
_AROUND_TIME = frozenset(
    _words(
        "header robot arm time stamp log ros system real sample rel relative controller joint joints state"
        " states sim simulation unix epoch utc wall abs absolute msg message host server received receive pc"
    )
)
_UNKNOWN = 0.95  # confidence per word without a meaning here
_LEAST_WORDS = 0.7
_EXTRA_NUMBER = 0.8
_LAST_KIND = 0.9  # of several kind words: `/position_controller/elbow/velocity`
_BY_NUMBER, _SQUEEZED, _BY_UNIT = 0.9, 0.9, 0.9

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_BRACKETS = {"]": "[", ")": "(", "}": "{"}
_SUFFIXES = {
    "deg": "deg", "degrees": "deg", "rad": "rad", "radians": "rad", "mrad": "mrad", "rev": "rev", "m": "m",
    "mm": "mm", "cm": "cm", "rad s": "rad/s", "rads": "rad/s", "radps": "rad/s", "deg s": "deg/s",
    "degs": "deg/s", "degps": "deg/s", "rpm": "rpm", "m s": "m/s", "mm s": "mm/s", "rad s 2": "rad/s^2",
    "deg s 2": "deg/s^2", "m s 2": "m/s^2", "nm": "Nm", "n m": "Nm", "m nm": "mNm", "mnm": "mNm", "n": "N",
    "a": "A", "amps": "A", "m a": "mA", "ma": "mA", "s": "s", "sec": "s", "seconds": "s", "ms": "ms",
    "us": "us", "ns": "ns", "nsec": "ns",
}  # fmt: skip
_ANGLE, _LENGTH = _words("rad mrad deg rev"), _words("m cm mm um in")
_FITTING: dict[tuple[str, bool], tuple[str, ...]] = {
    (POSITION, True): _ANGLE,
    (POSITION, False): _LENGTH,
    (VELOCITY, True): _words("rad/s mrad/s deg/s rev/s rpm"),
    (VELOCITY, False): _words("m/s cm/s mm/s"),
    (ACCELERATION, True): _words("rad/s^2 deg/s^2"),
    (ACCELERATION, False): _words("m/s^2 cm/s^2 mm/s^2"),
    (EFFORT, True): _words("Nm mNm kNm Ncm Nmm kgfm kgfcm lbfft lbfin A mA"),
    (EFFORT, False): _words("N mN kN A mA"),
}
TIME_UNITS = _words("s ms us ns")
_AMPERES = _words("A mA")


@dataclass(frozen=True)
class Slot:
    """A quantity the log may have.

    Attributes:
        key: Canonical column name, e.g. `q_1`.
        quantity: t, segment, q, dq, ddq, q_ref, tau, or roll, pitch, yaw of a quaternion joint.
        index: Column of the quantity's array; for angles the column of the joint's `qw`.
        spellings: Column names accepted for it.
        label: What it is, for messages.
        owner: Joint or motor with one coordinate, by whose name other columns are searched; empty: none.
        also: Other names of the owner: the joint that a motor drives.
        turns: Whether the owner is rotary.
    """

    key: str
    quantity: str
    index: int
    spellings: tuple[str, ...]
    label: str
    owner: str = ""
    also: tuple[str, ...] = ()
    turns: bool = True


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
        for sign, word in _SIGNS.items():
            text = text[:1] + text[1:].replace(sign, word)  # `%time` is no share
        return words_of(text)

    def units(
        self, quantity: str, turns: bool, rest: Sequence[str] | None = None
    ) -> tuple[bool, str | None, int]:
        """Whether the unit fits the kind, the unit if there is one, and the words at the end that give it.

        `rest` are the words without the joint: before its name or number stand only units of several letters,
        since `torque_A1` is that of axis A1.
        """
        fitting = _FITTING[POSITION if quantity == REFERENCE else quantity, turns]
        unit = None if self.bracket is None else canonical_unit(self.bracket)
        if unit is not None:
            return unit in fitting or unit == "1", unit, 0
        for count in (3, 2, 1):
            suffix = _SUFFIXES.get(" ".join(self.words[-count:]))
            if suffix in fitting and len(self.words) > count:
                return True, suffix, count
        inner = [*(self.words if rest is None else rest)]
        while inner and (not inner[-1] or inner[-1].isdecimal()):
            inner.pop()
        for count in (3, 2, 1):
            letters = " ".join(inner[-count:])
            suffix = _SUFFIXES.get(letters)
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
            turns = owners[owner if owner is not None else 0].turns
            kind = _kind(rest, counted) or _kind_of_unit(column, rest, turns)
            if kind is None or (kind.quantity == EFFORT) != efforts:
                continue
            fits, unit, used = column.units(kind.quantity, turns, rest)
            if not fits or (kind.current and unit not in (None, "A", "mA")):
                continue
            left = [word for word in (rest[:-used] if used else rest) if word and word not in _KINDS]
            confidence *= kind.confidence * _plainness(left)
            yield Reading(name, kind.quantity, owner, number, rest, unit, confidence, kind.current)


def time_unit(name: str) -> tuple[bool, str | None]:
    """Whether a column name means time, and its unit."""
    column = Column(name)
    words = list(column.words)
    if len(words) == 1 and words[0] in _CLOCKS and column.bracket is None:
        return True, _CLOCKS[words[0]]
    unit = None if column.bracket is None else canonical_unit(column.bracket)
    if unit is None and len(words) > 1 and _SUFFIXES.get(words[-1]) in TIME_UNITS:
        unit = _SUFFIXES[words.pop()]
    if unit not in (None, *TIME_UNITS) or not words:
        return False, None
    is_time = words[-1] in _TIME and all(word in _TIME | _AROUND_TIME for word in words)
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
                if kind in _KINDS:
                    yield i, None, (*words[:at], "", kind, *words[at + 1 :]), _SQUEEZED


def _kind(rest: tuple[str, ...], counted: bool) -> _Kind | None:
    """Kind of a signal from its words without the owner; None if it has none, or is another signal."""
    if any(word in _OTHERS and not (counted and word in COUNTED) for word in rest):
        return None
    setpoint = any(pair == _SETPOINTS for pair in pairwise(rest))
    if "as" in rest:  # `current_as_torque` is a torque
        rest = rest[rest.index("as") + 1 :]
    kinds = [_KINDS[word] for word in rest if word in _KINDS]
    only_load = not kinds and _LOAD in rest
    if only_load:
        kinds = [(EFFORT, _LOAD_IS_EFFORT)]
    if not kinds:
        return None
    quantity, confidence = kinds[-1]
    shared = any(word in _SHARES for word in rest)
    if (shared and quantity != EFFORT) or _is_modelled(rest):
        return None
    if len({kind for kind, _ in kinds}) > 1:
        confidence *= _LAST_KIND
    # `torque_current` is a current.
    confidence = min(confidence, *(trust for kind, trust in kinds if kind == quantity), 1.0)
    dots = sum({"dot": 1, "ddot": 2}.get(word, 0) for word in rest)
    if dots and quantity in _RATES:
        at = _RATES.index(quantity) + dots
        if at >= len(_RATES):
            return None
        quantity = _RATES[at]
    if setpoint or is_asked(rest):
        if quantity in (VELOCITY, ACCELERATION):
            return None  # the log has no place for references of rates
        quantity = REFERENCE if quantity == POSITION else quantity
        confidence *= _ASKED_EFFORT if quantity == EFFORT else 1.0
    confidence *= _SHARE if shared else 1.0
    return _Kind(quantity, confidence, shared or only_load or any(word in CURRENTS for word in rest))


def _is_modelled(rest: tuple[str, ...]) -> bool:
    """Whether a model gave the effort: `torque_model_1`, `tau_g_1`; in a path `model` is a name."""
    efforts = {word for word in rest if _KINDS.get(word, ("",))[0] == EFFORT}
    return any(_MODELLED & {*pair} and efforts & {*pair} for pair in pairwise(rest))


def _kind_of_unit(column: Column, rest: tuple[str, ...], turns: bool) -> _Kind | None:
    """Kind of a column that has only its owner and a unit: `J1 [deg]`, `elbow_Nm`."""
    for quantity in (*_RATES, EFFORT):
        fits, unit, used = column.units(quantity, turns)
        words = rest[: len(rest) - used]
        if fits and unit not in (None, "1", "rev") and all(not word or word in _NEUTRAL for word in words):
            return _Kind(quantity, _BY_UNIT, unit in _AMPERES)
    return None


def says_current(name: str) -> bool:
    """Whether words or unit of a column say that it is a current or a share: `I_1 [A]`, `torque_1 (%)`."""
    column = Column(name)
    words = column.words[column.words.index("as") + 1 :] if "as" in column.words else column.words
    return any(word in CURRENTS | _SHARES for word in words) or column.units(EFFORT, True)[1] in _AMPERES


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
        return inside if words - _TIME - _AROUND_TIME else None
    known = {
        *_KINDS,
        *_ASKED,
        *_OTHERS,
        *_NEUTRAL,
        *_SHARES,
        *(word for own in owners for word in words_of(own)),
    }
    marked = name.rstrip().endswith("]") or any(sign in inside for sign in "/^·°")
    return inside if marked and words - known else None


def has_kind(name: str) -> bool:
    """Whether a word of a name is a kind of signal."""
    return any(word in _KINDS or word == _LOAD for word in words_of(name))


def is_asked(words: Sequence[str]) -> bool:
    """Whether the words are those of a reference or a command, not of a measured signal."""
    plain = [word for word in words if word and not word.isdecimal()]
    told = any(word == _SET and after in _KINDS for word, after in pairwise(plain))
    return told or any(word in _ASKED for word in plain) or plain[1:][-1:] == [_DESIRED]


def is_command(name: str) -> bool:
    """Whether a column of efforts has what a controller asked for: `target_torque_1`, `ctrl_0`."""
    words = words_of(name)
    efforts = {word for word in words if _KINDS.get(word, ("",))[0] == EFFORT}
    return is_asked(words) or (bool(efforts) and efforts <= _CONTROL)


def _plainness(words: Sequence[str]) -> float:
    known = _NEUTRAL | _ASKED | _SHARES | COUNTED | {_SET, "dot", "ddot", _LOAD, _DESIRED}
    strange = sum(1 for word in words if word not in known and not word.isdecimal())
    return max(_UNKNOWN**strange, _LEAST_WORDS)
