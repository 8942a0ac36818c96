"""xacro files: expanded by the package `xacro`, and only if the user allows it.

Expanding evaluates expressions in the file and opens files that it names. So a file is not expanded unless
asked: `dynid --xacro "prefix:=left_" ...`, in Python `with expanding(prefix="left_")`.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.common.errors import InputError

if TYPE_CHECKING:
    from dynid.mechanism.mechanism import Mechanism

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
