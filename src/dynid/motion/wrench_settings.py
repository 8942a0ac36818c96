"""Settings of the model `wrench`: which bodies, which parameters, and how its tables are to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from dynid.common.errors import InputError, nearest
from dynid.common.settings import Settings

WORLD: Final = "world"
BODY: Final = "body"
# Quantities that can be given in world or in body axes, and their default axes.
DEFAULT_AXES = {"wrench": WORLD, "rates": BODY, "acceleration": WORLD}
KINEMATIC: Final = "kinematic"
PROPER: Final = "proper"
PARENT: Final = "parent"
JOINT: Final = "joint"
COM: Final = "com"
# Reference points of the moments of a table, in words.
POINTS = {
    JOINT: "the origins of the joints",
    BODY: "the origins of the bodies",
    COM: "the centres of mass",
    WORLD: "the world's origin",
}


class WrenchSettings(Settings, frozen=True):
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

    _title: ClassVar[str] = "wrench"

    parameters: Literal["full", "principal"] = "full"
    bodies: tuple[str, ...] | None = None
    names: Mapping[str, str] = {}
    axes: Mapping[str, Literal["world", "body"]] = {}
    acceleration: Literal["kinematic", "proper"] = KINEMATIC
    exerted_by: Literal["parent", "body"] = PARENT
    at: Literal["joint", "body", "com", "world"] = JOINT

    def check(self) -> None:
        """Names of axes, and an empty list of bodies."""
        for quantity in self.axes:
            if quantity not in DEFAULT_AXES:
                raise InputError(
                    f"axes has no '{quantity}'" + nearest(quantity, DEFAULT_AXES),
                    place=f"axes.{quantity}",
                    remedy="use " + ", ".join(DEFAULT_AXES),
                )
        if self.bodies is not None and not self.bodies:
            raise InputError(
                "the list of bodies is empty", place="bodies", remedy="remove `bodies:` to use all bodies"
            )

    def axes_of(self, what: str) -> str:
        """`world` or `body`, of `wrench`, `rates` or `acceleration`."""
        return self.axes.get(what, DEFAULT_AXES[what])

    @property
    def words(self) -> str:
        """How the table was read, in one line."""
        axes = ", ".join(f"{quantity} in {self.axes_of(quantity)} axes" for quantity in DEFAULT_AXES)
        gravity = "gravity not subtracted" if self.acceleration == KINEMATIC else "gravity subtracted"
        by = "by the parent on the body" if self.exerted_by == PARENT else "by the body on its parent"
        return f"{axes}; {gravity} from accelerations; wrenches exerted {by}, moments about {POINTS[self.at]}"
