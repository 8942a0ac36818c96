"""Options in messages, worded for who reads them.

Messages name a setting in one notation, that of the command line: `--period 10`, `--column 'tau_1=NAME'`. A
command shows it as it is. `str(error)`, summaries and notebooks show the argument of the same meaning:
`period=10`, `columns={'tau_1': 'NAME'}`. Whole commands (`dynid excite --after log.csv`) stay as they are.
"""

from __future__ import annotations

import re
from itertools import pairwise

# Options whose argument in Python has another name, or another form than name=value.
_MAPPINGS = {"column": "columns", "known": "known"}
_LISTS = {"payload": "payloads", "log": "logs", "after": "after", "sigma": "sigma"}
_FLAGS = {"force": "force=True", "drop-bad-rows": "drop_bad_rows=True", "no-collisions": "collisions=False"}
_OF_EXPORT = ("link", "merge", "leave-out")  # payload= of `export` is one of these words
_VALUE = r"'[^']*'|[A-Za-z_]\w*=[^\s,;)]+|[A-Z][A-Z_]*\b|\d[\d.]*\b|none\b|nearest\b|link\b|merge\b"
_NAMED = r"(?<=--payload )[^\s,;)]+"
_OPTION = re.compile(rf"--(?P<name>[a-z][a-z-]*)(?: (?P<value>{_NAMED}|{_VALUE}))?")
_COMMAND = re.compile(r"dynid [^;,()`]*")


def for_python(message: str) -> str:
    """A message with the arguments of Python instead of the options of the command line."""
    if "--" not in message:
        return message
    commands = [found.span() for found in _COMMAND.finditer(message)]
    ends = [0, *(place for span in commands for place in span), len(message)]
    parts = [message[start:stop] for start, stop in pairwise(ends)]
    return "".join(part if i % 2 else _OPTION.sub(_argument, _joined(part)) for i, part in enumerate(parts))


def _joined(text: str) -> str:
    """Several columns in a row as one option: `--column 'a=x' --column 'b=y'` is one mapping."""
    while (shorter := re.sub(r"(--column '[^']*)' --column '", r"\1; ", text)) != text:
        text = shorter
    return text


def _argument(found: re.Match[str]) -> str:
    name, value = found["name"], (found["value"] or "").strip("'")
    if name in _FLAGS:
        return _FLAGS[name]
    if name in _MAPPINGS:
        pairs = [pair.partition("=") for pair in value.split("; ")] if value else []
        quote = "'" if name == "column" else ""
        entries = ", ".join(f"'{key}': {quote}{item}{quote}" for key, _, item in pairs)
        return f"{_MAPPINGS[name]}={{{entries}}}" if pairs else f"`{_MAPPINGS[name]}`"
    if name in _LISTS and value not in _OF_EXPORT:
        listed = "" if value == "none" else f"'{value}'"
        return f"{_LISTS[name]}=[{listed}]" if value else f"`{_LISTS[name]}`"
    plain = name.replace("-", "_")
    quoted = value if value[:1].isdigit() or value.isupper() else f"'{value}'"
    return f"{plain}={quoted}" if value else f"`{plain}`"
