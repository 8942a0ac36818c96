"""A change of an experiment that a warning proposes: data, and its words for a file or for Python.

`{"columns": {"tau_2": {"delay": 0.008}}}` is a change: keys of the experiment file, and under `logs` those of
the entries of single logs by name. Remedies are written from it; nothing reads it back from a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Change = Mapping[str, Any]
_COLUMN = frozenset(("name", "unit", "scale", "offset", "delay"))
_MOST_SHOWN = 4  # logs, or stretches of one
_MOST_OPTIONS = 2


def rounded(value: float, digits: int) -> float:
    """A number to paste: as data it has the digits that a remedy shows."""
    return float(f"{value:.{digits}g}")


def joined(first: Change, other: Change) -> Change | None:
    """Both changes as one; None where they change the same thing in different ways.

    Lists are joined, as stretches of time or names of symbols are. A column is one thing: its scale and
    offset were found one without the other.
    """
    made = dict(first)
    for key, value in other.items():
        mine = first.get(key, value)
        if mine == value:
            made[key] = value
        elif isinstance(mine, list) and isinstance(value, list):
            made[key] = [*mine, *(item for item in value if item not in mine)]
        elif isinstance(mine, Mapping) and isinstance(value, Mapping) and not _COLUMN & {*mine, *value}:
            both = joined(mine, value)
            if both is None:
                return None
            made[key] = both
        else:
            return None
    single = [key for entry in made.get("logs", {}).values() for key in entry.get("columns", {})]
    twice = any(_same_column(key, other) for key in made.get("columns", {}) for other in single)
    return None if twice else made


def _same_column(a: str, b: str) -> bool:
    """Whether two keys of columns are of one column; `tau_{i}` is all of its kind."""
    return a == b or ("{" in a + b and a.partition("_")[0] == b.partition("_")[0])


def in_file(change: Change) -> str:
    """A change in the notation of experiment files, in backticks; empty if there is none."""
    every = [f"{key}: {_flow(value)}" for key, value in change.items() if key != "logs"]
    named = [f"log '{name}' {in_file(entry)}" for name, entry in change.get("logs", {}).items()]
    more = f" and {len(named) - _MOST_SHOWN} more logs" if len(named) > _MOST_SHOWN else ""
    return ", ".join([*([f"`{', '.join(every)}`"] if every else []), *named[:_MOST_SHOWN]]) + more


def in_remedy(change: Change) -> str:
    """The same for remedies: with the options of the command line, if they can say it briefly."""
    options = in_options(change)
    return in_file(change) + (f" ({options})" if options else "")


def in_options(change: Change) -> str:
    """A change of few columns as options `--column`; empty if it changes more than that."""
    columns = change.get("columns", {})
    if set(change) != {"columns"} or len(columns) > _MOST_OPTIONS:
        return ""
    texts = [_column(key, entry) for key, entry in columns.items()]
    return " ".join(f"--column '{key}={text}'" for key, text in zip(columns, texts, strict=True)) * all(texts)


def _column(key: str, entry: Any) -> str:
    """`NAME[unit]*scale+offset delay S`; empty for a name with signs that could be read otherwise."""
    parts: Mapping[str, Any] = {"name": entry} if isinstance(entry, str) else entry
    name = parts.get("name", key)
    if any(sign in name for sign in "'[](*+-"):
        return ""
    unit = f"[{parts['unit']}]" if "unit" in parts else ""
    scale = f"*{_flow(parts['scale'])}" if "scale" in parts else ""
    offset = f" {'-+'[parts['offset'] >= 0]} {_flow(abs(parts['offset']))}" if "offset" in parts else ""
    delay = f" delay {_flow(parts['delay'])}" if "delay" in parts else ""
    return f"{name}{unit}{scale}{offset}{delay}"


def in_python(change: Change) -> str:
    """A change as arguments of `identify`, but for what belongs to single logs; empty if nothing is left."""
    return ", ".join(f"{key}={value!r}" for key, value in change.items() if key != "logs")


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        pairs = bool(value) and isinstance(value[0], list | tuple)  # stretches of time
        more = [", ..."] if pairs and len(value) > _MOST_SHOWN else []
        return "[" + ", ".join(map(_flow, value[:_MOST_SHOWN] if pairs else value)) + "".join(more) + "]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _key(key: str) -> str:
    return f'"{key}"' if "{" in key else key
