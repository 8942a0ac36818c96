"""Collision shapes of URDF and MJCF: capsules that contain them, and meshes, which are opened later.

A cylinder is inside the capsule of its axis and radius. A box is inside the capsule along its longest side,
whose radius is half the diagonal of the two others. An identification needs no shapes: a shape that is not
readable is left out, and no mesh is opened here (`mesh_capsules.py` does, for motions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.frame import Frame, rpy_matrix
from dynid.mechanism.mechanism import Capsule
from dynid.mechanism.mesh_file import MeshShape
from dynid.mechanism.xml_elements import Element

Shape = Capsule | MeshShape
_Kind = TypeVar("_Kind", Capsule, MeshShape)
Shapes = dict[str, tuple[Shape, ...]]
_OWNER = "collision shape"


def along_axis(place: Frame, axis: int, half: float, radius: float) -> Capsule:
    """A capsule whose segment is +-half [m] along an axis of a frame; a sphere for half = 0."""
    reach = half * place.R[:, axis]
    return Capsule(place.p - reach, place.p + reach, float(radius))


def around_box(place: Frame, halves: Float[Array, "3"]) -> Capsule:
    """The capsule around a box with these half sides [m]."""
    axis = int(np.argmax(halves))
    return along_axis(place, axis, float(halves[axis]), float(np.linalg.norm(np.delete(halves, axis))))


def urdf_shapes(links: Mapping[str, Element], rename: Mapping[str, str]) -> Shapes:
    """Body -> its <collision> shapes, body frame; bodies without any are left out."""
    return joined(
        (rename.get(name, name), _urdf_shape(element))
        for name, link in links.items()
        for element in link.children
        if element.tag == "collision"
    )


def _urdf_shape(collision: Element) -> Shape | None:
    """None for a shape that is not readable."""
    geometry, origin = collision.child("geometry"), collision.child("origin")
    shape = geometry.children[0] if geometry is not None and geometry.children else None
    if shape is None:
        return None
    try:
        xyz = (origin.numbers("xyz", _OWNER) if origin is not None else None) or []
        rpy = (origin.numbers("rpy", _OWNER) if origin is not None else None) or []
        roll, pitch, yaw = [value for value, _ in rpy] or (0.0, 0.0, 0.0)
        place = Frame(rpy_matrix((roll, pitch, yaw)), np.array([value for value, _ in xyz] or [0.0] * 3))
        if shape.tag == "box":
            halves = 0.5 * np.array([value for value, _ in shape.numbers("size", _OWNER) or []])
            return around_box(place, halves) if len(halves) == 3 and halves.min() > 0.0 else None
        if shape.tag == "mesh":
            scale = np.array([value for value, _ in shape.numbers("scale", _OWNER) or []] or [1.0] * 3)
            return MeshShape(shape.text("filename"), shape.file, place.R * scale, place.p)
        if shape.tag not in ("sphere", "cylinder", "capsule"):
            return None
        radius = shape.number("radius", owner=_OWNER)
        half = 0.0 if shape.tag == "sphere" else 0.5 * shape.number("length", owner=_OWNER)
    except InputError:
        return None
    return along_axis(place, 2, half, radius) if radius > 0.0 and half >= 0.0 else None


def takes_part_in_contacts(geom: Element) -> bool:
    """Whether a geom of an MJCF is more than something to look at."""
    return not all(geom.attributes.get(key) == "0" for key in ("contype", "conaffinity"))


def mjcf_capsule(geom: Element, place: Frame) -> Capsule | None:
    """The capsule around a geom; None for meshes and planes.

    Args:
        place: Of the geom in its body; for `fromto`, of the frame in which the ends are given.
    """
    kind = geom.attributes.get("type", "sphere")
    if kind not in ("sphere", "capsule", "cylinder", "box", "ellipsoid"):
        return None
    try:
        size = np.array([value for value, _ in geom.numbers("size", _OWNER, range(1, 4)) or []])
        ends = geom.numbers("fromto", _OWNER, range(6, 7))
    except InputError:
        return None
    if not len(size) or not np.all(size > 0.0):
        return None
    if ends is not None:
        points = np.array([value for value, _ in ends])
        radius = float(size[0] if kind in ("capsule", "cylinder") else np.sqrt(2.0) * size[0])
        start, end = (place.p + place.R @ point for point in (points[:3], points[3:]))
        return Capsule(start, end, radius)
    if kind == "sphere":
        return along_axis(place, 2, 0.0, size[0])
    if kind in ("capsule", "cylinder"):
        return along_axis(place, 2, size[1], size[0]) if len(size) > 1 else None
    if len(size) < 3:
        return None
    if kind == "box":
        return around_box(place, size)
    axis = int(np.argmax(size))
    second = float(np.sort(size)[1])
    return along_axis(place, axis, float(size[axis]) - second, second)


def joined(shapes: Iterable[tuple[str, Shape | None]]) -> Shapes:
    """Body -> its shapes."""
    by_body: Shapes = {}
    for body, shape in shapes:
        if shape is not None:
            by_body[body] = (*by_body.get(body, ()), shape)
    return by_body


def of_kind(shapes: Shapes, kind: type[_Kind]) -> dict[str, tuple[_Kind, ...]]:
    """Body -> its shapes of one kind; bodies without any are left out."""
    chosen = {
        body: tuple(shape for shape in several if isinstance(shape, kind)) for body, several in shapes.items()
    }
    return {body: several for body, several in chosen.items() if several}
