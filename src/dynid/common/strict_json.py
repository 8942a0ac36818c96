"""Strict JSON: an object in UTF-8, finite numbers only, no duplicate keys, of a size that fits in memory."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dynid.common import limits
from dynid.common.errors import InputError

_LARGEST_FILE = 256 * 2**20  # bytes; a result of a thousand parameters takes 20 MB


def read_json(file: Path, remedy: str) -> dict[str, Any]:
    """The object in a file.

    Args:
        file: Its path.
        remedy: What the user can do about an invalid file.
    """
    try:
        if limits.exceeded(file.stat().st_size, _LARGEST_FILE):
            text = f"the file has {file.stat().st_size} bytes, more than the limit of {_LARGEST_FILE}"
            raise InputError(text, file=file, remedy=limits.REMEDY)
        document = json.loads(
            file.read_text(encoding="utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_once,
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file, remedy=remedy) from error
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise InputError(f"is not valid JSON: {error}", file=file, remedy=remedy) from error
    if not isinstance(document, dict):
        raise InputError("the top level is not an object", file=file, remedy=remedy)
    return document


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a valid JSON number")


def _finite(text: str) -> float:
    """1e400 would be read as infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a duplicate key one value would be lost silently."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' is given twice")
    return mapping
