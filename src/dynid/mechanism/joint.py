"""Joint kinds: the number of positions and of velocities of each.

Positions and velocities of a joint differ in number where a quaternion is used:

| kind       | positions                | velocities                                   |
|------------|--------------------------|----------------------------------------------|
| revolute   | angle about `axis`       | its rate                                     |
| prismatic  | travel along `axis`      | its rate                                     |
| fixed      | -                        | -                                            |
| universal  | angle about a, then b    | their rates                                  |
| spherical  | qw qx qy qz              | angular velocity, moving frame               |
| free       | x y z qw qx qy qz        | rates of x y z, then as spherical            |
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.mechanism.frame import Frame, identity_frame

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


class JointKind(StrEnum):
    """The kinds a joint of the tree can have."""

    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"
    FIXED = "fixed"
    UNIVERSAL = "universal"
    SPHERICAL = "spherical"
    FREE = "free"


_QUATERNION = ("qw", "qx", "qy", "qz")
_ANGULAR = ("wx", "wy", "wz")
_POSITIONS: dict[JointKind, tuple[str, ...]] = {
    JointKind.REVOLUTE: ("",),
    JointKind.PRISMATIC: ("",),
    JointKind.FIXED: (),
    JointKind.UNIVERSAL: ("1", "2"),
    JointKind.SPHERICAL: _QUATERNION,
    JointKind.FREE: ("x", "y", "z", *_QUATERNION),
}
_VELOCITIES: dict[JointKind, tuple[str, ...]] = {
    **_POSITIONS,
    JointKind.SPHERICAL: _ANGULAR,
    JointKind.FREE: ("x", "y", "z", *_ANGULAR),
}


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint of the tree, and the frame of its child body.

    Attributes:
        placement: Joint frame at zero in the parent's body frame.
        axes: Unit motion axes in the joint frame: one (revolute, prismatic), two
            (universal: the second turns with the first), else none; each shape (3,).
        body: Body frame of the child in the moving joint frame.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    placement: Frame = field(default_factory=identity_frame)
    axes: tuple[Float[Array, "3"], ...] = ()
    body: Frame = field(default_factory=identity_frame)

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Names of the position coordinates: the joint's own name, or name_suffix."""
        return self._named(_POSITIONS[self.kind])

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the velocity coordinates: the joint's own name, or name_suffix."""
        return self._named(_VELOCITIES[self.kind])

    @property
    def has_quaternion(self) -> bool:
        """Whether four of the positions are a unit quaternion."""
        return self.kind in (JointKind.SPHERICAL, JointKind.FREE)

    def is_angle(self, coordinate: str) -> bool:
        """Whether a velocity coordinate of this joint is a rotation (rad), not a translation (m)."""
        if self.kind is JointKind.PRISMATIC:
            return False
        return self.kind is not JointKind.FREE or coordinate[-2:] in _ANGULAR

    def _named(self, suffixes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{self.name}_{suffix}" if suffix else self.name for suffix in suffixes)


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


def unique(name: str, taken: Container[str]) -> str:
    """The name, with underscores where it is taken."""
    while name in taken:
        name += "_"
    return name


def massless_joint(
    name: str,
    kind: JointKind,
    taken: Container[str],
    parent: str = "base",
    placement: Frame | None = None,
    axes: tuple[Float[Array, "3"], ...] | None = None,
) -> Joint:
    """A joint of a link without mass, whose name is none of the bodies `taken`; default axis z."""
    axes = (np.array([0.0, 0.0, 1.0]),) if axes is None else axes
    return Joint(name, kind, parent, unique(f"{name}_link", taken), placement or identity_frame(), axes)
