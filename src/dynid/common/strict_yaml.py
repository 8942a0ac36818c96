"""Strict YAML 1.2: plain data with a line number for every entry; no code runs, and sizes are limited.

The parser's events are turned into entries here, without recursion and without constructors. So tags
have no effect, an alias counts as many entries as it expands to, and every scalar keeps its text as
written (the digits of an angle matter).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dynid.common import limits
from dynid.common.entry import Entry, Scalar
from dynid.common.errors import InputError

NODE_BUDGET = 100_000
BYTE_LIMIT = 64 * 2**20
DEPTH_LIMIT = 100

PathLike = str | os.PathLike[str]

# The core schema of YAML 1.2: 1e-3 is a number, `yes`, `on` and `012` have no special meaning.
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def read_yaml(file: PathLike, *, node_budget: int = NODE_BUDGET) -> Entry:
    """Root of a YAML file, read strictly; every error becomes an `InputError` with its place."""
    path = Path(file)
    try:
        size = path.stat().st_size
        if limits.exceeded(size, BYTE_LIMIT):
            raise InputError(
                f"the file has {size} bytes, more than the limit of {BYTE_LIMIT}",
                file=path,
                remedy=f"split the file into smaller files; {limits.REMEDY}",
            )
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="check the path") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(
            f"byte {raw[error.start]:#04x} is not UTF-8",
            file=path,
            place=f"line {line}",
            remedy="save as UTF-8",
        ) from None
    return parse_yaml(text, file=str(path), node_budget=node_budget)


def parse_yaml(text: str, *, file: str | None = None, node_budget: int = NODE_BUDGET) -> Entry:
    """The same for a given text."""
    builder = _Builder(file, node_budget)
    for event in _events(text, file):
        builder.take(event)
    root = builder.root or Entry(None, "", 1)
    root.file = file
    return root


def _events(text: str, file: str | None) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader = YAML(typ="safe", pure=True)
    try:
        yield from reader.parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(
            f"not valid YAML: {said}", file=file, place=place, remedy="correct the syntax"
        ) from None
    except (YAMLError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"not valid YAML: {said}", file=file, remedy="correct the syntax") from None


class _Builder:
    """Entries from events, with an explicit stack of the lists and mappings that are open."""

    def __init__(self, file: str | None, node_budget: int) -> None:
        self.file = file
        self.node_budget = node_budget
        self.root: Entry | None = None
        self.open: list[tuple[Entry, str | None, list[str]]] = []
        self.anchors: dict[str, Entry] = {}
        self.total = 0

    def take(self, event: Any) -> None:
        """Add one event."""
        kind = type(event).__name__
        if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent", "CommentEvent"):
            return
        if kind == "DocumentStartEvent":
            if self.root is not None:
                raise self.refuse(
                    "the file contains a second YAML document", event, "keep one document per file"
                )
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            self.close()
        elif kind == "AliasEvent":
            self.alias(event)
        else:
            self.node(kind, event)

    def node(self, kind: str, event: Any) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise self.refuse(
                f"tag '{tag}' is not allowed", event, "write plain text, numbers, lists and mappings"
            )
        line = event.start_mark.line + 1
        if kind == "ScalarEvent":
            plain = event.style is None or event.style == ""
            value = self.scalar(event.value, event) if plain and not self.expects_key else event.value
            self.place(Entry(value, event.value, line), event)
            return
        if len(self.open) >= DEPTH_LIMIT:
            raise self.refuse(f"nested deeper than {DEPTH_LIMIT}", event, "use fewer levels of nesting")
        if self.expects_key:
            raise self.refuse("a list or mapping cannot be a key", event, "use plain text as the key")
        opened = Entry([] if kind == "SequenceStartEvent" else {}, "", line)
        self.spend(1, event)
        self.open.append((opened, event.anchor, []))

    @property
    def expects_key(self) -> bool:
        """Whether the next node is the name of an entry of a mapping."""
        return bool(self.open) and isinstance(self.open[-1][0].value, dict) and not self.open[-1][2]

    def close(self) -> None:
        node, anchor, _ = self.open.pop()
        children = node.value.values() if isinstance(node.value, dict) else node.value
        if isinstance(children, Iterable) and not isinstance(children, str):
            node.size += sum(child.size for child in children)
        if anchor:
            self.anchors[anchor] = node
        self.attach(node)

    def alias(self, event: Any) -> None:
        node = self.anchors.get(event.anchor)
        if node is None:
            raise self.refuse(
                f"alias '*{event.anchor}' refers to no complete anchor",
                event,
                "define the anchor before its use",
            )
        if self.expects_key:
            raise self.refuse("an alias cannot be a key", event, "write the key in full")
        self.spend(node.size, event)
        self.attach(node)

    def place(self, node: Entry, event: Any) -> None:
        self.spend(1, event)
        if event.anchor:
            self.anchors[event.anchor] = node
        if self.expects_key:
            mapping, _, pending = self.open[-1]
            if isinstance(mapping.value, dict) and node.written in mapping.value:
                first = mapping.key_lines[node.written]
                raise self.refuse(
                    f"'{node.written}' is given twice (first in line {first})", event, "keep one of them"
                )
            mapping.key_lines[node.written] = node.line
            pending.append(node.written)
        else:
            self.attach(node)

    def attach(self, node: Entry) -> None:
        if not self.open:
            self.root = node
            return
        parent, _, pending = self.open[-1]
        if isinstance(parent.value, dict):
            parent.value[pending.pop()] = node
        elif isinstance(parent.value, list):
            parent.value.append(node)

    def scalar(self, text: str, event: Any) -> Scalar:
        if text in _WORDS:
            return _WORDS[text]
        if _FLOAT.match(text):
            number = float(text)
            if math.isfinite(number):
                # Beyond 2^53 an integer would lose digits in every later use: it stays a float.
                return int(text) if _INTEGER.match(text) and abs(number) < 2**53 else number
        elif not _NOT_FINITE.match(text):
            return text
        raise self.refuse(f"{text} is not a finite number", event, "give a finite number")

    def spend(self, nodes: int, event: Any) -> None:
        self.total += nodes
        if self.total > self.node_budget:
            raise self.refuse(
                f"more than {self.node_budget} entries after expanding aliases",
                event,
                "write a smaller file",
            )

    def refuse(self, text: str, event: Any, remedy: str) -> InputError:
        mark = event.start_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}"
        return InputError(text, file=self.file, place=place, remedy=remedy)
