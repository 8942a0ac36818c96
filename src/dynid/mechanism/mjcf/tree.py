"""The tree of an MJCF: bodies in MuJoCo's order with their joints, inertials and sites, all named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynid.common.errors import InputError
from dynid.common.notices import Notice
from dynid.mechanism.joint import JointKind, unique
from dynid.mechanism.mjcf.assets import check_assets
from dynid.mechanism.mjcf.file import (
    GENERATORS,
    Defaults,
    Settings,
    choice,
    expand_includes,
    flag,
    read_settings,
    sections,
    unknown_mjcf_parts,
)
from dynid.mechanism.urdf_tree import rename_base
from dynid.mechanism.xml_elements import Element

WORLD = "world"
_KINDS = {
    "hinge": JointKind.REVOLUTE,
    "slide": JointKind.PRISMATIC,
    "ball": JointKind.SPHERICAL,
    "free": JointKind.FREE,
}


@dataclass(frozen=True, eq=False)
class Placed:
    """An element with its defaults, in a body, inside some <frame> elements (outer ones first)."""

    element: Element
    frames: tuple[Element, ...]


@dataclass(frozen=True, eq=False)
class MjcfJoint:
    """A joint as it is written, with the name and the kind that it has here."""

    name: str
    kind: JointKind
    placed: Placed


@dataclass(eq=False)
class MjcfBody:
    """A body as it is written; `name` and `parent` are those of the mechanism."""

    name: str
    parent: str
    placed: Placed
    joints: list[MjcfJoint] = field(default_factory=list)
    inertials: list[Element] = field(default_factory=list)
    geoms: list[Placed] = field(default_factory=list)

    def error(self, text: str, remedy: str) -> InputError:
        """An error at this body."""
        return self.placed.element.error(text, remedy)


@dataclass(frozen=True, eq=False)
class MjcfModel:
    """An MJCF that was read and whose names were checked; numbers are read by `mjcf_parts`.

    Attributes:
        root: With the includes in place.
        bodies: In MuJoCo's order: a body, then its children one after the other.
        sites: By name, with the body that carries each.
        rename: Names of bodies that differ in the mechanism (the world is called `base` there).
    """

    file: str
    name: str
    root: Element
    settings: Settings
    defaults: Defaults
    bodies: tuple[MjcfBody, ...]
    sites: Mapping[str, tuple[str, Placed]]
    rename: Mapping[str, str]
    notices: tuple[Notice, ...]


def mjcf_model(root: Element) -> MjcfModel:
    """Check the tree of an MJCF, given by its root element.

    Mesh paths that leave the model's folder are refused; no mesh is opened here.
    """
    if root.tag != "mujoco":
        raise root.error(f"the root element is <{root.tag}>, not <mujoco>", "give an MJCF file")
    expand_includes(root)
    check_assets(root)
    reader = _TreeReader(root)
    names = {body.name for body in reader.bodies}
    if not names:
        raise root.error("the model has no <body>", "give a robot description")
    rename, renamed = rename_base(WORLD, names, "body")
    for body in reader.bodies:
        body.name, body.parent = (rename.get(name, name) for name in (body.name, body.parent))
    _name_joints(reader.bodies)
    return MjcfModel(
        file=root.file,
        name=root.attributes.get("model", "").strip() or "robot",
        root=root,
        settings=read_settings(root),
        defaults=reader.defaults,
        bodies=tuple(reader.bodies),
        sites={name: (rename.get(body, body), placed) for name, (body, placed) in reader.sites.items()},
        rename=rename,
        notices=(*renamed, *unknown_mjcf_parts(root)),
    )


class _TreeReader:
    """Walks the world with an explicit stack; names of bodies and sites are given here."""

    def __init__(self, root: Element) -> None:
        self.defaults = Defaults(root)
        self.bodies: list[MjcfBody] = []
        self.sites: dict[str, tuple[str, Placed]] = {}
        self._stack: list[tuple[Element, MjcfBody | None, tuple[Element, ...], str | None]] = []
        self._taken = _names(root, "body")
        for world in reversed(sections(root, "worldbody")):
            self._push(world, None, (), world.attributes.get("childclass"))
        while self._stack:
            self._visit(*self._stack.pop())

    def _push(
        self, element: Element, body: MjcfBody | None, frames: tuple[Element, ...], childclass: str | None
    ) -> None:
        self._stack += [(child, body, frames, childclass) for child in reversed(element.children)]

    def _visit(
        self, element: Element, body: MjcfBody | None, frames: tuple[Element, ...], childclass: str | None
    ) -> None:
        tag = element.tag
        if tag in GENERATORS:
            raise element.error(f"<{tag}> is not supported", "replace it by the bodies that it generates")
        if tag in ("body", "frame") and "childclass" in element.attributes:
            childclass = self.defaults.check(element, element.attributes["childclass"])
        if tag == "body":
            self._push(element, self._body(element, body, frames), (), childclass)
        elif tag == "frame":
            self._push(element, body, (*frames, element), childclass)
        elif tag == "site":
            self._site(element, body, Placed(self.defaults.applied(element, childclass), frames))
        elif body is None:
            if tag in ("joint", "freejoint", "inertial"):
                raise element.error(f"<{tag}> in the world body, which cannot move", "put it into a body")
        elif tag in ("joint", "freejoint"):
            # The default attributes of joints are not those of a <freejoint>.
            plain = self.defaults.applied(element, childclass) if tag == "joint" else element
            body.joints.append(MjcfJoint("", _kind(plain), Placed(plain, frames)))
        elif tag == "inertial":
            body.inertials.append(element)
        elif tag == "geom":
            body.geoms.append(Placed(self.defaults.applied(element, childclass), frames))

    def _body(self, element: Element, parent: MjcfBody | None, frames: tuple[Element, ...]) -> MjcfBody:
        name = element.attributes.get("name", "").strip()
        if not name:
            name = unique(f"body{len(self.bodies) + 1}", self._taken)
            self._taken.add(name)
        if name == WORLD:
            raise element.error(f"body name '{WORLD}' is reserved for the world body", "rename the body")
        if flag(element, "mocap", default=False):
            raise element.error(
                f"body '{name}' is a mocap body, which has no equation of motion",
                "remove it, or make it static",
            )
        made = MjcfBody(name, parent.name if parent else WORLD, Placed(element, frames))
        self.bodies.append(made)
        return made

    def _site(self, element: Element, body: MjcfBody | None, placed: Placed) -> None:
        name = element.attributes.get("name", "").strip()
        if name in self.sites:
            first = self.sites[name][1].element.place
            raise element.error(f"site name '{name}' occurs twice (first in {first})", "rename one of them")
        if name:
            self.sites[name] = (body.name if body else WORLD, placed)


def _kind(joint: Element) -> JointKind:
    if joint.tag == "freejoint":
        return JointKind.FREE
    return _KINDS[choice(joint, "type", tuple(_KINDS), "hinge")]


def _names(root: Element, *tags: str) -> set[str]:
    """Names of all elements with these tags in the world; duplicates are refused."""
    named: dict[str, Element] = {}
    for world in sections(root, "worldbody"):
        for element in world.walk():
            name = element.attributes.get("name", "").strip()
            if element.tag not in tags or not name:
                continue
            if name in named:
                raise element.error(
                    f"{element.tag} name '{name}' occurs twice (first in {named[name].place})",
                    "rename one of them",
                )
            named[name] = element
    return set(named)


def _name_joints(bodies: Iterable[MjcfBody]) -> None:
    """Names for joints without one: `arm_joint`, or `arm_joint1` ... where a body has several."""
    bodies = list(bodies)
    taken: dict[str, str] = {}
    for body in bodies:
        for joint in body.joints:
            element = joint.placed.element
            name = element.attributes.get("name", "").strip()
            if name and name in taken:
                raise element.error(
                    f"joint name '{name}' occurs twice (first in {taken[name]})", "rename one of them"
                )
            taken |= {name: element.place} if name else {}
    names = set(taken)
    for body in bodies:
        for i, joint in enumerate(body.joints):
            if joint.kind is JointKind.FREE and (len(body.joints) > 1 or body.parent != "base"):
                raise joint.placed.element.error(
                    f"the free joint of body '{body.name}' is not the only joint of a top-level body",
                    "move it to a body directly in <worldbody>, without other joints",
                )
            number = str(i + 1) if len(body.joints) > 1 else ""
            name = joint.placed.element.attributes.get("name", "").strip()
            name = name or unique(f"{body.name}_joint{number}", names)
            names.add(name)
            body.joints[i] = MjcfJoint(name, joint.kind, joint.placed)
