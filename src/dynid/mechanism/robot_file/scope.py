"""Scope: the numbers of a description, by name where they have one.

Building a mechanism is a function of the file and of the values of its named dimensions:
`symbols`, and a name made for every bare length (`d_elbow1`, `x_joint_2`). Grouping relations
recover their symbols by building again with one of these values changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError, nearest
from dynid.common.expression import SIGNALS, parse
from dynid.common.notices import Notice, notice
from dynid.mechanism.frame import ROUNDING, is_noticeable, looks_rounded, snap_angle
from dynid.mechanism.joint import unique

if TYPE_CHECKING:
    from dynid.common.entry import Entry

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TURN = 2.0 * math.pi
_RESERVED = ("pi", "sin", "cos", "tan", "atan2", "sqrt", "exp", "abs", "sign", *SIGNALS)


class Scope:
    """Reads numbers, lengths and angles, and remembers their names and what was snapped.

    Args:
        values: Other values for named dimensions; None or {} builds the file as written.
    """

    def __init__(self, values: Mapping[str, float] | None = None) -> None:
        self.values = dict(values or {})
        self.symbols: dict[str, float] = {}
        self.geometry: dict[str, float] = {}
        self._angles: set[str] = set()
        self._made_of: dict[str, frozenset[str]] = {}
        self.notices: list[Notice] = []
        self._literals: dict[str, str] = {}
        self._snapped: list[str] = []
        self._coarse: list[str] = []
        self._large: list[str] = []

    def declare(self, entry: Entry) -> None:
        """Read `symbols:`; later ones may use earlier ones."""
        for name, value in entry.mapping().items():
            if not _NAME.match(name) or name in _RESERVED:
                raise value.error(
                    f"'{name}' cannot be a symbol", "use letters, digits and _; function names are reserved"
                )
            given = (
                value.fields(("value", "sigma"), required=("value",))["value"] if value.is_mapping else value
            )
            declared = self.number(given)
            if isinstance(given.value, str):
                self._made_of[name], inside = parse(given.written).angular
                self._angles |= inside
            self.symbols[name] = self._named(name, declared)
            # A value given from outside is exact: only what the file wrote can be rounded.
            if self.symbols[name] == declared:
                self._literals[name] = given.written.strip()

    def number(self, entry: Entry) -> float:
        """A number, or arithmetic over the symbols."""
        return entry.number(self.symbols)

    def positive(self, entry: Entry, what: str = "", remedy: str = "give a positive number") -> float:
        """A number above zero; `what` it is, for messages."""
        value = self.number(entry)
        if not value > 0.0:
            raise entry.error(f"{what} {value:g} is not positive".lstrip(), remedy)
        return value

    def per(
        self, entry: Entry, names: Sequence[str], number: Callable[[Entry], float]
    ) -> float | Float[Array, "c"]:
        """One number for all, or one for each of `names`: by name, or a list in their order."""
        if entry.is_list:
            return np.array(entry.vector(number, len(names)))
        if not entry.is_mapping:
            return number(entry)
        given = entry.fields(names, required=names)
        return np.array([number(given[name]) for name in names])

    def length(self, entry: Entry, name: str) -> float:
        """A length [m]; a bare non-zero number gets the name `name`."""
        value = _without_rounding(self.number(entry))
        text = entry.written
        bare = not isinstance(entry.value, str) or not parse(text).symbols
        if bare:
            return self.bare_length(value, name)
        self._angles |= parse(text).angular[1]
        return value

    def bare_length(self, value: float, name: str) -> float:
        """The same for a length that is already a number."""
        value = _without_rounding(value)
        if value == 0.0:
            return value
        return self._named(unique(name, self.geometry), value)

    def angle(self, entry: Entry) -> float:
        """An angle [rad], exact when it was written as a rounded multiple of pi/12."""
        text = entry.written.strip()
        plain = not isinstance(entry.value, str) or not parse(text).symbols
        if isinstance(entry.value, str):
            bare = text.lstrip("+-").strip()
            self._angles |= frozenset[str]().union(*parse(text).angular)
            text = self._literals.get(bare, text)
        return self.written_angle(self.number(entry), text, entry.path, plain)

    def written_angle(self, angle: float, text: str, where: str, bare: bool = True) -> float:
        """The same for an angle whose value and text are given; `bare`: without symbols in it."""
        if abs(angle) > _TURN + 1e-6:
            self._large.append(f"{where} {text}")
            return self._bare_angle(angle, where) if bare else angle
        snapped = snap_angle(angle, text)
        if is_noticeable(angle, snapped):
            self._snapped.append(f"{where} {text} -> {snapped / math.pi:.6g} pi")
        elif looks_rounded(angle, text):
            self._coarse.append(f"{where} {text}")
        return snapped

    def _bare_angle(self, angle: float, where: str) -> float:
        """A name for an angle that is probably in degrees, so that the logs can decide."""
        name = unique(re.sub(r"\W+", "_", where).strip("_"), self.geometry)
        self._angles.add(name)
        return self._named(name, angle)

    @property
    def angles(self) -> frozenset[str]:
        """Named dimensions in [rad]: those of angles, with all that these are made of."""
        names, whole = set[str](), set(self._angles)
        while whole:
            names |= whole
            whole = set[str]().union(*(self._made_of.get(name, ()) for name in whole)) - names
        return frozenset(names & self.geometry.keys())

    def finish(self) -> tuple[Notice, ...]:
        """All notices; a value for a dimension that does not exist is refused here."""
        for name in self.values:
            if name not in self.geometry:
                raise InputError(f"no dimension '{name}'" + nearest(name, self.geometry))
        notices = list(self.notices)
        if self._snapped:
            shown = _listed(self._snapped)
            notices.append(notice("snapped-angle", count=len(self._snapped), shown=shown))
        if self._coarse:
            shown = _listed(self._coarse)
            notices.append(notice("coarse-angle", count=len(self._coarse), shown=shown))
        if self._large:
            notices.append(notice("angle-beyond-turn", count=len(self._large), shown=_listed(self._large)))
        return tuple(notices)

    def _named(self, name: str, value: float) -> float:
        self.geometry[name] = float(self.values.get(name, value))
        return self.geometry[name]


def _without_rounding(length: float) -> float:
    """Zero for the rounding error of a conversion: 0.3 cos(pi/2) is 2e-17."""
    return length if abs(length) > ROUNDING else 0.0


def _listed(items: list[str], most: int = 8) -> str:
    return "; ".join(items[:most]) + ("; ..." if len(items) > most else "")
