"""Settings: options as a frozen tree that reads and writes itself.

A YAML file, options in Python and the options of a result are read in one way. Names and types of the fields
define what is valid; an error names the file, the line, the value and the nearest valid name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
import numpy as np

from dynid.common.entry import Entry, placed, plain_entry
from dynid.common.errors import InputError, nearest

T = TypeVar("T", bound="Settings")

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Whole = Annotated[int, msgspec.Meta(ge=0)]


class LeftOpen(str):
    """A name that nobody has chosen: the model may prefer another."""


class Form(NamedTuple):
    """How a class without settings, such as a payload, is read from an entry and written as a plain tree."""

    read: Callable[[Entry], Any]
    write: Callable[[Any], Any]


FORMS: dict[type, Form] = {}


class Settings(msgspec.Struct, frozen=True):
    """Options of one kind: the fields of a subclass, each converted and checked by its type.

    A subclass may set `_alone`, the field of a value without a name (`uncertainty: hac`); `_switch`, if true
    and false are accepted for the defaults and for none; `_hidden`, fields that
    are not keys; `_paths`, fields that are paths or tuples of paths; and `_title`, its usual key.
    """

    _alone: ClassVar[str] = ""
    _switch: ClassVar[bool] = False
    _hidden: ClassVar[tuple[str, ...]] = ()
    _paths: ClassVar[tuple[str, ...]] = ()
    _title: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kinds = {field.name: field.type for field in _fields(type(self))}
        defaults = {field.name: field.default for field in _fields(type(self))}
        given = {name: getattr(self, name) for name in kinds}
        before = f"{self._title}." if self._title else ""
        entries = {
            name: plain_entry(value, before + name)
            for name, value in given.items()
            if value is not defaults[name]
        }
        for name, entry in self.spelled(entries).items():
            msgspec.structs.force_setattr(self, name, read_value(entry, kinds[name]))
        self.check()

    @classmethod
    def spelled(cls, entries: dict[str, Entry]) -> dict[str, Entry]:
        """Entries by field, with other spellings of a value replaced: `unknown: all`."""
        return entries

    def check(self) -> None:
        """Refuse combinations that the types allow; the place of an error is relative to these settings."""

    def changed(self: T, **fields: Any) -> T:
        """The same settings with other values of some fields."""
        return msgspec.structs.replace(self, **fields)

    def moved(self: T, change: Callable[[str], str]) -> T:
        """The same settings with every path in them changed, e.g. to one from another folder."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        moved = {name: _moved(value, change, name in self._paths) for name, value in given.items()}
        return self.changed(**{name: value for name, value in moved.items() if value is not given[name]})

    def tree(self) -> dict[str, Any]:
        """A plain tree that `read` turns into the same settings; defaults are left out."""
        written = {}
        for field in _keys(type(self)):
            value = getattr(self, field.name)
            default = None if field.required else _default(field)
            if field.required or not _same(value, default):
                written[field.encode_name] = _plain(value)
        return written


def keys_of(kind: type[Settings]) -> tuple[str, ...]:
    """Names of the keys of settings in a file."""
    return tuple(field.encode_name for field in _keys(kind))


def read(kind: type[T], entry: Entry) -> T:
    """Settings from an entry of a file or of a plain tree; unknown names and wrong values are refused."""
    value: Any = entry.value
    if isinstance(value, kind):
        return value
    if value is True and kind._switch:
        return kind()
    if kind._switch and not kind._alone and not entry.is_mapping:
        entry.flag()
    known = {field.encode_name: field for field in _keys(kind)}
    alone = bool(kind._alone) and not entry.is_mapping
    given = {kind._alone: entry} if alone else _named(kind, entry)
    entries = kind.spelled({known[key].name: item for key, item in given.items()})
    kinds = {field.name: field.type for field in _fields(kind)}
    options = {name: read_value(item, kinds[name]) for name, item in entries.items()}
    return placed(entry, kind, options)


def _named(kind: type[Settings], entry: Entry) -> dict[str, Entry]:
    """Entries by key; unknown keys, keys without a value and missing ones are refused."""
    given, valid = entry.mapping(), keys_of(kind)
    for key, item in given.items():
        if key not in valid:
            owner = entry.path or kind._title or "an experiment"
            raise item.error(f"{owner} has no '{key}'" + nearest(key, valid), f"use {', '.join(valid)}")
        # A name without a value is more often a forgotten value than a request for the default.
        if item.value is None and item.written == "":
            raise item.error(f"'{key}' has no value", "give a value or remove the line")
    for field in _keys(kind):
        if field.required and field.encode_name not in given:
            raise entry.error(f"'{field.encode_name}' is missing", f"add '{field.encode_name}:'")
    return given


def read_value(entry: Entry, kind: Any) -> Any:
    """A value of a type from an entry."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return entry.plain()
    if origin is Annotated:
        return _bounded(entry, args[0], args[1])
    if origin in (Union, types.UnionType):
        return _one_of(entry, args)
    if origin is Literal:
        return entry.choice(args)
    if origin is tuple:
        return _several(entry, args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: read_value(item, args[1]) for name, item in entry.mapping().items()}
    if issubclass(kind, Settings):
        return read(kind, entry)
    scalars: dict[Any, Callable[[], Any]] = {
        float: entry.number,
        bool: entry.flag,
        str: entry.text,
        int: entry.count,
    }
    if kind in scalars:
        return scalars[kind]()
    return entry.value if isinstance(entry.value, kind) else FORMS[kind].read(entry)


def _bounded(entry: Entry, kind: Any, bounds: msgspec.Meta) -> Any:
    if kind is int:
        return entry.count(int(bounds.ge or 0))
    value = read_value(entry, kind)
    if bounds.gt is not None and not value > bounds.gt:
        raise entry.error(f"{value:g} is not positive", "give a positive number")
    if bounds.ge is not None and not value >= bounds.ge:
        raise entry.error(f"{value:g} is negative", "give a number of at least 0")
    return value


def _one_of(entry: Entry, kinds: tuple[Any, ...]) -> Any:
    """The first type that the value has; the error is that of the first type of its shape."""
    value: Any = entry.value
    if type(None) in kinds:
        off = value is False and any(getattr(kind, "_switch", False) for kind in kinds)
        if off or (value is None and entry.written != ""):
            return None
    possible = [kind for kind in kinds if kind is not type(None)]
    possible = [kind for kind in possible if _named_entries(kind) == entry.is_mapping] or possible
    errors = []
    for kind in possible:
        try:
            return read_value(entry, kind)
        except InputError as error:
            errors.append(error)
    raise errors[0]


def _named_entries(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, Mapping | Settings)


def _several(entry: Entry, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """A list of any length, or of one entry per type."""
    if kinds[-1] is not Ellipsis:
        return entry.vector(lambda item: read_value(item, kinds[0]), len(kinds))
    made: list[Any] = []
    for item in entry.items():
        value = read_value(item, kinds[0])
        if isinstance(value, str | int) and value in made:
            raise item.error(f"'{value}' is listed twice", "list it once")
        made.append(value)
    return tuple(made)


@cache
def _fields(kind: type[Settings]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _keys(kind: type[Settings]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return tuple(field for field in _fields(kind) if field.name not in kind._hidden)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _same(value: Any, default: Any) -> bool:
    """Whether a value is the default; one that was chosen on purpose is not the same as one left open."""
    if value is default or type(value) is not type(default):
        return value is default
    if isinstance(value, Settings):
        return bool(value.tree() == default.tree())
    return bool(value == default)


def _moved(value: Any, change: Callable[[str], str], is_path: bool) -> Any:
    if isinstance(value, Settings):
        return value.moved(change)
    if isinstance(value, tuple) and (is_path or any(isinstance(item, Settings) for item in value)):
        return tuple(_moved(item, change, is_path) for item in value)
    return change(value) if is_path and isinstance(value, str) and value else value


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.tree()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, str):
        return str(value)
    return FORMS[type(value)].write(value) if type(value) in FORMS else value
