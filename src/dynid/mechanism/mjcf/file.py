"""An MJCF file with its includes: settings of the compiler, default classes, known and ignored elements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dynid.common import limits
from dynid.common.errors import nearest
from dynid.common.notices import Notice
from dynid.common.strict_yaml import BYTE_LIMIT
from dynid.mechanism.urdf_tree import unknown_parts, words
from dynid.mechanism.xml_elements import LINK_LIMIT, Element, read_elements

_TRUTH = {"true": True, "false": False}
MAIN = "main"
_Attributes = dict[str, dict[str, str]]
ACTUATORS = words(
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion",
    "dcmotor plugin",
)
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
# Elements that generate bodies: the generated bodies must be written explicitly.
GENERATORS = ("composite", "flexcomp", "replicate", "attach")
_PLACE = ("name", "pos", *ORIENTATIONS)
_IN_BODY = words("body inertial joint freejoint geom site camera light frame plugin", *GENERATORS)
_CHILDREN = {
    "mujoco": words(
        "compiler option size statistic visual default extension asset worldbody deformable contact",
        "tendon equality actuator sensor custom keyframe",
    ),
    "worldbody": _IN_BODY,
    "body": _IN_BODY,
    "frame": _IN_BODY,
    "default": words(
        "default mesh texture material joint geom site camera light pair equality tendon", *ACTUATORS
    ),
    "equality": words("connect weld joint tendon flex flexstrain flexvert distance"),
    "actuator": ACTUATORS,
    "keyframe": ("key",),
    "compiler": ("lengthrange",),
    "option": ("flag",),
}
_JOINT = words(
    "name class type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit",
    "solreffriction solimpfriction stiffness range actuatorfrcrange actuatorgravcomp margin ref springref",
    "armature damping frictionloss user springyield",
)
_EQUALITY = words("name class active solref solimp")
_ACTUATOR = words(
    "name class group joint jointinparent tendon site refsite body cranksite slidersite cranklength gear",
    "ctrllimited ctrlrange forcelimited forcerange actlimited actrange lengthrange user delay nsample",
    "interp armature damping actdim actearly dyntype dynprm gaintype gainprm biastype biasprm kp kv ki",
    "dampratio timeconst inheritrange area bias diameter scale range force lmin lmax vmax fpmax fvmax",
    "tausmooth plugin instance gain input ffrange velrange posrange imax slewmax",
)
_ATTRIBUTES = {
    "compiler": words(
        "autolimits boundmass boundinertia settotalmass balanceinertia strippath coordinate angle",
        "fitaabb eulerseq meshdir texturedir assetdir discardvisual usethread fusestatic inertiafromgeom",
        "inertiagrouprange alignfree saveinertial conflict passthrough savecanonical savecompiled",
    ),
    "default": ("class",),
    "body": words(*_PLACE, "childclass mocap gravcomp user sleep"),
    "frame": (*_PLACE, "childclass"),
    "freejoint": ("name", "group", "align"),
    "inertial": words("pos mass diaginertia fullinertia", *ORIENTATIONS),
    "site": words(*_PLACE, "class type group material size fromto rgba user mesh"),
    "body/joint": _JOINT,
    "frame/joint": _JOINT,
    "default/joint": _JOINT,
    "equality/connect": words(*_EQUALITY, "body1 body2 anchor site1 site2"),
    "equality/weld": words(*_EQUALITY, "body1 body2 relpose anchor site1 site2 torquescale"),
    "equality/joint": words(*_EQUALITY, "joint1 joint2 polycoef"),
    "key": words("name time qpos qvel act mpos mquat ctrl plastic"),
    # Control attributes of a motor are not checked: an unknown one is not reported as a typing error.
    "actuator/motor": _ACTUATOR,
    "actuator/position": _ACTUATOR,
    "actuator/velocity": _ACTUATOR,
    "actuator/general": _ACTUATOR,
}


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
    combined = Element(compiler.file, "compiler", merged, compiler.line)
    if choice(combined, "coordinate", ("local", "global"), "local") == "global":
        raise combined.error(
            'coordinate="global" is not supported',
            "use local coordinates (MuJoCo accepts no others)",
        )
    sequence = merged.get("eulerseq", "xyz")
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        raise combined.error(f"eulerseq '{sequence}' is not a sequence of three axes", 'e.g. eulerseq="xyz"')
    return Settings(
        degrees=choice(combined, "angle", ("degree", "radian"), "degree") == "degree",
        eulerseq=sequence,
        autolimits=flag(combined, "autolimits", default=True),
        inertiafromgeom=choice(combined, "inertiafromgeom", ("auto", "true", "false"), "auto"),
        total_mass=combined.number("settotalmass", -1.0, "<compiler>"),
        alignfree=flag(combined, "alignfree", default=False),
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


def expand_includes(root: Element) -> None:
    """Put the children of included files in the place of each <include>.

    A file must be in the folder of the model (symbolic links are resolved) and is included once, as in
    MuJoCo, so there is no cycle. All files together must stay below the limits of one.

    Args:
        root: Changed in place.
    """
    folder = Path(root.file).resolve().parent
    seen = {Path(root.file).resolve()}
    left = BYTE_LIMIT - Path(root.file).stat().st_size
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
            inner = read_elements(path, left)
            left -= path.stat().st_size
            if inner.tag not in ("mujoco", "mujocoinclude"):
                raise inner.error(f"the root element is <{inner.tag}>", "include files with <mujocoinclude>")
            for node in inner.walk():
                node.included = path.name
            # Included files may include others right here: their elements take the same place.
            element.children = [*children, *inner.children, *element.children[len(children) + 1 :]]
            waiting.append(element)
            break
        else:
            waiting.extend(reversed(element.children))
    _count(root)


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


def _count(root: Element) -> None:
    count = 0
    for element in root.walk():
        count += element.tag == "body"
        if limits.exceeded(count, LINK_LIMIT):
            raise element.error(f"more than {LINK_LIMIT} <body> elements", limits.REMEDY)


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
            by_kind = self._classes[owner]
            for child in element.children:
                if child.tag != "default":
                    kind = _kind(child.tag)
                    by_kind[kind] = {**by_kind.get(kind, {}), **child.attributes}
            # Nested classes inherit all of this one, in any file order.
            for child in element.children:
                if child.tag == "default":
                    inner = child.text("class")
                    if inner in self._classes:
                        raise child.error(f"default class '{inner}' occurs twice", "rename one of them")
                    self._classes[inner] = {kind: dict(values) for kind, values in by_kind.items()}
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
            element.offset,
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


def unknown_mjcf_parts(root: Element) -> tuple[Notice, ...]:
    """Notices about elements and attributes that MJCF does not define."""
    return unknown_parts(root, _CHILDREN, _ATTRIBUTES)
