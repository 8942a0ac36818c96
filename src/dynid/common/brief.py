"""One line for objects that hold arrays and long lists: what an interpreter shows of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

_FEW = 6  # names that are listed


def one_line(owner: Any) -> str:
    """The fields of a dataclass: numbers and names themselves, arrays by shape, the rest by count or class.

    Fields that are empty or None are left out. Use: `__repr__ = one_line` in the class.
    """
    values = ((field.name, getattr(owner, field.name)) for field in fields(owner) if field.repr)
    return f"{type(owner).__name__}({', '.join(filter(None, (_shown(*pair) for pair in values)))})"


def _shown(name: str, value: Any) -> str:
    if isinstance(value, str | bool | int | Enum):
        return f"{name}={value!r}" if value != "" else ""
    if isinstance(value, float):
        return f"{name}={value:.6g}"
    if value is None or hasattr(value, "shape"):
        return "" if value is None or not value.size else f"{name}: array {value.shape}"
    if isinstance(value, Collection) and not hasattr(value, "__dataclass_fields__"):
        names = not isinstance(value, Mapping) and all(isinstance(item, str) for item in value)
        if not value or (names and len(value) <= _FEW):
            return f"{name}={tuple(value)}" if value else ""
        return f"{name}: {len(value)}"
    text = getattr(value, "name", None)
    return f"{name}={text!r}" if isinstance(text, str) else f"{name}: {type(value).__name__}"
