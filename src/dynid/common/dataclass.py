"""`dataclass` as in the standard library, made in a fifth of its time.

The standard library compiles up to seven functions for each class; a run defines about 180 classes. Here only
`__init__` is compiled, and all classes share the other functions, which look at the fields when called.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, frozen=False, eq=True, **others):
        """Add `__init__`, `__repr__` and, as asked, comparison and refusal of changes to a class."""
        if kind is None:
            return partial(dataclass, frozen=frozen, eq=eq, **others)
        if others:
            return dataclasses.dataclass(kind, frozen=frozen, eq=eq, **others)
        hashes = "__hash__" in kind.__dict__ and not (kind.__hash__ is None and "__eq__" in kind.__dict__)
        dataclasses.dataclass(kind, init=False, repr=False, eq=False)
        added = {"__init__": _init(kind), "__repr__": _repr}
        if eq:
            added |= {"__eq__": _eq}
        if frozen:
            added |= {"__setattr__": _set, "__delattr__": _delete}
        for name, function in added.items():
            if name not in kind.__dict__:
                setattr(kind, name, function)
        if eq and not hashes:
            kind.__hash__ = _hash if frozen else None
        return kind


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Factory()


def _init(kind: type[Any]) -> Any:
    """The function that sets the fields of a class, then calls `__post_init__`."""
    scope: dict[str, Any] = {"_put": object.__setattr__, "_MADE": _MADE}
    head, body, annotations = ["self"], [], {}
    for field in (entry for entry in dataclasses.fields(kind) if entry.init):
        name = value = field.name
        default = "" if field.default is dataclasses.MISSING else f"=_default_{name}"
        if field.default_factory is not dataclasses.MISSING:
            default, value = "=_MADE", f"_default_{name}() if {name} is _MADE else {name}"
            scope[f"_default_{name}"] = field.default_factory
        elif default:
            scope[f"_default_{name}"] = field.default
        head.append(name + default)
        body.append(f"  _put(self, {name!r}, {value})")
        annotations[name] = field.type
    if hasattr(kind, "__post_init__"):
        body.append("  self.__post_init__()")
    # As the standard library does: the text contains names of fields only.
    exec(f"def __init__({', '.join(head)}):\n" + "\n".join(body or ["  pass"]), scope)  # noqa: S102
    made = scope["__init__"]
    made.__annotations__ = {**annotations, "return": None}
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (
        f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, field.name) for field in dataclasses.fields(self) if field.compare)


def _eq(self: Any, other: object) -> Any:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(self: Any, name: str, change: str) -> None:
    """Raise, unless a class that is no dataclass itself adds attributes of its own."""
    if "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot {change} field {name!r}")
