"""An MJCF file with its includes: one root element, and the settings of its compiler."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dynid.common import limits
from dynid.common.errors import nearest
from dynid.mechanism.xml_elements import Element, read_elements

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Settings:
    """How numbers are interpreted: the attributes of <compiler> that change a mechanism.

    Attributes:
        degrees: Whether angles are in degrees (MJCF's default) instead of radians.
        eulerseq: Three letters: lower case turns about the moving axes, upper case about the fixed.
        autolimits: Whether a range alone makes a limit.
        inertiafromgeom: `auto`, `true` or `false`.
        total_mass: To which MuJoCo would scale all masses, in [kg]; not above zero when it does not.
        alignfree: Whether frames of free bodies are turned into their principal axes.
    """

    degrees: bool = True
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertiafromgeom: str = "auto"
    total_mass: float = -1.0
    alignfree: bool = False


def read_settings(root: Element) -> Settings:
    """The compiler settings; where there are several <compiler>, later ones have priority."""
    merged: dict[str, str] = {}
    compiler = root
    for element in sections(root, "compiler"):
        merged |= element.attributes
        compiler = element
    found = Element(compiler.file, "compiler", merged, compiler.line)
    if choice(found, "coordinate", ("local", "global"), "local") == "global":
        raise found.error(
            'coordinate="global" is not supported',
            "use local coordinates (MuJoCo accepts no others)",
        )
    sequence = merged.get("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        raise found.error(f"eulerseq '{sequence}' is not a sequence of three axes", 'e.g. eulerseq="xyz"')
    return Settings(
        degrees=choice(found, "angle", ("degree", "radian"), "degree") == "degree",
        eulerseq=sequence,
        autolimits=flag(found, "autolimits", default=True),
        inertiafromgeom=choice(found, "inertiafromgeom", ("auto", "true", "false"), "auto"),
        total_mass=found.number("settotalmass", -1.0, "<compiler>"),
        alignfree=flag(found, "alignfree", default=False),
    )


def choice(element: Element, name: str, valid: tuple[str, ...], default: str) -> str:
    """One of some words."""
    value = element.attributes.get(name, default)
    if value not in valid:
        raise element.error(
            f"{name} '{value}' of <{element.tag}>" + nearest(value, valid), "use a valid value"
        )
    return value


def flag(element: Element, name: str, *, default: bool) -> bool:
    """`true` or `false`."""
    return _TRUTH[choice(element, name, tuple(_TRUTH), "true" if default else "false")]


def sections(root: Element, tag: str) -> list[Element]:
    """All sections of this name: MJCF allows them in several places."""
    return [element for element in root.children if element.tag == tag]


def entries(root: Element, tag: str) -> list[Element]:
    """The children of all sections of this name."""
    return [element for section in sections(root, tag) for element in section.children]


def expand_includes(root: Element, *, byte_limit: int, link_limit: int) -> None:
    """Put the children of included files in the place of each <include>.

    A file must be in the folder of the model (symbolic links are resolved) and is included once, as in
    MuJoCo, so there is no cycle. All files together must stay below the limits.

    Args:
        root: Changed in place.
        byte_limit: For all files together, in [byte].
        link_limit: Bodies in all files together.
    """
    folder = Path(root.file).resolve().parent
    seen = {Path(root.file).resolve()}
    left = byte_limit - Path(root.file).stat().st_size
    waiting = [root]
    while waiting:
        element = waiting.pop()
        children: list[Element] = []
        for child in element.children:
            if child.tag != "include":
                children.append(child)
                continue
            path = _included(child, folder)
            if path in seen:
                raise child.error(f"'{path.name}' is included twice", "include a file once")
            seen.add(path)
            inner = read_elements(path, byte_limit=left, count_limit=link_limit)
            left -= path.stat().st_size
            if inner.tag not in ("mujoco", "mujocoinclude"):
                raise inner.error(f"the root element is <{inner.tag}>", "include files with <mujocoinclude>")
            for one in inner.walk():
                one.included = path.name
            # Included files may include others right here: their elements take the same place.
            element.children = [*children, *inner.children, *element.children[len(children) + 1 :]]
            waiting.append(element)
            break
        else:
            waiting.extend(reversed(element.children))
    _count(root, link_limit)


def _included(include: Element, folder: Path) -> Path:
    """The file of an <include>: beside the file that names it, else in the model's folder."""
    name = include.text("file")
    tried = [Path(os.path.realpath(at / name)) for at in (Path(include.file).parent, folder)]
    for path in tried:
        if path.is_relative_to(folder) and os.path.isfile(path):  # also of names too long to exist
            return path
    if not any(path.is_relative_to(folder) for path in tried):
        raise include.error(f"include path '{name}' leaves the model's folder", "keep included files there")
    raise include.error(f"included file '{name}' does not exist", "the path is relative to this file")


def _count(root: Element, link_limit: int) -> None:
    count = 0
    for element in root.walk():
        count += element.tag == "body"
        if limits.exceeded(count, link_limit):
            raise element.error(f"more than {link_limit} <body> elements", limits.REMEDY)
