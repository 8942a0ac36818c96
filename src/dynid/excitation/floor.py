"""The floor of a motion: as given, or as high as the description lets the real one be.

Heights h = u . p are opposite to gravity, from the origin of the base frame: u = -g / |g|. Where a robot
stands on its base, the floor is neither above the plane of the base frame nor above the robot at rest:

    floor = min(0, lowest point of the moving bodies at rest - clearance)

It says nothing where the base frame is not at the foot of the robot: no floor is assumed then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.common.notices import Notice, notice
from dynid.display.scene import links_length, robot_shapes, upwards
from dynid.excitation.optimal.paths import Path, RobotStates
from dynid.excitation.optimal.soft_bodies import FLOOR_SIZE, Floor, neighbours
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.tree import body_poses, tree_of
from dynid.mechanism.frame import Frame, identity_frame
from dynid.mechanism.joint import JointKind
from dynid.mechanism.mechanism import BASE, Mechanism

_UPRIGHT = 0.97  # cosine of 14 degrees between the z axis of the base and the vertical
_VERTICAL = 0.99  # cosine: turning about such an axis changes no height
_FOOT = 0.05  # of the length of all links: how far above the base frame a shoulder is at least
_HANGING = 0.2  # of the length of all links: how far a robot that hangs reaches below its base
_STEP = 0.01  # m: an assumed height is rounded down to it


@dataclass(frozen=True)
class FloorHeight:
    """Where the floor is.

    Attributes:
        height: Above the origin of the base frame, in [m]; None: not checked.
        assumed: Whether it follows from the description, not from the settings.
        why: Why it is not checked.
    """

    height: float | None
    assumed: bool = False
    why: str = ""

    def notices(self) -> tuple[Notice, ...]:
        """That it is assumed, or not checked."""
        if self.height is None:
            return (notice("floor-unchecked", why=self.why),)
        return (notice("floor-assumed", height=f"{self.height:g}"),) if self.assumed else ()


def floor_height(path: Path, settings: ExciteSettings, rest: RobotStates | None) -> FloorHeight:
    """The floor of the settings, or the one assumed.

    Args:
        rest: The robot at its pose of rest; None: it has none.
    """
    if isinstance(settings.floor, float | int):
        return FloorHeight(float(settings.floor))
    if settings.floor == "none" or not settings.collisions:
        return FloorHeight(None, why="as asked (floor: none)")
    near, floor = neighbours(path.mechanism), Floor(path, 0.0)
    why = _no_foot(path.mechanism) if floor else "no moving body has a capsule"
    if why or rest is None:
        return FloorHeight(None, why=why or "the robot has no pose of rest")
    heights = floor.gaps(rest)[:, 0]
    own = np.array([frozenset((BASE, name)) not in near for (name,) in floor.bodies])
    lowest = float(heights[own].min()) if own.any() else 0.0
    length = links_length(robot_shapes(path.mechanism))
    if -lowest > max(_HANGING * length, float((heights + floor.widths).max())):
        return FloorHeight(None, why="at rest the robot reaches farther below its base frame than above it")
    if _shoulder(path.mechanism, rest) < _FOOT * length:
        return FloorHeight(None, why="the base frame is at the height of the first joint that lifts bodies")
    height = min(0.0, lowest - settings.clearance - settings.margin * FLOOR_SIZE)
    return FloorHeight(float(np.floor(height / _STEP + 1e-9) * _STEP), assumed=True)


def _no_foot(robot: Mechanism) -> str:
    """Why a robot does not stand on its base; empty if it may."""
    if robot.cables:
        return "the robot hangs on cables"
    if not robot.is_closed and any(joint.kind is JointKind.FREE for joint in robot.joints):
        return "its base moves freely"
    if not np.any(robot.gravity) or upwards(robot)[2] < _UPRIGHT:
        return "gravity does not act along -z of the base frame"
    return ""


def _shoulder(robot: Mechanism, rest: RobotStates) -> float:
    """Height of the lowest joint about an axis that is not vertical, in [m]; infinite without one."""
    tree, up = tree_of(robot), upwards(robot)
    R, p = (x[0] for x in body_poses(tree, rest.q[:1]))
    frames = {name: Frame(R[i], p[i]) for i, name in enumerate(tree.body_names)} | {BASE: identity_frame()}
    heights = [np.inf]
    for joint in robot.joints:
        if joint.coordinates and joint.kind is not JointKind.PRISMATIC:
            at = frames[joint.parent] @ joint.placement
            if not joint.axes or abs(float(up @ at.R @ joint.axes[0])) < _VERTICAL:
                heights.append(float(up @ at.p))
    return min(heights)
