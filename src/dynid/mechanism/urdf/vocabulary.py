"""What a URDF may contain: known and ignored elements, typing errors, mesh paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from dynid.common.errors import nearest
from dynid.common.notices import Notice, notice
from dynid.mechanism.xml_elements import Element

Vocabulary = Mapping[str, tuple[str, ...]]


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
    """Notices about unknown elements and attributes: mostly typing errors.

    Args:
        children: Tags below each element that is read.
        attributes: Names at each element; `parent/tag` where a tag means two things.
    """
    found: dict[str, list[Element]] = {}
    waiting = [root]
    while waiting:
        element = waiting.pop()
        valid = children.get(element.tag, ())
        for child in element.children:
            known = attributes.get(f"{element.tag}/{child.tag}", attributes.get(child.tag, ()))
            if element.tag in children and _foreign(child.tag):
                what = f"element <{child.tag}> of another namespace in <{element.tag}> is not supported"
                found.setdefault(what, []).append(child)
            elif valid and child.tag not in valid:
                what = f"unknown element <{child.tag}> in <{element.tag}>" + nearest(child.tag, valid)
                found.setdefault(what, []).append(child)
            elif known and element.tag in children:
                for name in child.attributes:
                    if name not in known and not _foreign(name):
                        what = f"unknown attribute '{name}' of <{child.tag}>" + nearest(name, known)
                        found.setdefault(what, []).append(child)
                waiting.append(child)
            elif child.tag in children and element.tag in children:
                waiting.append(child)
    return tuple(
        notice("unknown-element", place=f"{places[0].place}{_more(places)}", what=what)
        for what, places in _in_file_order(found)
    )


def _foreign(name: str) -> bool:
    """Whether a name belongs to another vocabulary by its namespace."""
    return name.startswith("{") or ":" in name


def _in_file_order(found: Mapping[str, list[Element]]) -> list[tuple[str, list[Element]]]:
    each = [(what, sorted(places, key=lambda one: one.line)) for what, places in found.items()]
    return sorted(each, key=lambda item: item[1][0].line)


def _more(places: list[Element]) -> str:
    return f" and {len(places) - 1} more" if len(places) > 1 else ""


def check_meshes(robot: Element) -> None:
    """Refuse mesh and texture paths that leave their root; none is ever opened.

    The root of `package://name/...` is that package, found among the folders above the file if
    it is there; the root of any other path is the nearest folder above with a `package.xml`, or
    else the file's own folder. Links in the file system are followed before deciding.
    """
    for element in robot.walk():
        if element.tag in ("mesh", "texture") and element.attributes.get("filename"):
            check_path(element, element.attributes["filename"], robot.file)


def check_path(element: Element, name: str, file: str) -> None:
    """Refuse a path in `file` that leaves its root."""
    folder = Path(file).resolve().parent
    above = [folder, *folder.parents]
    root = next((path for path in above if (path / "package.xml").is_file()), folder)
    if not _stays(name, folder, root, above):
        raise element.error(
            f"{element.tag} path '{name}' leaves its root", "keep it inside the package, or remove the mesh"
        )


def _stays(name: str, folder: Path, root: Path, above: list[Path]) -> bool:
    scheme, separator, rest = name.replace("\\", "/").partition("://")
    path = unquote(rest if separator else scheme)
    if not separator or scheme == "file":
        return _inside(Path(os.path.realpath(folder / path)), root)
    package, _, inner = path.partition("/")
    if _climbs(inner) or package in ("", ".", ".."):
        return False
    at_hand = next((path for path in above if path.name == package), None)
    return at_hand is None or _inside(
        Path(os.path.realpath(at_hand / inner)), Path(os.path.realpath(at_hand))
    )


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
