"""Changes of single values in the text of an XML file: everything else stays as it is, byte by byte."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from dynid.common.errors import InputError

SAME = 1e-12  # of the largest value: rounding
_ATTRIBUTE = re.compile(rb"""(\s+)([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG = re.compile(rb"""<[^\s/>"']+(?:[^>"']|"[^"]*"|'[^']*')*>""")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# Characters that XML 1.0 cannot hold at all, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def attribute(value: str) -> str:
    """Text for a value in double quotes; line ends and tabs are escaped, so that a parser returns them."""
    for plain, escaped in _ESCAPES.items():
        value = value.replace(plain, escaped)
    value = _FORBIDDEN.sub("?", value)
    return value.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")


def comment(lines: list[str]) -> str:
    """A comment of these lines; two hyphens, which would end it, are separated."""
    safe = [_FORBIDDEN.sub("?", re.sub(r"[\r\n]+", " ", line)) for line in lines]
    text = "\n     ".join(re.sub(r"-(?=-)", "- ", line).rstrip("-") for line in safe)
    return f"<!-- {text} -->"


def number(value: float) -> str:
    """The shortest text that is read as the same number."""
    return repr(float(value) + 0.0)  # no negative zero


def alike(before: object, after: object) -> bool:
    """Whether values are equal but for rounding: nothing to write."""
    old, new = np.asarray(before, float), np.asarray(after, float)
    return old.shape == new.shape and bool(np.all(np.abs(old - new) <= SAME * np.abs(new).max(initial=0.0)))


def numbers(values: object) -> str:
    """Several numbers, separated by spaces."""
    return " ".join(number(float(x)) for x in values)  # type: ignore[attr-defined]


@dataclass
class XmlText:
    """A file and the changes to make in it.

    Attributes:
        data: Its bytes; offsets are those of `Element.offset`.
    """

    data: bytes
    _edits: list[tuple[int, int, bytes]] = field(default_factory=list)
    _ends: dict[int, int] = field(default_factory=dict)
    _children: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> XmlText:
        """The text of a file that a reader has accepted."""
        data = path.read_bytes()
        if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:4].count(0):
            raise InputError("cannot be edited in this encoding", file=path, remedy="save it as UTF-8")
        made = cls(data)
        made._locate()
        return made

    def _locate(self) -> None:
        """Ends of all elements, and the first child of each."""
        parser = expat.ParserCreate()
        opened: list[int] = []

        def start(_: str, __: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            if opened:
                self._children.setdefault(opened[-1], at)
            opened.append(at)

        def end(_: str) -> None:
            self._ends[opened.pop()] = parser.CurrentByteIndex

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(self.data, True)

    def set(self, offset: int, name: str, value: str) -> None:
        """Change an attribute, or add it behind the others."""
        tag = self._tag(offset)
        for match in _ATTRIBUTE.finditer(tag):
            if match[2] == name.encode():
                low, high = offset + match.start(3) + 1, offset + match.end(3) - 1
                quote = match[3][:1].decode()
                text = attribute(value) if quote == '"' else attribute(value).replace("'", "&apos;")
                if self.data[low:high] != text.encode():
                    self._edits.append((low, high, text.encode()))
                return
        at = offset + max((attr.end() for attr in _ATTRIBUTE.finditer(tag)), default=_name_end(tag))
        self._edits.append((at, at, f' {name}="{attribute(value)}"'.encode()))

    def rename(self, offset: int, old: str, new: str) -> None:
        """Another name for an attribute."""
        for match in _ATTRIBUTE.finditer(self._tag(offset)):
            if match[2] == old.encode():
                self._edits.append((offset + match.start(2), offset + match.end(2), new.encode()))

    def remove(self, offset: int, name: str) -> None:
        """Take an attribute out, with the space before it."""
        for match in _ATTRIBUTE.finditer(self._tag(offset)):
            if match[2] == name.encode():
                self._edits.append((offset + match.start(), offset + match.end(), b""))

    def insert(self, offset: int, lines: list[str], *, first: bool) -> None:
        """Add lines as the first or the last child of an element, indented as its children are."""
        tag = self._tag(offset)
        indent = self._indent(offset)
        inner = self._indent(self._children[offset]) if offset in self._children else indent + "  "
        body = "".join(f"\n{inner}{line}" for line in lines)
        after = offset + len(tag)
        if tag.endswith(b"/>"):
            name = tag[1 : _name_end(tag)].decode()
            cut = after - 2 - (len(tag[:-2]) - len(tag[:-2].rstrip()))
            self._edits.append((cut, after, f">{body}\n{indent}</{name}>".encode()))
        elif first:
            self._edits.append((after, after, body.encode()))
        else:
            end = self._ends[offset]
            stop = len(self.data[:end].rstrip())
            tail = b"" if self.data[stop:end].strip(b" \t") else f"\n{indent}".encode()
            self._edits.append(
                (stop, stop, body.encode() + (tail if b"\n" not in self.data[stop:end] else b""))
            )

    def header(self, text: str) -> None:
        """A comment before the root element."""
        root = min(self._ends)
        self._edits.append((root, root, f"{text}\n".encode()))

    def result(self) -> bytes:
        """The text with all changes."""
        data = self.data
        newline = b"\r\n" if b"\r\n" in data else b"\n"
        for low, high, new in sorted(self._edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            data = data[:low] + new.replace(b"\n", newline) + data[high:]
        return data

    def _tag(self, offset: int) -> bytes:
        start_tag = _TAG.match(self.data, offset)
        if start_tag is None:
            raise InputError("an element is not where the parser saw it", remedy="report this file")
        return start_tag[0]

    def _indent(self, offset: int) -> str:
        """White space before an element in its line; empty if something else is before it."""
        begin = self.data.rfind(b"\n", 0, offset) + 1
        before = self.data[begin:offset]
        return before.decode() if not before.strip() else ""


def _name_end(tag: bytes) -> int:
    return next(i for i, c in enumerate(tag) if i and chr(c) in " \t\r\n/>")
