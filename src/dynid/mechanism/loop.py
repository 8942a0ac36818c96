"""Loop: a cut between two bodies, and the directions in which their frames coincide there."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.mechanism.frame import Frame

DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
# Directions that each kind fixes; the axis of a revolute, prismatic or planar loop is z of both
# frames. Universal: x of frame a and y of frame b are its axes and stay perpendicular.
FIXED_BY = {
    "point": ("x", "y", "z"),
    "universal": ("x", "y", "z", "rz"),
    "revolute": ("x", "y", "z", "rx", "ry"),
    "prismatic": ("x", "y", "rx", "ry", "rz"),
    "planar": ("z", "rx", "ry"),
    "weld": DIRECTIONS,
}


@dataclass(frozen=True, eq=False)
class Loop:
    """Frames of two bodies that a closure connects.

    Attributes:
        fix: Directions, in frame a, in which frame b coincides with it; none for a rod.
        body_a, body_b: Bodies (or `base`).
        a, b: Frames in these bodies.
        length: Of a rigid rod between the two origins, in [m]; None for other loops.
    """

    name: str
    fix: tuple[str, ...]
    body_a: str
    a: Frame
    body_b: str
    b: Frame
    length: float | None = None
