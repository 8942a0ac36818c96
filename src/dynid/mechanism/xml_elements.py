"""XML as plain elements with line numbers: no DTD, no entities, no recursion, no repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.common import limits
from dynid.common.errors import InputError
from dynid.common.strict_number import is_number
from dynid.common.strict_yaml import BYTE_LIMIT, PathLike

DEPTH_LIMIT = 100
LINK_LIMIT = 1000  # links of a URDF or SDF, bodies of an MJCF
_CHUNK = 1 << 16
_LARGEST = 1e15
_UNBOUNDED = ("lower", "upper", "effort", "velocity")  # 1e16 and similar values mean "no limit" there


@dataclass(eq=False)
class Element:
    """One element: its tag, attributes and children, and the line in which it begins.

    Attributes:
        included: Name of its file where that is not the model's own.
        offset: Where its tag begins in the file, in [byte].
        written: Pieces of text between its tags; only SDF gives them a meaning.
    """

    file: str
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    included: str = ""
    offset: int = -1
    written: list[str] = field(default_factory=list)

    @property
    def content(self) -> str:
        """Text between its tags, without blanks at the ends."""
        return "".join(self.written).strip()

    @property
    def place(self) -> str:
        """Its place, for notices about the model's file."""
        return f"{self.included}, line {self.line}" if self.included else f"line {self.line}"

    def child(self, tag: str) -> Element | None:
        """The only child with this tag, if there is one; two are refused."""
        matches = [element for element in self.children if element.tag == tag]
        if len(matches) > 1:
            raise matches[1].error(f"a second <{tag}> in <{self.tag}>", "keep one")
        return matches[0] if matches else None

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in file order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def text(self, name: str) -> str:
        """A required attribute."""
        value = self.attributes.get(name, "").strip()
        if not value:
            raise self.error(f"<{self.tag}> has no attribute '{name}'", f'add {name}="..."')
        return value

    def number(self, name: str, default: float | None = None, owner: str = "") -> float:
        """A finite number; `owner` names the link or joint in the message."""
        if default is not None and name not in self.attributes:
            return default
        return self.parsed(self.text(name), name, owner)

    def numbers(
        self, name: str, owner: str = "", counts: range = range(3, 4)
    ) -> list[tuple[float, str]] | None:
        """Three numbers (or as many as `counts` holds) with their texts; None when missing."""
        if name not in self.attributes:
            return None
        words = self.attributes[name].split()
        if len(words) not in counts:
            wanted = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            raise self.error(
                f'{owner}: {name}="{self.attributes[name]}" has {len(words)} numbers, not {wanted}',
                f"give {wanted} numbers",
            )
        return [(self.parsed(word, name, owner), word) for word in words]

    def parsed(self, word: str, name: str, owner: str) -> float:
        """A word as a finite number, refused otherwise."""
        if is_number(word) and abs(float(word)) < float("inf"):
            if abs(float(word)) > _LARGEST and name not in _UNBOUNDED:
                raise self.error(
                    f"{owner}: {name} '{word}' is too large for a robot", "check digits and unit"
                )
            return float(word)
        hint = "run xacro first" if "$" in word else "write a finite number with a decimal point, e.g. 1.5"
        raise self.error(f"{owner}: {name} '{word}' in <{self.tag}> is not a finite number", hint)

    def error(self, text: str, remedy: str) -> InputError:
        """An error at this element."""
        return InputError(text, file=self.file, place=f"line {self.line}", remedy=remedy)


def read_elements(file: PathLike, byte_limit: int = BYTE_LIMIT) -> Element:
    """The root element of an XML file.

    Args:
        file: Path of the file.
        byte_limit: Files above this size are not opened, in [byte].
    """
    from xml.parsers.expat import ExpatError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser, ParseError

    path = Path(file)
    target = _Target(str(path))
    parser = DefusedXMLParser(target=target, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    target.expat = parser.parser
    try:
        size = path.stat().st_size
        if limits.exceeded(size, byte_limit):
            raise InputError(
                f"the file has {size} bytes, more than the limit of {byte_limit}",
                file=path,
                remedy=limits.REMEDY,
            )
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                parser.feed(chunk)
        root = parser.close()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="check the path") from None
    except DefusedXmlException as error:
        place = f"line {target.expat.CurrentLineNumber}"
        said = f"document types and entities are not allowed ({type(error).__name__})"
        raise InputError(said, file=path, place=place, remedy="remove the <!DOCTYPE ...> part") from None
    except (ParseError, ExpatError) as error:
        line, column = getattr(error, "position", (0, 0))
        said = str(error).split(":")[0]
        place = f"line {line}, column {column + 1}"
        raise InputError(
            f"not valid XML: {said}", file=path, place=place, remedy="correct the file"
        ) from None
    except (ValueError, LookupError) as error:  # unknown encodings
        raise InputError(f"not valid XML: {error}", file=path, remedy="save as UTF-8") from None
    assert isinstance(root, Element)  # noqa: S101  (expat refuses a file without a root)
    return root


class _Target:
    """Collects elements with an explicit stack; the parser gives it the line."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.expat: Any = None
        self.count = 0
        self.root: Element | None = None
        self.open: list[Element] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line, offset = int(self.expat.CurrentLineNumber), int(self.expat.CurrentByteIndex)
        element = Element(self.file, tag, dict(attributes), line, offset=offset)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        if len(self.open) > DEPTH_LIMIT:
            raise element.error(
                f"elements are nested deeper than {DEPTH_LIMIT}", "this is not a robot description"
            )
        # Links of a URDF are directly below the root, deeper ones belong to other vocabularies; bodies nest.
        top = self.open[0].tag
        if (tag == "link" and (len(self.open) == 2 or top == "sdf")) or (tag == "body" and top != "robot"):
            self.count += 1
            if limits.exceeded(self.count, LINK_LIMIT):
                raise element.error(
                    f"more than {LINK_LIMIT} <{tag}> elements",
                    limits.REMEDY,
                )

    def end(self, tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        if self.open and self.root is not None and self.root.tag == "sdf":
            self.open[-1].written.append(text)

    def close(self) -> Element | None:
        return self.root
