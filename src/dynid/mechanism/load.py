"""Load a mechanism: a built-in name, a robot file, a URDF or an MJCF."""

from __future__ import annotations

import os
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.common.errors import InputError, nearest

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism

_DESCRIPTION = re.compile(r"^description:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_REMEDIES = {
    ".xacro": "run xacro first: xacro arm.xacro > arm.urdf",
    ".sdf": "SDF is not supported: convert it to URDF or MJCF",
    ".usd": "USD is not supported: convert it to URDF or MJCF",
    ".json": "write the robot as YAML: dynid.robot/1",
}


def load_robot(robot: str | os.PathLike[str] | Mechanism) -> Mechanism:
    """The mechanism of a built-in name, a .yaml robot file, a URDF or an MJCF; a Mechanism passes through."""
    from dynid.mechanism.mechanism import Mechanism
    from dynid.mechanism.robot_file.robot_file import SUFFIXES, load_robotfile, load_source

    if isinstance(robot, Mechanism):
        return robot
    name = os.fspath(robot)
    built_in = _files()
    if name in built_in:
        return load_robotfile(built_in[name])
    path = Path(name)
    kind = path.suffix.lower()
    if path.is_dir() or (kind not in (".yaml", ".yml", *SUFFIXES) and path.exists()):
        raise InputError(
            f"'{path.name}' is not a robot description",
            file=path,
            remedy=_REMEDIES.get(kind, "give a .yaml, URDF or MJCF file"),
        )
    if not path.exists():
        raise _missing(path, built_in)
    mechanism = load_robotfile(path) if kind in (".yaml", ".yml") else load_source(path)
    if not mechanism.joints:
        raise InputError("the robot has no joints", file=path, remedy="add its joints")
    return mechanism


def builtin_robots() -> dict[str, str]:
    """Name and one-line description of every built-in robot.

    Only the line `description:` of each file is read, to make the list fast.
    """
    found = {}
    for name, path in _files().items():
        match = _DESCRIPTION.search(path.read_text(encoding="utf-8"))
        found[name] = match[1].strip("\"'") if match else ""
    return found


def reference(mechanism: Mechanism) -> str:
    """What identifies a mechanism from any folder: a built-in name, else the full path of its file."""
    if mechanism.file is None:
        return mechanism.name
    path = Path(mechanism.file).resolve()
    return path.stem if path in {built_in.resolve() for built_in in _files().values()} else str(path)


def _files() -> dict[str, Path]:
    folder = Path(str(files("dynid.robots")))
    # name.demo.yaml contains the simulated experiment of the robot, not a robot.
    return {path.stem: path for path in sorted(folder.glob("*.yaml")) if "." not in path.stem}


def _missing(path: Path, built_in: dict[str, Path]) -> InputError:
    """The error for an unknown name, with the closest valid names."""
    names = list(built_in)
    if path.parent.is_dir():
        names += [str(path.parent / other.name) for other in path.parent.glob("*.[yuxm]*")]
    remedy = _REMEDIES.get(
        path.suffix.lower(), "give a built-in name (see 'dynid robots') or a .yaml, URDF or MJCF file"
    )
    return InputError(f"no robot '{path}'" + nearest(str(path), names), remedy=remedy)
