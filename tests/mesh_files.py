"""Meshes for tests, as triangles and as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.common.arrays import Array, Float

_QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def box(
    sides: tuple[float, float, float], centre: tuple[float, float, float] = (0, 0, 0)
) -> Float[Array, "12 3 3"]:
    """Triangles of a box, by their corners."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.5 * np.array(sides)
    corners = corners + np.array(centre)
    return np.array([corners[[q[0], *pair]] for q in _QUADS for pair in (q[1:3], q[2:4])])


def stl(triangles: Float[Array, "m 3 3"], header: bytes = b"binary") -> bytes:
    """A binary STL."""
    record = np.zeros(len(triangles), np.dtype([("n", "<f4", 3), ("c", "<f4", (3, 3)), ("a", "<u2")]))
    record["c"] = triangles
    return header.ljust(80, b"\0") + np.array(len(triangles), "<u4").tobytes() + record.tobytes()


def stl_text(triangles: Float[Array, "m 3 3"]) -> str:
    """A text STL."""
    facets = [
        "facet normal 0 0 0\n outer loop\n"
        + "".join(f"  vertex {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in triangle)
        + " endloop\nendfacet\n"
        for triangle in triangles
    ]
    return "solid two words\n" + "".join(facets) + "endsolid two words\n"


def obj(triangles: Float[Array, "m 3 3"]) -> str:
    """An OBJ that names its vertices from the end, with texture numbers."""
    text = "# comment\nmtllib none.mtl\no thing\n"
    for triangle in triangles:
        text += "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in triangle) + "f -3/1 -2//2 \\\n -1/1/1\n"
    return text


def write(folder: Path, name: str, triangles: Float[Array, "m 3 3"]) -> None:
    """A binary STL in a folder that is made if it is missing."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(stl(triangles))
