"""The tree of a URDF: links and joints by name, parents first, one root; loops are refused."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dynid.common.errors import InputError, nearest
from dynid.common.notices import Notice, notice
from dynid.common.strict_yaml import BYTE_LIMIT, PathLike
from dynid.mechanism.mechanism import BASE
from dynid.mechanism.urdf.vocabulary import check_meshes, unknown_parts
from dynid.mechanism.xml_elements import Element, read_elements

LINK_LIMIT = 1000


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


def read_urdf(
    file: PathLike, *, link_limit: int = LINK_LIMIT, byte_limit: int = BYTE_LIMIT, confine_meshes: bool = True
) -> UrdfModel:
    """Read and check the tree of a URDF; values of numbers are read by `urdf_parts`.

    Args:
        file: Path of the URDF.
        link_limit: Links allowed.
        byte_limit: File size allowed, in [byte].
        confine_meshes: Refuse mesh paths that leave the model's folder or package; meshes are
            never opened either way.
    """
    robot = read_elements(file, byte_limit=byte_limit, count_limit=link_limit)
    return urdf_model(robot, confine_meshes=confine_meshes)


def urdf_model(robot: Element, *, confine_meshes: bool = True) -> UrdfModel:
    """The same from the root element."""
    _check_root(robot)
    if confine_meshes:
        check_meshes(robot)
    links = _by_name([element for element in robot.children if element.tag == "link"])
    joints = _by_name([element for element in robot.children if element.tag == "joint"])
    if not links:
        raise robot.error("the file has no <link>", "give a robot description")
    ordered, root = _ordered(robot, links, joints)
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


def _ordered(
    robot: Element, links: Mapping[str, Element], joints: Mapping[str, Element]
) -> tuple[tuple[Element, ...], str]:
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
    other = BASE + "_"
    while other in names:
        other += "_"
    renamed = notice("renamed-link" if word == "link" else "renamed-body", root=root, new=other)
    return {**rename, BASE: other}, (renamed,)
