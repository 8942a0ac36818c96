"""Default classes of an MJCF: every element with the attributes that its class gives it."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.common.errors import nearest
from dynid.mechanism.mjcf.file import sections
from dynid.mechanism.mjcf.vocabulary import ACTUATORS, ORIENTATIONS
from dynid.mechanism.xml_elements import Element

MAIN = "main"
_Attributes = dict[str, dict[str, str]]


class Defaults:
    """Attributes by class and kind of element; a class begins with those of the class around it."""

    def __init__(self, root: Element) -> None:
        self._classes: dict[str, _Attributes] = {MAIN: {}}
        self._main = MAIN
        for section in sections(root, "default"):
            name = section.attributes.get("class", MAIN)
            if name not in (MAIN, self._main):
                self._classes[name] = self._classes.pop(self._main)
                self._main = name
            self._read(section, self._main)

    def _read(self, section: Element, name: str) -> None:
        waiting = [(section, name)]
        while waiting:
            element, owner = waiting.pop()
            own = self._classes[owner]
            for child in element.children:
                if child.tag != "default":
                    kind = _kind(child.tag)
                    own[kind] = {**own.get(kind, {}), **child.attributes}
            # Nested classes inherit all of this one, in any file order.
            for child in element.children:
                if child.tag == "default":
                    inner = child.text("class")
                    if inner in self._classes:
                        raise child.error(f"default class '{inner}' occurs twice", "rename one of them")
                    self._classes[inner] = {kind: dict(values) for kind, values in own.items()}
                    waiting.append((child, inner))

    def applied(self, element: Element, childclass: str | None = None, kind: str | None = None) -> Element:
        """The element with the attributes of its class, of `childclass`, or of the main class.

        Args:
            childclass: Of the nearest body or frame around it that names one.
            kind: Which element of a class is used, where it is not the element's own tag.
        """
        name = element.attributes.get("class", childclass or self._main)
        values = dict(self._values(element, name, kind or _kind(element.tag)))
        if any(key in element.attributes for key in ORIENTATIONS):  # an orientation has five notations
            values = {key: value for key, value in values.items() if key not in ORIENTATIONS}
        return Element(
            element.file,
            element.tag,
            {**values, **element.attributes},
            element.line,
            element.children,
            element.included,
        )

    def check(self, element: Element, name: str) -> str:
        """The name of a class, refused when there is none."""
        self._values(element, name, "")
        return name

    def _values(self, element: Element, name: str, kind: str) -> Mapping[str, str]:
        if name == MAIN:
            name = self._main
        if name not in self._classes:
            raise element.error(
                f"unknown default class '{name}'" + nearest(name, self._classes), "define it in <default>"
            )
        return self._classes[name].get(kind, {})


def _kind(tag: str) -> str:
    """All kinds of actuators share one set of defaults."""
    return "actuator" if tag in ACTUATORS else tag
