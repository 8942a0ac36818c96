"""Solids of revolution as triangles, and the turns that put them between two points."""

from __future__ import annotations

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import quaternion_of

_AROUND, _ARCS = 24, 6  # sides of a turned part, and of each half of its round ends


def basis(axis: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """A rotation that turns z onto an axis."""
    length = float(np.linalg.norm(axis))
    z = axis / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def stretched(a: Float[Array, "3"], b: Float[Array, "3"]) -> tuple[Array, Array, tuple[float, float, float]]:
    """Place, turn and scale of a tube of length one that goes from a to b."""
    return a, quaternion_of(basis(b - a)), (1.0, 1.0, max(1e-9, float(np.linalg.norm(b - a))))


def _turned(profile: Float[Array, "m 2"], sides: int = _AROUND) -> tuple[Array, Array]:
    """Vertices and triangles of a profile (radius, height) that is turned about z."""
    around = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(around), np.sin(around)], axis=-1)
    flat = profile[:, None, :1] * ring
    heights = np.broadcast_to(profile[:, None, 1:], (len(profile), sides, 1))
    vertices = np.concatenate([flat, heights], axis=-1).reshape(-1, 3)
    k, j = np.meshgrid(np.arange(len(profile) - 1), np.arange(sides), indexing="ij")
    a, b = k * sides + j, k * sides + (j + 1) % sides
    faces = np.stack([np.stack([a, b, b + sides], -1), np.stack([a, b + sides, a + sides], -1)])
    return vertices.astype(np.float32), faces.reshape(-1, 3).astype(np.uint32)


def capsule(a: Float[Array, "3"], b: Float[Array, "3"], r: float) -> tuple[Array, Array]:
    """A cylinder with round ends from a to b."""
    angles, length = np.linspace(-0.5 * np.pi, 0.0, _ARCS + 1), float(np.linalg.norm(b - a))
    below = np.stack([r * np.cos(angles), r * np.sin(angles)], axis=-1)
    above = below[::-1] * [1.0, -1.0] + [0.0, length]
    vertices, faces = _turned(np.concatenate([below, above]))
    return (vertices @ basis(b - a).T + a).astype(np.float32), faces


def drum(r: float, half: float, *, square: bool) -> tuple[Array, Array]:
    """A cylinder with flat ends about the origin, or a block."""
    profile = np.array([[0.0, -half], [r, -half], [r, half], [0.0, half]])
    return _turned(profile, 4 if square else _AROUND)


def tube(r: float) -> tuple[Array, Array]:
    """A cylinder with flat ends from height 0 to 1."""
    return _turned(np.array([[0.0, 0.0], [r, 0.0], [r, 1.0], [0.0, 1.0]]))
