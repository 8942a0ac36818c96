"""Capsules around the collision meshes of a robot, as tight as a search finds them.

A capsule is convex: it contains a triangle if it contains its corners. A link that is bent is divided across
one of its principal axes, where two capsules need much less space than one; every triangle stays whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from dynid.common import limits
from dynid.common.arrays import Array, Float
from dynid.common.errors import InputError
from dynid.mechanism.mechanism import Capsule, Mechanism

_MOST = 4  # capsules of a body
_SAVING = 0.75  # of the volume: two capsules that need less than this share replace one
_CUTS = (0.3, 0.5, 0.7)  # of the length
_FINE = 8  # edges are shorter than this part of the diagonal, for the division
_MANY = 50_000  # triangles that are not made finer
_ENOUGH = 2000  # triangles that show a shape
_DIRECTIONS, _ROUGHLY = 400, 60
_ROUND = 5  # digits of ends, in [m]: the same capsule on every machine
_WIDEST = 50.0  # m: a mesh of a robot that is larger was written in millimetres


def mesh_capsules(
    robot: Mechanism,
) -> tuple[dict[str, tuple[Capsule, ...]], Mapping[str, InputError]]:
    """Body -> capsules around its collision meshes, and bodies with meshes that are not readable, with why.

    A body gets no capsules if one of its meshes is not readable: part of it would not be checked.
    """
    by_body: dict[str, tuple[Capsule, ...]] = {}
    unread: dict[str, InputError] = {}
    for body, shapes in robot.meshes.items():
        try:
            corners = np.concatenate([mesh.vertices[mesh.triangles] for mesh in (s.read() for s in shapes)])
            size = float(np.ptp(corners, axis=(0, 1)).max())
            if limits.exceeded(size, _WIDEST):
                raise InputError(
                    f"mesh '{shapes[0].name}' is {size:.3g} m large",
                    file=shapes[0].described_in,
                    remedy='if it is in millimetres, write scale="0.001 0.001 0.001"',
                )
            by_body[body] = covering(corners)
        except InputError as error:
            unread[body] = error
    return by_body, unread


def covering(corners: Float[Array, "m 3 3"], most: int = _MOST) -> tuple[Capsule, ...]:
    """Capsules that together contain triangles, given by their corners in [m]."""
    return tuple(_tightened(part.reshape(-1, 3)) for part in _divided(_finer(corners), most))


def _finer(corners: Float[Array, "m 3 3"]) -> Float[Array, "k 3 3"]:
    """Long triangles halved at their longest edge: a box of twelve triangles could not be divided."""
    longest = float(np.linalg.norm(np.ptp(corners, axis=(0, 1)))) / _FINE
    while len(corners) < _MANY:
        edges = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
        long = edges.max(axis=1) > longest
        if not long.any():
            break
        first = np.argmax(edges[long], axis=1)
        k = np.arange(len(first))
        a, b, c = (corners[long][k, (first + i) % 3] for i in range(3))
        middle = 0.5 * (a + b)
        halves = (np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1))
        corners = np.concatenate([corners[~long], *halves])
    return corners


def _divided(corners: Float[Array, "m 3 3"], most: int) -> list[Float[Array, "_ 3 3"]]:
    """Parts whose capsules need much less space than one around all."""
    if most < 2:
        return [corners]
    places = corners.mean(axis=1)
    axes = _principal(places)
    best, smallest = [corners], _SAVING * _needed(corners)
    for axis, share in product(axes, _CUTS):
        along = places @ axis
        lower = along < along.min() + share * np.ptp(along)
        halves = [corners[lower], corners[~lower]]
        if all(map(len, halves)):
            volume = sum(map(_needed, halves))
            if volume < smallest:
                best, smallest = halves, volume
    if len(best) < 2:
        return best
    return [part for half in best for part in _divided(half, most // 2)]


def _needed(corners: Float[Array, "m 3 3"]) -> float:
    """Volume of a capsule around triangles, in [m^3]; of many triangles, some: it only decides a division."""
    some = corners[:: 1 + len(corners) // _ENOUGH]
    points = _outermost(some.reshape(-1, 3), _ROUGHLY)
    return _volume(_around(points), points)


def _tightened(points: Float[Array, "n 3"]) -> Capsule:
    """The smallest capsule around points that a search from the principal axes finds."""
    from scipy.optimize import minimize

    outer = _outermost(points)
    start = _around(outer)
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    simplex = np.vstack([start, start + 0.1 * size * np.eye(6)])
    found = minimize(
        lambda ends: _volume(ends, outer),
        start,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 1e-4 * size, "fatol": 1e-4 * size**3, "maxfev": 600},
    )
    a, b = np.round(found.x.reshape(2, 3), _ROUND)
    # Of all points: the search looked at the outermost ones of many directions only.
    radius = float(_distances(np.concatenate([a, b]), points).max())
    return Capsule(a, b, radius * (1.0 + 1e-9) + 1e-9)


def _outermost(points: Float[Array, "n 3"], count: int = _DIRECTIONS) -> Float[Array, "k 3"]:
    """The outermost points in many directions, spread evenly."""
    k = np.arange(count)
    z = (2.0 * k + 1.0) / count - 1.0
    turn = k * np.pi * (3.0 - np.sqrt(5.0))
    r = np.sqrt(1.0 - z * z)
    directions = np.column_stack([r * np.cos(turn), r * np.sin(turn), z])
    blocks = range(0, len(points), 4096)  # the product of all points would need much memory
    kept: list[Float[Array, "_ 3"]] = []
    for i in blocks if len(points) > count else ():
        block = points[i : i + 4096]
        kept.append(block[np.unique(np.argmax(directions @ block.T, axis=1))])
    if kept:
        points = np.concatenate(kept)
        points = points[np.unique(np.argmax(directions @ points.T, axis=1))]
    return points


def _around(points: Float[Array, "n 3"]) -> Float[Array, "6"]:
    """Ends of the smallest of three capsules along the principal axes."""
    centre = points.mean(axis=0)
    axes = _principal(points)
    local = (points - centre) @ axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    candidates = []
    for k in range(3):
        middle = 0.5 * (low + high)
        across = np.delete(local - middle, k, axis=1)
        d2 = np.sum(across**2, axis=1)
        caps = np.sqrt(np.maximum(d2.max() - d2, 0.0))
        a, b = (local[:, k] + caps).min(), (local[:, k] - caps).max()
        ends = np.tile(middle, (2, 1))
        ends[:, k] = (a, b) if a < b else (0.5 * (a + b),) * 2
        candidates.append((centre + ends @ axes).reshape(6))
    return min(candidates, key=lambda ends: _volume(ends, points))


def _principal(points: Float[Array, "n 3"]) -> Float[Array, "3 3"]:
    """Principal axes as rows."""
    centred = points - points.mean(axis=0)
    return np.asarray(np.linalg.eigh(centred.T @ centred)[1].T)


def _distances(ends: Float[Array, "6"], points: Float[Array, "n 3"]) -> Float[Array, "n"]:
    """Of points from a segment, in [m]."""
    a, along = ends[:3], ends[3:] - ends[:3]
    share = np.clip((points - a) @ along / max(float(along @ along), 1e-30), 0.0, 1.0)
    return np.asarray(np.linalg.norm(points - a - share[:, None] * along, axis=1))


def _volume(ends: Float[Array, "6"], points: Float[Array, "n 3"]) -> float:
    """Of the capsule of a segment that contains points, in [m^3]."""
    radius = float(_distances(ends, points).max())
    return np.pi * radius**2 * (float(np.linalg.norm(ends[3:] - ends[:3])) + 4.0 / 3.0 * radius)
