"""Entry: one place of a YAML file, with methods that read its value and report errors with that place."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from dynid.common.errors import InputError, nearest
from dynid.common.expression import parse

T = TypeVar("T")
Scalar = str | int | float | bool | None

LARGEST = 1e15  # beyond it products overflow; no robot has such dimensions
_SHOWN = 60  # characters of a value in a message


@dataclass(eq=False, slots=True)
class Entry:
    """One place of a file; reading it checks its kind.

    Attributes:
        value: A scalar, a list of entries, or a mapping of names to entries.
        written: The scalar as written; empty for lists and mappings.
        line: Where it begins, counted from 1; 0: in no file.
        size: Number of entries, aliases expanded.
        key_lines: Lines of the keys of a mapping.
        file, path: The file, and the place in it, e.g. `joints[3].mdh`: of the root, and of entries that were
            reached from it by `mapping` and `items` (an alias has several places).
        key_line, name: Of the key of a named entry.
    """

    value: Scalar | list[Entry] | dict[str, Entry]
    written: str
    line: int
    size: int = 1
    key_lines: dict[str, int] = field(default_factory=dict)
    file: str | None = None
    path: str = ""
    key_line: int | None = None
    name: str = ""

    @property
    def place(self) -> str:
        """`line 12, joints[3].mdh`: for messages."""
        line = self.key_line or self.line
        return ", ".join(part for part in (f"line {line}" if line else "", self.path) if part)

    def error(self, text: str, remedy: str = "") -> InputError:
        """An error that names this place."""
        return InputError(text, file=self.file, place=self.place or None, remedy=remedy or None)

    def at(self, path: str) -> Entry:
        """The entry below this one at a path such as `q_2.scale`; the last known one if it goes further."""
        name, _, rest = path.partition(".")
        return self.mapping()[name].at(rest) if self.is_mapping and name in self.mapping() else self

    @property
    def is_mapping(self) -> bool:
        """Whether it has named entries."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether it has numbered entries."""
        return isinstance(self.value, list)

    def mapping(self) -> dict[str, Entry]:
        """Named entries; refused when it is anything else."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected named entries (name: value), found {self.shown}", "write a mapping")
        below, lines = f"{self.path}." if self.path else "", self.key_lines
        return {
            name: entry._placed(self.file, below + name, lines[name], name)
            for name, entry in self.value.items()
        }

    def fields(self, valid: Iterable[str], required: Iterable[str] = ()) -> dict[str, Entry]:
        """Named entries of which only `valid` names are allowed and `required` ones must be present."""
        entries = self.mapping()
        known = tuple(valid)
        for name, entry in entries.items():
            if name not in known:
                raise entry.error(
                    f"unknown key '{name}'" + nearest(name, known), "valid keys are " + ", ".join(known)
                )
        for name in required:
            if name not in entries:
                raise self.error(f"'{name}' is missing", f"add '{name}:'")
        # A name without a value is more often a forgotten value than a request for the default.
        for name, entry in entries.items():
            if entry.value is None and entry.written == "":
                raise entry.error(f"'{name}' has no value", "give a value or remove the line")
        return entries

    def read(
        self, readers: Mapping[str, Callable[[Entry], Any]], required: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Values of those named entries that are given, each by its reader; other names are refused."""
        return {name: readers[name](entry) for name, entry in self.fields(readers, required).items()}

    def items(self) -> Iterator[Entry]:
        """Numbered entries; refused when it is anything else."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, found {self.shown}", "write [a, b, ...]")
        for i, entry in enumerate(self.value):
            yield entry._placed(self.file, f"{self.path}[{i}]", None, "")

    def _placed(self, file: str | None, path: str, key_line: int | None, name: str) -> Entry:
        """The same at its place; not by `replace`, which takes three times as long."""
        how = self.value, self.written, self.line, self.size, self.key_lines
        return Entry(*how, file, path, key_line, name)

    def text(self) -> str:
        """A non-empty string."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error(
                f"expected a string, found {self.shown}", "put it in quotes if it looks like a number"
            )
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of strings without duplicates."""
        seen: dict[str, Entry] = {}
        for entry in self.items():
            name = entry.text()
            if name in seen:
                raise entry.error(f"'{name}' is listed twice", "list it once")
            seen[name] = entry
        return tuple(seen)

    def choice(self, valid: Iterable[str]) -> str:
        """One of the `valid` strings."""
        names, text = tuple(valid), self.value
        if not isinstance(text, str) or text not in names:
            close = nearest(text, names) if isinstance(text, str) else ""
            raise self.error(f"{self.shown} is not known{close}", "use one of " + ", ".join(names))
        return text

    def known(self, name: str, valid: Collection[str], kind: str, remedy: str = "") -> str:
        """A name that is a valid one of its kind, e.g. of a `body`; refused here otherwise."""
        if name not in valid:
            raise self.error(f"unknown {kind} '{name}'" + nearest(name, valid), remedy)
        return name

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {self.shown}")
        return self.value

    def count(self, least: int = 1) -> int:
        """An integer, at least `least`."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"expected an integer of at least {least}, found {self.shown}")
        return value

    def number(self, symbols: Mapping[str, float] | None = None) -> float:
        """A finite number, or arithmetic over `symbols`."""
        value = self.value
        if isinstance(value, str):
            number = parse(value, file=self.file, place=self.place).value(symbols or {})
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            number = float(value)
        else:
            raise self.error(f"expected a number or an arithmetic expression, found {self.shown}")
        if abs(number) > LARGEST:
            raise self.error(f"{number:g} is too large for a robot in SI units", "check digits and unit")
        return number

    def vector(self, number: Callable[[Entry], T], length: int = 3) -> tuple[T, ...]:
        """A list of exactly `length` entries, each read by `number`."""
        entries = list(self.items())
        if len(entries) != length:
            raise self.error(f"expected {length} entries, found {len(entries)}", f"give {length} numbers")
        return tuple(number(entry) for entry in entries)

    def plain(self) -> Any:
        """The value as plain Python data, nested values included (depth is limited when read)."""
        if isinstance(self.value, dict):
            return {name: entry.plain() for name, entry in self.value.items()}
        return [entry.plain() for entry in self.value] if isinstance(self.value, list) else self.value

    @property
    def shown(self) -> str:
        """The value for a message; a long one is truncated, because it may be a whole file."""
        if self.is_mapping:
            return "named entries"
        if self.is_list:
            return "a list"
        text = self.written
        if len(text) > _SHOWN:
            return f"'{text[:_SHOWN]}' ..."
        return f"'{text}'" if text else "nothing"


_OF_ROBOT = (
    "dynid identify --robot {file} --log LOG; an experiment file has lines as `robot: {file}` and"
    " `logs: [run1.csv]`"
)
# Files by the word in their schema (`dynid.robot/1`): what they are, keys that only they have, their use.
_KINDS = {
    "robot": ("a robot file", ("joints", "source"), _OF_ROBOT),
    "experiment": ("an experiment file", ("logs",), "dynid identify {file}"),
    "campaign": ("a campaign file", ("runs",), "dynid campaign {file}"),
    "simulation": ("a simulation file", ("encoder", "engine"), "dynid simulate ROBOT --config {file}"),
}


def root_entry(root: Entry, kind: str = "") -> Entry:
    """The whole file, which must have named entries.

    Args:
        root: Of the file.
        kind: What is expected, as in its schema: then a file of another kind is refused with its own use.
    """
    if not root.is_mapping:
        more = "; a log belongs under `logs:`, or after --log" if kind == "experiment" else ""
        raise root.error(
            f"expected named entries (name: value), found {root.shown}", f"write lines  name: value{more}"
        )
    if kind:
        entries = root.mapping()
        schema = entries["schema"].written if "schema" in entries else ""
        of_schema = schema.removeprefix("dynid.").partition("/")[0]
        kinds = [kind, *_KINDS]  # a wrong key beside those of this kind makes no other file of it
        of_keys = next((name for name in kinds if {*_KINDS[name][1]} & {*entries}), kind)
        found = of_schema if of_schema in _KINDS else of_keys
        if found != kind:
            words, _, use = _KINDS[found]
            raise InputError(
                f"this is {words}, not {_KINDS[kind][0]}", file=root.file, remedy=use.format(file=root.file)
            )
    return root


def plain_entry(value: Any, path: str = "", like: Entry | None = None) -> Entry:
    """Plain data as an entry: options in Python, or those of a result; other objects are kept as they are.

    Args:
        value: Mappings, lists and scalars, also arrays and paths.
        path: For messages.
        like: An entry of a file that the value replaces; it has its place.
    """
    if like is not None:
        made = _entry(value, like.key_line or like.line)
        return replace(made, file=like.file, path=like.path, key_line=like.key_line, name=like.name)
    return replace(_entry(value), path=path)


def _entry(value: Any, line: int = 0) -> Entry:
    if isinstance(value, Mapping):
        named = {str(name): _entry(item, line) for name, item in value.items()}
        return Entry(named, "", line, key_lines=dict.fromkeys(named, line))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Entry([_entry(item, line) for item in value], "", line)
    if isinstance(value, np.ndarray | np.generic):
        return _entry(value.tolist(), line)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    scalar = value is None or isinstance(value, str | bool | int | float)
    return Entry(value, str(value) if scalar else type(value).__name__, line)


def placed(entry: Entry, settings: Callable[..., T], options: dict[str, Any]) -> T:
    """Build the settings; their error message gets the place in the file."""
    try:
        return settings(**options)
    except InputError as error:
        raise entry.at(error.place or "").error(error.text, error.remedy or "") from None
