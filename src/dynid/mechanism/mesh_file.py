"""Strict reader of mesh files: triangles of STL (binary and text) and OBJ. Nothing is repaired.

A binary STL has a header of 80 bytes, the number of triangles, and 50 bytes for each. Its size decides
whether it is one: the header of many binary files begins with `solid`, as a text does.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from dynid.common import limits
from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError
from dynid.common.strict_number import is_number
from dynid.common.strict_yaml import PathLike
from dynid.mechanism.urdf_tree import PACKAGE, model_file

BYTE_LIMIT = 50_000_000
TRIANGLE_LIMIT = 1_000_000  # as many as a binary STL of that size has
_LARGEST = 1e15  # in the unit of the file
_HEADER, _PER_TRIANGLE = 84, 50
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_FACET = ("facet normal # # # outer loop" + 3 * " vertex # # #" + " endloop endfacet").split()
_CORNERS = frozenset([i for i, word in enumerate(_FACET) if word == "#"][3:])
# Statements of an OBJ that change no triangle; others (curves, free surfaces) are refused.
_WITHOUT_SHAPE = ("vt", "vn", "vp", "g", "o", "s", "l", "p", "usemtl", "mtllib")


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles, in the coordinates and unit of the file.

    Attributes:
        vertices: Corners of triangles, each once, shape (n, 3).
        triangles: Numbers of their corners, shape (m, 3).
    """

    vertices: Float[Array, "n 3"]
    triangles: Int[Array, "m 3"]


@dataclass(frozen=True, eq=False)
class MeshShape:
    """A collision mesh of a description, which is opened only where a motion is designed or drawn.

    Attributes:
        name: Path as it is written, with the mesh folder of an MJCF; empty: the mesh has no file.
        described_in: The description, to which the path is relative.
        linear, offset: From the coordinates of the file to the frame of the body, in [m]: linear x + offset;
            scale and mirrors included. Shapes (3, 3) and (3,).
    """

    name: str
    described_in: str
    linear: Float[Array, "3 3"]
    offset: Float[Array, "3"]

    def read(self) -> Mesh:
        """The mesh in the frame of the body, in [m]."""
        path = model_file(self.name, self.described_in) if self.name else None
        if path is None:
            raise InputError(
                f"mesh '{self.name}' is not there" if self.name else "a mesh has no file",
                file=self.described_in,
                remedy=f"put it into the folder of the description, or of its package ({PACKAGE})",
            )
        mesh = read_mesh(path)
        return Mesh(mesh.vertices @ self.linear.T + self.offset, mesh.triangles)


def read_mesh(file: PathLike) -> Mesh:
    """The triangles of an STL or OBJ file."""
    path = Path(file)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(READERS)
        raise InputError(
            f"'{path.suffix}' is not a mesh format that is read ({known})",
            file=path,
            remedy="save it as STL or OBJ",
        )
    try:
        size = path.stat().st_size
        if limits.exceeded(size, BYTE_LIMIT):
            raise _too_large(path, f"{size} bytes, more than the limit of {BYTE_LIMIT}")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="check the path") from None
    return reader(raw, path)


def _stl(raw: bytes, path: Path) -> Mesh:
    declared = int(np.frombuffer(raw, "<u4", 1, 80)[0]) if len(raw) >= _HEADER else 0
    if len(raw) >= _HEADER and len(raw) == _HEADER + _PER_TRIANGLE * declared:
        with np.errstate(invalid="ignore"):  # of values that are refused below
            corners = np.frombuffer(raw, _RECORD, declared, _HEADER)["corners"].astype(float)
        return _merged(corners.reshape(-1, 3), path, lambda k: f"triangle {k + 1}")
    if raw.lstrip()[:5].lower() == b"solid" and b"\0" not in raw[:_HEADER]:
        return _text_stl(_lines(raw), path)
    wanted = _HEADER + _PER_TRIANGLE * declared
    raise InputError(
        f"a binary STL of {declared} triangles has {wanted} bytes, and the file has {len(raw)}",
        file=path,
        remedy="the file is damaged: copy or export it again",
    )


def _text_stl(lines: Iterable[list[str]], path: Path) -> Mesh:
    """`solid`, then facets of 21 words; names after `solid` and `endsolid` may have any words."""
    values: list[float] = []
    row, place, last = 0, 0, ""
    for row, line in enumerate(lines, 1):
        last = line[0].lower() if line else last
        if not line or last in ("solid", "endsolid"):
            continue
        for word in line:
            wanted = _FACET[place]
            if not (is_number(word) if wanted == "#" else word.lower() == wanted):
                wanted = "a number" if wanted == "#" else f"'{wanted}'"
                raise _damaged(path, row, f"'{word[:40]}' is not {wanted}")
            if place in _CORNERS:
                values.append(float(word))
            place = (place + 1) % len(_FACET)
    if place or last != "endsolid":
        raise _damaged(path, row, "the file ends within the mesh")
    return _merged(np.array(values).reshape(-1, 3), path, lambda k: f"triangle {k + 1}")


def _obj(raw: bytes, path: Path) -> Mesh:
    """Vertices `v x y z` and faces `f a b c ...`; a face of more corners becomes a fan of triangles."""
    vertices: list[tuple[float, ...]] = []
    corners: list[int] = []
    rows: list[int] = []
    for row, words in _statements(_lines(raw)):
        if words[0] == "v":
            if len(words) < 4 or not all(map(is_number, words[1:4])):
                raise _damaged(path, row, f"'{' '.join(words[:9])[:40]}' has no three coordinates")
            vertices.append(tuple(float(word) for word in words[1:4]))
        elif words[0] == "f":
            if len(words) < 4:
                raise _damaged(path, row, "a face has fewer than three corners")
            if limits.exceeded(len(rows) + len(words) - 3, TRIANGLE_LIMIT):
                raise _too_large(path, f"more than {TRIANGLE_LIMIT} triangles")
            face = [_corner(word, len(vertices), path, row) for word in words[1:]]
            for b, c in pairwise(face[1:]):
                corners += [face[0], b, c]
                rows.append(row)
        elif words[0] not in _WITHOUT_SHAPE:
            raise _damaged(path, row, f"'{words[0][:40]}' is not supported", "save triangles only")
    places = np.array(vertices, dtype=float).reshape(-1, 3)[np.array(corners, dtype=np.int64)]
    return _merged(places, path, lambda k: f"line {rows[k]}")


def _statements(lines: Iterable[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of each statement; a backslash continues it on the next line."""
    held: list[str] = []
    for row, line in enumerate(lines, 1):
        comment = next((k for k, word in enumerate(line) if "#" in word), len(line))
        words = [*line[:comment], *(word.partition("#")[0] for word in line[comment : comment + 1])]
        words = [word for word in words if word]
        if words and words[-1] == "\\":
            held += words[:-1]
        elif held or words:
            yield row, held + words
            held = []


def _corner(word: str, count: int, path: Path, row: int) -> int:
    """The vertex of `7`, `7/1/2` or `-1` (the last one so far), from zero."""
    head = word.partition("/")[0]
    digits = head.removeprefix("-")
    number = int(head) if digits.isascii() and digits.isdigit() and len(digits) < 12 else 0
    if not 1 <= abs(number) <= count:
        raise _damaged(path, row, f"a face names vertex '{head[:40]}' of {count}")
    return number - 1 if number > 0 else count + number


READERS: dict[str, Callable[[bytes, Path], Mesh]] = {".stl": _stl, ".obj": _obj}


def _merged(corners: Float[Array, "k 3"], path: Path, place: Callable[[int], str]) -> Mesh:
    """Triangles of three corners each; equal corners become one vertex."""
    if not len(corners):
        raise InputError("the mesh has no triangles", file=path, remedy="export it again")
    wrong = np.flatnonzero(~(np.abs(corners) < _LARGEST).all(axis=1))
    if len(wrong):
        raise InputError(
            f"corner {corners[wrong[0]].tolist()} is not finite, or too large for a robot",
            file=path,
            place=place(int(wrong[0]) // 3),
            remedy="the file is damaged: copy or export it again",
        )
    vertices, index = np.unique(corners + 0.0, axis=0, return_inverse=True)  # -0.0 is 0.0
    return Mesh(vertices, index.reshape(-1, 3))


def _lines(raw: bytes) -> Iterator[list[str]]:
    """Words of one line after the other; comments and names may be in any encoding."""
    return (line.split() for line in io.TextIOWrapper(io.BytesIO(raw), "latin-1"))


def _damaged(path: Path, row: int, text: str, remedy: str = "") -> InputError:
    remedy = remedy or "the file is damaged: copy or export it again"
    return InputError(text, file=path, place=f"line {row}", remedy=remedy)


def _too_large(path: Path, size: str) -> InputError:
    return InputError(f"the mesh has {size}", file=path, remedy=f"reduce its triangles; {limits.REMEDY}")
