"""Settings of the model `wrench`: which bodies, which parameters, and how its tables are to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dynid.common.errors import InputError, nearest
from dynid.motion.settings import check_choice

PARAMETERS = ("full", "principal")
WORLD, BODY = "world", "body"
AXES = (WORLD, BODY)
# Quantities that can be given in world or in body axes, and their default axes.
DEFAULT_AXES = {"wrench": WORLD, "rates": BODY, "acceleration": WORLD}
KINEMATIC, PROPER = ACCELERATIONS = ("kinematic", "proper")
PARENT = "parent"
EXERTED_BY = (PARENT, BODY)
JOINT, COM = "joint", "com"
# Reference points of the moments of a table, in words.
POINTS = {
    JOINT: "the origins of the joints",
    BODY: "the origins of the bodies",
    COM: "the centres of mass",
    WORLD: "the world's origin",
}


@dataclass(frozen=True)
class WrenchSettings:
    """How a table of bodies is read and what is identified from it.

    Attributes:
        parameters: `full`: the ten of each body; `principal`: M, XX, YY, ZZ with the centre of mass at the
            body's origin.
        bodies: Bodies to identify; None: all that the table determines.
        names: Name of a body in the table -> its name in the robot's description.
        axes: `wrench`, `rates` (angular velocity and acceleration) and `acceleration`: `world` or `body`.
        acceleration: `kinematic`, or `proper`: gravity is subtracted, as an accelerometer shows it.
        exerted_by: Who exerts the wrench of a row: the `parent` on the body, or the `body` on its parent.
        at: Point that the moments are about: origin of the inner `joint`, of the `body`, its centre of mass
            (`com`), or origin of the `world`.
    """

    parameters: str = "full"
    bodies: tuple[str, ...] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    acceleration: str = KINEMATIC
    exerted_by: str = PARENT
    at: str = JOINT

    def __post_init__(self) -> None:
        check_choice("wrench parameters", self.parameters, PARAMETERS)
        check_choice("wrench acceleration", self.acceleration, ACCELERATIONS)
        check_choice("wrench exerted_by", self.exerted_by, EXERTED_BY)
        check_choice("wrench at", self.at, tuple(POINTS))
        for what, axes in self.axes.items():
            check_choice("axes of", what, tuple(DEFAULT_AXES))
            check_choice(f"axes of {what}", axes, AXES)
        if self.bodies is not None and not self.bodies:
            raise InputError(
                "the list of bodies is empty",
                place="wrench.bodies",
                remedy="remove `bodies:` to use all bodies",
            )

    def axes_of(self, what: str) -> str:
        """`world` or `body`, of `wrench`, `rates` or `acceleration`."""
        return self.axes.get(what, DEFAULT_AXES[what])

    @property
    def words(self) -> str:
        """How the table was read, in one line."""
        axes = ", ".join(f"{what} in {self.axes_of(what)} axes" for what in DEFAULT_AXES)
        gravity = "gravity not subtracted" if self.acceleration == KINEMATIC else "gravity subtracted"
        by = "by the parent on the body" if self.exerted_by == PARENT else "by the body on its parent"
        return f"{axes}; {gravity} from accelerations; wrenches exerted {by}, moments about {POINTS[self.at]}"


def wrench_settings(options: Mapping[str, Any]) -> WrenchSettings:
    """Settings from plain options, as an experiment has them."""
    valid = tuple(one.name for one in fields(WrenchSettings))
    for name in options:
        if name not in valid:
            raise InputError(
                f"wrench has no '{name}'" + nearest(name, valid), remedy=f"use {', '.join(valid)}"
            )
    made = dict(options)
    if made.get("bodies") is not None:
        made["bodies"] = tuple(made["bodies"])
    return WrenchSettings(**made)
