"""Load a mechanism: a built-in name, a robot file, a URDF, MJCF, SDF or .par file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.common.errors import InputError, nearest
from dynid.common.registry import Registry

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism

_DESCRIPTION = re.compile(r"^description:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ROBOT_FILE = "dynid.mechanism.robot_file.robot_file:load_robotfile"
_SOURCE = "dynid.mechanism.robot_file.robot_file:load_source"
# Ending of a file -> its reader, from a path to a Mechanism.
DESCRIPTIONS: Registry[Callable[[Path], Mechanism]] = Registry(
    "dynid.descriptions",
    {
        **dict.fromkeys((".yaml", ".yml"), _ROBOT_FILE),
        **dict.fromkeys((".urdf", ".xml", ".mjcf", ".sdf", ".par"), _SOURCE),
        ".xacro": "dynid.mechanism.xacro_file:load_xacro",
    },
    gives=("dynid.mechanism.mechanism:Mechanism",),
)
_USD = "convert USD to MJCF or URDF first: usd2mjcf arm.usd, or the URDF exporter of Isaac Sim"
_REMEDIES = {
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), _USD),
    ".json": "write the robot as YAML: dynid.robot/1",
}


def load_robot(robot: str | os.PathLike[str] | Mechanism) -> Mechanism:
    """The mechanism of a built-in name or a file (`DESCRIPTIONS`); a Mechanism passes through."""
    from dynid.mechanism.mechanism import Mechanism

    if isinstance(robot, Mechanism):
        return robot
    name = os.fspath(robot)
    built_in = _files()
    if name in built_in:
        return DESCRIPTIONS[".yaml"](built_in[name])
    path = Path(name)
    kind = path.suffix.lower()
    if path.is_dir() or (kind not in DESCRIPTIONS and path.exists()):
        more = "".join(f", {ending}" for ending in DESCRIPTIONS if ending not in DESCRIPTIONS.own)
        raise InputError(
            f"'{path.name}' is not a robot description",
            file=path,
            remedy=_REMEDIES.get(kind, f"give a .yaml, URDF, SDF, .par{more} or MJCF file"),
        )
    if not path.exists():
        raise _missing(path, built_in)
    mechanism = DESCRIPTIONS[kind](path)
    if not mechanism.joints:
        raise InputError("the robot has no joints", file=path, remedy="add its joints")
    return mechanism


def builtin_robots() -> dict[str, str]:
    """Name and one-line description of every built-in robot.

    Only the line `description:` of each file is read, to make the list fast.
    """
    robots = {}
    for name, path in _files().items():
        match = _DESCRIPTION.search(path.read_text(encoding="utf-8"))
        robots[name] = match[1].strip("\"'") if match else ""
    return robots


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
        path.suffix.lower(),
        "give a built-in name (see 'dynid robots') or a .yaml, URDF, MJCF, SDF or .par file",
    )
    return InputError(f"no robot '{path}'" + nearest(str(path), names), remedy=remedy)
