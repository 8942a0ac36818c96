"""The tree of a URDF: links and joints by name, parents first, one root; elements that it may contain."""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from dynid.common.errors import InputError, nearest, similar
from dynid.common.notices import Notice, at_level, notice
from dynid.mechanism.joint import unique
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.xml_elements import Element

Vocabulary = Mapping[str, tuple[str, ...]]
PACKAGE = "package.xml"  # the file that makes a folder a package


@dataclass(frozen=True, eq=False)
class UrdfModel:
    """A URDF that was read and whose tree was checked.

    Attributes:
        links: By name, in file order.
        joints: Parents before children, otherwise in file order.
        root: The link that is the world here.
        rename: Names of links that differ in the mechanism (the root is called `base` there).
    """

    file: str
    name: str
    links: Mapping[str, Element]
    joints: tuple[Element, ...]
    root: str
    rename: Mapping[str, str]
    notices: tuple[Notice, ...]


def urdf_model(robot: Element) -> UrdfModel:
    """Check the tree of a URDF, given by its root element; values of numbers are read by `urdf_parts`.

    Mesh paths that leave the model's folder or package are refused; meshes are never opened either way.
    """
    _check_root(robot)
    check_meshes(robot)
    links = _by_name([element for element in robot.children if element.tag == "link"])
    joints = _by_name([element for element in robot.children if element.tag == "joint"])
    if not links:
        raise robot.error("the file has no <link>", "give a robot description")
    ordered, root = _ordered(links, joints)
    rename, renamed = rename_base(root, links, "link")
    name = robot.attributes.get("name", "").strip() or "robot"
    return UrdfModel(robot.file, name, links, ordered, root, rename, (*renamed, *unknown_parts(robot)))


def _check_root(robot: Element) -> None:
    if robot.tag == "mujoco":
        raise robot.error("this is an MJCF model, not a URDF", "load_robot accepts both formats")
    if robot.tag != "robot":
        raise robot.error(f"the root element is <{robot.tag}>, not <robot>", "give a URDF or an MJCF")
    for element in robot.walk():
        if "ros.org/wiki/xacro" in element.tag or element.tag.startswith("xacro:"):
            raise element.error("this is xacro, not URDF", "run xacro first: xacro arm.xacro > arm.urdf")


def _by_name(elements: list[Element]) -> dict[str, Element]:
    named: dict[str, Element] = {}
    for element in elements:
        name = element.text("name")
        if name in named:
            first = named[name].line
            raise element.error(
                f"{element.tag} name '{name}' occurs twice (first in line {first})", "rename one of them"
            )
        named[name] = element
    return named


def joint_end(joint: Element, tag: str) -> str:
    """The link a joint names as its parent or child."""
    element = joint.child(tag)
    if element is None:
        raise joint.error(f"joint '{joint.text('name')}' has no <{tag}>", f'add <{tag} link="..."/>')
    return element.text("link")


def _ordered(links: Mapping[str, Element], joints: Mapping[str, Element]) -> tuple[tuple[Element, ...], str]:
    """Joints parents first (in file order where that is free), and the root link."""
    carried: dict[str, str] = {}
    outgoing: dict[str, list[int]] = {name: [] for name in links}
    order = list(joints)
    for i, (name, joint) in enumerate(joints.items()):
        parent, child = joint_end(joint, "parent"), joint_end(joint, "child")
        for link in (parent, child):
            if link not in links:
                raise joint.error(
                    f"joint '{name}' names link '{link}', which is missing" + nearest(link, links), ""
                )
        if child in carried:
            raise _second_parent(joint, name, parent, child, carried[child])
        carried[child] = name
        outgoing[parent].append(i)
    roots = [name for name in links if name not in carried]
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"{len(roots)} links have no parent: {', '.join(roots[:5])}",
            "connect them by joints into one tree",
        )
    ready = list(outgoing[roots[0]]) if roots else []
    sorted_joints: list[Element] = []
    while ready:
        joint = joints[order[heapq.heappop(ready)]]
        sorted_joints.append(joint)
        for i in outgoing[joint_end(joint, "child")]:
            heapq.heappush(ready, i)
    if len(sorted_joints) < len(joints):
        done = {element.attributes["name"] for element in sorted_joints}
        left = [name for name in order if name not in done]
        raise joints[left[0]].error(
            f"joints {', '.join(left[:5])} form a cycle",
            "remove one of these joints and describe it under 'loops:'",
        )
    return tuple(sorted_joints), roots[0]


def _second_parent(joint: Element, name: str, parent: str, child: str, first: str) -> InputError:
    """The error for a closed loop, with the equivalent closure."""
    kinds = {"fixed": "weld", "prismatic": "prismatic", "planar": "planar"}
    kind = kinds.get(joint.attributes.get("type", ""), "revolute")
    origin, axis = joint.child("origin"), joint.child("axis")
    place = "".join(
        f", {key}: [{', '.join(origin.attributes[key].split())}]"
        for key in ("xyz", "rpy")
        if origin is not None and key in origin.attributes
    )
    # URDF's default axis is x, that of a loop is z.
    turn = axis.attributes.get("xyz", "1 0 0") if axis is not None else "1 0 0"
    about = "" if kind == "weld" else f"axis: [{', '.join(turn.split())}], "
    closure = f"{{name: {name}, kind: {kind}, {about}a: {{body: {parent}{place}}}, b: {{body: {child}}}}}"
    return joint.error(
        f"link '{child}' has two parents: joints '{first}' and '{name}'",
        f"remove joint '{name}' and close the loop in a robot file over this URDF:\n"
        f"    loops:\n      - {closure}",
    )


def rename_base(root: str, names: Collection[str], word: str) -> tuple[dict[str, str], tuple[Notice, ...]]:
    """The root becomes `base`; another link (or body: `word`) of that name gets an underscore."""
    rename = {root: BASE}
    if root == BASE or BASE not in names:
        return rename, ()
    other = unique(BASE + "_", names)
    renamed = notice("renamed-link" if word == "link" else "renamed-body", root=root, new=other)
    return {**rename, BASE: other}, (renamed,)


def words(*lines: str) -> tuple[str, ...]:
    """The words of some lines."""
    return tuple(" ".join(lines).split())


# Children that are read or deliberately ignored, below each element that is read.
_CHILDREN = {
    "robot": words(
        "link joint material transmission gazebo sensor ros2_control mujoco group group_state",
        "disable_collisions end_effector virtual_joint passive_joint actuator plugin",
    ),
    "link": words("inertial visual collision contact self_collision_checking sensor material gazebo"),
    "joint": words(
        "origin parent child axis calibration dynamics limit mimic safety_controller",
        "hardwareInterface gazebo physics",
    ),
    "inertial": words("origin mass inertia"),
}
_ATTRIBUTES = {
    "link": ("name", "type"),
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "axis": ("xyz",),
    "parent": ("link",),
    "child": ("link",),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "limit": ("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk"),
    "mimic": ("joint", "multiplier", "offset"),
    "dynamics": ("damping", "friction"),
}


def unknown_parts(
    root: Element, children: Vocabulary = _CHILDREN, attributes: Vocabulary = _ATTRIBUTES
) -> tuple[Notice, ...]:
    """Notices about unknown elements and attributes: typing errors, or extensions that change nothing here.

    Args:
        children: Tags below each element that is read.
        attributes: Names at each element; `parent/tag` where a tag means two things.
    """
    by_problem: dict[tuple[str, bool], list[Element]] = {}
    waiting = [root]
    while waiting:
        element = waiting.pop()
        valid = children.get(element.tag, ())
        for child in element.children:
            known = attributes.get(f"{element.tag}/{child.tag}", attributes.get(child.tag, ()))
            if element.tag in children and _foreign(child.tag):
                problem = f"element <{child.tag}> of another namespace in <{element.tag}> is not supported"
                by_problem.setdefault((problem, False), []).append(child)
            elif valid and child.tag not in valid:
                problem = f"unknown element <{child.tag}> in <{element.tag}>" + nearest(child.tag, valid)
                by_problem.setdefault((problem, bool(similar(child.tag, valid))), []).append(child)
            elif known and element.tag in children:
                for name in child.attributes:
                    if name not in known and not _foreign(name):
                        problem = f"unknown attribute '{name}' of <{child.tag}>" + nearest(name, known)
                        by_problem.setdefault((problem, bool(similar(name, known))), []).append(child)
                waiting.append(child)
            elif child.tag in children and element.tag in children:
                waiting.append(child)
    return tuple(
        at_level(
            notice(
                "unknown-element",
                place=places[0].place + (f" and {len(places) - 1} more" if len(places) > 1 else ""),
                what=message,
            ),
            "care" if misspelt else "good",
        )
        for (message, misspelt), places in _in_file_order(by_problem)
    )


def _foreign(name: str) -> bool:
    """Whether a name belongs to another vocabulary by its namespace."""
    return name.startswith("{") or ":" in name


def _in_file_order(
    by_problem: Mapping[tuple[str, bool], list[Element]],
) -> list[tuple[tuple[str, bool], list[Element]]]:
    each = [
        (problem, sorted(places, key=lambda element: element.line)) for problem, places in by_problem.items()
    ]
    return sorted(each, key=lambda item: item[1][0].line)


def check_meshes(robot: Element) -> None:
    """Refuse mesh and texture paths that leave their root; none is opened here.

    The root of `package://name/...` is that package, found among the folders above the file if
    it is there; the root of any other path is the nearest folder above with a `package.xml`, or
    else the file's own folder. Links in the file system are followed before deciding.
    """
    for element in robot.walk():
        if element.tag in ("mesh", "texture") and element.attributes.get("filename"):
            check_path(element, element.attributes["filename"], robot.file)


def check_path(element: Element, name: str, file: str) -> None:
    """Refuse a path in `file` that leaves its root."""
    if not _stays(name, file):
        raise element.error(
            f"{element.tag} path '{name}' leaves its root", "keep it inside the package, or remove the mesh"
        )


def _stays(name: str, file: str) -> bool:
    scheme, path = _split(name)
    package, _, inner = path.partition("/")
    if "\0" in path:  # no file has such a name
        return False
    if scheme and (_climbs(inner) or package in ("", ".", "..")):
        return False
    places = _places(name, file)
    return len(places) > 1 or _inside(*places[0])  # a package that is not at hand is looked for, and skipped


def model_file(name: str, file: str) -> Path | None:
    """The file that a path in the description `file` names, if it is there and inside its root."""
    for place, root in _places(name, file):
        with contextlib.suppress(OSError):  # a name that is too long
            if place.is_file() and _inside(place, root):
                return place
    return None


def _split(name: str) -> tuple[str, str]:
    """Scheme, empty for a path in the file system, and path."""
    scheme, separator, rest = name.replace("\\", "/").partition("://")
    if not separator or scheme == "file":
        return "", unquote(rest if separator else scheme)
    return scheme, unquote(rest).lstrip("/")  # some files write package:///name


def _places(name: str, file: str) -> list[tuple[Path, Path]]:
    """Where a path of a description may lead, with the root that it must not leave; links are followed.

    A package is a folder above the file, else one in the root of the file, else that root under another name.
    """
    folder = Path(file).resolve().parent
    above = [folder, *folder.parents]
    root = next((path for path in above if (path / PACKAGE).is_file()), folder)
    scheme, path = _split(name)
    if not scheme:
        return [(Path(os.path.realpath(folder / path)), root)]
    package, _, inner = path.partition("/")
    named = next((path for path in above if path.name == package), None)
    if named is not None:
        return [(Path(os.path.realpath(named / inner)), named)]
    tried = (folder / package / inner, root / package / inner, root / inner)
    return [(Path(os.path.realpath(place)), root) for place in tried]


def _climbs(path: str) -> bool:
    """Whether `..` ever leads above the start."""
    depth = 0
    for part in PurePosixPath("/" + path).parts[1:]:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _inside(path: Path, root: Path) -> bool:
    return path.is_relative_to(os.path.realpath(root))
