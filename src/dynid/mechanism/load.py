"""Load a mechanism: a built-in name, a robot file, a URDF, MJCF, SDF or .par file.

xacro files: expanded by the package `xacro`, and only if the user allows it.

Expanding evaluates expressions in the file and opens files that it names. So a file is not expanded unless
asked: `dynid --xacro "prefix:=left_" ...`, in Python `with expanding(prefix="left_")`.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.common.errors import InputError, nearest, similar
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
        ".xacro": "dynid.mechanism.load:load_xacro",
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
    if not isinstance(robot, str | os.PathLike):
        raise InputError(
            f"a robot cannot be made from {type(robot).__name__}",
            remedy="give a built-in name, a file or a Mechanism; the robot comes before the log",
        )
    name = os.fspath(robot)
    built_in = _files()
    if name in built_in:
        return DESCRIPTIONS[".yaml"](built_in[name])
    path = Path(name)
    kind = path.suffix.lower()
    if path.is_dir() or (kind not in DESCRIPTIONS and path.exists()):
        more = "".join(f", {ending}" for ending in DESCRIPTIONS if ending not in DESCRIPTIONS.built_in)
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


def how_to_add(mechanism: Mechanism, keys: str) -> str:
    """Where keys of a robot file go: into the robot's own, or into one over its URDF, MJCF or SDF."""
    file = Path(mechanism.file or "")
    if file.suffix.lower() in ("", ".yaml", ".yml"):
        return f"add  {keys}"
    return (
        f"write a robot file beside it with the lines  source: {file.name}  and  {keys}  and give that file"
    )


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
    if path.suffix:
        close = similar(str(path), names)
        text = f"there is no file '{path}'" + (f"; did you mean '{close}'?" if close else "")
    else:
        text = f"no robot '{path}'" + nearest(str(path), names)
    return InputError(text, remedy=remedy)


REMEDY = (
    'if you trust the file: dynid --xacro "prefix:=left_" ... (--xacro "" without arguments); or'
    " run xacro first: xacro arm.xacro prefix:=left_ > arm.urdf"
)
_ARGUMENTS: ContextVar[Mapping[str, str] | None] = ContextVar("arguments of xacro", default=None)


@contextlib.contextmanager
def expanding(**arguments: str) -> Iterator[None]:
    """Expand xacro files in this block, with these arguments."""
    with _given(arguments):
        yield


@contextlib.contextmanager
def expanding_as_written(text: str | None) -> Iterator[None]:
    """The same with arguments as `name:=value name:=value`; None: xacro files are refused."""
    if text is None:
        yield
        return
    pairs = [word.partition(":=") for word in text.split()]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InputError(
                f"--xacro '{text}' cannot be read", remedy='write --xacro "name:=value name:=value"'
            )
    with _given({name: value for name, _, value in pairs}):
        yield


@contextlib.contextmanager
def _given(arguments: Mapping[str, str]) -> Iterator[None]:
    token = _ARGUMENTS.set(arguments)
    try:
        yield
    finally:
        _ARGUMENTS.reset(token)


def load_xacro(path: Path) -> Mechanism:
    """The mechanism of a xacro file, expanded with the arguments in force."""
    from dynid.mechanism.robot_file.robot_file import load_source

    arguments = _ARGUMENTS.get()
    if arguments is None:
        raise InputError(f"'{path.name}' is xacro, which is not expanded unasked", file=path, remedy=REMEDY)
    text = _expanded(path, arguments)
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / f"{path.name.partition('.')[0]}.urdf"
        urdf.write_text(text, encoding="utf-8")
        try:
            made = load_source(urdf)
        except InputError as error:
            place = f"after expansion, {error.place}" if error.place else "after expansion"
            raise InputError(error.text, file=path, place=place, remedy=error.remedy) from None
    return replace(made, file=str(path), sources=(str(path),))


def _expanded(path: Path, arguments: Mapping[str, str]) -> str:
    try:
        import xacro
    except ImportError:
        raise InputError(
            "expanding xacro needs the package xacro, which is not installed",
            file=path,
            remedy="pip install 'dynid[xacro]'",
        ) from None
    try:
        return str(xacro.process_file(str(path), mappings=dict(arguments)).toprettyxml(indent=" "))
    except Exception as error:  # of any kind: it evaluates expressions
        text = f"cannot be expanded: {str(error).strip() or type(error).__name__}"
        raise InputError(text, file=path, remedy="check that `xacro FILE` expands it") from None
